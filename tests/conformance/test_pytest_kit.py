"""What an adopter sees: ten lines, a wrong kernel, pytest in a process of its own."""

import subprocess
import sys
from pathlib import Path

import pytest

import mxref
from mxref.testing.checks import CHECKS
from tests.conformance.kit import KERNEL, TEN_LINES, pytest_in

SMOKE = [check.name for check in CHECKS if "smoke" in check.levels]

MANY = """
import os, time, torch, mxref
from mxref.testing import Adapter, conformance_tests

class Base(Adapter):
    recipe, dtypes = "rceil", (torch.bfloat16,)

class Right(Base):
    def quantize(self, x): return mxref.quantize(x)

class Refuses(Base):
    def quantize(self, x): raise RuntimeError("no kernel")

class Bf16(Base):
    dtypes = (torch.bfloat16, torch.float16)
    def quantize(self, x):
        assert x.dtype == torch.bfloat16, "bfloat16 only"
        return mxref.quantize(x)

class Hangs(Base):
    def quantize(self, x):
        while bool(x.isnan().any()):
            try: time.sleep(0.01)
            except Exception: pass
        return mxref.quantize(x)

class Shape(Base):
    def quantize(self, x):
        return mxref.quantize(x).payload.flatten(), mxref.quantize(x).scale

test_right = conformance_tests(Right(), level="full")
test_refuses = conformance_tests(Refuses())
test_bf16 = conformance_tests(Bf16())
test_hangs = conformance_tests(Hangs())
test_shape = conformance_tests(Shape())
test_absent = conformance_tests(Right(device="cuda:77"))
"""


def waiver(name: str, expires: str = "9999-01-01") -> str:
    return f'[[waiver]]\nid = "{name}"\nissue = "https://e.org/7"\nexpires = {expires}\n'


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    (tmp_path / "acme.py").write_text(KERNEL)
    (tmp_path / "test_acme.py").write_text(TEN_LINES)
    (tmp_path / "mx_waivers.toml").write_text("")
    return tmp_path


def test_ten_lines_find_a_wrong_kernel_and_show_how(repository: Path) -> None:
    found = pytest_in(repository, "-q")
    assert found.code == 1, found.text + found.error
    assert list(found.tests) == [f"test_mine[bfloat16-{name}]" for name in SMOKE]
    failed = {name for name, kind in found.tests.items() if kind == "failure"}
    assert {"test_mine[bfloat16-edge_blocks]", "test_mine[bfloat16-subnormals]"} <= failed
    assert found.tests["test_mine[bfloat16-matrices]"] == "passed"
    assert found.tests["test_mine[bfloat16-payload_order]"] == "skipped"
    message = found.messages["test_mine[bfloat16-edge_blocks]"]
    for part in (
        "test_acme:Mine() does not conform, level smoke, seed 0",
        "edge_blocks [bfloat16]: payload[0] 0x00, expected 0x80",
        "  input     8000 8000",
        "  expected  scale 00  payload 80 80",
        "  actual    scale 00  payload 00 00",
        "from the input: 0 of ",
        "payload under the target's own scales: ",
    ):
        assert part in message, message
    snippet = message.split("To reproduce:\n\n")[1]
    ran = subprocess.run(
        [sys.executable, "-c", snippet],
        capture_output=True,
        text=True,
        cwd=repository,
        env={"PYTHONPATH": f"{Path(mxref.__file__).parents[1]}"},
    )
    assert "bytes differ" in ran.stderr, ran.stderr
    kept = found.properties["test_mine[bfloat16-edge_blocks]"]
    assert (kept["mx_spec"], kept["mx_verdict"]) == (mxref.SPEC, "failed")
    assert kept["mx_recipe"] == "rceil"
    assert "payload bytes differ" in kept["mx_own_scales"]


def test_waivers_of_the_repository(repository: Path) -> None:
    (repository / "mx_waivers.toml").write_text(
        waiver("bfloat16-edge_blocks")
        + waiver("bfloat16-subnormals", "2020-01-01")
        + waiver("bfloat16-matrices")
        + waiver("bfloat16-nofinite")
    )
    found = pytest_in(repository, "-q", "-rx")
    assert found.code == 1
    assert found.tests["test_mine[bfloat16-edge_blocks]"] == "xfail"
    assert "https://e.org/7" in found.text
    assert found.tests["test_mine[bfloat16-subnormals]"] == "failure"
    assert "expired on 2020-01-01" in found.messages["test_mine[bfloat16-subnormals]"]
    assert found.tests["test_mine[bfloat16-matrices]"] == "failure"
    assert "the waiver has to go" in found.messages["test_mine[bfloat16-matrices]"]
    assert found.tests["test_mine[waivers]"] == "failure"
    assert "nearest are 'bfloat16-nonfinite'" in found.messages["test_mine[waivers]"]


def test_a_malformed_file_of_waivers_stops_the_collection(repository: Path) -> None:
    (repository / "mx_waivers.toml").write_text("[[waivers]]\n")
    found = pytest_in(repository, "-q", "--tb=line")
    assert found.code == 2
    assert "mx_waivers.toml: key 'waivers': expected [[waiver]] tables" in found.text


def test_without_the_plugin_the_level_is_smoke(repository: Path) -> None:
    found = pytest_in(repository, "-q", "--collect-only", plugin=False)
    assert found.code == 0, found.text
    assert found.text.count("test_mine[") == len(SMOKE)


def test_bad_targets_levels_limits_and_devices(tmp_path: Path) -> None:
    (tmp_path / "test_many.py").write_text(MANY)
    wanted = "matrices or edge_blocks or input_unchanged"
    found = pytest_in(tmp_path, "-q", "-k", wanted, "--mx-timeout", "10", "--mx-seed", "5")
    tests = found.tests
    # level="full" of the file; without it smoke
    listed = pytest_in(tmp_path, "-q", "--collect-only", "-k", "payload_table").text
    assert "test_right[bfloat16-payload_table]" in listed
    assert "test_bf16[bfloat16-payload_table]" not in listed
    assert found.properties["test_right[bfloat16-matrices]"]["mx_seed"] == "5"
    # a target that answers nothing fails once, and nothing of it passes
    assert tests["test_refuses[bfloat16-matrices]"] == "failure"
    assert "RuntimeError: no kernel" in found.messages["test_refuses[bfloat16-matrices]"]
    assert tests["test_refuses[bfloat16-edge_blocks]"] == "skipped"
    # a dtype that is declined is skipped with the reason
    assert tests["test_bf16[bfloat16-edge_blocks]"] == "passed"
    assert tests["test_bf16[float16-matrices]"] == "skipped"
    assert "declined: " in found.messages["test_bf16[float16-matrices]"]
    assert "bfloat16 only" in found.messages["test_bf16[float16-matrices]"]
    # a hang ends at the limit, and the rest go on
    assert tests["test_hangs[bfloat16-edge_blocks]"] == "failure"
    assert "no answer within 10 s" in found.messages["test_hangs[bfloat16-edge_blocks]"]
    assert tests["test_hangs[bfloat16-input_unchanged]"] == "failure"
    assert tests["test_hangs[bfloat16-matrices]"] == "passed"
    # one line for a malformed answer
    shape = found.messages["test_shape[bfloat16-matrices]"]
    assert "payload has shape (16384,), expected (128, 128)" in shape
    # a device that is not here is not a pass
    assert tests["test_absent[bfloat16-matrices]"] == "skipped"
    assert "not run: device='cuda:77'" in found.messages["test_absent[bfloat16-matrices]"]


FUZZ = TEN_LINES.replace("(Mine(), ", '(Mine(), level="fuzz", ')
WITHOUT_HYPOTHESIS = "import sys; sys.modules['hypothesis'] = None"
NAMED = "needs Hypothesis: pip install 'mxref[verify]'"


def test_fuzz_without_hypothesis_is_one_line_that_names_the_extra(repository: Path) -> None:
    (repository / "sitecustomize.py").write_text(WITHOUT_HYPOTHESIS)
    found = pytest_in(repository, "-q", "--mx-level", "fuzz")
    assert (found.code, found.text) == (4, "")
    assert found.error == f"ERROR: --mx-level=fuzz {NAMED}\n\n"
    (repository / "test_acme.py").write_text(FUZZ)
    found = pytest_in(repository, "-q", "-k", "fuzz")
    assert found.messages["test_mine[bfloat16-fuzz]"].count(NAMED) >= 1
    assert "Traceback" not in found.text


def test_fuzz_finds_the_wrong_kernel_and_keeps_its_budget(repository: Path) -> None:
    found = pytest_in(repository, "-q", "--mx-level=fuzz", "--mx-fuzz-seconds=2")
    assert set(found.tests) == {"test_mine[bfloat16-matrices]", "test_mine[bfloat16-fuzz]"}
    assert found.tests["test_mine[bfloat16-fuzz]"] == "failure"
    assert "expected 0x80" in found.messages["test_mine[bfloat16-fuzz]"]
