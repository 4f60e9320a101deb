"""fuzz: tensors drawn by Hypothesis for as long as the budget lasts, the first failure shrunk.

Needs Hypothesis (`mxref[verify]`). Rounds follow each other, each with a seed of its own, derived
from the seed given and from the worker, so that a fleet does not draw the same inputs.
"""

import hashlib
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor

from mxref import SPEC
from mxref.testing import fleet, strategies
from mxref.testing.claims import Claims
from mxref.testing.conformance import target_name
from mxref.testing.drawing import (
    ExampleDatabase,
    Flaky,
    HealthCheck,
    Verbosity,
    given,
    seeded,
    settings,
    st,
)
from mxref.testing.fuzz_snippet import on_device, reproducer
from mxref.testing.judge import Judge, Refused, Wrong, compare_unchanged

ROUND = 200
"""Examples of one round: seconds at most, so that new failures of the fleet are seen soon."""

_CLAIMS = ("recipe", "block", "scale_layout", "dtypes", "contract", "multiple_of", "nan", "device")
_SETTINGS = settings(
    max_examples=ROUND,
    deadline=None,
    derandomize=False,
    report_multiple_bugs=False,
    verbosity=Verbosity.quiet,
    suppress_health_check=list(HealthCheck),
)


@dataclass(frozen=True)
class FuzzResult:
    """What `fuzz` came to. `wrong` and `example` are the shrunk failure, None where none was found.

    `examples` counts inputs, shrinking included; `refused` those among them that the target did not
    take and need not take; `blocks` and `elements` what was compared; `seed` is the one derived for
    this worker.
    """

    target: str
    seed: int
    seconds: float
    examples: int = 0
    refused: int = 0
    blocks: int = 0
    elements: int = 0
    wrong: Wrong | None = None
    example: Tensor | None = field(default=None, compare=False)
    reproducer: str = ""

    @property
    def passed(self) -> bool:
        """No wrong byte, and some input was answered."""
        return self.wrong is None and self.examples > self.refused

    def __str__(self) -> str:
        counts = (
            f"{self.target}: {self.examples} examples ({self.refused} refused), {self.blocks} "
            f"blocks, {self.elements} elements, seed {self.seed}, {self.seconds:.1f} s"
        )
        if self.wrong is None:
            return counts + ("" if self.passed else ": no verdict, nothing was answered")
        return f"{counts}\n{self.wrong}\n\n{self.reproducer}".rstrip()


def fuzz(
    target: Any,
    judge: Callable[[Judge, Tensor], None] = compare_unchanged,
    *,
    seconds: float = 60.0,
    seed: int = 0,
    database: ExampleDatabase | str | Path | None = None,
) -> FuzzResult:
    """Judge a target on tensors drawn by `mxref.testing.strategies` until the budget is spent.

    Any shape (empty, partial blocks, ranks 1 to 3), memory order and value that its claims allow;
    matrices whose sizes are multiples of what it claims have to be answered. The first failure ends
    the run: Hypothesis shrinks it, also past the budget, and saves it in the database, where every
    later run, here or on another machine, replays it first.

    Args:
        target: an adapter (an object with `quantize(x)`, `recipe`, and any other claim), or a
            `Judge`, a function under its `Claims`.
        judge: how one input is judged: raises `Wrong` for wrong bytes, `Refused` where the target
            raises.
        seconds: the time budget, above 0.
        seed: the seed of the run. Each worker of pytest-xdist derives its own from it; machines of
            a fleet need different ones.
        database: a Hypothesis database, or what `mxref.testing.fleet.database` takes; left out,
            the one of the active Hypothesis profile.

    Raises TypeError or ValueError for a wrong argument; whatever the target does is a result.

    >>> import mxref, torch
    >>> class Mine:
    ...     recipe, block, dtypes = "floor", (1, 32), (torch.bfloat16,)
    ...
    ...     def quantize(self, x):
    ...         return mxref.quantize(x, "floor")
    >>> fuzz(Mine(), seconds=0.5).passed
    True
    """
    judged, name = _judge_of(target)
    _require_budget(seconds, seed)
    if not callable(judge):
        raise TypeError(f"judge={judge!r}: expected a function (judge, x)")
    if isinstance(database, (str, Path)):
        database = fleet.database(database)
    if database is not None and not isinstance(database, ExampleDatabase):
        raise TypeError(f"database={database!r}: expected a Hypothesis database, a URL or a path")
    if database is None:
        database = settings.default.database  # type: ignore[union-attr]
    if database is not None:
        database = _Keyed(database, database_key(name, judged.claims))
    own = derived(seed, os.environ.get("PYTEST_XDIST_WORKER", ""))
    return _Fuzzing(judged, name, judge, own, settings(_SETTINGS, database=database)).run(seconds)


def derived(seed: int, worker: str, number: int = 0) -> int:
    """The seed of a worker and of its round: the first 8 bytes of a SHA-256, so none repeats.

    >>> derived(0, "gw0") == derived(0, "gw1")
    False
    """
    return int.from_bytes(hashlib.sha256(f"{seed}/{worker}/{number}".encode()).digest()[:8], "big")


class _Keyed(ExampleDatabase):
    """A database in which one target's failures lie apart: Hypothesis' key is that of `drawn`."""

    def __init__(self, shared: ExampleDatabase, prefix: bytes) -> None:
        super().__init__()
        self.shared, self.prefix = shared, prefix

    def save(self, key: bytes, value: bytes) -> None:
        self.shared.save(self.prefix + key, value)

    def fetch(self, key: bytes) -> Iterable[bytes]:
        yield from self.shared.fetch(self.prefix + key)

    def delete(self, key: bytes, value: bytes) -> None:
        self.shared.delete(self.prefix + key, value)


class _Found(Exception):  # noqa: N818
    """An example failed."""


@dataclass
class _Fuzzing:
    """One run of `fuzz`: the counts and the failure, as they grow."""

    judged: Judge
    name: str
    judge: Callable[[Judge, Tensor], None]
    seed: int
    settings: settings
    examples: int = 0
    refused: int = 0
    failed: bool = False
    end: float = 0.0
    example: Tensor | None = None

    def run(self, seconds: float) -> FuzzResult:
        start = time.monotonic()
        self.end = start + seconds
        wrong: Wrong | None = None
        number = 0
        while wrong is None and time.monotonic() < self.end:
            try:
                self.round(number)
            except _Found:
                wrong = (self.example is not None and self.verdict(self.example)) or _unsteady()
            except Flaky:
                wrong = _unsteady()
            number += 1
        example, claims = self.example, self.judged.claims
        return FuzzResult(
            target=self.name,
            seed=self.seed,
            seconds=round(time.monotonic() - start, 3),
            examples=self.examples,
            refused=self.refused,
            blocks=self.judged.blocks,
            elements=self.judged.elements,
            wrong=wrong,
            example=example,
            reproducer="" if example is None else reproducer(self.name, claims, example),
        )

    def round(self, number: int) -> None:
        """Raise _Found where an example fails; `self.example` is then the shrunk one."""

        def drawn(x: Tensor) -> None:
            if self.fails(x):
                self.example = x
                raise _Found

        # settings go last: a seed takes the database away
        test = seeded(derived(self.seed, "round", number))(given(inputs(self.judged.claims))(drawn))
        self.settings(test)()

    def fails(self, x: Tensor) -> bool:
        """Whether x is answered wrongly. Past the budget nothing fails, unless it is shrinking."""
        if time.monotonic() >= self.end and not self.failed:
            return False
        self.examples += 1
        self.failed |= (found := self.verdict(x)) is not None
        return found is not None

    def verdict(self, x: Tensor) -> Wrong | None:
        claims = self.judged.claims
        try:
            self.judge(self.judged, on_device(x, claims.device))
        except Refused as refused:
            if _has_to_be_answered(x, claims):
                return Wrong(f"raised {refused} for a contiguous matrix of shape {tuple(x.shape)}")
            self.refused += 1
        except Wrong as wrong:
            return wrong
        return None


def inputs(claims: Claims) -> st.SearchStrategy[Tensor]:
    """The tensors that a target with these claims is asked about."""
    least = 1 if claims.block[0] == 1 else 2
    whole = strategies.shapes(
        min_rank=2, max_rank=2, max_side=max(160, 2 * claims.step), multiple_of=claims.step
    )
    free = strategies.shapes(min_rank=least)
    return strategies.tensors(
        claims.dtypes, st.one_of(free, whole), claims.block, element=claims.element.name
    )


def database_key(name: str, claims: Claims) -> bytes:
    """What a failure is saved under: the target and what it claims, whatever the machine."""
    said = (claims.recipe.label, claims.block, claims.scale_layout, claims.contract)
    return f"mxref.fuzz/{SPEC}/{name}/{said}/".encode()


def _has_to_be_answered(x: Tensor, claims: Claims) -> bool:
    whole = x.dim() == 2 and all(size and size % claims.step == 0 for size in x.shape)
    return whole and x.is_contiguous() and x.storage_offset() == 0


def _unsteady() -> Wrong:
    return Wrong("other answers to the same input: the failure did not repeat")


def _judge_of(target: Any) -> tuple[Judge, str]:
    if isinstance(target, Judge):
        return target, _name_of(target.fn) or target_name(target.fn)
    quantize = getattr(target, "quantize", None)
    if isinstance(target, type) or not callable(quantize) or not hasattr(target, "recipe"):
        raise TypeError(
            f"target={target!r}: expected an object with recipe and quantize(x), or a Judge"
        )
    made = getattr(target, "claims", None)
    if callable(made):
        claims: Claims = made()
    else:
        given = {name: getattr(target, name) for name in _CLAIMS if hasattr(target, name)}
        claims = Claims.of(**given)
    kind = type(target)
    return Judge(quantize, claims), _name_of(target) or f"{kind.__module__}:{kind.__qualname__}()"


def _name_of(target: object) -> str:
    """What an adapter calls itself, "" where it does not."""
    name = getattr(target, "target", None)
    return name if isinstance(name, str) else ""


def _require_budget(seconds: object, seed: object) -> None:
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
        raise TypeError(f"seconds={seconds!r}: expected a number above 0")
    if not 0 < seconds < float("inf"):
        raise ValueError(f"seconds={seconds!r}: expected a number above 0")
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise TypeError(f"seed={seed!r}: expected an int of at least 0")
    if seed < 0:
        raise ValueError(f"seed={seed!r}: expected an int of at least 0")
