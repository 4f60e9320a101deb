"""One form for every input: (matrices, rows, columns) whose columns have stride 1.

quantize(x, block (a, b), payload_order, scale_layout) has the bytes of
quantize(x.mT, block (b, a), the other order, plain for plain_t and the reverse, swizzle as it is):
the matrix of a swizzle is named by the contracted dimension, which moves with the transposition.
So a transposed view is read in place and no kernel knows of it.
"""

from typing import NamedTuple

import torch

from mxkernels.quantize.shapes import SWIZZLE, contracted

TRANSPOSED_LAYOUT = {"plain": "plain_t", "plain_t": "plain", SWIZZLE: SWIZZLE}

Buffers = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]


class Case(NamedTuple):
    """What a kernel is launched for; `x` has rank 3 and columns of stride 1.

    `turned`: the payload is stored transposed.
    """

    x: torch.Tensor
    block: tuple[int, int]
    turned: bool
    scale_layout: str

    @property
    def contract(self) -> int:
        """The dimension of `x` that a GEMM sums over."""
        return contracted(self.block, "col" if self.turned else "row")

    @property
    def along(self) -> bool:
        """Whether blocks and scales are written in the order of rows: no matrix is special."""
        return is_along(self.block, turned=self.turned, scale_layout=self.scale_layout)

    @property
    def flat(self) -> bool:
        """Whether that holds and rows have one stride, so that blocks simply follow."""
        return self.x.shape[0] == 1 and self.along


class Both(NamedTuple):
    """Both directions; `buffers` are payload and scale along rows, then along columns."""

    x: torch.Tensor
    buffers: Buffers
    layouts: tuple[str, str]


def is_along(block: tuple[int, int], *, turned: bool, scale_layout: str) -> bool:
    """Whether payload and scales have the order of blocks along rows."""
    return block == (1, 32) and not turned and scale_layout == "plain"


def transposed_variant(
    block: tuple[int, int], *, turned: bool, scale_layout: str
) -> tuple[tuple[int, int], bool, str]:
    """Block, order and layout that give the same bytes for x.mT.

    >>> transposed_variant((32, 1), turned=True, scale_layout="plain_t")
    ((1, 32), False, 'plain')
    """
    return block[::-1], not turned, TRANSPOSED_LAYOUT[scale_layout]


def is_transposed(x: torch.Tensor) -> bool:
    """Whether `x` is read as x.mT: its rows have stride 1 and its columns have not."""
    return x.dim() > 1 and x.stride(-1) != 1 and x.stride(-2) == 1


def matrices(x: torch.Tensor) -> torch.Tensor:
    """`x` as (matrices, rows, columns) with columns of stride 1: a view where one exists.

    Leading dimensions become one where a single stride steps through them; else x is copied.
    """
    if x.stride(-1) != 1 and x.shape[-1] > 1:
        x = x.contiguous()
    return x.reshape(-1, *x.shape[-2:])


def canonical(
    x: torch.Tensor, block: tuple[int, int], payload_order: str, scale_layout: str
) -> Case:
    """The case of a non-empty `x`: a view where rows or columns have stride 1, else a copy."""
    x = x.resolve_neg()
    turned = payload_order == "col" and x.dim() > 1
    if x.dim() == 1:
        x = x[None]
    if is_transposed(x):
        x = x.mT
        block, turned, scale_layout = transposed_variant(
            block, turned=turned, scale_layout=scale_layout
        )
    case = Case(matrices(x), block, turned, scale_layout)
    return case._replace(x=_one_matrix(case.x)) if case.along else case


def _one_matrix(x: torch.Tensor) -> torch.Tensor:
    """All rows of all matrices as one matrix where one stride steps through them, else `x`."""
    count, rows, columns = x.shape
    if count == 1:
        return x
    if rows > 1 and x.stride(0) != rows * x.stride(1):
        return x
    step = x.stride(1) if rows > 1 else x.stride(0)
    return x.as_strided((1, count * rows, columns), (0, step, 1))


def both(x: torch.Tensor, buffers: Buffers, layouts: tuple[str, str]) -> Both:
    """The case of both directions; a transposed view changes the roles of the two."""
    x = x.resolve_neg()
    if not is_transposed(x):
        return Both(matrices(x), buffers, layouts)
    first, second = (TRANSPOSED_LAYOUT[layout] for layout in layouts)
    return Both(matrices(x.mT), (*buffers[2:], *buffers[:2]), (second, first))
