"""Amax some ulps around every power of two and every multiple of the maximum by one.

In bf16 a ratio or a log2 that is wrong in its last bits passes unseen; here it does not.
"""

from collections.abc import Iterator

from torch import Tensor

from mxref.testing.cases import thresholds
from mxref.testing.check import Check, Setting
from mxref.testing.fill import around


def inputs(setting: Setting) -> Iterator[Tensor]:
    """One block for each amax, of alternating sign."""
    amax = thresholds(setting.fmt, setting.element)
    sign = setting.fmt.bits - 1
    for index in setting.parts(len(amax)):
        yield setting.matrix(around(setting, amax[index] | ((index & 1) << sign), index, salt=3))


CHECK = Check("thresholds", inputs)
