"""What one program does with a tile: load it, find the amax of its blocks, store bytes.

A tile of ROWS x COLUMNS elements is loaded as [KEPT, ROWS / KEPT, COLUMNS], where the first
dimension counts neighbouring rows. Triton fills threads from the columns on and leaves the first
dimension to registers: a thread holds KEPT neighbouring rows, so most of the amax over rows needs
no other thread. Computed is on five dimensions, [KEPT, ROWS / 32, 32 / KEPT, COLUMNS / 32, 32]:
blocks are whole dimensions, and no number moves.

Where the tile is stored transposed, STEP is 4: four tiles hold every fourth row each. Four rows are
cast together, into the four bytes of a word, so that neighbours in memory are neighbours at once
and words are transposed, not bytes.
"""
# ruff: noqa: N803, RET505 - constexprs are capitals; the compiler drops an untaken else.

import triton
import triton.language as tl

from ..device import largest, magnitude, to_float32  # noqa: TID252


@triton.jit
def tile_place(down, across, ROWS: tl.constexpr, COLUMNS: tl.constexpr, ROWS_FIRST: tl.constexpr):
    """(matrix, row, column) of this program's tile, int64; `down` x `across` tiles a matrix."""
    program = tl.program_id(0)
    matrix = program // (down * across)
    tile = program - matrix * (down * across)
    if ROWS_FIRST:
        column = tile // down
        row = tile - column * down
    else:
        row = tile // across
        column = tile - row * across
    return matrix.to(tl.int64), row.to(tl.int64) * ROWS, column.to(tl.int64) * COLUMNS


@triton.jit
def tile_rows(ROWS: tl.constexpr, KEPT: tl.constexpr, STEP: tl.constexpr, WIDE: tl.constexpr):
    """The row of each element in the tile; int64 where a tile may span 2^31 elements."""
    kept = tl.arange(0, KEPT // STEP)[:, None, None] * STEP
    rows = tl.arange(0, ROWS // KEPT)[None, :, None] * KEPT + kept
    if WIDE:
        return rows.to(tl.int64)
    else:
        return rows


@triton.jit
def tile_columns(COLUMNS: tl.constexpr):
    """The column of each element in the tile."""
    return tl.arange(0, COLUMNS)[None, None, :]


@triton.jit
def tile_offsets(row, column, stride, VECTOR: tl.constexpr):
    """Where elements lie. The hint orders the dimensions, for Triton goes by contiguity: columns,
    at most VECTOR of them in a thread, then rows that are apart, last those a thread keeps."""
    return tl.max_contiguous(row * stride + column, (1, 2, VECTOR))


@triton.jit
def load_tile(x_ptr, offsets, mask, STREAM: tl.constexpr):
    """The stored bits of a tile; zeros where the mask says no."""
    other = None if mask is None else 0
    if STREAM:
        return tl.load(x_ptr + offsets, mask=mask, other=other, eviction_policy="evict_first")
    else:
        return tl.load(x_ptr + offsets, mask=mask, other=other)


@triton.jit
def as_blocks(x, ROWS: tl.constexpr, COLUMNS: tl.constexpr, KEPT: tl.constexpr, STEP: tl.constexpr):
    """The tile with its blocks as dimensions."""
    return tl.reshape(x, (KEPT // STEP, ROWS // 32, 32 // KEPT, COLUMNS // 32, 32))


@triton.jit
def as_loaded(x, ROWS: tl.constexpr, COLUMNS: tl.constexpr, KEPT: tl.constexpr, STEP: tl.constexpr):
    """The inverse of `as_blocks`."""
    return tl.reshape(x, (KEPT // STEP, ROWS // KEPT, COLUMNS))


@triton.jit
def sizes_of(bits, DTYPE: tl.constexpr):
    """Magnitude bits; 16-bit patterns are compared as they are: fp16's are ordered like fp32's."""
    return bits & (0x7FFFFFFF if DTYPE == "fp32" else 0x7FFF)


@triton.jit
def block_amax(sizes, ROW_BLOCK: tl.constexpr, COLUMN_BLOCK: tl.constexpr, DTYPE: tl.constexpr):
    """The fp32 bits of the amax of each block; blocked dimensions are kept with size 1."""
    if ROW_BLOCK == 32:
        sizes = largest(sizes, 0, True)
    if COLUMN_BLOCK == 32:
        sizes = largest(sizes, 4, True)
    if ROW_BLOCK == 32:
        sizes = largest(sizes, 2, True)
    return magnitude(to_float32(sizes, DTYPE))


@triton.jit
def load_four(
    x_ptr,
    row_stride,
    rows_left,
    columns_left,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    KEPT: tl.constexpr,
    VECTOR: tl.constexpr,
    EVEN: tl.constexpr,
    WIDE: tl.constexpr,
    STREAM: tl.constexpr,
):
    """The bits of rows 0, 4, ..., of rows 1, 5, ..., 2, 6, ..., 3, 7, ..., as blocks."""
    row = tile_rows(ROWS, KEPT, 4, WIDE)
    column = tile_columns(COLUMNS)
    offsets = tile_offsets(row, column, row_stride, VECTOR)
    if EVEN:
        a = load_tile(x_ptr, offsets, None, STREAM)
        b = load_tile(x_ptr + row_stride, offsets, None, STREAM)
        c = load_tile(x_ptr + row_stride * 2, offsets, None, STREAM)
        d = load_tile(x_ptr + row_stride * 3, offsets, None, STREAM)
    else:
        inside = column < columns_left
        a = load_tile(x_ptr, offsets, inside & (row < rows_left), STREAM)
        b = load_tile(x_ptr + row_stride, offsets, inside & (row + 1 < rows_left), STREAM)
        c = load_tile(x_ptr + row_stride * 2, offsets, inside & (row + 2 < rows_left), STREAM)
        d = load_tile(x_ptr + row_stride * 3, offsets, inside & (row + 3 < rows_left), STREAM)
    a = as_blocks(a, ROWS, COLUMNS, KEPT, 4)
    b = as_blocks(b, ROWS, COLUMNS, KEPT, 4)
    c = as_blocks(c, ROWS, COLUMNS, KEPT, 4)
    return a, b, c, as_blocks(d, ROWS, COLUMNS, KEPT, 4)


@triton.jit
def amax_of_four(
    a, b, c, d, ROW_BLOCK: tl.constexpr, COLUMN_BLOCK: tl.constexpr, DTYPE: tl.constexpr
):
    """The amax of blocks over 32 rows, a quarter of which is in each tile."""
    first = tl.maximum(sizes_of(a, DTYPE), sizes_of(b, DTYPE))
    second = tl.maximum(sizes_of(c, DTYPE), sizes_of(d, DTYPE))
    return block_amax(tl.maximum(first, second), ROW_BLOCK, COLUMN_BLOCK, DTYPE)


@triton.jit
def store_words(
    payload_ptr,
    words,
    rows,
    rows_left,
    columns_left,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    EVEN: tl.constexpr,
    ALIGNED: tl.constexpr,
    WIDE: tl.constexpr,
):
    """Store words of four rows transposed, columns `rows` bytes apart from `payload_ptr` on."""
    words = tl.reshape(tl.permute(words, (3, 4, 1, 2, 0)), (COLUMNS, ROWS // 4))
    column = tl.arange(0, COLUMNS)[:, None]
    word = tl.arange(0, ROWS // 4)[None, :]
    inside = column < columns_left
    if WIDE:
        column = column.to(tl.int64)
    if ALIGNED:
        mask = None if EVEN else inside & (word * 4 < rows_left)
        words_ptr = payload_ptr.to(tl.pointer_type(tl.int32), bitcast=True)
        tl.store(words_ptr + column * (rows // 4) + word, words, mask=mask)
    else:
        for byte in tl.static_range(4):
            row = word * 4 + byte
            codes = (words >> (8 * byte)).to(tl.uint8)
            tl.store(payload_ptr + column * rows + row, codes, mask=inside & (row < rows_left))
