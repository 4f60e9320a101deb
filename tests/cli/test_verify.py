"""`mxref verify`: verdicts, tables, exit codes, what a wrong call says."""

import json
import re
import subprocess
import sys

import pytest

from mxref.cli import subjects
from mxref.cli.errors import WrongCallError
from mxref.cli.options import Choice
from tests.cli.cli_call import call

STUBS = "tests.cli.stub_targets"
QUICK = ("--level", "smoke", "--dtype", "bf16")


def test_a_right_target_conforms_with_exit_0():
    outcome = call("verify", f"{STUBS}:right", *QUICK)
    assert outcome.code == 0
    last = outcome.out.splitlines()[-1]
    assert last == f"{STUBS}:right conforms: rceil, block 1x32, plain scales, level smoke, mxref-1"
    assert re.search(
        r"^matrices +bfloat16 +[\d,]+ +[\d,]+ +[\d.]+ +passed", outcome.out, re.MULTILINE
    )
    assert outcome.err == ""


def test_a_wrong_target_shows_bytes_in_bits_and_a_reproducer_that_reproduces():
    outcome = call("verify", f"{STUBS}:floor", *QUICK)
    assert outcome.code == 1
    assert re.search(
        r"^scale: expected 0x\w\w = 2\^-?\d+, actual 0x\w\w = 2\^-?\d+", outcome.out, re.M
    )
    assert re.search(r"^expected payload: (\w\w ){31}\w\w$", outcome.out, re.MULTILINE)
    assert re.search(r"^ +0 +0x\w{4} = [01] [01]{8} [01]{7} ", outcome.out, re.MULTILINE)
    assert f"{STUBS}:floor does not conform: matrices" in outcome.out.splitlines()[-1]
    snippet = outcome.out.split("reproducer:\n")[1].split("\nmore failures")[0]
    ran = subprocess.run([sys.executable, "-c", snippet], capture_output=True, text=True)
    assert ran.returncode == 1
    assert "bytes differ" in ran.stderr


def test_a_lost_minus_zero_is_found():
    outcome = call("verify", f"{STUBS}:minus_zero_lost", *QUICK)
    assert outcome.code == 1
    assert "0x80 = 1 0000 000   0x00 = 0 0000 000" in outcome.out


def test_a_target_that_answers_nothing_does_not_conform_and_says_why():
    outcome = call("verify", f"{STUBS}:raises", *QUICK)
    assert outcome.code == 1
    last = outcome.out.splitlines()[-1]
    assert "no contiguous 2-D matrix of any dtype was answered" in last
    assert "RuntimeError: no [bold]kernel[/bold]" in last


def test_a_malformed_answer_does_not_conform():
    outcome = call("verify", f"{STUBS}:nothing", *QUICK)
    assert outcome.code == 1
    assert "returned None, expected (payload, scale)" in outcome.out


def test_every_claim_reaches_the_run():
    outcome = call(
        *("verify", f"{STUBS}:swizzled", "--recipe", "rceil", "--block", "32,32"),
        *("--scale-layout", "swizzle_32_4_4", "--contract", "-2", *QUICK),
    )
    assert outcome.code == 0, outcome.out
    assert "block 32x32, swizzle_32_4_4 scales" in outcome.out.splitlines()[-1]


def test_the_json_file_holds_the_whole_report(tmp_path):
    path = tmp_path / "report.json"
    assert call("verify", f"{STUBS}:floor", *QUICK, "--json", str(path), "--seed", "7").code == 1
    content = json.loads(path.read_text())
    assert (content["passed"], content["spec"], content["not_run"]) == (False, "mxref-1", [])
    (report,) = content["reports"]
    assert report["target"] == f"{STUBS}:floor"
    assert report["claims"]["seed"] == 7
    assert report["claims"]["dtypes"] == ["bfloat16"]
    assert {"check", "verdict", "blocks", "elements", "seconds", "dtype"} <= set(
        report["results"][0]
    )
    first = report["failures"][0]
    assert len(first["input_bits"]) == len(first["expected"]["payload"]) == 32
    assert first["expected"]["scale"] != first["actual"]["scale"]


def test_the_registered_kernels_have_a_line_for_each_combination(registry):
    registry(f"{STUBS}:GOOD")
    outcome = call("verify")
    assert outcome.code == 0, outcome.err
    for recipe in ("floor", "rceil"):
        line = next(each for each in outcome.out.splitlines() if f"good {recipe} 1x32" in each)
        assert line.rstrip().endswith(" conforms")
    assert re.search(r"^absent .*not run: no such machine here", outcome.out, re.MULTILINE)
    assert "2 of 2 kernel combinations conform" in outcome.out.splitlines()[-1]


def test_a_wrong_kernel_among_right_ones_is_named(registry, tmp_path):
    registry(f"{STUBS}:BAD")
    path = tmp_path / "all.json"
    outcome = call("verify", "--recipe", "floor", "--json", str(path))
    assert outcome.code == 1
    assert re.search(r"^bad floor 1x32 row plain \w+ does not conform: matrices", outcome.out, re.M)
    assert "1 of 2 kernel combinations conform" in outcome.out.splitlines()[-1]
    verdicts = [report["passed"] for report in json.loads(path.read_text())["reports"]]
    assert verdicts == [True, False]


@pytest.mark.parametrize(
    ("registered", "arguments", "parts"),
    [
        ((), (), ["no kernel is registered", "mxref.targets"]),
        (("ABSENT",), (), ["no registered kernel on cpu", "absent: no such machine here"]),
        (("GOOD",), ("--block", "32x1"), ["takes --block 32x1"]),
        (("GOOD",), ("--dtype", "fp32"), ["takes --dtype fp32"]),
        (("GOOD",), ("--contract", "-2"), ["takes --contract -2"]),
        (("missing",), (), ["entry point 'k0'"]),
    ],
)
def test_nothing_to_judge_is_one_line_and_exit_2(registry, registered, arguments, parts):
    registry(*(f"{STUBS}:{name}" for name in registered))
    line = call("verify", *arguments).wrong
    assert all(part in line for part in parts)


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["nowhere.at.all:f"], ["nowhere"]),
        ([f"{STUBS}:nope"], ["nope"]),
        ([f"{STUBS}:not_callable"], ["found ", "expected a function"]),
        ([f"{STUBS}:Spec"], ["the class Spec", "expected a function"]),
        (["no_colon"], ["no_colon", "package.module:function"]),
        ([f"{STUBS}:right", "--recipe", "RCEIL"], ["--recipe='RCEIL'", "floor, rceil"]),
        ([f"{STUBS}:right", "--block", "16x2"], ["--block='16x2'", "1x32, 32x1, 32x32"]),
        ([f"{STUBS}:right", "--block", "1x32x1"], ["--block"]),
        ([f"{STUBS}:right", "--scale-layout", "blocked"], ["--scale-layout='blocked'", "plain_t"]),
        ([f"{STUBS}:right", "--dtype", "bf16", "--dtype", "fp8"], ["--dtype='fp8'", "fp16"]),
        ([f"{STUBS}:right", "--level", "deep"], ["--level='deep'", "smoke, full"]),
        ([f"{STUBS}:right", "--device", "tpu"], ["--device='tpu'", "cpu, cuda"]),
        ([f"{STUBS}:right", "--device", "cuda:999"], ["--device='cuda:999'"]),
        ([f"{STUBS}:right", "--seed", "x"], ["--seed='x'", "integer"]),
        ([f"{STUBS}:right", "--seed=-1"], ["--seed='-1'"]),
        ([f"{STUBS}:right", "--multiple-of", "0"], ["--multiple-of='0'", "at least 1"]),
        ([f"{STUBS}:right", "--contract", "1"], ["--contract='1'", "-1, -2"]),
        ([f"{STUBS}:right", "--contract", "-2"], ["--contract=-2", "(1, 32)"]),
        ([f"{STUBS}:right", "--contract", "-1"], ["--contract=-1", "'plain'", "swizzle_32_4_4"]),
        (
            [f"{STUBS}:right", "--block", "32x32", "--scale-layout", "swizzle_32_4_4"],
            ["--contract=None", "-1 or -2"],
        ),
        ([f"{STUBS}:right", "--json", "/nonexistent/report.json"], ["--json", "No such file"]),
        ([f"{STUBS}:right", "--json", "/"], ["--json", "directory"]),
        ([f"{STUBS}:right", "second"], ["second"]),
        ([f"{STUBS}:right", "--nope"], ["--nope"]),
        ([f"{STUBS}:right", "--recipe"], ["--recipe"]),
    ],
)
def test_a_wrong_call_is_one_line_and_exit_2(arguments, parts):
    line = call("verify", *arguments).wrong
    assert all(part in line for part in parts)


def test_a_json_file_that_cannot_be_written_is_found_before_the_run(tmp_path):
    before = tmp_path / "kept.json"
    line = call("verify", f"{STUBS}:interrupted", "--json", str(tmp_path / "no" / "x.json")).wrong
    assert "--json" in line
    # and a file that can be written is not there until there is a report
    assert call("verify", f"{STUBS}:nope", "--json", str(before)).code == 2
    assert not before.exists()


def test_control_c_exits_130():
    outcome = call("verify", f"{STUBS}:interrupted", *QUICK)
    assert (outcome.code, outcome.err) == (130, "mxref: interrupted\n")


def test_a_contract_is_refused_where_no_byte_depends_on_it():
    """For a target that the options describe, and for one that describes itself."""
    for name in ("right", "claimed"):
        target = f"tests.cli.crashing_targets:{name}"
        with pytest.raises(WrongCallError, match=r"--contract=-1: without effect .*'plain'"):
            subjects.named(Choice(target=target, contract=-1), target)
    for block in ((1, 32), (32, 32)):
        choice = Choice(contract=-1, block=block, scale_layout="swizzle_32_4_4")
        assert subjects.named(choice, f"{STUBS}:right").claims.contract == -1
