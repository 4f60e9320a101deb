"""A failure asks for its cause: what the diagnosis is given, and where its answer shows."""

import importlib.machinery
import sys
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

import mxref
from mxref.testing import run, verify

Install = Callable[[Callable[..., Any]], None]


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Install:
    def with_diagnose(diagnose: Callable[..., Any]) -> None:
        name = "mxref.testing.diagnosis"
        module = ModuleType(name)
        module.__spec__ = importlib.machinery.ModuleSpec(name, None)
        module.diagnose = diagnose  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, name, module)

    return with_diagnose


def failure() -> Any:
    def fn(x: Tensor) -> Any:
        payload, scale = mxref.quantize(x, "floor", block=(32, 32))
        keywords = {"block": (32, 32), "shape": tuple(x.shape), "contract": -2}
        return payload, mxref.layouts.encode(scale, "swizzle_32_4_4", **keywords)

    report = verify(
        fn,
        recipe="rceil",
        block=(32, 32),
        scale_layout="swizzle_32_4_4",
        contract=-2,
        dtypes=(torch.bfloat16,),
        level="smoke",
        checks=["thresholds"],
    )
    return report.failures[-1]


def test_the_first_cause_is_in_the_failure_and_in_its_text(install: Install) -> None:
    asked: dict[str, Any] = {}

    def diagnose(payload: Tensor, scale: Tensor, source: Tensor, **claims: Any) -> Any:
        asked.update(claims, payload=payload, scale=scale, source=source)
        return [SimpleNamespace(cause="the scale is that of floor"), SimpleNamespace(cause="x")]

    install(diagnose)
    found = failure()
    assert found.diagnosis == "the scale is that of floor"
    assert "  diagnosis: the scale is that of floor" in str(found).splitlines()
    assert asked["recipe"] == mxref.RECIPES["rceil"]
    assert (asked["block"], asked["contract"]) == ((32, 32), -2)
    assert asked["scale_layout"] == "swizzle_32_4_4"
    source = asked["source"]
    assert asked["payload"].shape == source.shape
    wanted = mxref.layouts.encode(
        mxref.quantize(source, "floor", block=(32, 32)).scale.view(torch.uint8),
        "swizzle_32_4_4",
        block=(32, 32),
        shape=tuple(source.shape),
        contract=-2,
    )
    assert torch.equal(asked["scale"], wanted)


def test_no_cause_is_no_line(install: Install) -> None:
    install(lambda *tensors, **claims: [])
    assert failure().diagnosis == ""
    assert "diagnosis" not in str(failure())


def test_a_search_that_breaks_off_does_not_hide_the_failure(install: Install) -> None:
    def diagnose(*tensors: Tensor, **claims: Any) -> Any:
        raise RuntimeError("no idea")

    install(diagnose)
    found = failure()
    assert found.check == "thresholds"
    assert found.diagnosis == "none, the search broke off: RuntimeError: no idea"


def test_without_the_module_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "find_spec", lambda name: None)
    assert failure().diagnosis == ""
