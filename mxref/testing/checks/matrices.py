"""Contiguous matrices, the least to be answered: a target that raises here declines the dtype."""

from collections.abc import Iterator

from torch import Tensor

from mxref.testing.check import Check, Setting
from mxref.testing.claims import LEVELS
from mxref.testing.fill import scattered


def inputs(setting: Setting) -> Iterator[Tensor]:
    """A square one and a wide one."""
    for salt, (rows, columns) in enumerate(((4, 4), (1, 8))):
        yield scattered(setting, (rows * setting.step, columns * setting.step), salt)


CHECK = Check("matrices", inputs, optional=True, levels=LEVELS)
