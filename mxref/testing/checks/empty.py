"""Tensors without elements: their scale is empty too, or has padding only."""

from collections.abc import Iterator

from torch import Tensor

from mxref.testing.check import Check, Setting
from mxref.testing.fill import scattered


def inputs(setting: Setting) -> Iterator[Tensor]:
    """No rows, no columns, neither."""
    for shape in ((0, setting.step), (setting.step, 0), (0, 0)):
        yield scattered(setting, shape, 140)


CHECK = Check("empty", inputs, optional=True)
