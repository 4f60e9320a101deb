"""A GPU for each worker, chosen before torch is imported, and the Hypothesis profiles."""

import os
import subprocess

import pytest

WORKERS_PER_GPU = 4


def visible_gpus() -> list[str]:
    """The caller's GPUs, as CUDA_VISIBLE_DEVICES names them; found without importing torch."""
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    if named is not None:
        return [gpu for gpu in named.split(",") if gpu not in ("", "-1")]
    try:
        listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True).stdout
    except OSError:
        return []
    return [str(i) for i in range(listed.count("GPU "))]


def pinned_gpu(worker: str, gpus: list[str]) -> str:
    """The one GPU of an xdist worker "gw<n>": round robin, so that neighbours do not share."""
    return gpus[int(worker.removeprefix("gw")) % len(gpus)]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config):
    gpus = len(visible_gpus())
    cores = len(os.sched_getaffinity(0))
    return min(cores, WORKERS_PER_GPU * gpus) if gpus else cores


WORKER = os.environ.get("PYTEST_XDIST_WORKER")
if WORKER and (found := visible_gpus()):
    os.environ["CUDA_VISIBLE_DEVICES"] = pinned_gpu(WORKER, found)

import torch  # noqa: E402
from hypothesis import settings  # noqa: E402

from mxref.testing import ptxas  # noqa: E402
from mxref.testing.strategies import register_profiles  # noqa: E402

ptxas.pin()  # inductor names another one: no test's machine code depends on the tests before it
if WORKER:
    torch.set_num_threads(1)  # the workers are the parallelism


def pytest_collection_modifyitems(items):
    if not torch.cuda.is_available():
        for item in items:
            if item.get_closest_marker("gpu"):
                item.add_marker(pytest.mark.skip(reason="needs a CUDA device"))


register_profiles()
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if "CI" in os.environ else "dev"))
