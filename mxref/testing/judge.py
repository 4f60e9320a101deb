"""Asking a target and judging its answer: whatever a target does becomes a verdict here."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mxref.testing.answer import Answer, read_answer
from mxref.testing.claims import Claims
from mxref.testing.diff import Difference, first_difference
from mxref.testing.reference import reference, tolerated
from mxref.testing.timelimit import OutOfTimeError
from mxref.tiles import logical_shape


class Refused(Exception):  # noqa: N818 - an answer of the target, not an error of this package
    """The target raised."""


class Wrong(Exception):  # noqa: N818
    """The target's answer is wrong.

    `difference` says where, if a block can be named; `evidence` is the input and the answer that
    were compared with the reference, if they were.
    """

    def __init__(
        self,
        message: str,
        difference: Difference | None = None,
        evidence: tuple[Tensor, Answer] | None = None,
    ) -> None:
        super().__init__(message)
        self.difference = difference
        self.evidence = evidence


class NotHere(Exception):  # noqa: N818
    """A check cannot be run here (memory, an extra); the message is the reason."""


@dataclass
class Judge:
    """A target under its claims, and what has been compared so far.

    `asking` is called before each call of the target; `scales_off` counts the scale bytes that are
    one step off where exact scales are not claimed.
    """

    fn: Callable[[Tensor], Any]
    claims: Claims
    asking: Callable[[], None] | None = None
    blocks: int = 0
    elements: int = 0
    scales_off: int = 0

    def ask(self, x: Tensor) -> Answer:
        """The target's answer to x, as bytes. Raises Refused if it raises, Wrong if malformed."""
        shape = tuple(x.shape)
        if self.asking is not None:
            self.asking()
        try:
            output = self.fn(x)
            if x.device.type == "cuda":
                torch.cuda.synchronize(x.device)
        except KeyboardInterrupt:
            raise
        except OutOfTimeError as error:
            raise Wrong(str(error)) from None
        except BaseException as error:
            raise Refused(describe(error)) from None
        try:
            answer = read_answer(output, shape, self.claims)
        except ValueError as error:
            raise Wrong(str(error)) from None
        except Exception as error:
            raise Wrong(f"the outputs cannot be read: {describe(error)}") from None
        return answer

    def expected(self, x: Tensor, actual: Answer) -> Answer:
        """What the answer to x has to be: the reference's bytes, in the layout claimed.

        Without exact scales those under the answer's own scales, as far as these are allowed.
        """
        expected = reference(x, self.claims)
        if self.claims.exact_scales:
            return expected
        allowed, off = tolerated(x, actual, expected, self.claims)
        self.scales_off += off
        return allowed

    def compare(self, x: Tensor) -> None:
        """Raise Wrong at the first block of x whose bytes differ from the reference's."""
        # a copy first: a target may write into its input
        original = x.clone()
        actual = self.ask(x)
        found = first_difference(original, actual, self.expected(original, actual), self.claims)
        if found is not None:
            raise Wrong(found.message, found, (original, actual.copy()))
        self.count(x)

    def count(self, x: Tensor) -> None:
        """All bytes of the answer to x were compared."""
        self.elements += x.numel()
        self.blocks += math.prod(logical_shape(tuple(x.shape), self.claims.block))


def compare(judge: Judge, x: Tensor) -> None:
    """The judge of most checks: the target's bytes are those of the reference."""
    judge.compare(x)


def compare_unchanged(judge: Judge, x: Tensor) -> None:
    """`compare`, and the storage under x keeps its bytes, those outside of the view too."""
    before = Snapshot.of(x)
    judge.compare(x)
    before.require(x)


class Snapshot(NamedTuple):
    """An input as it was: its geometry and every byte of the storage that it is a view of."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    storage: Tensor

    @classmethod
    def of(cls, x: Tensor) -> "Snapshot":
        """What x is now."""
        storage = x.detach().untyped_storage()
        held = torch.empty(0, dtype=torch.uint8, device=x.device).set_(storage).clone()
        return cls(tuple(x.shape), tuple(x.stride()), int(x.storage_offset()), held)

    def require(self, x: Tensor) -> None:
        """Raise Wrong unless x is still the same."""
        now = Snapshot.of(x)
        if now[:3] != self[:3]:
            raise Wrong(
                f"the target changed the shape of its input to {now.shape}, from {self.shape}"
            )
        if now.storage.shape != self.storage.shape:
            raise Wrong("the target changed the size of its input's storage")
        changed = (now.storage != self.storage).nonzero()
        if changed.numel():
            at = int(changed[0])
            raise Wrong(
                f"the target wrote into its input's storage: byte {at} is "
                f"0x{int(now.storage[at]):02X}, expected 0x{int(self.storage[at]):02X}"
            )


def describe(error: BaseException) -> str:
    """An exception in one line."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:300]}" if lines else type(error).__name__
