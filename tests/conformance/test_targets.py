"""Targets: functions by name, registries by entry point, kernels by duck typing."""

import importlib
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import mxref
from mxref.testing import targets, verify

FILES = {
    "good_target.py": "from functools import partial\n"
    "import mxref.testing\nquantize = mxref.quantize\n"
    "class Box:\n    quantize = staticmethod(mxref.quantize)\nnumber = 3\n"
    "class Taking:\n    def __init__(self, x): pass\n"
    "    def __call__(self, x): return quantize(x)\n"
    "taking = Taking(0)\npart = partial(quantize, block=(32, 1))\n"
    "class New:\n    def __new__(cls, x): return quantize(x)\n"
    "class Meta(type):\n    def __call__(cls, x): return quantize(x)\n"
    "class Made(metaclass=Meta): pass\n"
    "class Pair(tuple):\n    def __init__(self, x): pass\n"
    "class Mine(mxref.testing.Adapter):\n    recipe, quantize = 'rceil', staticmethod(quantize)\n"
    "mine = Mine()\n",
    "broken_target.py": "def f(:\n",
    "raising_target.py": "raise RuntimeError('no driver')\n",
    "leaving_target.py": "raise SystemExit(1)\n",
    "needy_target.py": "import not_there_at_all\n",
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in FILES:
        monkeypatch.delitem(sys.modules, name.removesuffix(".py"), raising=False)
    return tmp_path


def test_load_finds_functions_in_the_current_directory(here: Path) -> None:
    assert targets.load("good_target:quantize") is mxref.quantize
    assert targets.load("good_target:Box.quantize") is mxref.quantize


@pytest.mark.parametrize("name", ["taking", "part", "New", "Made", "Pair", "Mine", "mine"])
def test_load_takes_whatever_may_answer_a_tensor(here: Path, name: str) -> None:
    found = targets.load(f"good_target:{name}")
    assert found is getattr(importlib.import_module("good_target"), name)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("good_target", "expected package.module:function"),
        ("good_target:", "expected package.module:function"),
        (":quantize", "expected package.module:function"),
        ("good target:f", "expected package.module:function"),
        ("not_there:f", "no module named 'not_there'"),
        ("good_target.sub:f", "no module named 'good_target.sub'"),
        ("needy_target:f", "needy_target needs 'not_there_at_all'"),
        ("broken_target:f", "importing broken_target failed: SyntaxError"),
        ("raising_target:f", "RuntimeError: no driver"),
        ("leaving_target:f", "importing leaving_target failed: SystemExit"),
        ("good_target:other", "good_target has no 'other'"),
        ("good_target:number", "found 3, expected a function"),
        ("good_target:Box", "the class Box, expected a function x -> (payload, scale)"),
        ("good_target:Taking", "the class Taking, expected a function x -> (payload, scale)"),
    ],
)
def test_load_says_in_one_line_what_is_wrong(here: Path, target: str, message: str) -> None:
    with pytest.raises(ValueError, match="target=") as caught:
        targets.load(target)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def spec(**fields: Any) -> Any:
    def call(
        x: torch.Tensor, recipe: str, block: Any, order: str, layout: str, config: Any = None
    ) -> Any:
        payload, scale = mxref.quantize(x, recipe, block=block)
        contract = None if block != (32, 32) else {"row": -1, "col": -2}[order]
        stored = mxref.layouts.encode(
            scale, layout, block=block, shape=tuple(x.shape), contract=contract
        )
        return payload.mT.contiguous().mT if order == "col" and x.dim() > 1 else payload, stored

    return SimpleNamespace(
        **{
            "name": "fake",
            "recipes": ("floor", "rceil"),
            "blocks": ((1, 32), (32, 32)),
            "payload_orders": ("row", "col"),
            "scale_layouts": ("plain", "swizzle_32_4_4"),
            "dtypes": (torch.bfloat16, torch.float32),
            "call": call,
            **fields,
        }
    )


def test_every_combination_of_a_spec_is_a_target_that_verify_takes() -> None:
    found = list(targets.combinations(spec()))
    assert len(found) == 16
    assert len({each.label for each in found}) == 16
    for label, fn, claims in found:
        report = verify(fn, **claims, level="smoke", checks=["edge_blocks", "ranks"], name=label)
        assert report.passed, str(report)


def test_a_square_swizzle_serves_the_direction_of_its_payload() -> None:
    found = targets.combinations(spec(), blocks=[(32, 32)], scale_layouts=["swizzle_32_4_4"])
    assert [each.claims["contract"] for each in found] == [-1, -2, -1, -2]


def test_filters_keep_what_they_list() -> None:
    found = list(targets.combinations(spec(), recipes=["floor"], dtypes=[torch.float32]))
    assert {each.claims["recipe"] for each in found} == {"floor"}
    assert {each.claims["dtypes"] for each in found} == {(torch.float32,)}
    assert not list(targets.combinations(spec(), dtypes=[torch.float16]))
    assert not list(targets.combinations(spec(), recipes=["ceil"]))


def test_pairs_are_fewer_and_every_two_choices_meet() -> None:
    every = list(targets.combinations(spec()))
    found = list(targets.combinations(spec(), pairs=True))
    assert len(found) < len(every)
    assert len({each.label for each in found}) == len(found)
    rows = [
        (each.claims["recipe"], each.claims["block"], each.fn.args[3], each.fn.args[4], dtype)
        for each in found
        for dtype in each.claims["dtypes"]
    ]
    axes = [{row[at] for row in rows} for at in range(5)]
    assert [len(axis) for axis in axes] == [2, 2, 2, 2, 2]
    for first in range(5):
        for second in range(first):
            met = {(row[first], row[second]) for row in rows}
            assert len(met) == len(axes[first]) * len(axes[second])


def test_a_spec_of_another_operation_gives_no_target() -> None:
    assert not list(targets.combinations(spec(op="dequantize")))


class Entry:
    name, value = "mine", "mine.registry:KERNELS"

    def __init__(self, result: Any) -> None:
        self.result = result

    def load(self) -> Any:
        if isinstance(self.result, Exception):
            raise self.result
        return self.result


def test_registered_reads_each_entry_point_once(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = [Entry((1, 2)), Entry((1, 2))]
    monkeypatch.setattr(targets, "entry_points", lambda group: entries)
    assert targets.registered() == [1, 2]


def test_a_registry_that_does_not_load_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets, "entry_points", lambda group: [Entry(ImportError("no triton"))])
    with pytest.raises(ValueError, match=r"entry point 'mine'.*ImportError: no triton"):
        targets.registered()


def test_importing_testing_loads_neither_hypothesis_nor_pytest_nor_rich() -> None:
    code = (
        "import sys, mxref.testing, mxref.testing.targets\n"
        "print(sorted({'hypothesis', 'pytest', 'rich', 'triton', 'mxkernels'} & set(sys.modules)))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
