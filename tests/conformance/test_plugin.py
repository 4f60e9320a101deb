"""The plugin: inert, cheap to load, and one line for a wrong option."""

from pathlib import Path
from typing import Any

import pytest

import _mxref_pytest
from mxref.testing.claims import LEVELS
from tests.conformance.kit import pytest_in

LOADS = """
import sys

def test_nothing_is_loaded():
    assert not {"torch", "hypothesis", "mxref"} & set(sys.modules)
"""


def test_a_session_with_the_plugin_loads_neither_torch_nor_hypothesis_nor_mxref(
    tmp_path: Path,
) -> None:
    (tmp_path / "test_loads.py").write_text(LOADS)
    found = pytest_in(tmp_path, "-q")
    assert (found.code, found.tests) == (0, {"test_nothing_is_loaded": "passed"}), found.text
    # and the test can fail
    (tmp_path / "conftest.py").write_text("import mxref")
    assert pytest_in(tmp_path, "-q").tests == {"test_nothing_is_loaded": "failure"}


def test_the_plugin_is_inert_where_no_option_is_given(tmp_path: Path) -> None:
    (tmp_path / "test_plain.py").write_text("def test_plain(): pass\n")
    found = pytest_in(tmp_path)
    assert found.tests == {"test_plain": "passed"}
    lines = found.text.replace(str(tmp_path), "").lower().splitlines()
    # an installed plugin is named in pytest's own line
    assert not [line for line in lines if "mx" in line and not line.startswith("plugins: ")]
    help_text = pytest_in(tmp_path, "--help").text
    for option in ("--mx-level", "--mx-device", "--mx-seed", "--mx-timeout", "--mx-fuzz-seconds"):
        assert option in help_text


def test_a_wrong_option_is_one_line_and_the_usage_exit(tmp_path: Path) -> None:
    found = pytest_in(tmp_path, "--mx-level=fast")
    wanted = "ERROR: --mx-level='fast': expected one of smoke, full, exhaustive, fuzz\n\n"
    assert (found.code, found.text, found.error) == (4, "", wanted)


class Config:
    def __init__(self, **given: str) -> None:
        self.given = {f"--mx-{name.replace('_', '-')}": value for name, value in given.items()}

    def getoption(self, name: str) -> str | None:
        return self.given.get(name)


@pytest.mark.parametrize(
    ("name", "value", "part"),
    [
        ("level", "", "expected one of smoke"),
        ("device", "gpu", "expected cpu, cuda or cuda:N"),
        ("seed", "-1", "--mx-seed='-1': expected an integer of at least 0"),
        ("seed", "x", "--mx-seed='x'"),
        ("timeout", "1.5", "--mx-timeout='1.5'"),
        ("fuzz_seconds", "0", "at least 1"),
    ],
)
def test_a_wrong_value_names_the_option(
    name: str, value: str, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_mxref_pytest, "OPTIONS", {})
    with pytest.raises(pytest.UsageError) as caught:
        _mxref_pytest.pytest_configure(_config(**{name: value}))
    assert part in str(caught.value)
    assert "\n" not in str(caught.value)


def test_options_are_kept_for_the_session_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_mxref_pytest, "OPTIONS", {})
    _mxref_pytest.pytest_configure(_config(level="full", device="cuda:1", seed="7", timeout="0"))
    assert _mxref_pytest.OPTIONS == {"level": "full", "device": "cuda:1", "seed": 7, "timeout": 0}
    _mxref_pytest.pytest_unconfigure()
    assert _mxref_pytest.OPTIONS == {}


def _config(**given: str) -> Any:
    return Config(**given)


def test_the_levels_are_those_of_the_run() -> None:
    assert _mxref_pytest.LEVELS == LEVELS
