"""The input keeps its bytes, and so does the storage after it."""

from collections.abc import Iterator

import torch
from torch import Tensor

from mxref.testing.check import Check, Setting
from mxref.testing.fill import around, scattered
from mxref.testing.judge import Judge, Snapshot


def inputs(setting: Setting) -> Iterator[Tensor]:
    """Numbers, and NaN and Inf among them; 64 elements of storage follow the second matrix."""
    index = torch.arange(64)
    amax = (setting.fmt.exponent_mask - 8) + index % 16
    yield setting.matrix(around(setting, amax, index, salt=9))
    rows, columns = setting.step, 3 * setting.step
    storage = scattered(setting, (rows * columns + 64,), 180)
    yield storage[: rows * columns].view(rows, columns)


def judge(judge: Judge, x: Tensor) -> None:
    """The answer itself is of no concern here."""
    before = Snapshot.of(x)
    judge.ask(x)
    before.require(x)
    judge.elements += x.numel()


CHECK = Check("input_unchanged", inputs, judge=judge)
