"""The kernels as citizens of torch: schema, fake kernel, compile, autograd, threads."""

import threading

import pytest
import torch

import mxkernels
from mxkernels.quantize import op, shapes
from mxkernels.registry import KERNELS
from tests.kernels.guarded import assert_bytes, bytes_of, expected

SHAPES = [(0,), (5, 0), (0, 64), (33,), (1, 32), (7, 50), (2, 3, 64), (2, 2, 3, 31)]


def call(kernel, x, recipe="rceil", config=None):
    return kernel.call(x, recipe, (1, 32), "row", "plain", config)


def test_opcheck_passes(kernel, device):
    x = torch.linspace(-3, 500, 5 * 50, device=device).view(5, 50).to(torch.bfloat16)
    arguments = (x, kernel.backend, "rceil", (1, 32), "row", "plain")
    checks = torch.library.opcheck(op.quantize, arguments)
    assert set(checks.values()) == {"SUCCESS"}


@pytest.mark.parametrize("shape", SHAPES)
def test_fake_outputs_equal_the_real_ones(kernel, device, shape):
    x = torch.ones(shape, device=device)
    fakes = op._fake(x.to("meta"), kernel.backend, "rceil", (1, 32), "row", "plain")
    for fake, real in zip(fakes, call(kernel, x), strict=True):
        assert fake.shape == real.shape
        assert fake.stride() == real.stride()
        assert fake.dtype == real.dtype
        assert real.device == x.device
        assert real.storage_offset() == 0


@pytest.mark.parametrize("backend", ["auto", *(spec.backend for spec in KERNELS)])
def test_compiled_fullgraph_equals_eager(backend, device):
    @torch.compile(fullgraph=True)
    def doubled(x):
        return mxkernels.quantize(x * 2, "floor", backend=backend)

    x = torch.linspace(-3, 500, 6 * 50, device=device).view(6, 50)
    result = doubled(x)
    assert_bytes(bytes_of(result), expected(x * 2, "floor"))
    assert all(part.is_contiguous() for part in result)


def test_results_are_new_and_detached(kernel, device):
    x = torch.nn.Parameter(torch.ones(3, 64, device=device))
    first = call(kernel, x)
    kept = [part.clone() for part in bytes_of(first)]
    second = call(kernel, -2 * x)
    assert not any(part.requires_grad for part in (*first, *second))
    assert_bytes(bytes_of(first), kept)
    assert {part.data_ptr() for part in first}.isdisjoint(part.data_ptr() for part in second)


def test_subnormals_survive_flush_to_zero(kernel, device):
    sizes = torch.arange(1, 1025, dtype=torch.int32) * 8191
    x = (sizes | (sizes << 31)).view(torch.float32).view(32, 32).to(device)
    wanted = expected(x, "rceil")
    flushed = expected(torch.where(x.abs() < 2.0**-126, 0, x), "rceil")
    assert int((wanted[0] != flushed[0]).sum()) > 900, "a flushed result would look the same"
    assert torch.set_flush_denormal(True)
    try:
        result = bytes_of(call(kernel, x))
        assert (torch.tensor([1e-40]) * 1 == 0).item(), "the setting was not restored"
    finally:
        torch.set_flush_denormal(False)
    assert_bytes(result, wanted)


def test_threads_get_the_same_bytes(kernel, device):
    inputs = [torch.randn(40, 64, generator=torch.Generator().manual_seed(i)) for i in range(4)]
    results = [None] * len(inputs)

    def work(index):
        results[index] = bytes_of(call(kernel, inputs[index].to(device)))

    threads = [threading.Thread(target=work, args=(index,)) for index in range(len(inputs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for x, result in zip(inputs, results, strict=True):
        assert_bytes(result, expected(x, "rceil"))


def test_two_runs_are_equal(kernel, device):
    x = torch.randn(100, 96, generator=torch.Generator().manual_seed(1)).to(device)
    assert_bytes(bytes_of(call(kernel, x)), bytes_of(call(kernel, x)))


def test_every_configuration_takes_several_programs(kernel, device):
    x = torch.randn(300, 64, generator=torch.Generator().manual_seed(2)).to(torch.bfloat16)
    for config in kernel.configs:
        result = call(kernel, x.to(device), config=config)
        assert_bytes(bytes_of(result), expected(x, "rceil"))
        assert x.numel() // 32 > 2 * config.blocks, f"{config} is not exercised"


@pytest.mark.parametrize("order", shapes.PAYLOAD_ORDERS)
@pytest.mark.parametrize("layout", shapes.SCALE_LAYOUTS)
@pytest.mark.parametrize("block", [(1, 32), (32, 1), (32, 32)])
@pytest.mark.parametrize("shape", [(40, 70), (2, 40, 70), (2, 0, 70), (2, 3, 33, 1)])
def test_reference_fakes_equal_reference_results(shape, block, layout, order):
    axes = {"block": block, "payload_order": order, "scale_layout": layout}
    real = mxkernels.quantize(torch.ones(shape), backend="reference", **axes)
    fakes = op._fake(torch.empty(shape), "reference", "rceil", block, order, layout)
    for fake, part in zip(fakes, real, strict=True):
        assert fake.shape == part.shape
        assert fake.stride() == part.stride()


@pytest.mark.gpu
def test_graph_capture_replays_and_side_streams_work():
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    x = torch.randn(512, 512, device="cuda", dtype=torch.bfloat16)
    mxkernels.quantize(x, backend="triton")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = mxkernels.quantize(x, backend="triton")
    x.normal_()
    graph.replay()
    assert_bytes(bytes_of(captured), expected(x, "rceil"))
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        beside = mxkernels.quantize(x, backend="triton")
    stream.synchronize()
    assert_bytes(bytes_of(beside), expected(x, "rceil"))


@pytest.mark.gpu
@pytest.mark.exhaustive
@pytest.mark.xdist_group("large")
def test_more_than_two_to_the_31_elements():
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    rows, columns = (1 << 16) + 3, 1 << 15
    pattern = torch.randn(8, columns, dtype=torch.bfloat16, device="cuda")
    x = pattern.repeat(-(-rows // 8), 1)[:rows]
    for view in (x, x[:, 1:]):
        payload, scale = mxkernels.quantize(view, backend="triton")
        last = expected(view[-8:], "rceil")
        assert_bytes(bytes_of((payload[-8:], scale[-8:])), last)
        middle = expected(view[40000:40008], "rceil")
        assert_bytes(bytes_of((payload[40000:40008], scale[40000:40008])), middle)
