"""The inputs of the checks: every pattern, every pair, every position, the same every time."""

import ast
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import mxref
import mxref.testing.checks
from mxref.testing import verify
from mxref.testing.check import Setting
from mxref.testing.checks import CHECKS
from mxref.testing.checks.payload_table import PAIRS, pair_counts
from mxref.testing.claims import Claims
from mxref.testing.conformance import select

BF16 = (torch.bfloat16,)


@pytest.mark.parametrize("recipe", PAIRS)
def test_the_payload_table_has_every_pair(recipe: str) -> None:
    setting = Setting(Claims.of(recipe=recipe), torch.bfloat16)
    assert int(pair_counts(setting).sum()) == PAIRS[recipe]
    assert (PAIRS["floor"], PAIRS["rceil"]) == (8_346_624, 8_396_590)


@pytest.mark.parametrize("block", [(1, 32), (32, 32)])
def test_the_payload_table_given_to_the_target_holds_every_pair(block: tuple[int, int]) -> None:
    """Counted from what the target is asked, through scales of its own."""
    seen = torch.zeros(256, 65536, dtype=torch.bool)

    def fn(x: Tensor) -> Any:
        payload, scale = mxref.quantize(x, "rceil", block=block)
        byte = scale.view(torch.uint8).to(torch.int64)
        byte = byte.repeat_interleave(block[0], 0).repeat_interleave(block[1], 1)
        seen[byte, x.view(torch.int16).to(torch.int64) & 0xFFFF] = True
        return payload, scale

    verify(fn, recipe="rceil", block=block, dtypes=BF16, checks=["payload_table"])
    assert int(seen.sum()) == PAIRS["rceil"]


def test_every_amax_asks_for_every_pattern() -> None:
    for dtype in (torch.bfloat16, torch.float16):
        seen = torch.zeros(65536, dtype=torch.bool)
        setting = Setting(Claims.of(recipe="floor"), dtype)
        check = next(check for check in CHECKS if check.name == "every_amax")
        for x in check.inputs(setting):
            bits = x.view(torch.int16).to(torch.int64).reshape(-1, 32) & 0xFFFF
            magnitudes = bits & 0x7FFF
            seen[bits[magnitudes == magnitudes.amax(1, keepdim=True)]] = True
        assert bool(seen.all())


def test_positions_tell_any_two_places_apart() -> None:
    """The bytes of a place over all tensors of one shape are those of no other place."""
    for dtype in (torch.bfloat16, torch.float16):
        setting = Setting(Claims.of(recipe="rceil"), dtype)
        check = next(check for check in CHECKS if check.name == "positions")
        answers: dict[Any, list[Any]] = {}
        for x in check.inputs(setting):
            answers.setdefault(tuple(x.shape), []).append(mxref.quantize(x))
        assert len(answers) == 2
        for shape, found in answers.items():
            assert min(shape) > 128
            for part in (0, 1):
                bytes_of = [answer[part].view(torch.uint8).reshape(-1) for answer in found]
                keys = torch.stack(bytes_of, 1).to(torch.int64)
                weights = torch.tensor([1000003**i % (1 << 31) for i in range(keys.shape[1])])
                assert len(torch.unique((keys * weights).sum(1))) == len(keys)


@pytest.mark.parametrize(
    ("key", "message"),
    [
        (lambda x: (x.shape, x.dtype), "new numbers in another tensor of the same shape got the "),
        (id, "new numbers in the same tensor got the answer of call 2 again: "),
        (lambda x: x.clone().view(torch.int16).tolist(), ""),
    ],
)
@pytest.mark.parametrize("level", ["smoke", "full"])
def test_an_answer_that_is_kept_is_called_so(level: str, key: Any, message: str) -> None:
    held: list[Any] = [None, None, None]

    def fn(x: Tensor) -> Any:
        if held[0] != key(x):
            held[:] = key(x), x, mxref.quantize(x)
        return held[2]

    report = verify(fn, recipe="rceil", dtypes=BF16, checks=["new_numbers"], level=level)
    assert [each.check for each in report.failures] == ["new_numbers"] * bool(message)
    assert not message or report.failures[0].message.startswith(message)


def test_two_buffers_by_turns_are_found() -> None:
    buffers: list[Any] = [None, None]

    def fn(x: Tensor) -> Any:
        new = mxref.quantize(x)
        buffers.reverse()
        if buffers[0] is None or buffers[0].payload.shape != x.shape:
            buffers[0] = new
        for kept, part in zip(buffers[0], new, strict=True):
            kept.view(torch.uint8).copy_(part.view(torch.uint8))
        return buffers[0]

    claims: dict[str, Any] = {"recipe": "rceil", "dtypes": BF16, "level": "smoke"}
    found = verify(fn, checks=["new_numbers"], **claims).failures[0].message
    assert found.startswith("a later call changed the result of call 1: ")
    assert verify(fn, checks=["result_kept"], **claims).passed


def test_every_check_file_is_listed() -> None:
    folder = Path(mxref.testing.checks.__file__).parent
    files = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    assert files == {check.name for check in CHECKS}
    assert len(CHECKS) == len(files)


def test_inputs_are_the_same_every_time() -> None:
    setting = Setting(Claims.of(recipe="rceil", level="smoke"), torch.bfloat16)
    for check in select("smoke"):
        first, second = (
            [x.contiguous().view(torch.int16) for x in check.inputs(setting)] for _ in "ab"
        )
        assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


def test_check_files_only_make_inputs_from_integers() -> None:
    """No random state: the same bytes on every version of torch."""
    folder = Path(mxref.testing.checks.__file__).parent.parent
    for path in [*folder.glob("*.py"), *folder.glob("checks/*.py")]:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute):
                assert not node.attr.startswith("rand"), path
