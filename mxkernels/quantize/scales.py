"""How one program stores the scale bytes of its tile, in each layout."""
# ruff: noqa: N803, N806 - constexprs are capitals.

import triton
import triton.language as tl

from ..device import multiplier, scale_byte, scaled, to_float32  # noqa: TID252
from .tile import block_amax, sizes_of


@triton.jit
def store_plain(
    scale_ptr,
    scale,
    first_row,
    first_column,
    rows,
    columns,
    TRANSPOSED: tl.constexpr,
    TALL: tl.constexpr,
    BROAD: tl.constexpr,
    STEP: tl.constexpr,
    EVEN: tl.constexpr,
):
    """Store scales [TALL, BROAD] at their place in the matrix rows x columns, or transposed."""
    row = first_row + tl.arange(0, TALL)[:, None].to(tl.int64) * STEP
    column = first_column + tl.arange(0, BROAD)[None, :].to(tl.int64)
    mask = None if EVEN else (row < rows) & (column < columns)
    if TRANSPOSED:
        tl.store(scale_ptr + column * rows + row, scale, mask=mask)
    else:
        tl.store(scale_ptr + row * columns + column, scale, mask=mask)


@triton.jit
def store_swizzled(
    scale_ptr,
    scale,
    first_block,
    first_column,
    rows,
    columns,
    BLOCKS: tl.constexpr,
    COLUMNS: tl.constexpr,
    STEP: tl.constexpr,
    PHASE: tl.constexpr,
    EVEN: tl.constexpr,
):
    """Store scales [BLOCKS, 32 / STEP, COLUMNS] of S[rows, columns] in tiles of 128 x 4, padded.

    `first_block` counts 32 rows of S. The second dimension may be 1, for equal rows. With BLOCKS
    and COLUMNS of 4 and up and STEP 1, whole 512 bytes are written.
    """
    HIGH: tl.constexpr = 4 if BLOCKS > 4 else BLOCKS
    LOW: tl.constexpr = 4 if COLUMNS > 4 else COLUMNS
    WITHIN: tl.constexpr = 32 // STEP
    scale = tl.broadcast_to(scale, (BLOCKS, WITHIN, COLUMNS))
    if not EVEN:
        within = tl.arange(0, WITHIN)[None, :, None] * STEP + PHASE
        row = (first_block + tl.arange(0, BLOCKS)[:, None, None].to(tl.int64)) * 32 + within
        column = first_column + tl.arange(0, COLUMNS)[None, None, :]
        scale = tl.where((row < rows) & (column < columns), scale, 0)
    scale = tl.reshape(scale, (BLOCKS // HIGH, HIGH, WITHIN, COLUMNS // LOW, LOW))
    scale = tl.permute(scale, (0, 3, 2, 1, 4))
    block = first_block + tl.arange(0, BLOCKS // HIGH)[:, None, None, None, None] * HIGH
    column = first_column + tl.arange(0, COLUMNS // LOW)[None, :, None, None, None] * LOW
    within = tl.arange(0, WITHIN)[None, None, :, None, None] * STEP + PHASE
    high = tl.arange(0, HIGH)[None, None, None, :, None]
    low = tl.arange(0, LOW)[None, None, None, None, :]
    # The first block and column of a tile are multiples of its size: below 4 they fall inside one.
    if HIGH < 4:
        high += block % 4
    if LOW < 4:
        low += column % 4
    across = (columns + 3) // 4
    tile = (block // 4).to(tl.int64) * across + column // 4
    offset = tile * 512 + within * 16 + high * 4 + low
    mask = None if EVEN else (block * 32 < (rows + 127) // 128 * 128) & (column < across * 4)
    tl.store(scale_ptr + offset, scale, mask=mask)


@triton.jit
def store_scales(
    scale_ptr,
    byte,
    row,
    column,
    rows,
    columns,
    ROW_BLOCK: tl.constexpr,
    COLUMN_BLOCK: tl.constexpr,
    LAYOUT: tl.constexpr,
    CONTRACT: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    EVEN: tl.constexpr,
    STEP: tl.constexpr = 1,
    PHASE: tl.constexpr = 0,
):
    """Store the scale bytes of the tile at (row, column) of a matrix of rows x columns elements.

    `byte` has the tile's five dimensions, blocked ones of size 1. With STEP 4 and ROW_BLOCK 1, it
    is of rows PHASE, PHASE + 4, ...
    """
    TALL: tl.constexpr = ROWS // ROW_BLOCK // STEP
    BROAD: tl.constexpr = COLUMNS // COLUMN_BLOCK
    scale = tl.reshape(tl.permute(byte.to(tl.uint8), (1, 2, 0, 3, 4)), (TALL, BROAD))
    scale_rows = (rows + ROW_BLOCK - 1) // ROW_BLOCK
    scale_columns = (columns + COLUMN_BLOCK - 1) // COLUMN_BLOCK
    if LAYOUT != "swizzle_32_4_4":
        store_plain(
            scale_ptr, scale, row // ROW_BLOCK + PHASE, column // COLUMN_BLOCK, scale_rows,
            scale_columns, LAYOUT == "plain_t", TALL, BROAD, STEP, EVEN,
        )  # fmt: skip
    elif CONTRACT == -1:
        scale = tl.reshape(scale, (ROWS // 32, TALL * 32 // ROWS, BROAD))
        store_swizzled(
            scale_ptr, scale, row // 32, column // 32, rows, scale_columns,
            ROWS // 32, BROAD, STEP, PHASE, EVEN,
        )  # fmt: skip
    else:
        scale = tl.reshape(tl.trans(scale), (COLUMNS // 32, BROAD * 32 // COLUMNS, TALL))
        store_swizzled(
            scale_ptr, scale, column // 32, row // 32, columns, scale_rows,
            COLUMNS // 32, TALL, STEP, PHASE, EVEN,
        )  # fmt: skip


@triton.jit
def scaled_row(
    bits,
    scale_ptr,
    row,
    column,
    rows,
    columns,
    RULE: tl.constexpr,
    DTYPE: tl.constexpr,
    LAYOUT: tl.constexpr,
    HARDWARE: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    EVEN: tl.constexpr,
    PHASE: tl.constexpr,
):
    """Every fourth row from PHASE on times its multipliers, in blocks of (1, 32); stores scales."""
    byte = scale_byte(block_amax(sizes_of(bits, DTYPE), 1, 32, DTYPE), RULE)
    store_scales(
        scale_ptr, byte, row, column, rows, columns,
        1, 32, LAYOUT, -1, ROWS, COLUMNS, EVEN, 4, PHASE,
    )  # fmt: skip
    return scaled(to_float32(bits, DTYPE), multiplier(byte), HARDWARE)
