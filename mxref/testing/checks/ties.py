"""Element rounding: every code, halfway and quarter point, and one ulp each side, under many bytes.

An ulp of fp32 beside a tie is what rounding twice, through bf16 or fp16, gets wrong.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from mxref.bits import pack
from mxref.formats import SCALE_BIAS
from mxref.testing.cases import distinct, largest_amax, tie_points
from mxref.testing.check import Check, Setting


def inputs(setting: Setting) -> Iterator[Tensor]:
    """Blocks whose first place, moving along, is the largest amax of the byte."""
    limits = largest_amax(setting.claims.recipe, setting.fmt)
    if not setting.full:
        # the ends, where subnormals are, and some between
        limits = (*limits[:3], *limits[3:-3:17], *limits[-3:])
    blocks = torch.cat([_blocks(setting, byte, amax) for byte, amax in limits])
    for index in setting.parts(len(blocks)):
        yield setting.matrix(blocks[index])


def _blocks(setting: Setting, byte: int, amax: int) -> Tensor:
    fmt, elements = setting.fmt, setting.block_elements
    significand, exponent = tie_points(setting.element)
    points = pack(significand, exponent + byte - SCALE_BIAS, fmt)
    near = torch.cat([points - 1, points, points + 1]).clamp_min(0)
    near = distinct(near[near <= amax])
    near = torch.cat([near, near | (1 << (fmt.bits - 1))])
    count = -(-len(near) // (elements - 1))
    values = near.new_zeros(count * (elements - 1))
    values[: len(near)] = near
    blocks = near.new_empty((count, elements))
    at = torch.arange(count)[:, None] % elements
    lane = torch.arange(elements)
    number = (lane - (lane > at).to(torch.int64)).clamp_max(elements - 2)
    blocks.copy_(values.reshape(count, -1).gather(1, number))
    return torch.where(lane == at, amax, blocks)


CHECK = Check("ties", inputs)
