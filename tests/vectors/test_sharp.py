"""Are the vectors sharp? Wrong quantizers differ from them, but for faults that no bytes show."""

from functools import lru_cache

import torch

import mxref
from mxref import vectors
from tests.mutants.wrong import MUTANTS

KEYS = ("recipe", "block", "scale_layout", "contract")


@lru_cache(maxsize=32)
def made(recipe, block, scale_layout, contract, dtype):
    return vectors.make(
        recipe, block=block, scale_layout=scale_layout, contract=contract, dtypes=(dtype,)
    )


def case_that_differs(fn, chosen):
    """The first case with other bytes, any NaN code for NaN; None where all are equal."""
    for case in chosen.cases:
        try:
            payload, scale = fn(case.x)
        except Exception:
            continue  # it may refuse a shape, as a kernel may
        codes, stored = payload.view(torch.uint8), scale.view(torch.uint8).flatten()
        if codes.shape != case.payload.shape or stored.shape != case.scale.flatten().shape:
            return case.name
        nan = ((codes & 0x7F) == 0x7F) & ((case.payload & 0x7F) == 0x7F)
        if not (stored.equal(case.scale.flatten()) and bool(((codes == case.payload) | nan).all())):
            return case.name
    return None


def test_wrong_quantizers_differ_from_the_vectors():
    """What they miss lies in memory: a changed input, strides, an offset, a buffer used again."""
    missed = []
    for mutant in MUTANTS:
        claims = {"recipe": "rceil", "block": (1, 32), "scale_layout": "plain", "contract": None}
        claims |= {key: mutant.claims[key] for key in KEYS if key in mutant.claims}
        if case_that_differs(mutant.fn, made(**claims, dtype=mutant.dtype)) is None:
            missed.append(mutant.name)
    assert len(missed) <= len(MUTANTS) // 5, missed


def test_the_reference_does_not_differ():
    for dtype in vectors.DTYPES:
        chosen = made("rceil", (1, 32), "plain", None, dtype)
        assert case_that_differs(lambda x: mxref.quantize(x, "rceil"), chosen) is None
