"""Blocks and matrices filled with bits: a given amax among smaller elements, or noise alone."""

import torch
from torch import Tensor

from mxref.testing.cases import noise
from mxref.testing.check import Setting


def around(setting: Setting, amax: Tensor, index: Tensor, salt: int) -> Tensor:
    """Blocks of patterns (count, block_elements) whose largest magnitude is `amax`.

    `amax` holds patterns with their sign, `index` the number of each block: the place of amax moves
    with it. The rest is smaller, of both signs: half of it close by, half over twenty binades.
    """
    fmt, elements = setting.fmt, setting.block_elements
    sign = 1 << (fmt.bits - 1)
    bits = noise(len(index) * 32, setting.claims.seed, salt).reshape(-1, 32)
    near = 1 + ((bits >> 1) & ((2 << fmt.mantissa_bits) - 1))
    far = 1 + (bits >> 1) % (20 << fmt.mantissa_bits)
    below = torch.where(torch.arange(32) % 2 == 0, near, far)
    rest = ((amax & (sign - 1))[:, None] - below).clamp_min_(0) | ((bits & 1) * sign)
    # the rows of a square block repeat: noise for each of 1024 elements would take most of the run
    rest = rest.repeat(1, elements // 32)
    rest[torch.arange(len(index)), index % elements] = amax
    return rest


def scattered(setting: Setting, shape: tuple[int, ...], salt: int) -> Tensor:
    """A contiguous tensor of numbers of both signs, over binades that change from place to place.

    Blocks differ in their scale byte, so a block taken for its neighbour is noticed.
    """
    fmt, seed = setting.fmt, setting.claims.seed
    count = torch.Size(shape).numel()
    if count == 0:
        return setting.values(torch.empty(shape, dtype=torch.int64))
    columns = shape[-1]
    rows = shape[-2] if len(shape) > 1 else 1
    bits = noise(count, seed, salt).reshape(-1, rows, columns)
    # twelve binades by areas of 32 x 8 elements, so that blocks differ, and four by element
    areas = noise(-(-rows // 32) * -(-columns // 8), seed, salt + 1000) % 12
    areas = areas.reshape(-(-rows // 32), -1).repeat_interleave(32, 0)[:rows]
    field = areas.repeat_interleave(8, 1)[:, :columns] + ((bits >> 24) & 3) + (fmt.bias - 6)
    mantissa = bits & ((1 << fmt.mantissa_bits) - 1)
    patterns = (field << fmt.mantissa_bits) | mantissa | (((bits >> 28) & 1) << (fmt.bits - 1))
    return setting.values(patterns.reshape(shape))
