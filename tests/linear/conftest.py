"""Tests here run on the devices this machine has."""

from pathlib import Path

import pytest
import torch

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items):
    # torch's own, raised when inductor is first imported.
    mark = pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")
    for item in items:
        if HERE in item.path.parents or HERE.parent / "grouped_mm" in item.path.parents:
            item.add_marker(mark)


@pytest.fixture(scope="session", params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request):
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    return request.param
