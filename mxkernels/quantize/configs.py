"""The configurations of the Triton kernels: few, chosen by hand, hashable."""

from typing import NamedTuple


class FlatConfig(NamedTuple):
    """How many blocks of 32 one program of the (1, 32) kernel takes, and with how many warps."""

    blocks: int
    warps: int


FLAT = (
    FlatConfig(blocks=64, warps=4),
    FlatConfig(blocks=128, warps=4),
    FlatConfig(blocks=256, warps=8),
)
"""What a GPU may run; the first one is the default."""

FLAT_INTERPRETED = FlatConfig(blocks=4096, warps=4)
"""The interpreter's own: a program costs it some 7 ms almost whatever its tile."""


def flat_default(blocks: int, *, interpret: bool) -> FlatConfig:
    """The configuration taken when the caller names none; `blocks` are those of the tensor."""
    return FLAT_INTERPRETED if interpret and blocks > FLAT[0].blocks else FLAT[0]
