"""Matrices that are not contiguous: transposed, cut out, every other row or column, repeated."""

from collections.abc import Iterator

from torch import Tensor

from mxref.testing.check import Check, Setting
from mxref.testing.fill import scattered
from mxref.testing.judge import compare_unchanged


def inputs(setting: Setting) -> Iterator[Tensor]:
    """Views of larger storages; what lies outside of the view is not to be read or written."""
    rows, columns = 3 * setting.step, 5 * setting.step
    yield scattered(setting, (columns, rows), 160).t()
    yield scattered(setting, (rows, columns + 8), 161)[:, :columns]
    yield scattered(setting, (rows, columns + 3), 162)[:, :columns]
    yield scattered(setting, (2 * rows, columns), 163)[::2]
    yield scattered(setting, (rows, 2 * columns), 164)[:, ::2]
    yield scattered(setting, (1, columns), 165).expand(rows, columns)
    yield scattered(setting, (rows, 1), 166).expand(rows, columns)


CHECK = Check("strides", inputs, judge=compare_unchanged, optional=True)
