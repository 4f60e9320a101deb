"""A result keeps its bytes after the next call: it is no view of a buffer that is used again."""

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor

from mxref.testing.check import Check, Setting
from mxref.testing.diff import first_difference
from mxref.testing.fill import scattered
from mxref.testing.judge import Judge, Wrong


def inputs(setting: Setting) -> Iterator[Tensor]:
    """One matrix; the next call gets the same numbers in reverse, of the same shape."""
    yield scattered(setting, (2 * setting.step, 3 * setting.step), 200)


def judge(judge: Judge, x: Tensor) -> None:
    """The answer is read before and after another call."""
    answer = judge.ask(x.clone())
    before = answer.copy()
    judge.ask(torch.flip(x, (0, 1)))
    found = first_difference(x, answer, before, replace(judge.claims, nan="strict"))
    if found is not None:
        raise Wrong(f"the result changed with the next call: {found.message}", found)
    judge.elements += x.numel()


CHECK = Check("result_kept", inputs, judge=judge)
