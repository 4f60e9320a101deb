"""Tests here run on the devices this machine has."""

from pathlib import Path

import pytest
import torch

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items):
    # torch's own: when inductor is first imported, and when dynamo traces any autograd.Function.
    own = ("torch.jit", "should not be instantiated")
    marks = [pytest.mark.filterwarnings(f"ignore:.*{text}.*:DeprecationWarning") for text in own]
    for item in items:
        if HERE in item.path.parents or HERE.parent / "grouped_mm" in item.path.parents:
            for mark in marks:
                item.add_marker(mark)


@pytest.fixture(scope="session", params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request):
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    return request.param
