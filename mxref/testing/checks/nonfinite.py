"""NaN and Inf at every position of a block, of both signs, alone and mixed, among finite blocks."""

from collections.abc import Iterator

import torch
from torch import Tensor

from mxref.testing.check import Check, Setting
from mxref.testing.fill import around


def inputs(setting: Setting) -> Iterator[Tensor]:
    """Ten kinds of block for each position; the last kind is finite, a neighbour to the rest."""
    fmt, elements = setting.fmt, setting.block_elements
    sign, inf = 1 << (fmt.bits - 1), fmt.exponent_mask
    quiet = inf | (1 << (fmt.mantissa_bits - 1))
    one = fmt.bias << fmt.mantissa_bits
    # what is at the position, and what follows it
    kinds = [
        (quiet, one),
        (sign | quiet, one),
        (inf | 1, one),
        (sign | inf | 1, 0),
        (sign - 1, 0),
        (inf, one),
        (sign | inf, sign),
        (inf, quiet),
        (sign | quiet, sign | inf),
        (one, sign),
    ]
    table = torch.tensor(kinds)
    for index in setting.parts(len(kinds) * elements):
        kind, at, every = index % len(kinds), index // len(kinds), torch.arange(len(index))
        blocks = around(setting, torch.full_like(index, one), index, salt=4)
        for column in (1, 0):
            blocks[every, (at + column) % elements] = table[kind, column]
        yield setting.matrix(blocks)


CHECK = Check("nonfinite", inputs)
