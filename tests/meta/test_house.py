"""The house rules that a machine can check: the public names, room sizes, complete tuples."""

import importlib
import re
from pathlib import Path

import pytest

import mxref
from mxref import layouts, rules

ROOT = Path(__file__).parents[2]
SOURCES = sorted(p for place in ("mxref", "mxkernels") for p in (ROOT / place).rglob("*.py"))

PUBLIC = [
    "RECIPES", "SPEC", "Product", "Quantized", "Recipe", "__version__", "dequantize", "exact",
    "layouts", "matmul", "quantize", "testing", "vectors",
]  # fmt: skip


def test_the_public_names_of_mxref():
    assert sorted(mxref.__all__) == sorted(PUBLIC)
    for name in PUBLIC:
        assert getattr(mxref, name) is not None
    with pytest.raises(AttributeError, match="quantise"):
        _ = mxref.quantise


def test_version_and_spec_are_literals():
    source = (ROOT / "mxref" / "__init__.py").read_text()
    assert re.search(r'^__version__ = "\d+\.\d+\.\d+"$', source, re.M)
    assert re.search(r'^SPEC = "[\w.-]+"$', source, re.M)


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_files_are_rooms_one_can_live_in(path):
    limit = 60 if path.parent.name == "rules" and path.name != "__init__.py" else 300
    assert len(path.read_text().splitlines()) <= limit
    assert path.stem not in ("utils", "helpers", "common", "misc", "manager")


def test_the_readme_and_conftest_are_short():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 150
    assert len((ROOT / "conftest.py").read_text().splitlines()) <= 60


def listed_files(folder: str, *beside: str) -> set[str]:
    names = {path.stem for path in (ROOT / folder).glob("*.py")}
    return names - {"__init__", *beside}


def test_every_rule_layout_and_check_is_listed():
    assert {rule.__name__ for rule in rules.RULES} == listed_files("mxref/rules", "ratio")
    assert set(layouts.LAYOUTS) == listed_files("mxref/layouts", "matrix", "groups")
    checks = importlib.import_module("mxref.testing.checks").CHECKS
    assert len(checks) >= len(listed_files("mxref/testing/checks"))


def test_an_unlisted_file_is_found():
    assert "ratio" in listed_files("mxref/rules")
