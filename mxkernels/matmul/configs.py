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
        (32, 4, 4, 2, 4),
        (64, 2, 4, 2, 4),
        (64, 4, 4, 4, 3),
        (128, 4, 4, 4, 3),
    )
)
"""What a GPU may run, and what the benchmark times."""

WARPS = 1024
"""Eight for each of an H200's 132 multiprocessors: enough loads in flight to keep memory busy."""


def default(tokens: int, columns: int, blocks: int, *, capability: int = 90) -> DecodeConfig:
    """A GPU's: the depth is cut until there are enough warps, each part with 16 blocks or more.

    Of the configurations above and eight more, 32 rows of b were the fastest for 1 to 16 and for 64
    tokens on an H200, 128 rows for 32. The latter spills on sm_100, and both do with more than 16
    tokens below sm_90, which has no instruction that converts e4m3.

    >>> default(16, 8192, 256).parts, default(16, 65536, 256).parts
    (2, 1)
    """
    if tokens > 16 and capability < 90:
        made = DecodeConfig(64, 1, 2, 8, 4)
    elif 16 < tokens <= 32 and capability < 100:
        made = DecodeConfig(128, 1, 4, 4, 3)
    else:
        made = DecodeConfig(32, 1, 4, 2, 4)
    warps = -(-columns // made.columns) * -(-tokens // 64) * made.warps
    parts = 1
    while warps * parts < WARPS and blocks // (2 * parts) >= 16:
        parts *= 2
    return made._replace(parts=parts)


def interpreted(tokens: int, columns: int, blocks: int) -> DecodeConfig:
    """The interpreter's own: as few programs as there can be."""
    rows = min(1 << max(columns - 1, 15).bit_length(), 512)
    return DecodeConfig(rows, 1, 1, 4, 1)
