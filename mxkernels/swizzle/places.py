"""Where the tiles of a program lie in S and in the output, groups included; words at any byte."""
# ruff: noqa: N803 - constexpr arguments are capitals.

import triton
import triton.language as tl


@triton.jit
def total(values, AXIS: tl.constexpr):
    """The sum along an axis; `tl.sum` is out of the interpreter's reach, as `tl.max` is."""
    return tl.reduce(values, AXIS, tl.standard._sum_combine)


@triton.jit
def picked(values, match):
    """values[g] where match[n, g], for each n; 0 where no g matches."""
    return total(tl.where(match, values[None, :], 0), 1)


@triton.jit
def group_places(offs_ptr, groups, size, tile, UNIT: tl.constexpr, GROUPS: tl.constexpr):
    """For tiles of UNIT rows or columns: where each begins in S, and the end, first tile and number
    of tiles of its group. A tile of no group has the end 0 and counts 0 tiles."""
    g = tl.arange(0, GROUPS)
    end = tl.load(offs_ptr + g, mask=g < groups, other=0)
    first = tl.load(offs_ptr + g - 1, mask=(g > 0) & (g < groups), other=0)
    end = tl.minimum(tl.maximum(end, 0), size)
    first = tl.minimum(tl.maximum(first, 0), size)
    count = (tl.maximum(end - first, 0) + UNIT - 1) // UNIT
    start = (tl.associative_scan(count, 0, tl.standard._sum_combine) - count).to(tl.int32)
    match = (start[None, :] <= tile[:, None]) & (tile[:, None] < (start + count)[None, :])
    begin = picked(first - UNIT * start, match) + UNIT * tile
    return begin, picked(end, match), picked(start, match), picked(count, match)


@triton.jit
def last_end(offs_ptr, groups, size):
    """The end of the last group: nothing of S beyond it is in any group."""
    return tl.minimum(tl.maximum(tl.load(offs_ptr + groups - 1), 0), size)


@triton.jit
def tile_places(
    offs_ptr,
    rows,
    columns,
    row_tile,
    column_tile,
    row_tiles,
    column_tiles,
    groups,
    AXIS: tl.constexpr,
    WIDTH: tl.constexpr,
    GROUPS: tl.constexpr,
    ROW_TILES: tl.constexpr,
    COLUMN_TILES: tl.constexpr,
):
    """Rows and columns of S that a program holds, their ends, and the numbers of its tiles.

    Rows are a vector of 128 * ROW_TILES, columns one of WIDTH * COLUMN_TILES elements. For words of
    K groups columns are counted in bytes; `kept` is how many bytes are left of a tile's group.
    """
    k = row_tile + tl.arange(0, ROW_TILES)
    u = column_tile + tl.arange(0, COLUMN_TILES)
    row = row_tile * 128 + tl.arange(0, ROW_TILES * 128)
    column = column_tile * WIDTH + tl.arange(0, COLUMN_TILES * WIDTH)
    row_inside = row < rows
    column_inside = column < columns
    place = k.to(tl.int64)[:, None] * column_tiles + u[None, :]
    kept = u
    if AXIS == "M":
        begin, end, _start, _count = group_places(offs_ptr, groups, rows, k, 128, GROUPS)
        lines = begin[:, None] + tl.arange(0, 128)[None, :]
        row_inside = tl.reshape(lines < end[:, None], (ROW_TILES * 128,))
        row = tl.reshape(lines, (ROW_TILES * 128,))
    if AXIS == "K":
        size = columns * (4 // WIDTH)
        begin, end, start, count = group_places(offs_ptr, groups, size, u, 4, GROUPS)
        kept = end - begin
        lines = begin[:, None] + tl.arange(0, WIDTH)[None, :]
        column_inside = tl.reshape(lines < end[:, None], (COLUMN_TILES * WIDTH,))
        column = tl.reshape(lines, (COLUMN_TILES * WIDTH,))
        # What no group fills is zero, in columns of one tile each after the last group.
        start = tl.where(count == 0, u, start)
        count = tl.maximum(count, 1)
        across = k.to(tl.int64)[:, None] * count[None, :] + (u - start)[None, :]
        place = start.to(tl.int64)[None, :] * row_tiles + across
    known = (k < row_tiles)[:, None] & (u < column_tiles)[None, :]
    return row, row_inside, column, column_inside, place, known, kept


@triton.jit
def words_at(row_ptr, mask, column, columns, kept):
    """Words of S from byte `column` on, of which `kept` bytes count; rows are `columns` words.

    Loaded as a vector: where neither of two dimensions is known to be contiguous, Triton 3.6 lays
    the threads of a warp along the rows, and no two of them share a sector.
    """
    size: tl.constexpr = mask.shape[0] * mask.shape[1]
    first = column // 4
    shift = column % 4 * 8
    place = tl.reshape(row_ptr + first[None, :], (size,))
    split = ((shift > 0) & (first + 1 < columns))[None, :] & mask
    low = tl.load(place, mask=tl.reshape(mask, (size,)), other=0)
    high = tl.load(place + 1, mask=tl.reshape(split, (size,)), other=0)
    low = tl.reshape(low, mask.shape).to(tl.uint32, bitcast=True)
    high = tl.reshape(high, mask.shape).to(tl.uint32, bitcast=True)
    shift = shift.to(tl.uint32)[None, :]
    word = (low >> shift) | ((high << 1) << (31 - shift))
    bits = tl.minimum(tl.maximum(kept, 0), 4).to(tl.uint32) * 8
    ones = tl.full([1], 0xFFFFFFFF, tl.uint32)
    ones = tl.where(bits == 0, 0, ones >> ((32 - bits) & 31))
    return (word & ones[None, :]).to(tl.int32, bitcast=True)
