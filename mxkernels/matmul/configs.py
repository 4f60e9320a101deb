"""The configurations of the in-kernel decode: few, chosen by hand, hashable."""

from typing import NamedTuple


class DecodeConfig(NamedTuple):
    """Rows of b a program takes, parts the depth is cut in, blocks a turn, warps, stages."""

    columns: int
    parts: int
    unroll: int
    warps: int
    stages: int


DECODES = tuple(
    DecodeConfig(columns, parts, unroll, warps, stages)
    for columns, parts, unroll, warps, stages in (
        (32, 2, 4, 2, 4),
        (32, 2, 4, 1, 4),
        (32, 1, 4, 2, 4),
        (32, 4, 4, 2, 4),
        (16, 2, 4, 1, 4),
        (32, 2, 4, 2, 6),
        (32, 2, 4, 4, 4),
        (64, 2, 4, 2, 4),
        (64, 4, 4, 4, 3),
        (128, 4, 4, 4, 3),
    )
)
"""What a GPU may run, and what the benchmark times."""

PROGRAMS = 264
"""Two for each of an H200's 132 multiprocessors: enough loads in flight to keep memory busy."""


def default(tokens: int, columns: int, blocks: int, *, hardware: bool = True) -> DecodeConfig:
    """A GPU's: the depth is cut until there are enough programs, each with 16 blocks or more.

    32 rows of b and two warps were the fastest for 1 to 64 tokens on an H200; with more than 16
    tokens they spill where `hardware` does not convert e4m3, below sm_90.

    >>> default(16, 8192, 256).parts, default(16, 65536, 256).parts
    (2, 1)
    """
    few = tokens <= 16 or hardware
    rows = 32 if few else 64
    tiles = -(-columns // rows) * -(-tokens // 64)
    parts = 1
    while tiles * parts < PROGRAMS and blocks // (2 * parts) >= 16:
        parts *= 2
    return DecodeConfig(rows, parts, 4, 2, 4) if few else DecodeConfig(rows, parts, 2, 8, 4)


def interpreted(tokens: int, columns: int, blocks: int) -> DecodeConfig:
    """The interpreter's own: as few programs as there can be."""
    rows = min(1 << max(columns - 1, 15).bit_length(), 512)
    return DecodeConfig(rows, 1, 1, 4, 1)
