"""`mxref verify --tensors`: bytes and figures of a checkpoint's tensors."""

import json
import math
import struct

import pytest
import torch
from safetensors.torch import save_file

import mxref
from mxref.cli import checkpoint as checkpoints
from mxref.cli import tensors
from mxref.cli.figures import Figures, measure, spread
from mxref.testing.claims import Claims
from mxref.testing.judge import Judge
from tests.cli.cli_call import call
from tests.cli.stub_targets import right

STUBS = "tests.cli.stub_targets"


@pytest.fixture
def checkpoint(tmp_path):
    torch.manual_seed(0)
    path = tmp_path / "model.safetensors"
    content = {
        "bias": torch.randn(100),
        "empty": torch.zeros(0, 32),
        "half": torch.randn(64, 96).half(),
        "kernel": torch.randn(5, 3, 33, 40).bfloat16(),
        "positions": torch.arange(10),
        "step": torch.tensor(3.0),
        "weight": torch.randn(70, 130),
        "weight64": torch.randn(3, 3, dtype=torch.float64),
        "zeros": torch.zeros(2, 64),
        "poisoned": torch.tensor([[1.0, math.nan] + [0.5] * 62]),
        "fp8": torch.zeros(2, 32).to(torch.float8_e4m3fn),
    }
    save_file(content, path)
    return path


def test_a_checkpoint_is_judged_tensor_by_tensor(checkpoint, tmp_path):
    out = tmp_path / "out.json"
    outcome = call("verify", f"{STUBS}:right", "--tensors", str(checkpoint), "--json", str(out))
    assert outcome.code == 0, outcome.out
    content = json.loads(out.read_text())
    skipped = {"dtype I64": 1, "dtype F64": 1, "dtype F8_E4M3": 1, "rank 0": 1}
    assert content["passed"] is True
    assert content["tensors"]["skipped"] == skipped
    rows = {row["name"]: row for row in content["tensors"]["tensors"]}
    assert sorted(rows) == ["bias", "empty", "half", "kernel", "poisoned", "weight", "zeros"]
    verdicts = {name: row["targets"][f"{STUBS}:right"]["verdict"] for name, row in rows.items()}
    assert verdicts.pop("empty") == "not asked"
    assert set(verdicts.values()) == {"equal"}
    assert rows["weight"]["figures"]["rceil"]["saturated"] == 0
    assert rows["weight"]["figures"]["floor"]["saturated"] > 0
    assert rows["poisoned"]["figures"]["rceil"]["poisoned"] == 32
    assert rows["zeros"]["figures"]["floor"]["sqnr_db"] is None
    assert "7 tensors, " in outcome.out.splitlines()[-1]
    assert (
        "4 skipped (1 of dtype F64, 1 of dtype F8_E4M3, 1 of dtype I64, 1 of rank 0)" in outcome.out
    )


def test_figures_of_known_blocks():
    # floor: 480 saturates to 448 under byte 127; 2^-11 is below half of 2^-9 and is flushed
    x = torch.zeros(1, 64)
    x[0, :3] = torch.tensor([480.0, 2.0**-11, 1.0])
    found = measure(x, mxref.quantize(x, "floor"), (1, 32))
    assert (found.elements, found.saturated, found.flushed, found.poisoned) == (64, 1, 1, 0)
    assert found.signal == 480.0**2 + 2.0**-22 + 1
    assert found.noise == 32.0**2 + 2.0**-22
    assert found.sqnr == pytest.approx(10 * math.log10(found.signal / found.noise), abs=1e-12)
    under_rceil = measure(x, mxref.quantize(x, "rceil"), (1, 32))
    assert (under_rceil.saturated, under_rceil.noise) == (0, 2.0**-22)


def test_a_poisoned_block_counts_in_no_figure():
    x = torch.full((1, 64), 480.0)
    x[0, 40] = math.inf
    found = measure(x, mxref.quantize(x, "floor"), (1, 32))
    assert (found.poisoned, found.saturated, found.signal) == (32, 32, 32 * 480.0**2)


def test_sqnr_of_nothing_and_of_no_noise():
    assert Figures().sqnr is None
    assert Figures(signal=1.0).sqnr == math.inf
    assert Figures(signal=1.0, noise=math.inf).sqnr == -math.inf
    assert json.loads(json.dumps(Figures(signal=1.0).as_json()))["sqnr_db"] == "inf"


@pytest.mark.parametrize("block", [(1, 32), (32, 1), (32, 32)])
def test_a_scale_spreads_over_its_block(block):
    scale = torch.arange(8, dtype=torch.uint8).reshape(2, 4)
    shape = torch.Size((2 * block[0] - block[0] // 2, 4 * block[1] - block[1] // 2))
    wide = spread(scale, shape, block)
    expected = [
        [scale[r // block[0], c // block[1]] for c in range(shape[1])] for r in range(shape[0])
    ]
    assert wide.tolist() == [[int(each) for each in row] for row in expected]


@pytest.mark.parametrize("block", [(1, 32), (32, 1), (32, 32)])
def test_pieces_give_the_same_answer_as_the_whole(checkpoint, block):
    def fn(x):
        return mxref.quantize(x, "rceil", block=block)

    judging = Judge(fn, Claims.of(recipe="rceil", block=block))
    found = []
    with checkpoints.opened(str(checkpoint), 1 if block[0] == 1 else 2) as opened:
        for limit in (1 << 20, 2048):
            pieces = opened.pieces
            opened.pieces = lambda entry, limit=limit, pieces=pieces: pieces(entry, limit)
            rows = tensors.judge(opened, opened.entries, {"s": judging}, block, lambda *_: None)
            opened.pieces = pieces
            found.append(
                [(r.entry.name, r.tallies["s"].verdict, r.tallies["s"].compared) for r in rows]
            )
            assert tensors.passed(rows, ["s"])
    assert found[0] == found[1]


def test_wrong_bytes_are_counted(checkpoint):
    outcome = call("verify", f"{STUBS}:floor", "--tensors", str(checkpoint))
    assert outcome.code == 1
    assert "scale bytes and" in outcome.out
    assert "payload bytes differ" in outcome.out
    assert "do not conform" in outcome.out.splitlines()[-1]


def test_a_target_that_declines_everything_does_not_conform(checkpoint):
    outcome = call("verify", f"{STUBS}:raises", "--tensors", str(checkpoint))
    assert outcome.code == 1
    assert "declined: RuntimeError: no [bold]kernel[/bold]" in outcome.out


def test_a_target_may_write_into_its_input(checkpoint):
    # whether it may is a check of its own; here it must not spoil the figures or the reference
    assert call("verify", f"{STUBS}:writes_into_x", "--tensors", str(checkpoint)).code == 0


def test_a_strict_target_is_held_to_one_nan_code():
    x = torch.full((1, 32), math.nan)

    def minus_nan(x):
        payload, scale = right(x)
        return payload.view(torch.uint8) | 0x80, scale

    for nan, verdict in (("any", "equal"), ("strict", "different")):
        tally = tensors.Tally()
        tensors.ask(Judge(minus_nan, Claims.of(recipe="rceil", nan=nan)), x, tally)
        assert tally.verdict == verdict


def test_the_registered_kernels_are_judged_under_floor_and_rceil(checkpoint, registry):
    registry(f"{STUBS}:GOOD")
    outcome = call("verify", "--tensors", str(checkpoint), "--dtype", "bf16")
    assert outcome.code == 0, outcome.out
    assert "good floor 1x32 row plain" in outcome.out
    assert "not run: no such machine here" in outcome.out


def _file(tmp_path, content):
    path = tmp_path / "x.safetensors"
    path.write_bytes(content)
    return str(path)


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (b"", "header"),
        (b"not a checkpoint at all", "header"),
        (struct.pack("<Q", 2) + b"{}", "no bf16, fp16 or fp32 tensor"),
        (
            struct.pack("<Q", 60)
            + b'{"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}'.ljust(60),
            "",
        ),
    ],
)
def test_a_file_that_is_no_checkpoint_is_one_line_and_exit_2(tmp_path, content, part):
    line = call("verify", f"{STUBS}:right", "--tensors", _file(tmp_path, content)).wrong
    assert "--tensors" in line
    assert part in line


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/nonexistent.safetensors", "No such file or directory"),
        ("/", "a directory, expected one safetensors file"),
        ("", "expected the name of a safetensors file"),
    ],
)
def test_an_absent_file_is_one_line_and_exit_2(path, reason):
    line = call("verify", f"{STUBS}:right", "--tensors", path).wrong
    assert line.startswith(f"mxref: --tensors={path!r}: {reason}")


def test_a_checkpoint_without_the_dtype_is_one_line_and_exit_2(tmp_path):
    path = tmp_path / "ints.safetensors"
    save_file({"a": torch.arange(4), "b": torch.tensor(1.0)}, path)
    line = call("verify", f"{STUBS}:right", "--tensors", str(path)).wrong
    assert "skipped: 1 of dtype I64, 1 of rank 0" in line
    save_file({"a": torch.ones(4)}, path)
    line = call("verify", f"{STUBS}:right", "--tensors", str(path), "--dtype", "bf16").wrong
    assert "no tensor of the dtypes asked for" in line


def test_the_checkpoint_is_never_written_over(checkpoint):
    before = checkpoint.read_bytes()
    outcome = call(
        "verify", f"{STUBS}:right", *["--tensors", str(checkpoint)], "--json", str(checkpoint)
    )
    assert outcome.code == 2
    assert "--json" in outcome.err
    assert checkpoint.read_bytes() == before


def test_a_name_does_not_steer_the_terminal(tmp_path):
    path = tmp_path / "names.safetensors"
    save_file({"a\n\x1b[31mred": torch.ones(2, 32)}, path)
    outcome = call("verify", f"{STUBS}:right", "--tensors", str(path))
    assert outcome.code == 0
    assert "\x1b" not in outcome.out
    assert "a\\n\\x1b[31mred" in outcome.out
