"""Contiguous matrices that do not begin where their storage does, at any alignment."""

from collections.abc import Iterator

from torch import Tensor

from mxref.testing.check import Check, Setting
from mxref.testing.fill import scattered
from mxref.testing.judge import compare_unchanged


def inputs(setting: Setting) -> Iterator[Tensor]:
    """Offsets of a few elements, of a vector load and of a row, with bytes on both sides."""
    rows, columns = 2 * setting.step, 3 * setting.step
    for salt, offset in enumerate((1, 3, 8, 16, columns)):
        storage = scattered(setting, (offset + rows * columns + 64,), 170 + salt)
        yield storage[offset : offset + rows * columns].view(rows, columns)


CHECK = Check("offsets", inputs, judge=compare_unchanged, optional=True)
