"""Hypothesis for a while: tensors of any shape and memory order, shrunk where one fails.

A failure is shrunk after that too, and kept in Hypothesis' database. Needs `mxref[verify]`.
"""

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor

from mxref.testing.check import Check, Setting
from mxref.testing.claims import Claims
from mxref.testing.judge import Judge, Refused, Wrong, compare_unchanged


def inputs(setting: Setting) -> Iterator[Tensor]:
    """One matrix of zeros: the first example, whose dtype is that of all."""
    yield setting.values(torch.zeros((setting.step, setting.step), dtype=torch.int64))


def judge(judge: Judge, x: Tensor) -> None:
    """Every example compared with the reference; inputs that may be refused may be."""
    from mxref.testing.fuzzing import fuzz

    judge_one(judge, x)
    one = replace(judge, claims=replace(judge.claims, dtypes=(x.dtype,)))
    claims = one.claims
    result = fuzz(one, judge_one, seconds=claims.fuzz_seconds, seed=claims.seed)
    judge.blocks, judge.elements, judge.scales_off = one.blocks, one.elements, one.scales_off
    if result.wrong is not None:
        raise result.wrong


def judge_one(judge: Judge, x: Tensor) -> None:
    """Wrong bytes fail, and so does a refusal of what every target has to answer."""
    shape, dense = tuple(x.shape), x.is_contiguous() and not x.storage_offset()
    try:
        compare_unchanged(judge, x)
    except Refused as refused:
        if dense and must_be_answered(shape, judge.claims):
            raise Wrong(f"raised {refused} for a contiguous matrix of shape {shape}") from None


def must_be_answered(shape: tuple[int, ...], claims: Claims) -> bool:
    """A matrix with both sizes a multiple of what is claimed."""
    return len(shape) == 2 and all(size and size % claims.step == 0 for size in shape)


CHECK = Check("fuzz", inputs, judge=judge, levels=("fuzz",))
