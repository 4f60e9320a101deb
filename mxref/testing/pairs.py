"""Pairwise coverage: few combinations in which every two choices of different axes meet."""

from collections.abc import Iterable, Sequence
from itertools import combinations, product
from typing import TypeVar

T = TypeVar("T")


def covering(axes: Sequence[Sequence[T]]) -> list[tuple[T, ...]]:
    """Rows of one choice per axis, such that every pair of choices of two axes is in some row.

    Greedy and deterministic: the row that meets most pairs not met yet comes next, the first of
    the full product on a tie. One axis gives a row for each choice.

    >>> covering([["floor", "rceil"], ["plain", "swizzle"], ["row", "col"]])
    ... # doctest: +NORMALIZE_WHITESPACE
    [('floor', 'plain', 'row'), ('floor', 'swizzle', 'col'), ('rceil', 'plain', 'col'),
     ('rceil', 'swizzle', 'row')]
    """
    places = [range(len(axis)) for axis in axes]
    rows = {row: _pairs(row) for row in product(*places)}
    open_ = set().union(*rows.values())
    chosen: list[tuple[int, ...]] = []
    while open_:
        best = max(rows, key=lambda row: len(rows[row] & open_))
        open_ -= rows.pop(best)
        chosen.append(best)
    return [tuple(axis[at] for axis, at in zip(axes, row, strict=True)) for row in chosen]


def _pairs(row: Iterable[int]) -> set[tuple[tuple[int, int], ...]]:
    """The pairs of (axis, choice) in a row; the choices themselves where there is one axis."""
    marked = list(enumerate(row))
    return set(combinations(marked, min(2, len(marked))))
