"""Ranks other than two: leading dimensions are matrices of their own, also in a stored layout."""

from collections.abc import Iterator

from torch import Tensor

from mxref.testing.check import Check, Setting
from mxref.testing.fill import scattered
from mxref.testing.judge import compare_unchanged


def inputs(setting: Setting) -> Iterator[Tensor]:
    """One, three, four and five dimensions, and expert weights given as a transposed view."""
    step = setting.step
    if setting.claims.block[0] == 1:
        yield scattered(setting, (3 * step,), 150)
    yield scattered(setting, (3, 2 * step, step), 151)
    yield scattered(setting, (2, 3, step, 2 * step), 152)
    yield scattered(setting, (3, 2 * step, 5 * step), 153).transpose(1, 2)
    yield scattered(setting, (2, 1, 3, 2 * step, step), 154)
    if setting.full:
        yield scattered(setting, (5, 2 * step, step), 155).transpose(1, 2)


CHECK = Check("ranks", inputs, judge=compare_unchanged, optional=True)
