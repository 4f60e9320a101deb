"""docs/conformance.md tells the truth: its code and waivers work, its tables are full."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

import _mxref_pytest
import mxref
import mxref.testing.pytest_tests
from mxref.testing import LEVELS, Adapter
from mxref.testing.adapter import CLAIMS
from mxref.testing.waivers import Waivers

ROOT = Path(mxref.__file__).parents[1]
TEXT = (ROOT / "docs" / "conformance.md").read_text()


def fenced(language: str) -> str:
    (found,) = re.findall(rf"```{language}\n(.*?)```", TEXT, re.S)
    return str(found)


def test_the_ten_lines_and_the_waivers_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mx_waivers.toml").write_text(fenced("toml"))
    assert Waivers.load(tmp_path / "mx_waivers.toml").of("bfloat16-ties") is not None

    def quantize(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        payload, scale = mxref.quantize(x)
        return payload, mxref.layouts.encode(scale, "swizzle_32_4_4")

    monkeypatch.setattr(torch.ops, "acme", SimpleNamespace(mxfp8_quantize=quantize), raising=False)
    names: dict[str, object] = {"__file__": str(tmp_path / "test_acme.py"), "__name__": "test_acme"}
    exec(compile(fenced("python"), "docs/conformance.md", "exec"), names)
    cases = list(names["test_mine"].pytestmark[0].args[1])  # type: ignore[attr-defined]
    assert "waivers" in [case.id for case in cases]
    kept: dict[str, object] = {}
    cases[1].values[0].run(kept.__setitem__)
    assert kept["mx_verdict"] == "passed"


def test_the_table_of_claims_is_complete_and_has_the_defaults() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| (.+?) \|", TEXT, re.M))
    assert set(rows) - set(LEVELS) == set(CLAIMS)
    for name, default in rows.items():
        if name in CLAIMS and default.startswith("`"):
            assert default == f"`{getattr(Adapter, name)!r}`".replace("'", '"')


def test_levels_and_options_are_named() -> None:
    for level in LEVELS:
        assert f"| `{level}`" in TEXT
    options: list[str] = []
    group = SimpleNamespace(addoption=lambda name, **rest: options.append(name))
    _mxref_pytest.pytest_addoption(SimpleNamespace(getgroup=lambda *names: group))
    assert len(options) == 5
    for name in options:
        assert name in TEXT
    assert f"{mxref.testing.pytest_tests.TIMEOUT} seconds" in TEXT
