"""Any size in the dimension that is not blocked: one row, 33, one more than 128."""

from collections.abc import Iterator

from torch import Tensor

from mxref.testing.check import Check, Setting
from mxref.testing.fill import scattered
from mxref.testing.judge import compare_unchanged

SMOKE = (1, 33, 129)
FULL = (*SMOKE, 2, 7, 31, 100, 127, 257)


def inputs(setting: Setting) -> Iterator[Tensor]:
    """None for square blocks, where both dimensions are blocked."""
    block, blocked = setting.claims.block, 3 * setting.step
    if block[0] == block[1]:
        return
    for salt, size in enumerate(FULL if setting.full else SMOKE):
        shape = (size, blocked) if block[0] == 1 else (blocked, size)
        yield scattered(setting, shape, 60 + salt)


CHECK = Check("rows", inputs, judge=compare_unchanged, optional=True)
