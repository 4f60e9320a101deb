"""The whole payload table: every pair (finite value, scale byte) that can occur.

A value can occur under a byte if its magnitude is not above the largest amax of that byte. One
element of each block is that amax and forces the byte, the others are the values.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from mxref.formats import BF16, FP32, InputFormat
from mxref.recipes import RECIPES
from mxref.testing.cases import largest_amax
from mxref.testing.check import Check, Setting

PAIRS = {"floor": 8_346_624, "rceil": 8_396_590, "ceil": 8_349_166, "even": 8_407_952}
"""How many pairs there are, bf16 and e4m3: a table that grew or shrank would prove nothing."""


def pair_counts(setting: Setting) -> Tensor:
    """How many values each byte has, both signs and both zeros."""
    limits = largest_amax(setting.claims.recipe, table_format(setting))
    return torch.tensor([2 * (amax + 1) for _, amax in limits])


def table_format(setting: Setting) -> InputFormat:
    """The format of the values: fp32 is given those of bf16, all of its own would be 2^32."""
    return BF16 if setting.fmt is FP32 else setting.fmt


def inputs(setting: Setting) -> Iterator[Tensor]:
    """Some 270,000 blocks of 32 for bf16; a square block holds more values, so there are fewer."""
    recipe, fmt, elements = setting.claims.recipe, table_format(setting), setting.block_elements
    counts = pair_counts(setting)
    name = recipe.name if RECIPES.get(recipe.name) == recipe else ""
    if fmt is BF16 and int(counts.sum()) != PAIRS.get(name, int(counts.sum())):
        raise AssertionError(f"{int(counts.sum())} pairs, expected {PAIRS[name]} for {name}")
    limits = torch.tensor([amax for _, amax in largest_amax(recipe, fmt)])
    blocks = -(-counts // (elements - 1))
    ends = blocks.cumsum(0)
    lane = torch.arange(elements)
    for index in setting.parts(int(ends[-1])):
        row = torch.searchsorted(ends, index, right=True)
        first = (index - ends[row] + blocks[row]) * (elements - 1)
        at = (index % elements)[:, None]
        number = first[:, None] + lane - (lane > at).to(torch.int64)
        values = torch.where(number < counts[row][:, None], number, 0)
        patterns = (values >> 1) | ((values & 1) << (fmt.bits - 1))
        patterns = torch.where(lane == at, limits[row][:, None], patterns)
        yield setting.matrix(patterns << (setting.fmt.bits - fmt.bits))


CHECK = Check("payload_table", inputs, levels=("full", "exhaustive"))
