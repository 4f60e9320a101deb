"""Workers share GPUs fairly, and the caller's choice of GPUs is kept."""

import importlib.util
from pathlib import Path

import pytest

SPEC = importlib.util.spec_from_file_location(
    "root_conftest", Path(__file__).parents[2] / "conftest.py"
)
root_conftest = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(root_conftest)


@pytest.mark.parametrize(
    ("named", "gpus"),
    [("2,5", ["2", "5"]), ("GPU-ab12", ["GPU-ab12"]), ("", []), ("-1", []), ("3", ["3"])],
)
def test_only_the_visible_gpus_are_taken(monkeypatch, named, gpus):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", named)
    assert root_conftest.visible_gpus() == gpus


def test_workers_take_turns():
    pinned = [root_conftest.pinned_gpu(f"gw{n}", ["2", "5"]) for n in range(4)]
    assert pinned == ["2", "5", "2", "5"]


@pytest.mark.parametrize(("named", "most"), [("0", 4), ("0,1", 8), ("", None)])
def test_auto_starts_at_most_four_workers_a_gpu(monkeypatch, named, most):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", named)
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: set(range(64)))
    assert root_conftest.pytest_xdist_auto_num_workers(None) == (most or 64)


def test_the_pinned_gpu_is_set_before_torch_is_imported():
    source = (Path(__file__).parents[2] / "conftest.py").read_text()
    assert source.index("= pinned_gpu(") < source.index("\nimport torch")
