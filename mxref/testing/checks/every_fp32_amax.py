"""Every finite fp32 magnitude as the amax of a block: all 2^31 - 2^23 patterns, zero among them.

A block holds its amax and zeros, and the place of amax moves from matrix to matrix. Some 13 minutes
on one CPU core for blocks of 32 (estimated from a part), hours for (32, 32).
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from mxref.formats import FP32
from mxref.testing.check import Check, Setting

AT_ONCE = 1 << 22
"""Elements of one matrix: it stays near the caches of a CPU, and fills a GPU."""


def inputs(setting: Setting) -> Iterator[Tensor]:
    """Matrices of 2^22 elements, made on the device; only fp32 has patterns that others lack."""
    if setting.fmt is not FP32:
        return
    shape = _shape(setting)
    for start in range(0, FP32.exponent_mask, shape[0] * shape[1] // setting.block_elements):
        yield of_amax(setting, shape, start)


def _shape(setting: Setting, elements: int = AT_ONCE) -> tuple[int, int]:
    """About so many elements, both sizes multiples of what the target takes."""
    columns = max((1 << 12) // setting.step, 1) * setting.step
    return max(elements // columns // setting.step, 1) * setting.step, columns


def of_amax(setting: Setting, shape: tuple[int, int], start: int) -> Tensor:
    """A matrix of this shape whose blocks have the amax start, start + 1, ... in their order."""
    block = setting.claims.block
    x = torch.zeros(shape, dtype=torch.int32, device=setting.claims.device)
    grid = (shape[0] // block[0], shape[1] // block[1])
    count = grid[0] * grid[1]
    amax = torch.arange(start, start + count, dtype=torch.int64, device=x.device)
    amax = torch.where(amax < FP32.exponent_mask, amax, 0)
    # place and sign change from matrix to matrix
    number = start // count
    signed = amax - (number % 2 << 31)
    at = number % block[0], number % block[1]
    x[at[0] :: block[0], at[1] :: block[1]] = signed.to(torch.int32).reshape(grid)
    return x.view(torch.float32)


CHECK = Check("every_fp32_amax", inputs, levels=("exhaustive",))
