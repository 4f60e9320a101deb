"""The family `linear` on a CPU: its rows, its files, what it says when something is wrong."""

import csv
import json

import pytest
import torch

from mxkernels import CastConfig
from mxkernels.bench import linear, linear_jobs, linear_rows

pytest.importorskip("triton")


def test_rows_and_files_of_every_family(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(linear, "TOKENS", (1,))
    files = {"--json": tmp_path / "r.json", "--csv": tmp_path / "r.csv"}
    options = [str(part) for pair in files.items() for part in pair]
    options += ["--device", "cpu", "--sizes", "32", "--rounds", "1", "--no-compile", "--quick"]
    assert linear.main(options) == 0
    content = json.loads(files["--json"].read_text())
    assert content["complete"]
    assert str(tmp_path) not in files["--json"].read_text(), "no path of the machine"
    rows = content["rows"]
    assert [row["family"] for row in rows] == ["matmul", *["tokens"] * 3, "linear", "linear"]
    assert all(row["verified"] or row["backend"] == "bf16" for row in rows)
    layers = [row for row in rows if row["family"] == "linear"]
    assert [row["layer"] for row in layers] == ["linear", "linear+sigmoid"]
    for row in layers:
        assert row["speed_up"] == pytest.approx(row["bf16_us"] / row["end_to_end_us"], abs=1e-4)
        assert row["remark"].startswith("no MX tensor core here")
    table = list(csv.DictReader(files["--csv"].read_text().splitlines()))
    assert list(table[0]) == list(linear.COLUMNS)
    assert len(table) == len(rows)
    assert "tokens" in capsys.readouterr().out


def test_a_wrong_layer_is_not_timed():
    pool = linear_jobs.inputs(64, torch.device("cpu"))
    right = linear_jobs.step(linear_jobs.layers(CastConfig())["mx linear"])
    item = pool.items[0]
    linear_jobs.judge_layer(item, right(item), "rceil")
    y, dx, dweight = right(item)
    for wrong in ((y.mT, dx, dweight), (y, 2 * dx, dweight), (y, dx, dweight.mT)):
        job = linear_jobs.job({}, pool, right)
        linear_jobs.guarded(job, lambda wrong=wrong: linear_jobs.judge_layer(item, wrong, "rceil"))
        assert job.note.startswith("WRONG")


def test_a_wrong_matmul_is_not_timed(monkeypatch):
    pool = linear_jobs.matmul_pool(4, 64, 64, torch.device("cpu"))
    assert linear_jobs.matmul_job(pool, "dequantize", -1, {}).verified == "within the bound"
    real = linear_jobs.op.matmul
    monkeypatch.setattr(linear_jobs.op, "matmul", lambda *a: -real(*a))
    assert linear_jobs.matmul_job(pool, "dequantize", -1, {}).note.startswith("WRONG")


def test_the_peak_is_by_name(monkeypatch):
    assert linear_rows.peak(torch.device("cpu"), False) is None
    for name, mx, wanted in (("NVIDIA H200", True, 989e12), ("NVIDIA B200", True, 4500e12)):
        monkeypatch.setattr(torch.cuda, "get_device_name", lambda _, name=name: name)
        assert linear_rows.peak(torch.device("cuda"), mx) == wanted


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--device", "cpu", "--sizes", "big"], "--sizes 'big'"),
        (["--device", "cpu", "--families", "conv"], "--families 'conv'"),
        (["--device", "cpu", "--recipe", "RCEIL"], "recipe='RCEIL'"),
        (["--device", "cpu", "--rounds", "-1"], "--rounds -1"),
        (["--device", "cpu", "--budget", "nan"], "--budget nan"),
        (["--device", "cpu", "--json", __file__], "is no results file"),
        (["--device", "cpu", "--json", "."], "--json='.': Is a directory"),
        (["--device", "cpu", "--csv", "/dev/null/x"], "--csv='/dev/null/x'"),
        ([], "no CUDA device"),
    ],
)
def test_a_wrong_call_is_one_line_and_exit_2(options, words, capsys):
    if not options and torch.cuda.is_available():
        pytest.skip("there is a CUDA device")
    assert linear.main(options) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1
