"""The training task: its files, its verdict, and that MX learns what bf16 learns."""

import json

import numpy as np
import pytest
import torch

from mxkernels.linear import train
from mxkernels.linear.digits import Reader, load


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Images that show their label, in the form of the real file."""
    labels = np.arange(600) % 10
    images = np.zeros((600, 8, 8), np.uint8)
    images[np.arange(600), labels % 8, labels // 8 * 4] = 16
    path = tmp_path_factory.mktemp("digits") / "d.npz"
    np.savez(path, images=images, labels=labels)
    return path


def test_a_run_writes_curves_and_a_verdict(data, tmp_path, capsys):
    path, plot = tmp_path / "t.json", tmp_path / "t.png"
    options = ["--data", str(data), "--json", str(path), "--steps", "3", "--seeds", "2"]
    if train.installed("matplotlib"):
        options += ["--png", str(plot)]
    status = train.main([*options, "--device", "cpu", "--recipes", "bf16,rceil"])
    content = json.loads(path.read_text())
    assert [(r["recipe"], r["seed"]) for r in content["runs"]] == [
        ("bf16", 0), ("bf16", 1), ("rceil", 0), ("rceil", 1)
    ]  # fmt: skip
    assert all(len(run["loss"]) == 3 for run in content["runs"])
    inside = content["summary"]["rceil"]["within_two_deviations"]
    assert status == (0 if inside else 1)
    text = capsys.readouterr().out
    assert ("rceil lies within" in text) == inside
    assert plot.exists() == ("--png" in options)


def test_mx_starts_where_bf16_starts_and_learns(data):
    digits = load(data, torch.device("cpu"))
    runs = [train.train(recipe, 0, digits, 4) for recipe in ("bf16", "floor", "rceil")]
    first = [run["loss"][0] for run in runs]
    assert max(first) - min(first) < 0.05
    assert len(set(first)) == 3, "the recipes must not all run the same arithmetic"
    for run in runs:
        assert run["loss"][-1] < 0.99 * run["loss"][0]


def test_the_verdict_is_two_deviations_of_bf16():
    def rows(recipe, *values):
        names = ("final_loss", "final_training_loss", "accuracy")
        return [{"recipe": recipe} | dict.fromkeys(names, value) for value in values]

    base = rows("bf16", 1.0, 1.2)  # deviation 0.1414
    for value, inside in ((1.38, True), (1.39, False), (0.81, False)):
        found = train.summary(base + rows("rceil", value))
        assert found["rceil"]["within_two_deviations"] is inside
    assert "within_two_deviations" not in train.summary(base[:1] + rows("rceil", 1.0))["rceil"]


def test_only_the_blocks_are_converted():
    from mxkernels import MXLinear, convert

    model = Reader()
    names = convert(model, "blocks.*")
    assert len(names) == 8
    assert not isinstance(model.embed, MXLinear)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--recipes", "bf16,fp8"], "--recipes 'fp8'"),
        (["--seeds", "0"], "--seeds 0"),
        (["--data", "/nowhere.npz"], "no such file"),
    ],
)
def test_a_wrong_call_is_one_line_and_exit_2(options, words, capsys):
    assert train.main(options) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1


def test_without_scikit_learn_the_file_is_asked_for(monkeypatch, capsys):
    monkeypatch.setattr("mxkernels.linear.digits.installed", lambda name: False)
    assert train.main(["--device", "cpu"]) == 2
    assert "--data FILE.npz" in capsys.readouterr().err


def test_the_real_digits_survive_the_file(tmp_path, capsys):
    pytest.importorskip("sklearn")
    path = tmp_path / "digits.npz"
    assert train.main(["--export-data", str(path)]) == 0
    assert "1797 images" in capsys.readouterr().out
    for left, right in zip(load(path, torch.device("cpu")), load(None, "cpu"), strict=True):
        assert torch.equal(left, right)
