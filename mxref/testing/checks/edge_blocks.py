"""The named edge blocks: special values, and each side of each boundary."""

from collections.abc import Iterator

import torch
from torch import Tensor

from mxref.testing.cases import edge_blocks
from mxref.testing.check import Check, Setting


def inputs(setting: Setting) -> Iterator[Tensor]:
    """All in one matrix; a square block also with the 32 elements in its first row only."""
    rows = torch.tensor(list(edge_blocks(setting.fmt, setting.element).values()))
    repeats = setting.block_elements // 32
    blocks = [rows.repeat(1, repeats)]
    if repeats > 1:
        blocks.append(torch.cat([rows, rows.new_zeros(len(rows), 32 * (repeats - 1))], 1))
    yield setting.matrix(torch.cat(blocks))


CHECK = Check("edge_blocks", inputs)
