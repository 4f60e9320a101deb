"""What is timed: a Job is a call, the inputs it rotates through, its bytes, what is right."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

SETTLED = (NotImplementedError, TypeError, ValueError)
"""What a kernel raises for a combination that is not built: noted in its row, no failure."""

CHECKED_SETS = 16
POISON = 0xA5


class Pool:
    """Inputs that take turns, so that each is out of the cache when its turn comes again."""

    def __init__(self, items: Sequence[Any]):
        self.items = list(items)
        self._turn = 0

    def next(self) -> Any:
        """The input whose turn it is."""
        self._turn = (self._turn + 1) % len(self.items)
        return self.items[self._turn]


@dataclass(eq=False)
class Job:
    """One row to be: `call(item)` returns one tensor or a tuple; `expected(item)` the same.

    `labels` are the row's own columns, `moved` the bytes read and written. `limit` names the limit
    in the same group; `target` is the least share of its bandwidth, None where none is set.
    """

    labels: dict[str, Any]
    pool: Pool
    call: Callable[[Any], Any]
    expected: Callable[[Any], Any]
    moved: int
    limit: str | None = None
    target: float | None = None
    note: str = ""
    verified: str = ""
    samples: dict[str, list[float]] = field(default_factory=dict)

    @property
    def failed(self) -> bool:
        """Whether it must not be timed."""
        return bool(self.note)


def sets_for(moved: int, cache: int) -> int:
    """How many sets of inputs and outputs of `moved` bytes exceed four times the L2.

    >>> sets_for(3 << 20, 60 << 20), sets_for(805306368, 60 << 20)
    (80, 1)
    """
    return max(1, -(-4 * cache // max(moved, 1)))


def cache_bytes(device: torch.device) -> int:
    """The size of the device's L2; none is assumed for a CPU."""
    if device.type != "cuda":
        return 0
    return int(torch.cuda.get_device_properties(device).L2_cache_size)


def tensors(outputs: Any) -> tuple[torch.Tensor, ...]:
    """All tensors of a (nested) tuple.

    >>> len(tensors((torch.ones(1), (torch.ones(1), torch.ones(1)))))
    3
    """
    if isinstance(outputs, torch.Tensor):
        return (outputs,)
    return tuple(each for part in outputs for each in tensors(part))


def as_bytes(x: torch.Tensor) -> torch.Tensor:
    """`x` as integers of its own width, whatever its strides."""
    integer = {1: torch.uint8, 2: torch.int16, 4: torch.int32}[x.element_size()]
    return x.detach().view(integer)


def difference(got: Any, wanted: Any) -> str:
    """Where two results differ in shape, strides or bytes, in a line; empty where they are equal.

    >>> difference(torch.tensor([0.0]), torch.tensor([-0.0]))
    'output 0: 1 of 1 elements differ, the first at 0'
    """
    left, right = tensors(got), tensors(wanted)
    if len(left) != len(right):
        return f"{len(left)} outputs, expected {len(right)}"
    for index, (a, b) in enumerate(zip(left, right, strict=True)):
        if a.shape != b.shape:
            return f"output {index}: shape {tuple(a.shape)}, expected {tuple(b.shape)}"
        if _steps(a) != _steps(b):
            return f"output {index}: strides {a.stride()}, expected {b.stride()}"
        if not torch.equal(as_bytes(a), as_bytes(b)):
            wrong = (as_bytes(a) != as_bytes(b)).reshape(-1)
            first, count = int(wrong.to(torch.uint8).argmax()), int(wrong.sum())
            return (
                f"output {index}: {count} of {wrong.numel()} elements differ, the first at {first}"
            )
    return ""


def _steps(x: torch.Tensor) -> list[int]:
    """The strides that matter: those of dimensions with more than one element."""
    return [step for step, size in zip(x.stride(), x.shape, strict=True) if size > 1]


def poison(outputs: Any) -> None:
    """Overwrite outputs, so that memory handed out again holds no right answer."""
    for each in tensors(outputs):
        as_bytes(each).fill_(POISON)


def spread(count: int) -> list[int]:
    """At most CHECKED_SETS of `count` sets, the first and the last among them.

    >>> spread(3), len(spread(80)), spread(80)[-1]
    ([0, 1, 2], 16, 79)
    """
    if count <= CHECKED_SETS:
        return list(range(count))
    return [round(i * (count - 1) / (CHECKED_SETS - 1)) for i in range(CHECKED_SETS)]


def verify(jobs: Sequence[Job]) -> None:
    """Call every job on its inputs and compare bytes; a job that fails gets a note.

    The first call's outputs are poisoned and freed: the allocator hands the same memory out again,
    where an element that was not written now shows.
    """
    for job in jobs:
        if not job.failed:
            _guard(job, lambda job=job: poison(job.call(job.pool.items[0])))
    for index in range(max((len(job.pool.items) for job in jobs), default=0)):
        for job in jobs:
            if not job.failed and index in spread(len(job.pool.items)):
                _guard(job, lambda job=job, index=index: compare(job, job.pool.items[index]))
    for job in jobs:
        count = len(job.pool.items)
        job.verified = "" if job.failed else f"{len(spread(count))} of {count} sets"


def compare(job: Job, item: Any, outputs: Any = None) -> None:
    """Note a job whose outputs for `item` (computed if not given) are not the expected bytes."""
    got = job.call(item) if outputs is None else outputs
    wrong = difference(got, job.expected(item))
    if wrong:
        job.note = f"WRONG: {wrong}"
        job.verified = ""


def _guard(job: Job, step: Callable[[], None]) -> None:
    try:
        step()
    except SETTLED as error:
        job.note = f"not built: {_line(error)}"
    except Exception as error:  # any kernel's failure belongs in its row
        job.note = f"error: {type(error).__name__}: {_line(error)}"


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]
