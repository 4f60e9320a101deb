"""fuzz: a wrong target is found, shrunk and reproduced; budget, seeds, refusals, bad arguments."""

import time
from functools import partial
from typing import Any

import pytest
import torch
from hypothesis.database import DirectoryBasedExampleDatabase, InMemoryExampleDatabase
from torch import Tensor

import mxref
from mxref.testing import fuzz, strategies
from mxref.testing.claims import Claims
from mxref.testing.fuzz_snippet import on_device
from mxref.testing.fuzzing import database_key, derived
from mxref.testing.judge import Judge, Wrong, compare_unchanged


class Right:
    recipe: Any = "rceil"
    block = (32, 1)
    scale_layout = "swizzle_32_4_4"
    dtypes = (torch.bfloat16, torch.float32)

    def quantize(self, x: Tensor) -> Any:
        payload, scale = mxref.quantize(x, self.recipe, block=self.block)
        shape = tuple(x.shape)
        return payload, mxref.layouts.encode(
            scale, self.scale_layout, block=self.block, shape=shape
        )


class DropsNan(Right):
    block, scale_layout = (1, 32), "plain"

    def quantize(self, x: Tensor) -> Any:
        return super().quantize(torch.where(x.isnan(), 0, x))


class OnlyWhole(Right):
    def quantize(self, x: Tensor) -> Any:
        if x.dim() != 2 or x.shape[0] % 32 or x.shape[1] % 32 or not x.is_contiguous():
            raise ValueError("multiples of 32")
        return super().quantize(x)


class TooNarrow(Right):
    def quantize(self, x: Tensor) -> Any:
        if x.shape[-1] % 64:
            raise ValueError("multiples of 64")
        return super().quantize(x)


class WrongPast(Right):
    """Right, until an input is not contiguous: what only the memory order shows."""

    block, scale_layout = (1, 32), "plain"

    def quantize(self, x: Tensor) -> Any:
        flat = torch.as_strided(x, x.shape, torch.empty(x.shape, device="meta").stride())
        return super().quantize(flat)


def run(target: Any, seconds: float = 60, **keywords: Any) -> Any:
    return fuzz(target, seconds=seconds, **{"database": InMemoryExampleDatabase(), **keywords})


def rerun(snippet: str, target: Any) -> None:
    """The snippet on another target than the one that it names."""
    head, body = snippet.split("storage = ", 1)
    assert "target" in head
    exec(f"storage = {body}", {"torch": torch, "mxref": mxref, "target": target})


def until(count: int) -> Any:
    """The usual judge for `count` inputs, then Wrong: a run that ends however slow the machine."""
    left = iter(range(count))

    def judged(judge: Judge, x: Tensor) -> None:
        if next(left, None) is None:
            raise Wrong("enough")
        compare_unchanged(judge, x)

    return judged


def test_a_right_target_is_never_found_wrong() -> None:
    result = run(Right(), 60, judge=until(60))
    assert str(result.wrong) == "enough"
    assert result.refused == 0
    assert result.elements > result.blocks > 0
    assert f"{result.examples} examples" in str(result)


def test_the_budget_is_kept() -> None:
    start = time.monotonic()
    result = run(Right(), 1.0)
    assert result.wrong is None
    assert result.passed == (result.examples > 0)
    assert 1.0 <= result.seconds < 60
    assert time.monotonic() - start < 60


def test_a_wrong_target_is_found_shrunk_and_its_snippet_shows_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # a worker has a seed of its own, and from some of them shrinking ends at 32 x 32
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    target = DropsNan()
    result = run(target)
    assert not result.passed
    assert result.example.numel() <= 32
    assert result.example.isnan().any()
    assert "scale 0x" in str(result.wrong)
    with pytest.raises(AssertionError, match="bytes differ"):
        rerun(result.reproducer, target.quantize)
    rerun(result.reproducer, partial(mxref.quantize, recipe="rceil"))


def test_the_snippet_keeps_the_memory_order() -> None:
    result = run(WrongPast())
    assert not result.passed
    assert result.example.numel() <= 1024
    with pytest.raises(AssertionError, match="bytes differ"):
        rerun(result.reproducer, WrongPast().quantize)


def test_a_snippet_of_another_layout_block_and_dtype_runs() -> None:
    class Swapped(Right):
        block, dtypes = (32, 1), (torch.float32,)

        def quantize(self, x: Tensor) -> Any:
            payload, scale = super().quantize(x)
            return payload, (scale.view(torch.uint8) + 1).view(scale.dtype)

    result = run(Swapped())
    assert "scale" in str(result.wrong)
    assert "swizzle_32_4_4" in result.reproducer
    with pytest.raises(AssertionError, match="bytes differ"):
        rerun(result.reproducer, Swapped().quantize)
    rerun(result.reproducer, Right().quantize)


def test_what_need_not_be_answered_may_be_refused() -> None:
    result = run(OnlyWhole(), 60, judge=until(60))
    assert str(result.wrong) == "enough"
    assert 0 < result.refused < 60


def test_a_matrix_of_whole_blocks_has_to_be_answered() -> None:
    result = run(TooNarrow())
    assert not result.passed
    assert "raised ValueError: multiples of 64 for a contiguous matrix of shape (32, 32)" in str(
        result
    )


def test_a_target_that_refuses_everything_is_wrong() -> None:
    def refuse(x: Tensor) -> Any:
        raise RuntimeError("no")

    result = run(Judge(refuse, Claims.of(recipe="floor")))
    assert "raised RuntimeError: no for a contiguous matrix of shape (32, 32)" in str(result)


def test_no_example_within_the_budget_is_no_verdict() -> None:
    result = run(Right(), 1e-9)
    assert (result.passed, result.examples) == (False, 0)
    assert "no verdict" in str(result)


def test_answers_that_change_are_said_to_change() -> None:
    calls = []

    def moody(x: Tensor) -> Any:
        calls.extend([1] * (x.numel() > 0))
        payload, scale = mxref.quantize(x, "floor")
        return (
            (payload, scale)
            if len(calls) != 3 or not x.numel()
            else (payload.view(torch.uint8) ^ 1, scale)
        )

    result = run(Judge(moody, Claims.of(recipe="floor")))
    assert not result.passed
    assert "did not repeat" in str(result)


def test_a_failure_in_a_directory_is_replayed_first(tmp_path) -> None:
    class Watched(DropsNan):
        seen: list[bool]

        def quantize(self, x: Tensor) -> Any:
            self.seen.append(bool(x.isnan().any()))
            return super().quantize(x)

    first, second, elsewhere = Watched(), Watched(), Watched()
    for target, place in ((first, "a"), (second, "a"), (elsewhere, "b")):
        target.seen = []
        own = DirectoryBasedExampleDatabase(tmp_path / place)
        assert not run(target, seed=len(place), database=own).passed
    assert [target.seen[0] for target in (first, second, elsewhere)] == [False, True, False]
    # the name of a directory does as well
    again = Watched()
    again.seen = []
    run(again, database=str(tmp_path / "a"))
    assert again.seen[0]


def test_the_key_names_target_and_claims() -> None:
    floor, rceil = (Claims.of(recipe=name) for name in ("floor", "rceil"))
    keys = {database_key("a", floor), database_key("a", rceil), database_key("b", floor)}
    assert len(keys) == 3


def test_workers_and_rounds_draw_different_inputs(monkeypatch) -> None:
    seeds = {
        derived(seed, worker, number)
        for seed in range(3)
        for worker in ("", "gw0", "gw1", "round")
        for number in range(3)
    }
    assert len(seeds) == 36
    found = []
    for worker in ("gw0", "gw1", "gw0"):
        monkeypatch.setenv("PYTEST_XDIST_WORKER", worker)
        found.append(run(Right(), 0.1).seed)
    assert found[0] == found[2] != found[1]


def test_the_same_seed_draws_the_same_inputs() -> None:
    def drawn(seed: int) -> list[tuple[int, ...]]:
        shapes: list[tuple[int, ...]] = []

        def note(judge: Judge, x: Tensor) -> None:
            shapes.append(tuple(x.shape))
            if len(shapes) == 11:
                raise Wrong("enough")

        run(Right(), 60, seed=seed, judge=note)
        return shapes[:10]

    assert drawn(1) == drawn(1) != drawn(2)


@pytest.mark.parametrize("order", strategies.MEMORY)
def test_moving_to_a_device_keeps_strides_and_offset(order: str) -> None:
    x = strategies.in_memory(torch.arange(24.0).reshape(2, 3, 4), order)
    moved = on_device(x, torch.device("cpu"))
    assert (moved.stride(), moved.storage_offset()) == (x.stride(), x.storage_offset())
    assert torch.equal(moved, x)


@pytest.mark.parametrize(
    ("target", "keywords", "kind", "part"),
    [
        (mxref.quantize, {}, TypeError, "an object with recipe and quantize"),
        (Right, {}, TypeError, "expected an object"),
        (Right(), {"seconds": 0}, ValueError, "seconds=0"),
        (Right(), {"seconds": "1"}, TypeError, "seconds='1'"),
        (Right(), {"seconds": float("nan")}, ValueError, "seconds=nan"),
        (Right(), {"seed": -1}, ValueError, "seed=-1"),
        (Right(), {"seed": True}, TypeError, "seed=True"),
        (Right(), {"judge": 3}, TypeError, "judge=3"),
        (Right(), {"database": 3}, TypeError, "database=3"),
        (Right(), {"database": "ftp://x"}, ValueError, "unknown scheme 'ftp'"),
    ],
)
def test_wrong_arguments_are_named(
    target: Any, keywords: dict[str, Any], kind: type[Exception], part: str
) -> None:
    with pytest.raises(kind, match=part):
        run(target, **{"seconds": 0.1, **keywords})


def test_wrong_claims_are_named() -> None:
    wrong = Right()
    wrong.recipe = "up"
    with pytest.raises(ValueError, match="recipe='up'"):
        run(wrong)
