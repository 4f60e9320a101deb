"""Levels exhaustive and fuzz: what they ask for, that they catch, and what they need."""

import sys
import time
from typing import Any

import pytest
import torch
from torch import Tensor

import _mxref_pytest
import mxref
from mxref.formats import FP32
from mxref.testing import Adapter, conformance_tests, verify
from mxref.testing.check import Setting
from mxref.testing.checks import CHECKS, every_fp32_amax, fuzz, large
from mxref.testing.claims import Claims
from mxref.testing.conformance import select
from mxref.testing.judge import Judge, Wrong
from mxref.testing.run import Run
from tests.cli.cli_call import call

BF16, FP = torch.bfloat16, torch.float32
BLOCKS = [(1, 32), (32, 1), (32, 32)]


def setting(dtype: torch.dtype = FP, **claims: Any) -> Setting:
    return Setting(Claims.of(recipe="rceil", level="exhaustive", **claims), dtype)


def test_a_level_holds_the_checks_of_the_one_before() -> None:
    smoke, full, exhaustive = (set(select(level)) for level in ("smoke", "full", "exhaustive"))
    assert smoke < full < exhaustive
    assert {check.name for check in exhaustive - full} == {"every_fp32_amax", "large"}
    assert [check.name for check in select("fuzz")] == ["matrices", "fuzz"]
    assert set(CHECKS) == exhaustive | set(select("fuzz"))


@pytest.mark.parametrize("multiple_of", [32, 48, 128])
@pytest.mark.parametrize("block", BLOCKS)
def test_the_matrices_of_every_fp32_amax_hold_every_pattern_once(
    block: tuple[int, int], multiple_of: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A smaller range, cut at the same kind of places: no gap, no end left out."""
    last = 0x1_2345
    monkeypatch.setattr(every_fp32_amax, "AT_ONCE", 1 << 19)
    monkeypatch.setattr(every_fp32_amax, "FP32", _Short(last))
    monkeypatch.setattr(every_fp32_amax, "_shape", lambda s: _shape(s, 1 << 19))
    seen = torch.zeros(last, dtype=torch.int64)
    for x in every_fp32_amax.inputs(_FakeSetting(setting(block=block, multiple_of=multiple_of))):
        assert all(size % multiple_of == 0 for size in x.shape)
        tiles = x.view(torch.int32) & 0x7FFFFFFF
        tiles = tiles.reshape(x.shape[0] // block[0], block[0], x.shape[1] // block[1], block[1])
        amax = tiles.amax((1, 3)).reshape(-1).long()
        seen += torch.bincount(amax, minlength=last)
    assert bool((seen[1:] == 1).all())
    assert int(seen[0]) >= 1


class _Short:
    def __init__(self, exponent_mask: int) -> None:
        self.exponent_mask = exponent_mask


class _FakeSetting:
    """A setting whose format is the shortened one."""

    def __init__(self, real: Setting) -> None:
        self.claims, self.step, self.block_elements = real.claims, real.step, real.block_elements
        self.fmt = every_fp32_amax.FP32


_shape = every_fp32_amax._shape


def test_every_fp32_amax_is_for_fp32_alone_and_counts_to_the_end() -> None:
    assert not list(every_fp32_amax.inputs(setting(BF16)))
    shape = every_fp32_amax._shape(setting())
    count = shape[0] * shape[1] // 32
    assert count == 1 << 17
    start = FP32.exponent_mask - 1 - (FP32.exponent_mask - 1) % count
    x = every_fp32_amax.of_amax(setting(), shape, start)
    assert int((x.view(torch.int32) & 0x7FFFFFFF).max()) == FP32.exponent_mask - 1


def test_one_wrong_amax_among_all_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """0x04600001 alone: the product and the exact quotient differ there and nowhere else."""
    shape = every_fp32_amax._shape(setting())
    count = shape[0] * shape[1] // 32
    start = 0x04600001 // count * count
    x = every_fp32_amax.of_amax(setting(), shape, start)
    Judge(mxref.quantize, setting().claims).compare(x.clone())

    def exact(x: Tensor) -> Any:
        payload, scale = (each.view(torch.uint8) for each in mxref.quantize(x))
        amax = x.reshape(*scale.shape, 32).abs().amax(-1).view(torch.int32)
        return payload, scale + (amax == 0x04600001)

    with pytest.raises(Wrong, match=r"scale 0x01, expected 0x00"):
        Judge(exact, setting().claims).compare(x)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tensor of 9 bands instead of 259, and memory enough."""
    monkeypatch.setattr(large, "SIDE", 64)
    monkeypatch.setattr(large, "BAND", 128)
    monkeypatch.setattr(large, "BANDS", 9)
    monkeypatch.setattr(large, "free_memory", lambda device: 1 << 40)


def on_large(fn: Any, claims: Claims) -> Any:
    (check,) = [check for check in CHECKS if check.name == "large"]
    return Run(fn, claims, "t", (check,)).outcome(check, Setting(claims, BF16))


@pytest.mark.parametrize("layout", ["plain", "swizzle_32_4_4"])
@pytest.mark.parametrize("block", BLOCKS)
def test_large_judges_band_by_band(small: None, block: tuple[int, int], layout: str) -> None:
    contract = -1 if block == (32, 32) else None
    claims = Claims.of(
        recipe="rceil", block=block, scale_layout=layout, contract=contract, level="exhaustive"
    )

    def fn(x: Tensor, change: Any = None) -> Any:
        payload, scale = (e.view(torch.uint8) for e in mxref.quantize(x, block=block))
        stored = mxref.layouts.encode(
            scale, layout, block=block, shape=tuple(x.shape), contract=contract
        )
        if change is not None:
            change(payload, stored.view(-1))
        return payload, stored

    outcome = on_large(fn, claims)
    assert outcome.verdict == "passed", outcome
    assert outcome.result.elements == 9 * 128 * 64

    def wraps(payload: Tensor, stored: Tensor) -> None:
        payload[5 * 128 :] = payload[: 4 * 128].clone()

    assert "from row 640 of 1152 on" in on_large(lambda x: fn(x, wraps), claims).failure.message

    def last_scale(payload: Tensor, stored: Tensor) -> None:
        stored[stored.nonzero()[-1]] ^= 1

    assert on_large(lambda x: fn(x, last_scale), claims).verdict == "failed"

    def padding(payload: Tensor, stored: Tensor) -> None:
        stored[(stored == 0).nonzero()[-1:]] = 1

    if layout == "swizzle_32_4_4" and block != (32, 1):
        assert "padding" in on_large(lambda x: fn(x, padding), claims).failure.message


def test_large_is_past_2_31_elements_and_no_band_is_like_the_one_that_a_wrap_reads() -> None:
    elements = large.SIDE * large.BAND
    assert large.BANDS * elements > (1 << 31)
    assert (1 << 31) % elements == 0
    assert (1 << 31) // elements * large.TURN % large.SIDE != 0
    assert large.TURN % 2 == 1


def test_large_is_not_run_where_memory_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large, "free_memory", lambda device: 1 << 30)
    outcome = on_large(mxref.quantize, Claims.of(recipe="rceil", level="exhaustive"))
    assert outcome.verdict == ""
    assert "needs 12 GiB of free memory, 1 are here" in outcome.not_run.reason
    assert large.free_memory(torch.device("cpu")) > 0


def test_fuzz_passes_the_reference_within_its_budget() -> None:
    start = time.monotonic()
    report = verify(mxref.quantize, recipe="rceil", dtypes=(BF16,), level="fuzz", fuzz_seconds=2)
    assert report.passed, str(report)
    assert time.monotonic() - start < 30
    assert report.results[-1].check == "fuzz"
    assert report.results[-1].blocks > 1000


def test_fuzz_shrinks_what_it_finds() -> None:
    def loses_nan(x: Tensor) -> Any:
        payload, scale = mxref.quantize(x)
        return torch.where(x.isnan(), 0, payload.view(torch.uint8)), scale

    report = verify(loses_nan, recipe="rceil", dtypes=(BF16,), level="fuzz", fuzz_seconds=3)
    assert [each.check for each in report.failures] == ["fuzz"]
    assert "expected 0x7F" in report.failures[0].message


def test_fuzz_lets_refuse_what_may_be_refused_and_nothing_else() -> None:
    def whole(x: Tensor) -> Any:
        if x.dim() != 2 or not x.is_contiguous() or any(size % 32 for size in x.shape):
            raise ValueError("no such shape")
        return mxref.quantize(x)

    claims: dict[str, Any] = {"recipe": "rceil", "dtypes": (BF16,), "level": "fuzz"}
    assert verify(whole, **claims, fuzz_seconds=1).passed

    def small_only(x: Tensor) -> Any:
        if x.numel() > 64 * 64:
            raise ValueError("too large")
        return mxref.quantize(x)

    judge = Judge(small_only, Claims.of(recipe="rceil"))
    fuzz.judge_one(judge, torch.ones(3, 96, 32))
    with pytest.raises(Wrong, match=r"too large for a contiguous matrix of shape \(96, 96\)"):
        fuzz.judge_one(judge, torch.ones(96, 96))


class Right(Adapter):
    recipe, dtypes = "rceil", (BF16,)

    def quantize(self, x: Tensor) -> Any:
        return mxref.quantize(x)


def cases(test: Any) -> list[Any]:
    found: list[Any] = test.pytestmark[0].args[1]
    return found


def test_fuzz_has_a_test_for_each_worker_with_a_seed_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYTEST_XDIST_WORKER_COUNT", "3")
    found = cases(conformance_tests(Right(), level="fuzz"))
    names = [case.id for case in found]
    assert names == ["bfloat16-matrices", *[f"bfloat16-fuzz{n}" for n in ("", "-1", "-2")]]
    assert [case.values[0].part for case in found] == [0, 0, 1, 2]
    assert found[1].values[0].name == found[3].values[0].name == "bfloat16-fuzz"


def test_an_option_goes_before_the_file_and_an_absent_device_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_mxref_pytest, "OPTIONS", {"level": "smoke", "seed": 9, "timeout": 4})
    found = cases(conformance_tests(Right(), level="full"))
    assert len(found) == len(select("smoke"))
    suite = found[0].values[0].suite
    assert (suite.claims.level, suite.claims.seed, suite.limit) == ("smoke", 9, 4)
    monkeypatch.setattr(_mxref_pytest, "OPTIONS", {"device": "cuda:77"})
    with pytest.raises(ValueError, match="device='cuda:77'"):
        conformance_tests(Right())


@pytest.mark.parametrize(
    ("level", "limit"), [("smoke", 300), ("full", 300), ("exhaustive", 0), ("fuzz", 360)]
)
def test_each_level_has_its_time_limit(
    level: str, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_mxref_pytest, "OPTIONS", {})
    assert cases(conformance_tests(Right(), level=level))[0].values[0].suite.limit == limit


def test_fuzz_without_hypothesis_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'mxref\[verify\]'"):
        verify(mxref.quantize, recipe="rceil", level="fuzz")
    outcome = call("verify", "mxref:quantize", "--level", "fuzz")
    assert outcome.wrong == ("mxref: level 'fuzz' needs Hypothesis: pip install 'mxref[verify]'\n")


def test_conformance_tests_wants_an_object() -> None:
    with pytest.raises(TypeError, match=r"adapter=.*call the class"):
        conformance_tests(Right)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="level='fast'"):
        conformance_tests(Right(), level="fast")
    with pytest.raises(TypeError, match="waivers=3"):
        conformance_tests(Right(), waivers=3)  # type: ignore[arg-type]
