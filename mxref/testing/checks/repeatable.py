"""The same input gives the same bytes again, NaN codes included."""

from collections.abc import Iterator
from dataclasses import replace

from torch import Tensor

from mxref.testing.check import Check, Setting
from mxref.testing.claims import Claims
from mxref.testing.diff import first_difference
from mxref.testing.fill import scattered
from mxref.testing.judge import Judge, Wrong

RUNS = 3


def inputs(setting: Setting) -> Iterator[Tensor]:
    """Large enough for several programs of a kernel."""
    yield scattered(setting, (8 * setting.step, 8 * setting.step), 190)


def judge(judge: Judge, x: Tensor) -> None:
    """The first answer is copied, since a later call may overwrite it."""
    strict = replace(judge.claims, nan="strict")
    first = judge.ask(x.clone()).copy()
    for _ in range(RUNS - 1):
        found = first_difference(x, judge.ask(x.clone()), first, strict)
        if found is not None:
            raise Wrong(f"a second run differs: {found.message}", found)
        judge.elements += x.numel()


def not_claimed(claims: Claims) -> str:
    """A target may say that it is not deterministic."""
    return "" if claims.deterministic else "not claimed: deterministic=False"


CHECK = Check("repeatable", inputs, judge=judge, not_claimed=not_claimed)
