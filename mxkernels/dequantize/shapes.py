"""Where payload, values and scales lie: each matrix as memory has it, and steps between scales.

Also what a fake kernel knows, so nothing here reads a value.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch

from mxkernels.swizzle.shapes import SWIZZLE, ceil_div, logical_shape, matrix_shape


class Task(NamedTuple):
    """Matrices of rows x columns whose columns have stride 1, and where their scales are.

    `along`: a scale serves 32 neighbours of a row (`square`: of 32 rows), else 32 of a column.
    `layout` "strided": scale (r, c) of a matrix is at r * scale_row + c * scale_column; "inner" and
    "outer": swizzled, scale_row tiles side by side, summed over columns or rows. `flat`: one matrix
    of whole blocks, one block a row, scales in the same order.
    """

    matrices: int
    rows: int
    columns: int
    row_stride: int
    matrix_stride: int
    along: bool
    square: bool
    layout: str
    scale_row: int
    scale_column: int
    scale_matrix: int
    flat: bool = False


def order_of(payload: torch.Tensor) -> str:
    """ "col" where the second to last dimension alone has stride 1, else "row".

    >>> order_of(torch.empty(64, 96)), order_of(torch.empty(64, 96).mT)
    ('row', 'col')
    """
    if payload.dim() < 2 or payload.is_contiguous():
        return "row"
    *_, rows, columns = payload.shape
    down, across = payload.stride()[-2:]
    lies = down == 1 and rows > 1
    return "col" if lies and not (across == 1 and columns > 1) else "row"


def values_strides(payload: torch.Tensor) -> tuple[int, ...]:
    """The strides of the values: no gaps, the last two dimensions ordered as the payload's."""
    order = list(range(payload.dim()))
    if order_of(payload) == "col":
        order[-2:] = order[-1], order[-2]
    strides, step = [0] * payload.dim(), 1
    for dim in reversed(order):
        strides[dim] = step
        step = step * max(payload.shape[dim], 1)
    return tuple(strides)


def in_memory(payload: torch.Tensor) -> torch.Tensor:
    """`payload` as (matrices, rows, columns) in the order of its memory; columns of stride 1.

    A view where the leading dimensions collapse and the last or second to last has stride 1, else
    a contiguous copy.
    """
    turned = payload.mT if order_of(payload) == "col" else payload
    if turned.dim() == 1:
        turned = turned[None]
    rows, columns = turned.shape[-2:]
    matrices = turned.reshape(torch.Size(turned.shape[:-2]).numel(), rows, columns)
    return matrices if matrices.stride(-1) == 1 or columns <= 1 else matrices.contiguous()


def task_of(
    shape: Sequence[int],
    matrices: torch.Tensor,
    turned: bool,
    block: tuple[int, int],
    scale_layout: str,
    contract: int,
) -> Task:
    """What the kernel is to do with a payload of this shape, `matrices` being it in memory."""
    count, rows, columns = matrices.shape
    row_stride, matrix_stride = matrices.stride(1), matrices.stride(0)
    square = block[0] == block[1]
    along = square or (block[0] == 1) != turned
    if scale_layout == SWIZZLE:
        kept, summed = matrix_shape(shape, contract)
        down, across = ceil_div(kept, 128), ceil_div(summed, 4)
        layout = "inner" if (contract == -1) != turned else "outer"
        scales = (layout, across, 1, down * across * 512)
        return Task(count, rows, columns, row_stride, matrix_stride, along, square, *scales)
    logical = logical_shape(shape, block)
    down, across = logical[-2:] if len(logical) > 1 else (1, *logical)
    steps = (across, 1) if scale_layout == "plain" else (1, down)
    steps = steps[::-1] if turned else steps
    if along and not square and steps == (ceil_div(columns, 32), 1):
        # Scales follow one another as the rows do, so the rows of all matrices are one matrix.
        if columns % 32 == 0 and matrices.is_contiguous():
            blocks = matrices.numel() // 32
            return Task(1, blocks, 32, 32, 0, True, False, "strided", 1, 1, 0, flat=True)
        if count == 1 or matrix_stride == rows * row_stride:
            count, rows = 1, count * rows
    scales = ("strided", *steps, down * across)
    return Task(count, rows, columns, row_stride, matrix_stride, along, square, *scales)
