"""Dequantization: (payload, scale) -> values. README.md beside this file says how."""

import torch

from mxkernels.dequantize import calls

__all__ = ["dequantize"]


def dequantize(
    payload: torch.Tensor,
    scale: torch.Tensor,
    *,
    block: tuple[int, int] = (1, 32),
    scale_layout: str = "plain",
    contract: int | None = None,
    dtype: torch.dtype = torch.float32,
    backend: str = "auto",
) -> torch.Tensor:
    """The values of an MX tensor: payload * 2^(byte - 127), rounded once to `dtype`.

    The bytes of `mxref.dequantize(payload, mxref.layouts.decode(scale, scale_layout, ...))`. The
    product is exact in fp32 or, past its end, a signed Inf; rounding is to nearest even, past the
    end of `dtype` to a signed Inf. Subnormals are never flushed.

    ======================  =========================================
    scale byte / payload    value
    ======================  =========================================
    255 / any               NaN: 0x7FC00000, 0x7FC0, 0x7E00
    any / 0x7F, 0xFF        the same NaN, the sign dropped
    0                       payload * 2^-127
    any / 0x00, 0x80        +0, -0
    ======================  =========================================

    Args:
        payload: float8_e4m3fn of any strides; rank >= 1 for block (1, 32), else >= 2. Read in place
            where the last or the second to last dimension has stride 1 and the leading ones
            collapse; else copied.
        scale: float8_e8m0fnu or uint8. Swizzled: any shape with the number of bytes; "plain",
            "plain_t": the stored shape.
        block: the elements that share a scale: (1, 32), (32, 1) or (32, 32).
        scale_layout: "plain", "plain_t" or "swizzle_32_4_4".
        contract: -1 or -2, the dimension a GEMM sums over; needed for a swizzled (32, 32) only.
        dtype: float32, bfloat16 or float16.
        backend: "triton", "reference" or "auto": "triton" for a CUDA tensor, else "reference".

    Returns:
        A new tensor of payload's shape, without gaps, that lies as the payload does: column-major
        where its second to last dimension alone has stride 1, else contiguous.

    Raises TypeError or ValueError for a bad argument, NotImplementedError for a back end that is
    not built or a float8_e5m2 payload with "triton", RuntimeError naming what a back end lacks
    here. Source: OCP MX v1.0 section 5.1. POLICY: overflow gives Inf.

    >>> payload = torch.tensor([[0x7E, 0x80, 0x01]], dtype=torch.uint8).view(torch.float8_e4m3fn)
    >>> dequantize(payload, torch.tensor([[128]], dtype=torch.uint8)).tolist()
    [[896.0, -0.0, 0.00390625]]
    """
    return calls.dequantize(payload, scale, block, scale_layout, contract, dtype, backend)
