"""The configurations of the dequantize kernel: few, chosen by hand, hashable."""

from typing import NamedTuple

from mxkernels.dequantize.shapes import Task


class DequantizeConfig(NamedTuple):
    """The tile of one program (multiples of 32), its warps, and codes a thread loads at once."""

    rows: int
    columns: int
    warps: int
    vector: int


DEQUANTIZE = (
    DequantizeConfig(rows=32, columns=128, warps=4, vector=8),
    DequantizeConfig(rows=32, columns=128, warps=4, vector=16),
    DequantizeConfig(rows=32, columns=64, warps=4, vector=8),
    DequantizeConfig(rows=64, columns=128, warps=8, vector=8),
    DequantizeConfig(rows=128, columns=128, warps=8, vector=8),
)
"""What a GPU may run; the first one is the default."""

INTERPRETED = 1 << 17
"""Elements of one interpreted program, which costs some 7 ms almost whatever its tile."""


def interpreted(task: Task) -> DequantizeConfig:
    """The interpreter's own: large tiles that fit the matrix."""
    columns = min(1 << max(task.columns - 1, 31).bit_length(), 1024)
    rows = min(1 << max(task.rows - 1, 31).bit_length(), INTERPRETED // columns)
    return DequantizeConfig(rows, columns, warps=4, vector=16)
