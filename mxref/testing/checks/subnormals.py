"""Blocks of small numbers: subnormal inputs of every width, zeros of both signs, small scales."""

from collections.abc import Iterator

import torch
from torch import Tensor

from mxref.testing.cases import noise
from mxref.testing.check import Check, Setting


def inputs(setting: Setting) -> Iterator[Tensor]:
    """Magnitudes below 2^width, as patterns, for widths up to four binades above subnormal."""
    fmt, elements = setting.fmt, setting.block_elements
    for index in setting.parts(256 * (fmt.mantissa_bits + 4)):
        bits = noise(len(index) * elements, setting.claims.seed, salt=6).reshape(-1, elements)
        width = index % (fmt.mantissa_bits + 4)
        magnitude = (bits >> 1) & ((torch.ones_like(width) << width) - 1)[:, None]
        yield setting.matrix(magnitude | ((bits & 1) << (fmt.bits - 1)))


CHECK = Check("subnormals", inputs)
