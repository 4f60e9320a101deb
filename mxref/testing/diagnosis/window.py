"""Of a large tensor the rows around the first wrong block, on which hypotheses stay quick."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from math import prod

import torch

from mxref.testing.diagnosis.evidence import Evidence

LARGE = 1 << 24
"""Elements that are looked at as they are."""
ROWS = 128
"""A window begins and ends at a multiple, so that blocks and tiles of a layout stay whole."""


def window(evidence: Evidence, most: int = LARGE) -> Evidence:
    """The evidence itself, or that of the first window of rows that holds a wrong block.

    A window is a matrix, its scales stored again in the same layout. Where only padding differs,
    the first window is given.
    """
    if evidence.source.numel() <= most or evidence.source.dim() < 2:
        return evidence
    first = None
    for part in _windows(evidence, most):
        first = first or part
        if bool(part.all_wrong.any()):
            return part
    assert first is not None
    return first


def _windows(evidence: Evidence, most: int) -> Iterator[Evidence]:
    *lead, rows, columns = evidence.shape
    step = max(most // columns // ROWS, 1) * ROWS
    for index in product(*map(range, lead)):
        before = sum(i * prod(evidence.shape[d + 1 :]) for d, i in enumerate(index))
        for start in range(0, rows, step):
            taken = slice(start, min(start + step, rows))
            yield _cut(evidence, index, taken, evidence.first_element + before + start * columns)


def _cut(evidence: Evidence, index: tuple[int, ...], rows: slice, first: int) -> Evidence:
    unit = evidence.block[0]
    blocks = slice(rows.start // unit, -(-rows.stop // unit))
    scale = evidence.scale[index][blocks]
    part = replace(
        evidence,
        source=evidence.source[index][rows],
        payload=evidence.payload[index][rows].contiguous(),
        stored=torch.empty(0, dtype=torch.uint8),
        first_element=first,
    )
    return replace(part, stored=part.encoded(scale.contiguous()))
