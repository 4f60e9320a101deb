"""`mxref bench`: figures of the reference on a CPU with a tiny square, peers, wrong calls."""

import json
from types import SimpleNamespace

import pytest
import torch

from mxref.cli import bench, oracle
from tests.cli.cli_call import call

pytest.importorskip("typer")


def by(rows, *names):
    return {tuple(str(row[name]) for name in names): row for row in rows}


def test_every_dtype_and_block_has_a_rate_and_a_memory_figure(tmp_path):
    path = tmp_path / "out.json"
    threads = torch.get_num_threads()
    text = call("bench", "--size", "64", "--runs", "2", "--json", str(path)).ok
    assert torch.get_num_threads() == threads
    content = json.loads(path.read_text())
    ours = [row for row in content["rows"] if row["implementation"] == "mxref"]
    assert len(ours) == 3 * 3 + 1
    for row in ours:
        read = {"bf16": 2, "fp16": 2, "fp32": 4, "e4m3": 1 + 1 / 32}[row["dtype"]] * 64 * 64
        assert row["mb_per_s"] == pytest.approx(read / row["median_ms"] / 1e3, rel=0.02, abs=1e-3)
        assert row["min_ms"] <= row["median_ms"] <= row["max_ms"]
    memory = by(content["memory"], "implementation", "side")
    for side in ("64", "256"):
        assert memory["mxref", side]["peak_bytes"] > 0
        assert memory["mxref", side]["extra_bytes"] < 32 << 20
    assert content["environment"]["threads"] == 1
    assert "median of 2 interleaved runs" in text
    for name, why in content["missing"].items():
        assert f"{name}: {why}" in text


def test_memory_beyond_the_outputs_is_seen(monkeypatch):
    """A call that holds 64 MiB more than it returns."""
    greedy = oracle.CHILD.replace(
        "return oracle.quantize(x, recipe)",
        "y = torch.ones(1 << 24); del y; return oracle.quantize(x, recipe)",
    )
    assert greedy != oracle.CHILD
    monkeypatch.setattr(oracle, "CHILD", greedy)
    assert oracle.memory("mxref", 256, "rceil", "cpu")["extra_bytes"] > 32 << 20


def test_a_child_that_fails_is_a_note():
    row = oracle.memory("no such peer", 64, "rceil", "cpu")
    assert "KeyError" in row["note"]
    assert "peak_bytes" not in row


def test_a_peer_that_is_missing_is_named(monkeypatch):
    monkeypatch.setattr(oracle, "import_module", lambda name: __import__("no_such_module"))
    found, missing = oracle.subjects(32, "cpu", "rceil")
    assert {subject.implementation for subject in found} == {"mxref"}
    assert set(missing) == {"torchao", "gfloat"}
    assert all("no_such_module" in why for why in missing.values())


def test_torchao_is_timed_where_it_is_installed(monkeypatch):
    def to_mx(x, element, size, mode):
        assert (element, size, mode) == (torch.float8_e4m3fn, 32, "RCEIL")
        return x, x

    modes = type("Modes", (dict,), {"__members__": {"RCEIL": 1}})(RCEIL="RCEIL")
    stub = SimpleNamespace(ScaleCalculationMode=modes, to_mx=to_mx)
    monkeypatch.setattr(oracle, "import_module", lambda name: stub)
    x = torch.ones(32, 32, dtype=torch.bfloat16)
    subject = oracle.torchao(x, "rceil")
    assert (subject.elements, subject.read_bytes) == (1024, 2048)
    assert len(subject.call()) == 2
    assert oracle.torchao(x, "even") == "not timed: it has no rule even"


def test_gfloat_encodes_a_slice_and_agrees_with_the_floor_rule():
    pytest.importorskip("gfloat")
    x = torch.randn(64, 64, dtype=torch.bfloat16)
    subject = oracle.gfloat(x, "floor")
    codes = torch.tensor(subject.call())
    assert (subject.elements, codes.shape) == (2048, (64, 33))
    payload, scale = oracle.quantize(x.flatten()[:2048].view(64, 32), "floor")
    assert torch.equal(codes[:, 0].to(torch.uint8), scale.view(torch.uint8).flatten())
    assert torch.equal(codes[:, 1:].to(torch.uint8), payload.view(torch.uint8))


def test_rates_are_compared_by_elements_and_failures_are_shown(capsys):
    row = {"operation": "quantize", "block": [1, 32], "elements": 1000, "spread": 0.01}
    rows = [
        row | {"implementation": "mxref", "dtype": "fp32", "median_ms": 1.0, "mb_per_s": 4.0},
        row | {"implementation": "torchao", "dtype": "bf16", "median_ms": 1.5, "mb_per_s": 1.33},
    ]
    bench.show(
        {
            "rows": rows,
            "memory": [{"implementation": "mxref", "side": 32, "note": "no /proc"}],
            "missing": {"gfloat": "not timed: No module named 'gfloat'"},
            "environment": {"device": "cpu", "threads": 1, "torch": "2.13"},
            "recipe": "rceil",
            "runs": 9,
        }
    )
    text = capsys.readouterr().out
    assert "1.00 ±1%   4.00         1.5" in text
    assert "memory of mxref: no /proc" in text
    assert "gfloat: not timed" in text


def test_runs_are_taken_in_turns():
    order = []
    made = [
        oracle.Subject(
            name, "quantize", "bf16", (1, 32), 1, 1, lambda name=name: order.append(name)
        )
        for name in ("a", "b")
    ]
    rows = oracle.timed(made, 2, "cpu", lambda label: None)
    assert order == ["a", "b"] * 3
    assert [row["implementation"] for row in rows] == ["a", "b"]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("--recipe", "fast"), "--recipe='fast'"),
        (("--device", "tpu"), "--device='tpu'"),
        (("--size", "8"), "--size"),
        (("--runs", "0"), "--runs"),
        (("--json", "/no/such/folder/out.json"), "--json="),
    ],
)
def test_a_wrong_call_is_one_line(arguments, named):
    assert named in call("bench", *arguments).wrong


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_without_a_gpu_the_device_is_named():
    assert "sees no CUDA device" in call("bench", "--device", "cuda").wrong


@pytest.mark.gpu
def test_the_reference_is_measured_on_a_gpu(tmp_path):
    path = tmp_path / "out.json"
    call("bench", "--device", "cuda", "--size", "256", "--runs", "2", "--json", str(path)).ok  # noqa: B018
    content = json.loads(path.read_text())
    assert content["environment"]["gpu"]
    assert all("extra_bytes" in row for row in content["memory"])
