"""Contiguous matrices of many shapes, all multiples of what the target asks for."""

from collections.abc import Iterator

from torch import Tensor

from mxref.testing.check import Check, Setting
from mxref.testing.fill import scattered

SMOKE = ((1, 1), (5, 3), (1, 9), (12, 1))
FULL = (*SMOKE, (1, 2), (2, 1), (3, 5), (7, 2), (1, 40), (40, 1), (9, 9), (17, 12), (4, 33))


def inputs(setting: Setting) -> Iterator[Tensor]:
    """Small, long and wide ones; sizes around multiples of 128 and of 256."""
    for salt, (rows, columns) in enumerate(FULL if setting.full else SMOKE):
        yield scattered(setting, (rows * setting.step, columns * setting.step), 20 + salt)
    if setting.full:
        # past 65,535, the limit of a grid's second dimension and of 16-bit indices
        many = 65536 // setting.step + 3
        yield scattered(setting, (many * setting.step, setting.step), 50)
        yield scattered(setting, (setting.step, many * setting.step), 51)


CHECK = Check("shapes", inputs)
