"""Sizes that end within a block: missing elements count as zeros, and the last block is there."""

from collections.abc import Iterator

from torch import Tensor

from mxref.testing.check import Check, Setting
from mxref.testing.fill import scattered
from mxref.testing.judge import compare_unchanged

SMOKE = (1, 33, 159)
FULL = (*SMOKE, 2, 16, 31, 47, 63, 65, 100, 129, 257)


def inputs(setting: Setting) -> Iterator[Tensor]:
    """Ragged in the blocked dimensions, beside a size that is not and one that is."""
    block, even = setting.claims.block, 2 * setting.step
    for salt, size in enumerate(FULL if setting.full else SMOKE):
        if block[1] == 32:
            yield scattered(setting, (even, size), 80 + salt)
        if block[0] == 32:
            yield scattered(setting, (size, even), 100 + salt)
        yield scattered(setting, (size, size + 4), 120 + salt)
    if setting.full:
        # a partial block at the end of every matrix, and of every leading index
        yield scattered(setting, (3, 56, 40), 140)
        yield scattered(setting, (2, 2, 33, even), 141)
        yield scattered(setting, (2, 3, even, 95), 142)


CHECK = Check("ragged", inputs, judge=compare_unchanged, optional=True)
