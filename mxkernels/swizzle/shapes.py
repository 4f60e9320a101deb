"""The scale matrix S[R, C]: its shape, how it lies in memory, and its shape when stored.

R is the dimension a GEMM does not contract, in x's own size; C counts blocks of the contracted one
(README.md). Also what a fake kernel knows, so only `Matrix.words` and `Matrix.unit` ask for an
address.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch

SWIZZLE = "swizzle_32_4_4"
LAYOUTS = ("plain", "plain_t", SWIZZLE)
AXES = ("M", "K")


def ceil_div(size: int, unit: int) -> int:
    """size / unit, rounded up.

    >>> ceil_div(33, 32)
    2
    """
    return -(-size // unit)


def logical_shape(shape: Sequence[int], block: tuple[int, int]) -> tuple[int, ...]:
    """The shape of the scales of an x of this shape: one for each block."""
    columns = ceil_div(shape[-1], block[1])
    if len(shape) == 1:
        return (columns,)
    return (*shape[:-2], ceil_div(shape[-2], block[0]), columns)


def matrix_shape(shape: Sequence[int], contract: int) -> tuple[int, int]:
    """(R, C) of S for an x of this shape whose dimension `contract` is summed over."""
    rows = shape[-2] if len(shape) > 1 else 1
    kept, summed = (rows, shape[-1]) if contract == -1 else (shape[-1], rows)
    return kept, ceil_div(summed, 32)


def stored_shape(
    shape: Sequence[int], layout: str, block: tuple[int, int], contract: int
) -> tuple[int, ...]:
    """The shape in which the scales of an x of this shape are stored; always contiguous.

    >>> stored_shape((2, 100, 90), "swizzle_32_4_4", (1, 32), -1)
    (2, 512)
    """
    logical = logical_shape(shape, block)
    if layout == "plain":
        return logical
    if layout == "plain_t":
        rows = logical[-2] if len(logical) > 1 else 1
        return (*logical[:-2], logical[-1], rows)
    rows, columns = matrix_shape(shape, contract)
    return (*shape[:-2], ceil_div(rows, 128) * 128 * ceil_div(columns, 4) * 4)


def grouped_shape(shape: Sequence[int], groups: int, axis: str) -> tuple[int, int]:
    """The stored shape of S of this shape, cut into so many groups along `axis`.

    >>> grouped_shape((2, 3), 2, "M"), grouped_shape((2, 3), 2, "K")
    ((258, 4), (128, 11))
    """
    rows, columns = shape
    if axis == "M":
        return rows + 128 * groups, ceil_div(columns, 4) * 4
    return ceil_div(rows, 128) * 128, columns + 4 * groups


class Matrix(NamedTuple):
    """`count` matrices S of rows x columns in a uint8 tensor, and how many tiles one is stored in.

    S[r, c] lies at r // repeat * row_stride + c * column_stride. `tail`: a part of a tile, all
    zero, ends the stored bytes.
    """

    count: int
    rows: int
    columns: int
    row_stride: int
    column_stride: int
    matrix_stride: int
    row_tiles: int
    column_tiles: int
    repeat: int = 1
    axis: str = ""
    tail: bool = False

    def words(self, scale: torch.Tensor) -> bool:
        """Whether every row of S is a whole number of 4-byte words, at addresses to match."""
        return self.column_stride == 1 and self.unit(scale) >= 4 and self.aligned(scale)

    @staticmethod
    def aligned(stored: torch.Tensor) -> bool:
        """Whether these bytes can be viewed as 4-byte words."""
        return stored.data_ptr() % 4 == 0 and stored.storage_offset() % 4 == 0

    def unit(self, scale: torch.Tensor) -> int:
        """How many bytes, a power of two up to 16, divide rows, strides and the address."""
        if self.column_stride != 1:
            return 1
        return math.gcd(16, self.columns, *scale.stride()[:-1], scale.data_ptr())


def matrix_of(
    scale: torch.Tensor, shape: Sequence[int], block: tuple[int, int], contract: int
) -> Matrix:
    """How S lies in logical scales (count, rows, columns), the last two of any strides."""
    rows, columns = matrix_shape(shape, contract)
    matrix, down, across = scale.stride()
    if contract == -2:
        down, across = across, down
    repeat = 32 if block == (32, 32) else 1
    tiles = ceil_div(rows, 128), ceil_div(columns, 4)
    return Matrix(scale.shape[0], rows, columns, down, across, matrix, *tiles, repeat)


def grouped_matrix(scale: torch.Tensor, groups: int, axis: str) -> Matrix:
    """How S (rows, columns), of any strides, lies in `scale`, cut into groups along `axis`."""
    rows, columns = scale.shape
    height, width = grouped_shape(scale.shape, groups, axis)
    tiles = ceil_div(height, 128), ceil_div(width, 4)
    tail = height % 128 != 0 or width % 4 != 0
    return Matrix(1, rows, columns, *scale.stride(), 0, *tiles, 1, axis, tail)
