"""Tests here run over registry.KERNELS and over the devices this machine has."""

import pytest
import torch

from mxkernels.registry import KERNELS


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request):
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    return request.param


QUANTIZERS = [spec for spec in KERNELS if spec.op == "quantize"]


@pytest.fixture(params=QUANTIZERS, ids=lambda spec: spec.name)
def kernel(request, device):
    """A KernelSpec of op "quantize" that can run on `device`."""
    lacking = request.param.missing(device)
    if lacking:
        pytest.skip(lacking)
    return request.param


@pytest.fixture(params=["floor", "rceil", "ceil", "even"])
def recipe(request):
    return request.param


@pytest.fixture(params=[torch.bfloat16, torch.float16, torch.float32], ids=["bf16", "fp16", "fp32"])
def dtype(request):
    return request.param
