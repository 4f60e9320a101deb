"""The Triton kernel that quantizes both ways from one read."""
# ruff: noqa: N803 - constexpr arguments are capitals.

import triton
import triton.language as tl

from mxkernels.quantize.canonical import Both
from mxkernels.quantize.configs import BOTH, TileConfig
from mxkernels.quantize.plan import Launch, default, over_tiles
from mxkernels.quantize.shapes import SWIZZLE

from ..device import (  # noqa: TID252
    cast_e4m3,
    cast_four,
    multiplier,
    scale_byte,
    scaled,
    to_float32,
)
from .scales import scaled_row, store_scales
from .tile import (
    amax_of_four,
    as_loaded,
    load_four,
    store_words,
    tile_columns,
    tile_offsets,
    tile_place,
    tile_rows,
)


@triton.jit
def store_row_codes(
    payload_ptr,
    x,
    columns,
    rows_left,
    columns_left,
    HARDWARE: tl.constexpr,
    EVEN: tl.constexpr,
    WIDE: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    KEPT: tl.constexpr,
    VECTOR: tl.constexpr,
):
    """Store the codes of every fourth scaled row, from the one `payload_ptr` points at on."""
    row = tile_rows(ROWS, KEPT, 4, WIDE)
    column = tile_columns(COLUMNS)
    mask = None if EVEN else (row < rows_left) & (column < columns_left)
    codes = as_loaded(cast_e4m3(x, HARDWARE), ROWS, COLUMNS, KEPT, 4)
    tl.store(payload_ptr + tile_offsets(row, column, columns, VECTOR), codes, mask=mask)


@triton.jit(do_not_specialize=["down", "across", "row_scale_stride", "column_scale_stride"])
def quantize_both(
    x_ptr,
    row_payload_ptr,
    row_scale_ptr,
    column_payload_ptr,
    column_scale_ptr,
    rows,
    columns,
    row_stride,
    matrix_stride,
    row_scale_stride,
    column_scale_stride,
    down,
    across,
    RULE: tl.constexpr,
    DTYPE: tl.constexpr,
    ROW_LAYOUT: tl.constexpr,
    COLUMN_LAYOUT: tl.constexpr,
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
    """Quantize one tile in blocks of (1, 32), stored in order, and of (32, 1), transposed."""
    matrix, first_row, first_column = tile_place(down, across, ROWS, COLUMNS, ROWS_FIRST)
    rows_left = tl.minimum(rows - first_row, ROWS).to(tl.int32)
    columns_left = tl.minimum(columns - first_column, COLUMNS).to(tl.int32)
    x_ptr += matrix * matrix_stride + first_row * row_stride + first_column
    a, b, c, d = load_four(
        x_ptr, row_stride, rows_left, columns_left,
        ROWS, COLUMNS, KEPT, VECTOR, EVEN, WIDE, STREAM,
    )  # fmt: skip
    start = matrix * rows * columns

    row_payload_ptr += start + first_row * columns + first_column
    row_scale_ptr += matrix * row_scale_stride
    for phase in tl.static_range(4):
        bits = a if phase == 0 else b if phase == 1 else c if phase == 2 else d
        x = scaled_row(
            bits, row_scale_ptr, first_row, first_column, rows, columns,
            RULE, DTYPE, ROW_LAYOUT, HARDWARE, ROWS, COLUMNS, EVEN, phase,
        )  # fmt: skip
        store_row_codes(
            row_payload_ptr + phase * columns, x, columns, rows_left - phase, columns_left,
            HARDWARE, EVEN, WIDE, ROWS, COLUMNS, KEPT, VECTOR,
        )  # fmt: skip

    byte = scale_byte(amax_of_four(a, b, c, d, 32, 1, DTYPE), RULE)
    factor = multiplier(byte)
    words = cast_four(
        scaled(to_float32(a, DTYPE), factor, HARDWARE),
        scaled(to_float32(b, DTYPE), factor, HARDWARE),
        scaled(to_float32(c, DTYPE), factor, HARDWARE),
        scaled(to_float32(d, DTYPE), factor, HARDWARE),
        HARDWARE,
    )
    column_payload_ptr += start + first_column * rows + first_row
    store_words(
        column_payload_ptr, words, rows, rows_left, columns_left,
        ROWS, COLUMNS, EVEN, ALIGNED, WIDE,
    )  # fmt: skip
    store_scales(
        column_scale_ptr + matrix * column_scale_stride, byte, first_row, first_column, rows,
        columns, 32, 1, COLUMN_LAYOUT, -2, ROWS, COLUMNS, EVEN,
    )  # fmt: skip


def prepare(case: Both, rule: str, config: TileConfig | None = None) -> Launch:
    """The launch that quantizes matrices both ways into payload, scale, payload, scale."""
    x, buffers, layouts = case
    config = config or default(x, BOTH)
    _, row_scale, turned, scale = buffers
    scales, padded = (row_scale, scale), SWIZZLE in layouts
    return over_tiles(quantize_both, x, turned, scales, config, rule, *layouts, padded=padded)
