"""Each call reads its own numbers: no answer is kept for a shape, or for the tensor it came of."""

from collections.abc import Iterator

import torch
from torch import Tensor

from mxref.testing.answer import Answer
from mxref.testing.check import Check, Setting
from mxref.testing.diff import first_difference
from mxref.testing.fill import scattered
from mxref.testing.judge import Judge, Wrong


def inputs(setting: Setting) -> Iterator[Tensor]:
    """One matrix; it is asked for three times, its numbers in another order each time."""
    yield scattered(setting, (2 * setting.step, 3 * setting.step), 210)


def judge(judge: Judge, x: Tensor) -> None:
    """A second tensor of the same shape, then the same one with new numbers written into it.

    Every answer is compared when it comes and once more after the last call: of two buffers that
    take turns, the first is written again by the third call.
    """
    numbers = (x.clone(), torch.flip(x, (0, 1)), torch.flip(x, (1,)))
    held: list[tuple[Tensor, Answer, Answer]] = []
    second = torch.empty_like(x)
    asked = (x, second, second)
    for call, (given, now) in enumerate(zip(asked, numbers, strict=True)):
        answer = judge.ask(given.copy_(now))
        _require(judge, now, answer, [before for _, _, before in held], call == 2)
        held.append((now, answer, answer.copy()))
        judge.count(x)
    for call, (now, answer, before) in enumerate(held):
        found = first_difference(now, answer, before, judge.claims)
        if found is not None:
            message = f"a later call changed the result of call {call + 1}: {found.message}"
            raise Wrong(message, found)


def _require(
    judge: Judge, now: Tensor, answer: Answer, earlier: list[Answer], same_tensor: bool
) -> None:
    """Raise Wrong unless it is the answer to these numbers; an earlier one is named as such."""
    found = first_difference(now, answer, judge.expected(now, answer), judge.claims)
    if found is None:
        return
    message = found.message
    for call, before in enumerate(earlier):
        if first_difference(now, answer, before, judge.claims) is None:
            given = "the same tensor" if same_tensor else "another tensor of the same shape"
            message = f"new numbers in {given} got the answer of call {call + 1} again: {message}"
            break
    raise Wrong(message, found, (now, answer.copy()))


CHECK = Check("new_numbers", inputs, judge=judge)
