"""Scale bytes into 512-byte tiles of 128 x 4 and back, whole or by groups, and the two launches.

A program takes ROW_TILES x COLUMN_TILES tiles. Memory is read and written in its own order, up to
16 bytes a thread; in between the program permutes its tile. Where rows of scales are whole 4-byte
words, the elements are words, which stay together in either layout; else they are bytes. A group
along K begins at any byte: each of its words is cut from two. Every byte of the output is stored
once, padding included.

Ends of groups are read by each program (`places.py`): a scan over the groups gives the first tile
of each, a comparison finds the group of a tile. Ends are clamped to the matrix.
"""
# ruff: noqa: N803 - constexpr arguments are capitals.

import torch
import triton
import triton.language as tl

from mxkernels.swizzle.configs import SwizzleConfig, default, interpreted, power_of_two, tiles_of
from mxkernels.swizzle.shapes import Matrix

from .places import last_end, tile_places, words_at

# Triton 3.6 never ends compiling more than 256 groups whose ends are known to be aligned.
SIZES = ["column_units", "row_tiles", "column_tiles", "groups", "size"]


@triton.jit(do_not_specialize=SIZES, do_not_specialize_on_alignment=["offs_ptr"])
def encode(
    scale_ptr,
    stored_ptr,
    offs_ptr,
    rows,
    column_units,
    row_units,
    column_stride,
    matrix_units,
    row_tiles,
    column_tiles,
    groups,
    size,
    AXIS: tl.constexpr,
    REPEAT: tl.constexpr,
    TAIL: tl.constexpr,
    UNIT: tl.constexpr,
    WIDTH: tl.constexpr,
    GROUPS: tl.constexpr,
    ROW_TILES: tl.constexpr,
    COLUMN_TILES: tl.constexpr,
):
    """Write tiles of S[r, c] = scale[r // REPEAT * row_units * UNIT + c * column_stride].

    WIDTH elements of a tile are neighbours in a row of S: 4 bytes, or 1 word. UNIT is the number of
    elements that divides every row, told at compile time so that loads are wide. `size` counts the
    elements of the output; TAIL: a part of a tile, all zero, is at its end.
    """
    across = (column_tiles + COLUMN_TILES - 1) // COLUMN_TILES
    down = (row_tiles + ROW_TILES - 1) // ROW_TILES
    program = tl.program_id(0)
    row_tile = program // across % down * ROW_TILES
    matrix = (program // across // down).to(tl.int64)
    row, row_inside, column, column_inside, place, known, kept = tile_places(
        offs_ptr,
        rows,
        column_units * UNIT,
        row_tile,
        program % across * COLUMN_TILES,
        row_tiles,
        column_tiles,
        groups,
        AXIS,
        WIDTH,
        GROUPS,
        ROW_TILES,
        COLUMN_TILES,
    )
    source = (row // REPEAT).to(tl.int64)[:, None] * (row_units * UNIT)
    inside = row_inside[:, None] & column_inside[None, :]
    scale_ptr += matrix * (matrix_units * UNIT)
    if AXIS == "K" and WIDTH == 1:
        tile = words_at(scale_ptr + source, inside, column, column_units * UNIT, kept)
    else:
        source += column.to(tl.int64)[None, :] * column_stride
        tile = tl.load(scale_ptr + source, mask=inside, other=0)
    tile = tl.reshape(tile, (ROW_TILES, 4, 32, COLUMN_TILES, WIDTH))
    tile = tl.permute(tile, (0, 3, 2, 1, 4))
    tile = tl.reshape(tile, (ROW_TILES, COLUMN_TILES, 128 * WIDTH))
    within = tl.arange(0, 128 * WIDTH)[None, None, :]
    target = (place * (128 * WIDTH))[:, :, None] + within
    stored_ptr += matrix * row_tiles * column_tiles * (128 * WIDTH)
    if TAIL:
        whole = known & ((place + 1) * (128 * WIDTH) <= size)
        tl.store(stored_ptr + target, tile, mask=whole[:, :, None])
        rest = (known & ((place + 1) * (128 * WIDTH) > size))[:, :, None] & (target < size)
        tl.store(stored_ptr + target, tile, mask=rest)
    else:
        tl.store(stored_ptr + target, tile, mask=known[:, :, None])


@triton.jit(do_not_specialize=SIZES, do_not_specialize_on_alignment=["offs_ptr"])
def decode(
    scale_ptr,
    stored_ptr,
    offs_ptr,
    rows,
    column_units,
    row_units,
    column_stride,
    matrix_units,
    row_tiles,
    column_tiles,
    groups,
    size,
    AXIS: tl.constexpr,
    REPEAT: tl.constexpr,
    TAIL: tl.constexpr,
    UNIT: tl.constexpr,
    WIDTH: tl.constexpr,
    GROUPS: tl.constexpr,
    ROW_TILES: tl.constexpr,
    COLUMN_TILES: tl.constexpr,
):
    """The inverse of `encode`: of REPEAT equal rows the first counts; what no group covers is 0."""
    across = (column_tiles + COLUMN_TILES - 1) // COLUMN_TILES
    down = (row_tiles + ROW_TILES - 1) // ROW_TILES
    program = tl.program_id(0)
    row_tile = program // across % down * ROW_TILES
    column_tile = program % across * COLUMN_TILES
    matrix = (program // across // down).to(tl.int64)
    columns = column_units * UNIT
    row, row_inside, column, column_inside, place, known, _kept = tile_places(
        offs_ptr, rows, columns, row_tile, column_tile, row_tiles, column_tiles, groups,
        AXIS, WIDTH, GROUPS, ROW_TILES, COLUMN_TILES,
    )  # fmt: skip
    if TAIL:
        known = known & ((place + 1) * (128 * WIDTH) <= size)
    source = (place * (128 * WIDTH))[:, :, None] + tl.arange(0, 128 * WIDTH)[None, None, :]
    stored_ptr += matrix * row_tiles * column_tiles * (128 * WIDTH)
    tile = tl.load(stored_ptr + source, mask=known[:, :, None], other=0)
    tile = tl.reshape(tile, (ROW_TILES, COLUMN_TILES, 32, 4, WIDTH))
    tile = tl.permute(tile, (0, 3, 2, 1, 4))
    tile = tl.reshape(tile, (ROW_TILES * 128, COLUMN_TILES * WIDTH))
    scale_ptr += matrix * (matrix_units * UNIT)
    target = (row // REPEAT).to(tl.int64)[:, None] * (row_units * UNIT)
    target += column.to(tl.int64)[None, :] * column_stride
    if REPEAT > 1:
        row_inside = row_inside & (row % REPEAT == 0)
    tl.store(scale_ptr + target, tile, mask=row_inside[:, None] & column_inside[None, :])
    if AXIS != "":
        row = row_tile * 128 + tl.arange(0, ROW_TILES * 128)
        column = column_tile * WIDTH + tl.arange(0, COLUMN_TILES * WIDTH)
        bare = (row < rows)[:, None] & (column < columns)[None, :]
        if AXIS == "M":
            bare = bare & (row >= last_end(offs_ptr, groups, rows))[:, None]
        else:
            bare = bare & (column >= last_end(offs_ptr, groups, columns))[None, :]
        target = row.to(tl.int64)[:, None] * (row_units * UNIT)
        target += column.to(tl.int64)[None, :] * column_stride
        tl.store(scale_ptr + target, 0, mask=bare)


def launch(
    scale: torch.Tensor,
    stored: torch.Tensor,
    matrix: Matrix,
    config: SwizzleConfig | None = None,
    *,
    inverse: bool,
    offs: torch.Tensor | None = None,
) -> None:
    """Write `stored` from `scale`, or `scale` from `stored` where `inverse`; uint8, in place.

    `stored` is contiguous; `matrix` says how S lies in `scale`; `offs` are the ends of groups.
    """
    if not (scale if inverse else stored).numel():
        return
    config = config or (default(matrix) if scale.is_cuda else interpreted(matrix))
    row_tiles, column_tiles = tiles_of(config, matrix, 0 if offs is None else offs.numel())
    across, down = -(-matrix.column_tiles // column_tiles), -(-matrix.row_tiles // row_tiles)
    bare = inverse and matrix.axis == "K"  # no words: a group is stored at any byte of a row
    sides = (scale, stored.reshape(-1), matrix, offs)
    arguments = (*_arguments(*sides, words=not bare), row_tiles, column_tiles)
    kernel = decode if inverse else encode
    grid = (across * down * matrix.count,)
    if not scale.is_cuda or scale.device.index == torch.cuda.current_device():
        kernel[grid](*arguments, num_warps=config.warps)
    else:
        with torch.cuda.device(scale.device):
            kernel[grid](*arguments, num_warps=config.warps)


def _arguments(
    scale: torch.Tensor,
    stored: torch.Tensor,
    matrix: Matrix,
    offs: torch.Tensor | None,
    *,
    words: bool,
) -> tuple[object, ...]:
    """What both kernels take before the tiles of a program; words where both sides are words."""
    unit, packed = matrix.unit(scale), 1
    if words and matrix.words(scale) and matrix.aligned(stored):
        packed, unit = 4, unit // 4
        scale, stored = scale.view(torch.int32), stored.view(torch.int32)
    groups = 0 if offs is None else offs.numel()
    return (
        scale,
        stored,
        stored if offs is None else offs,
        matrix.rows,
        matrix.columns // packed // unit,
        matrix.row_stride // packed // unit,
        matrix.column_stride,
        matrix.matrix_stride // packed // unit,
        matrix.row_tiles,
        matrix.column_tiles,
        groups,
        stored.numel(),
        matrix.axis,
        matrix.repeat,
        matrix.tail,
        unit,
        4 // packed,
        power_of_two(groups),
    )
