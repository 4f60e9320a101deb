"""A kernel whose codes leave in words and one by one, by Triton's own cast: what not to write."""

import triton
import triton.language as tl


@triton.jit
def torn_cast(x_ptr, row_ptr, column_ptr):
    """row[m, k] = column[k, m] = e4m3(x[m, k]) for 64 x 64 elements."""
    m, k = tl.arange(0, 64)[:, None], tl.arange(0, 64)[None, :]
    codes = tl.load(x_ptr + m * 64 + k).to(tl.float8e4nv).to(tl.uint8, bitcast=True)
    tl.store(row_ptr + m * 64 + k, codes)
    tl.store(column_ptr + tl.trans(k) * 64 + tl.trans(m), tl.trans(codes))
