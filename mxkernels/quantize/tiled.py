"""The Triton kernels that take a tile a program: payload in the order of x, and transposed."""
# ruff: noqa: N803 - constexpr arguments are capitals.

import triton
import triton.language as tl

from mxkernels.quantize.canonical import Case
from mxkernels.quantize.configs import TileConfig, family
from mxkernels.quantize.plan import Launch, default, over_tiles
from mxkernels.quantize.plans import Buffers
from mxkernels.quantize.shapes import SWIZZLE

from ..device import (  # noqa: TID252
    cast_four,
    multiplier,
    scale_byte,
    scaled,
    scaled_payload,
    to_float32,
)
from .scales import scaled_row, store_scales
from .tile import (
    amax_of_four,
    as_blocks,
    as_loaded,
    block_amax,
    load_four,
    load_tile,
    sizes_of,
    store_words,
    tile_columns,
    tile_offsets,
    tile_place,
    tile_rows,
)


@triton.jit(do_not_specialize=["down", "across", "scale_stride"])
def quantize_tile(
    x_ptr,
    payload_ptr,
    scale_ptr,
    rows,
    columns,
    row_stride,
    matrix_stride,
    scale_stride,
    down,
    across,
    RULE: tl.constexpr,
    DTYPE: tl.constexpr,
    ROW_BLOCK: tl.constexpr,
    COLUMN_BLOCK: tl.constexpr,
    LAYOUT: tl.constexpr,
    CONTRACT: tl.constexpr,
    HARDWARE: tl.constexpr,
    EVEN: tl.constexpr,
    ALIGNED: tl.constexpr,
    WIDE: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    KEPT: tl.constexpr,
    VECTOR: tl.constexpr,
    ROWS_FIRST: tl.constexpr,
    STREAM: tl.constexpr,
):
    """Quantize one tile of matrices of rows x columns, whose columns have stride 1, in their order.

    EVEN: tiles cover the matrix and its padded scales exactly. ALIGNED: rows % 4 == 0. WIDE:
    offsets inside a tile need 64 bits.
    """
    matrix, first_row, first_column = tile_place(down, across, ROWS, COLUMNS, ROWS_FIRST)
    row = tile_rows(ROWS, KEPT, 1, WIDE)
    column = tile_columns(COLUMNS)
    mask = None
    if not EVEN:
        rows_left = tl.minimum(rows - first_row, ROWS).to(tl.int32)
        columns_left = tl.minimum(columns - first_column, COLUMNS).to(tl.int32)
        mask = (row < rows_left) & (column < columns_left)
    x_ptr += matrix * matrix_stride + first_row * row_stride + first_column
    bits = load_tile(x_ptr, tile_offsets(row, column, row_stride, VECTOR), mask, STREAM)
    bits = as_blocks(bits, ROWS, COLUMNS, KEPT, 1)
    byte = scale_byte(block_amax(sizes_of(bits, DTYPE), ROW_BLOCK, COLUMN_BLOCK, DTYPE), RULE)
    codes = scaled_payload(to_float32(bits, DTYPE), multiplier(byte), HARDWARE)
    payload_ptr += matrix * rows * columns + first_row * columns + first_column
    target = tile_offsets(row, column, columns, VECTOR)
    tl.store(payload_ptr + target, as_loaded(codes, ROWS, COLUMNS, KEPT, 1), mask=mask)
    store_scales(
        scale_ptr + matrix * scale_stride, byte, first_row, first_column, rows, columns,
        ROW_BLOCK, COLUMN_BLOCK, LAYOUT, CONTRACT, ROWS, COLUMNS, EVEN,
    )  # fmt: skip


@triton.jit(do_not_specialize=["down", "across", "scale_stride"])
def quantize_turned(
    x_ptr,
    payload_ptr,
    scale_ptr,
    rows,
    columns,
    row_stride,
    matrix_stride,
    scale_stride,
    down,
    across,
    RULE: tl.constexpr,
    DTYPE: tl.constexpr,
    ROW_BLOCK: tl.constexpr,
    COLUMN_BLOCK: tl.constexpr,
    LAYOUT: tl.constexpr,
    CONTRACT: tl.constexpr,
    HARDWARE: tl.constexpr,
    EVEN: tl.constexpr,
    ALIGNED: tl.constexpr,
    WIDE: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    KEPT: tl.constexpr,
    VECTOR: tl.constexpr,
    ROWS_FIRST: tl.constexpr,
    STREAM: tl.constexpr,
):
    """The same with the payload stored transposed."""
    matrix, first_row, first_column = tile_place(down, across, ROWS, COLUMNS, ROWS_FIRST)
    rows_left = tl.minimum(rows - first_row, ROWS).to(tl.int32)
    columns_left = tl.minimum(columns - first_column, COLUMNS).to(tl.int32)
    x_ptr += matrix * matrix_stride + first_row * row_stride + first_column
    a, b, c, d = load_four(
        x_ptr, row_stride, rows_left, columns_left,
        ROWS, COLUMNS, KEPT, VECTOR, EVEN, WIDE, STREAM,
    )  # fmt: skip
    scale_ptr += matrix * scale_stride
    if ROW_BLOCK == 32:
        byte = scale_byte(amax_of_four(a, b, c, d, ROW_BLOCK, COLUMN_BLOCK, DTYPE), RULE)
        store_scales(
            scale_ptr, byte, first_row, first_column, rows, columns,
            ROW_BLOCK, COLUMN_BLOCK, LAYOUT, CONTRACT, ROWS, COLUMNS, EVEN,
        )  # fmt: skip
        factor = multiplier(byte)
        words = cast_four(
            scaled(to_float32(a, DTYPE), factor, HARDWARE),
            scaled(to_float32(b, DTYPE), factor, HARDWARE),
            scaled(to_float32(c, DTYPE), factor, HARDWARE),
            scaled(to_float32(d, DTYPE), factor, HARDWARE),
            HARDWARE,
        )
    else:
        words = cast_four(
            scaled_row(
                a, scale_ptr, first_row, first_column, rows, columns,
                RULE, DTYPE, LAYOUT, HARDWARE, ROWS, COLUMNS, EVEN, 0,
            ),
            scaled_row(
                b, scale_ptr, first_row, first_column, rows, columns,
                RULE, DTYPE, LAYOUT, HARDWARE, ROWS, COLUMNS, EVEN, 1,
            ),
            scaled_row(
                c, scale_ptr, first_row, first_column, rows, columns,
                RULE, DTYPE, LAYOUT, HARDWARE, ROWS, COLUMNS, EVEN, 2,
            ),
            scaled_row(
                d, scale_ptr, first_row, first_column, rows, columns,
                RULE, DTYPE, LAYOUT, HARDWARE, ROWS, COLUMNS, EVEN, 3,
            ),
            HARDWARE,
        )  # fmt: skip
    payload_ptr += matrix * rows * columns + first_column * rows + first_row
    store_words(
        payload_ptr, words, rows, rows_left, columns_left, ROWS, COLUMNS, EVEN, ALIGNED, WIDE
    )


def prepare(case: Case, buffers: Buffers, rule: str, config: TileConfig | None = None) -> Launch:
    """The launch that quantizes the matrices of a case into two dense buffers."""
    x, block = case.x, case.block
    payload, scale = buffers
    config = config or default(x, family(block, turned=case.turned))
    kernel = quantize_turned if case.turned else quantize_tile
    turned, padded = payload if case.turned else None, case.scale_layout == SWIZZLE
    way = *block, case.scale_layout, case.contract
    return over_tiles(kernel, x, turned, (scale,), config, rule, *way, padded=padded)
