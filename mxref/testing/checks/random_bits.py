"""Random bit patterns: wholly random ones, and blocks over a few binades anywhere in the range."""

from collections.abc import Iterator

import torch
from torch import Tensor

from mxref.testing.cases import noise
from mxref.testing.check import Check, Setting


def inputs(setting: Setting) -> Iterator[Tensor]:
    """A million elements at level full."""
    fmt, elements = setting.fmt, setting.block_elements
    field = fmt.exponent_mask >> fmt.mantissa_bits
    for index in setting.parts((1 << 20) // elements):
        bits = noise(len(index) * elements, setting.claims.seed, salt=7).reshape(-1, elements)
        bits &= (1 << fmt.bits) - 1
        binade = noise(len(index), setting.claims.seed, salt=8) % field
        exponent = (binade[:, None] - ((bits >> fmt.mantissa_bits) & 15)).clamp_min_(0)
        kept = bits & ((1 << (fmt.bits - 1)) | ((1 << fmt.mantissa_bits) - 1))
        narrow = (exponent << fmt.mantissa_bits) | kept
        yield setting.matrix(torch.where((index % 4 == 0)[:, None], bits, narrow))


CHECK = Check("random_bits", inputs)
