"""Multiples of 32 that are no multiples of what the target asks for."""

from collections.abc import Iterator

from torch import Tensor

from mxref.testing.check import Check, Setting
from mxref.testing.fill import scattered
from mxref.testing.judge import compare_unchanged


def inputs(setting: Setting) -> Iterator[Tensor]:
    """None where every multiple of 32 is asked for anyway."""
    if setting.step == 32:
        return
    sizes = ((32, 32), (32, setting.step + 32), (setting.step - 32, 96), (160, setting.step))
    for salt, shape in enumerate(sizes):
        yield scattered(setting, shape, 40 + salt)


CHECK = Check("multiples", inputs, judge=compare_unchanged, optional=True)
