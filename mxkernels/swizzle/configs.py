"""The configurations of the swizzle kernels: few, chosen by hand, hashable."""

from typing import NamedTuple

from mxkernels.swizzle.shapes import Matrix


class SwizzleConfig(NamedTuple):
    """How many 512-byte tiles a program takes, how many of them side by side, with what warps."""

    tiles: int
    across: int
    warps: int


SWIZZLES = (
    SwizzleConfig(tiles=64, across=64, warps=8),
    SwizzleConfig(tiles=16, across=16, warps=4),
    SwizzleConfig(tiles=32, across=8, warps=4),
    SwizzleConfig(tiles=8, across=8, warps=4),
)
"""What a GPU may run."""


def default(matrix: Matrix) -> SwizzleConfig:
    """The configuration taken when the caller names none: words of K groups take more registers,
    and wider tiles leave too few programs on a multiprocessor."""
    return SWIZZLES[1 if matrix.axis == "K" else 0]


LOOKUPS = 1 << 13
"""The most comparisons of a tile with a group that one program makes at once."""


def power_of_two(size: int) -> int:
    """The smallest power of two that is not below `size`.

    >>> power_of_two(0), power_of_two(5)
    (1, 8)
    """
    return 1 << max(size - 1, 0).bit_length()


def interpreted(matrix: Matrix) -> SwizzleConfig:
    """The interpreter's own: a program costs it some 7 ms almost whatever its tile."""
    across = min(power_of_two(matrix.column_tiles), 64)
    return SwizzleConfig(tiles=256, across=across, warps=4)


def tiles_of(config: SwizzleConfig, matrix: Matrix, groups: int) -> tuple[int, int]:
    """Tiles of one program down and across: no wider than the matrix, as many as there are."""
    limit = max(LOOKUPS // power_of_two(groups), 1) if groups else config.tiles
    across = min(config.across, power_of_two(matrix.column_tiles))
    across = min(across, limit) if matrix.axis == "K" else across
    down = min(config.tiles // across, power_of_two(matrix.row_tiles))
    return (min(down, limit) if matrix.axis == "M" else down), across
