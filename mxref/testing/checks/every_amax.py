"""Every 16-bit pattern as the largest magnitude of a block, NaN and Inf too.

For fp32 the bf16 patterns, which it contains; `thresholds` adds what only fp32 can tell apart.
"""

from collections.abc import Iterator

from torch import Tensor

from mxref.testing.check import Check, Setting
from mxref.testing.fill import around


def inputs(setting: Setting) -> Iterator[Tensor]:
    """65,536 blocks."""
    for index in setting.parts(1 << 16):
        amax = index << (setting.fmt.bits - 16)
        yield setting.matrix(around(setting, amax, index, salt=2))


CHECK = Check("every_amax", inputs)
