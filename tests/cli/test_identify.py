"""`mxref identify`: the recipe's name first, exit codes, one line where the call is wrong."""

import json

import pytest

from tests.cli.cli_call import call

STUBS = "tests.cli.stub_targets"
QUICK = ("--dtype", "bf16")


def test_the_name_comes_first_and_exact_is_exit_0():
    outcome = call("identify", f"{STUBS}:floor", *QUICK)
    assert outcome.code == 0
    assert outcome.out.startswith("floor: every byte of")
    assert "block 1x32, plain scales" in outcome.out.splitlines()[0]


def test_block_and_layout_are_named():
    outcome = call("identify", f"{STUBS}:swizzled", *QUICK)
    assert outcome.code == 0
    line = outcome.out.splitlines()[0]
    assert "block 32x32, swizzle_32_4_4 scales, contract -2" in line


@pytest.mark.parametrize("target", ["minus_zero_lost", "raises", "nothing"])
def test_no_exact_recipe_is_exit_1(target):
    outcome = call("identify", f"{STUBS}:{target}", *QUICK)
    if target == "minus_zero_lost":
        assert outcome.out.split()[0].strip(":") in ("rceil", "te_fma")
        assert outcome.code == (1 if "nearest" in outcome.out else 0)
    else:
        assert outcome.code == 1
        assert outcome.out.startswith("unknown: no input was answered")


def test_json(tmp_path):
    path = tmp_path / "found.json"
    assert call("identify", f"{STUBS}:right", *QUICK, "--json", str(path)).code == 0
    content = json.loads(path.read_text())
    assert content["target"] == f"{STUBS}:right"
    assert (content["recipe"], content["exact"], content["block"]) == ("rceil", True, [1, 32])
    assert content["spec"] == "mxref-1"


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        ([], ["TARGET"]),
        (["nowhere:f"], ["nowhere"]),
        (["no_colon"], ["package.module:function"]),
        ([f"{STUBS}:not_callable"], ["expected a function"]),
        ([f"{STUBS}:right", "--block", "2x2"], ["--block='2x2'"]),
        ([f"{STUBS}:right", "--scale-layout", "x"], ["--scale-layout='x'"]),
        ([f"{STUBS}:right", "--contract", "3"], ["--contract='3'"]),
        (
            [f"{STUBS}:right", "--contract", "-2", "--scale-layout", "plain"],
            ["--contract=-2", "'plain'", "swizzle_32_4_4"],
        ),
        ([f"{STUBS}:right", "--dtype", "fp8"], ["--dtype='fp8'"]),
        ([f"{STUBS}:right", "--device", "tpu"], ["--device='tpu'"]),
        ([f"{STUBS}:right", "--json", "/nonexistent/x.json"], ["--json"]),
    ],
)
def test_a_wrong_call_is_one_line_and_exit_2(arguments, parts):
    line = call("identify", *arguments).wrong
    assert all(part in line for part in parts)


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("time.sleep(600)", "gave no answer within 1 s while it was imported"),
        ("os._exit(3)", "ended the process with exit code 3 while it was imported"),
    ],
)
def test_a_module_whose_import_does_not_return_is_a_wrong_call(
    statement, why, tmp_path, monkeypatch
):
    (tmp_path / "never.py").write_text(f"import os, time\n{statement}\n")
    monkeypatch.chdir(tmp_path)
    line = call("identify", "never:f", *QUICK, "--timeout", "1").wrong
    assert line == f"mxref: target='never:f': {why}\n"


def test_an_end_of_the_process_and_a_hang_are_one_line(tmp_path, monkeypatch):
    (tmp_path / "ending.py").write_text(
        "import os, time\ndef ends(x): os._exit(0)\ndef hangs(x): time.sleep(100)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    outcome = call("identify", "ending:ends", *QUICK)
    assert outcome.code == 1
    assert outcome.out == "unknown: ending:ends ended the process with exit code 0\n"
    outcome = call("identify", "ending:hangs", *QUICK, "--timeout", "5")
    assert (outcome.code, outcome.out) == (1, "unknown: ending:hangs gave no answer within 5 s\n")
