"""Against torchao's eager `to_mx`, where it is installed: bytes on random data, and speed."""

import statistics
import time
import warnings

import pytest
import torch

import mxref

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    mx_tensor = pytest.importorskip("torchao.prototype.mx_formats.mx_tensor")
    config = pytest.importorskip("torchao.prototype.mx_formats.config")


def theirs(x: torch.Tensor, mode: str) -> tuple[torch.Tensor, torch.Tensor]:
    scale, payload = mx_tensor.to_mx(
        x, torch.float8_e4m3fn, 32, config.ScaleCalculationMode[mode.upper()]
    )
    return payload, scale


@pytest.mark.parametrize("recipe", ["floor", "rceil", "ceil", "even"])
def test_to_mx_gives_the_same_bytes_on_finite_data(recipe):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(256, 512, generator=generator).to(torch.bfloat16)
    payload, scale = theirs(x, recipe)
    ours = mxref.quantize(x, recipe)
    assert torch.equal(ours.payload.view(torch.uint8), payload.view(torch.uint8))
    assert torch.equal(ours.scale.view(torch.uint8), scale.view(torch.uint8).reshape(256, 16))


def test_the_reference_is_not_slower_than_eager_torchao():
    x, threads = torch.randn(4096, 4096).to(torch.bfloat16), torch.get_num_threads()
    times: dict[str, list[float]] = {"ours": [], "theirs": []}
    calls = {"ours": lambda: mxref.quantize(x), "theirs": lambda: theirs(x, "rceil")}
    torch.set_num_threads(1)
    try:
        for repeat in range(10):
            for name, call in calls.items():
                start = time.perf_counter()
                call()
                if repeat:  # the first is a warm-up
                    times[name].append(time.perf_counter() - start)
    finally:
        torch.set_num_threads(threads)
    assert statistics.median(times["ours"]) < statistics.median(times["theirs"])
