"""Hypothesis for a while: tensors of any shape and memory order, shrunk where one fails.

Rounds with seeds of their own follow each other until the time is over; a failure is shrunk after
that too. Needs the extra `mxref[verify]`.
"""

import time
from collections.abc import Iterator

import torch
from torch import Tensor

from mxref.testing.check import Check, Setting
from mxref.testing.claims import Claims
from mxref.testing.judge import Judge, Refused, Wrong, compare_unchanged

ROUND = 200
"""Examples of one round: some seconds at most, so that the budget is kept."""


def inputs(setting: Setting) -> Iterator[Tensor]:
    """One matrix of zeros: the first example, whose dtype is that of all."""
    yield setting.values(torch.zeros((setting.step, setting.step), dtype=torch.int64))


def judge(judge: Judge, x: Tensor) -> None:
    """Every example compared with the reference; inputs that may be refused may be."""
    end = time.monotonic() + judge.claims.fuzz_seconds
    judge_one(judge, x)
    number = 0
    while time.monotonic() < end:
        _round(judge, x.dtype, judge.claims.seed * 1_000_003 + number, end)
        number += 1


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


def _round(judge: Judge, dtype: torch.dtype, seed: int, end: float) -> None:
    from hypothesis import HealthCheck, Verbosity, errors, given, settings
    from hypothesis import seed as seeded
    from hypothesis import strategies as st

    from mxref.testing import strategies

    claims = judge.claims
    rank, side = (1 if claims.block[0] == 1 else 2), max(160, 3 * claims.step)
    whole = strategies.shapes(min_rank=2, max_rank=2, max_side=side, multiple_of=claims.step)
    free = strategies.shapes(min_rank=rank, max_side=160)
    drawn = strategies.tensors((dtype,), st.one_of(whole, free), claims.block)

    failed = False

    @seeded(seed)
    @settings(
        max_examples=ROUND,
        deadline=None,
        derandomize=False,
        report_multiple_bugs=False,
        verbosity=Verbosity.quiet,
        suppress_health_check=list(HealthCheck),
    )
    @given(drawn)
    def example(x: Tensor) -> None:
        nonlocal failed
        # shrinking goes on past the end of the budget
        if time.monotonic() < end or failed:
            try:
                judge_one(judge, x.to(claims.device))
            except Wrong:
                failed = True
                raise

    try:
        example()
    except errors.Flaky as error:
        raise Wrong("other answers to the same input: the failure did not repeat") from error


CHECK = Check("fuzz", inputs, judge=judge, levels=("fuzz",))
