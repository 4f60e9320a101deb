"""A target that ends its process, or never answers, is one failed check: the rest go on."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

import mxref
from mxref.cli import checking
from mxref.cli.child import is_broken
from mxref.cli.supervisor import BrokenDeviceError, exit_name
from mxref.testing import CheckResult, Failure, conformance
from mxref.testing.claims import Claims
from mxref.testing.run import Outcome
from tests.cli.cli_call import call

TARGETS = "tests.cli.crashing_targets"
QUICK = ("--level", "smoke", "--dtype", "bf16")


def verdicts(path):
    (report,) = json.loads(Path(path).read_text())["reports"]
    return {each["check"]: each["verdict"] for each in report["results"]}, report


@pytest.mark.parametrize(
    ("target", "options", "reason"),
    [
        ("leaves_at_nan", (), "the process ended with exit code 0"),
        ("aborts_at_nan", (), "the process ended with signal SIGABRT"),
        ("hangs_at_nan", ("--timeout", "2"), "no answer within 2 s"),
    ],
)
def test_an_end_of_the_process_fails_its_check_and_the_rest_go_on(
    target, options, reason, tmp_path
):
    path = tmp_path / "report.json"
    outcome = call("verify", f"{TARGETS}:{target}", *QUICK, *options, "--json", str(path))
    assert outcome.code == 1
    found, report = verdicts(path)
    # of the three checks of these tests, NaN is in the second and the third
    assert found == {"matrices": "passed", "edge_blocks": "failed", "nonfinite": "failed"}
    message = report["failures"][0]["message"]
    assert message == f"{reason} during check edge_blocks"
    assert message in outcome.out
    assert f"from {TARGETS} import {target} as target" in report["failures"][0]["reproducer"]


def test_exit_code_0_of_a_target_is_not_that_of_the_command():
    """In a process of its own, as people run it: this used to end with 0 and no report."""
    command = [sys.executable, "-m", "mxref", "verify", f"{TARGETS}:leaves", *QUICK]
    root = Path(mxref.__file__).parents[1]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    ran = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=root)
    assert ran.returncode == 1, ran.stderr
    assert "the process ended with exit code 0 during check matrices" in ran.stdout
    assert "does not conform" in ran.stdout.splitlines()[-1]
    assert ran.stdout.count("during check") >= 3
    assert "3 checks in a row ended the process" in ran.stdout
    assert ran.stderr == ""


def test_a_killed_command_leaves_no_child(tmp_path):
    (tmp_path / "stays.py").write_text(
        "import os, pathlib, time\n"
        "def quantize(x):\n"
        "    pathlib.Path('pid').write_text(str(os.getpid()))\n"
        "    time.sleep(600)\n"
    )
    root = Path(mxref.__file__).parents[1]
    command = [sys.executable, "-m", "mxref", "verify", "stays:quantize"]
    parent = subprocess.Popen(command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(root)})
    pid = tmp_path / "pid"
    assert within(60, lambda: pid.exists() and pid.read_text())
    parent.kill()
    parent.wait()
    assert within(20, lambda: not is_running(int(pid.read_text())))


def within(seconds, happened):
    end = time.monotonic() + seconds
    while time.monotonic() < end and not happened():
        time.sleep(0.1)
    return happened()


def is_running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{pid}/stat")
    # where nobody has waited for it yet, it is a zombie
    return not (status.exists() and status.read_text().rpartition(")")[2].split()[0] == "Z")


def test_a_module_that_ends_the_process_is_a_wrong_call(tmp_path, monkeypatch):
    (tmp_path / "ends_at_import.py").write_text("import os\nos._exit(0)\n")
    monkeypatch.chdir(tmp_path)
    line = call("verify", "ends_at_import:f", *QUICK).wrong
    assert "the process ended with exit code 0 while it was imported" in line


def test_an_import_that_never_returns_is_under_the_time_limit(tmp_path, monkeypatch):
    (tmp_path / "never_imported.py").write_text("import time\ntime.sleep(600)\n")
    monkeypatch.chdir(tmp_path)
    line = call("verify", "never_imported:f", "--timeout", "1").wrong
    reason = "no answer within 1 s while it was imported"
    assert line == f"mxref: target='never_imported:f': {reason}\n"


def test_tensors_of_a_file_are_judged_across_the_border(tmp_path):
    path = tmp_path / "model.safetensors"
    tensors = {name: torch.ones(4, 32) for name in ("a", "b", "c")}
    tensors["b"][0, 0] = torch.nan
    save_file(tensors, path)
    out = tmp_path / "report.json"
    outcome = call(
        *("verify", f"{TARGETS}:leaves_at_nan", "--tensors", str(path), "--json", str(out))
    )
    assert outcome.code == 1
    rows = json.loads(out.read_text())["tensors"]["tensors"]
    found = {row["name"]: row["targets"][f"{TARGETS}:leaves_at_nan"] for row in rows}
    assert {name: each["verdict"] for name, each in found.items()} == {
        "a": "equal",
        "b": "different",
        "c": "equal",
    }
    assert found["b"]["detail"] == "the process ended with exit code 0"


@pytest.mark.parametrize("name", ["Claimed", "claimed"])
def test_an_adapter_brings_its_claims(name, tmp_path):
    path = tmp_path / "report.json"
    outcome = call("verify", f"{TARGETS}:{name}", "--level", "smoke", "--json", str(path))
    assert outcome.code == 0, outcome.out
    claims = verdicts(path)[1]["claims"]
    assert (claims["recipe"], claims["dtypes"]) == ("floor", ["bfloat16"])
    assert claims["payload_order"] == "row"


def test_waivers_of_a_file_hold_on_the_command_line(tmp_path):
    path = tmp_path / "waivers.toml"
    lines = ["matrices", "edge_blocks", "nonfinite"]
    path.write_text(
        "".join(
            f'[[waiver]]\nid = "bfloat16-{name}"\nissue = "#1"\nexpires = 9999-01-01\n'
            for name in lines[:2]
        )
    )
    outcome = call("verify", "tests.cli.stub_targets:floor", *QUICK, "--waivers", str(path))
    assert outcome.code == 0, outcome.out
    assert "waived" in outcome.out
    path.write_text('[[waiver]]\nid = "x"\n')
    line = call("verify", "tests.cli.stub_targets:floor", *QUICK, "--waivers", str(path)).wrong
    assert "issue is missing" in line


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (("--timeout", "-1"), ["--timeout='-1'"]),
        (("--fuzz-seconds", "0"), ["--fuzz-seconds='0'", "at least 1"]),
        (("--waivers", "/none.toml"), ["/none.toml", "No such file"]),
    ],
)
def test_a_wrong_option_is_one_line(arguments, parts):
    line = call("verify", f"{TARGETS}:right", *arguments).wrong
    assert all(part in line for part in parts)


class FakeChild:
    """A child whose device breaks once, in the second check."""

    def __init__(self, checks):
        self.messages, self.jobs, self.broke = [], [], False
        self.checks = checks

    def send(self, kind, label, items):
        self.jobs.append([name for _, name in items])
        self.messages = []
        for dtype, name in items:
            result = CheckResult(name, "passed", 1, 1, dtype=str(dtype))
            failure = Failure(name, "illegal address") if name == self.checks[1] else None
            self.messages += [("start",), ("outcome", Outcome(result, failure))]
            if failure and not self.broke:
                self.messages.append(("broken",))

    def receive(self):
        message = self.messages.pop(0)
        if message == ("broken",):
            self.broke = True
            raise BrokenDeviceError
        return message


def test_a_broken_device_costs_a_child_and_no_other_check():
    claims = Claims.of(recipe="rceil", dtypes=(torch.bfloat16,), level="smoke")
    names = [check.name for check in conformance.select("smoke")]
    child = FakeChild(names)
    report = checking.run(child, "t", claims, lambda *_: None)
    assert [each.check for each in report.results] == names
    assert [each.check for each in report.failures] == [names[1]]
    assert child.jobs == [names[:1], names[1:], names[2:]]
    assert not is_broken(torch.device("cpu"))


def test_ends_have_names():
    assert exit_name(-11) == "signal SIGSEGV"
    assert exit_name(3) == "exit code 3"
