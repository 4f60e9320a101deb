"""What a check is: a name, a generator of inputs, and how one input is judged.

Most checks only give inputs and leave the judging to `compare`: the target's bytes against those of
`mxref.quantize`. A behavioural check brings its own judge, a function of a `Judge` and one input
that raises `Wrong`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from mxref.formats import ElementFormat, InputFormat
from mxref.testing.arrange import arrange
from mxref.testing.claims import INPUT_FORMATS, Claims
from mxref.testing.judge import Judge, compare

ELEMENTS_AT_ONCE = {"smoke": 1 << 19, "full": 1 << 22, "exhaustive": 1 << 22, "fuzz": 1 << 19}
"""Elements of one matrix of blocks. Few large calls: in Triton's interpreter a call and each of
its programs cost milliseconds, almost whatever their size."""


@dataclass(frozen=True)
class Setting:
    """One dtype under one target's claims: what the inputs of a check are made for."""

    claims: Claims
    dtype: torch.dtype

    @property
    def fmt(self) -> InputFormat:
        """The format of the inputs."""
        return INPUT_FORMATS[self.dtype]

    @property
    def element(self) -> ElementFormat:
        """The format of the payload."""
        return self.claims.element

    @property
    def full(self) -> bool:
        """Whether this is level full, or exhaustive, which holds it."""
        return self.claims.level in ("full", "exhaustive")

    @property
    def block_elements(self) -> int:
        """Elements of one block: 32 or 1024."""
        return self.claims.block[0] * self.claims.block[1]

    @property
    def step(self) -> int:
        """Both sizes of a matrix that must be answered are multiples of this."""
        return self.claims.step

    def values(self, patterns: Tensor) -> Tensor:
        """Integers as the bits of this dtype, on the target's device."""
        integer = torch.int32 if self.fmt.bits == 32 else torch.int16
        return patterns.to(integer).view(self.dtype).to(self.claims.device)

    def matrix(self, blocks: Tensor) -> Tensor:
        """Blocks of patterns (count, block_elements) as one contiguous matrix of values."""
        return arrange(self.values(blocks), self.claims.block, self.step)

    def parts(self, count: int) -> Iterator[Tensor]:
        """The indices of `count` blocks, cut into matrices; smoke takes every nth, all in one.

        The stride of smoke is odd, so that no bit of the index stays the same.
        """
        fit = max(ELEMENTS_AT_ONCE[self.claims.level] // self.block_elements, 1)
        if not self.full:
            yield torch.arange(0, count, (-(-count // fit)) | 1)
            return
        for start in range(0, count, fit):
            yield torch.arange(start, min(start + fit, count))


Inputs = Callable[[Setting], Iterator[Tensor]]


def always_claimed(claims: Claims) -> str:
    """Most checks judge what every target claims."""
    return ""


@dataclass(frozen=True)
class Check:
    """One check. `optional`: a target that raises here has declined, it has not failed.

    `not_claimed` gives the reason where the target does not claim what the check judges, else "".
    """

    name: str
    inputs: Inputs
    judge: Callable[[Judge, Tensor], None] = compare
    optional: bool = False
    levels: tuple[str, ...] = ("smoke", "full", "exhaustive")
    not_claimed: Callable[[Claims], str] = always_claimed
