"""The kernels as citizens of torch: schema, fake kernel, compile, autograd, threads."""

import threading

import pytest
import torch

import mxkernels
from mxkernels.quantize import op, shapes
from mxkernels.registry import KERNELS, find
from tests.kernels.guarded import DIM0, Way, assert_bytes, bytes_of, expected, ways_of

SPECS = [spec for spec in KERNELS if spec.op == "quantize"]
SHAPES = [(0,), (5, 0), (0, 64), (33,), (1, 32), (7, 50), (2, 3, 64), (2, 2, 3, 31)]
WAYS = [DIM0, Way((32, 1), "col", "plain_t"), Way((32, 32), "col", "swizzle_32_4_4")]


def call(kernel, x, recipe="rceil", config=None):
    return kernel.call(x, recipe, *DIM0, config)


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("order", ["n", "t"])
def test_opcheck_passes(kernel, device, way, order):
    if way.block not in kernel.blocks:
        return
    x = torch.linspace(-3, 500, 5 * 50, device=device).view(5, 50).to(torch.bfloat16)
    arguments = (x if order == "n" else x.mT, kernel.backend, "rceil", *way)
    checks = torch.library.opcheck(op.quantize, arguments)
    assert set(checks.values()) == {"SUCCESS"}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("order", ["n", "t"])
def test_fake_outputs_equal_the_real_ones(kernel, device, shape, order):
    x = torch.ones(shape, device=device)
    if order == "t" and x.dim() > 1:
        x = x.mT.contiguous().mT
    for way in ways_of(kernel):
        if way.block[0] > 1 and x.dim() == 1:
            continue
        fakes = op._fake(x.to("meta"), kernel.backend, "rceil", *way)
        for fake, real in zip(fakes, kernel.call(x, "rceil", *way), strict=True):
            assert fake.shape == real.shape
            assert fake.stride() == real.stride()
            assert fake.dtype == real.dtype
            assert real.device == x.device
            assert real.storage_offset() == 0


@pytest.mark.parametrize("way", WAYS[1:], ids=str)
def test_compiled_fullgraph_keeps_bytes_and_strides_of_every_order(device, way):
    arguments = dict(zip(("block", "payload_order", "scale_layout"), way, strict=True))

    @torch.compile(fullgraph=True)
    def doubled(x):
        return mxkernels.quantize(x * 2, "floor", backend="triton", **arguments)

    base = torch.linspace(-3, 500, 6 * 50, device=device)
    for x in (base.view(6, 50), base.view(50, 6).mT):
        result = doubled(x)
        assert_bytes(bytes_of(result), expected(x * 2, "floor", way))
        assert result.payload.stride() == (1, 6)


@pytest.mark.parametrize("backend", ["auto", *(spec.backend for spec in SPECS)])
def test_compiled_fullgraph_equals_eager(backend, device):
    lacking = backend != "auto" and find("quantize", backend).missing(device)
    if lacking:
        pytest.skip(lacking)

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


TILED = [spec for spec in SPECS if spec.configs]
tiled = pytest.mark.parametrize("spec", TILED, ids=lambda spec: spec.name)


def elements_of(config):
    """How many elements one program or thread block takes at least."""
    if hasattr(config, "tile"):
        return config.tile[0] * config.tile[1]
    if hasattr(config, "chunks"):
        return 32 * config.warps * config.chunks * 8
    return 32 * config.blocks if hasattr(config, "blocks") else config.rows * config.columns


@tiled
def test_every_configuration_takes_several_programs(device, spec):
    if spec.missing(device):
        pytest.skip(spec.missing(device))
    side = 200 if spec.backend == "triton" else 416
    x = torch.randn(side, side, generator=torch.Generator().manual_seed(2)).to(torch.bfloat16)
    met = set()
    for way in (
        DIM0,
        Way((32, 1), "row", "plain"),
        Way((32, 32), "col"),
        Way((1, 32), "row", "plain_t"),
        Way((1, 32), "col", "plain"),
    ):
        for config in spec.configs_for(*way):
            met.add(config)
            result = spec.call(x.to(device), "rceil", *way, config)
            assert_bytes(bytes_of(result), expected(x, "rceil", way))
            assert x.numel() > 2 * elements_of(config), f"{config} is not exercised"
    assert met == set(spec.configs)


@tiled
def test_a_configuration_for_other_blocks_is_refused(device, spec):
    if spec.missing(device):
        pytest.skip(spec.missing(device))
    flat = spec.configs_for(*DIM0)[0]
    with pytest.raises(ValueError, match=r"config=\w*Flat.*Tile.*block="):
        spec.call(torch.ones(64, 64, device=device), "rceil", (32, 1), "row", "plain", flat)


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


def test_auto_is_decided_when_a_compiled_graph_runs(device, monkeypatch):
    """Which back end is the winner here must not be traced: it imports and asks drivers."""
    asked = []

    def chosen(operation, variant, on):
        asked.append((operation, torch.compiler.is_compiling()))
        return "reference"

    monkeypatch.setattr(op, "_chosen", chosen)
    x = torch.linspace(-3, 500, 6 * 64, device=device).view(6, 64)
    result = torch.compile(mxkernels.quantize, fullgraph=True)(x)
    assert_bytes(bytes_of(result), expected(x, "rceil"))
    first, second = torch.compile(mxkernels.quantize_both, fullgraph=True)(x)
    assert_bytes(bytes_of(first), expected(x, "rceil"))
    assert_bytes(bytes_of(second), expected(x, "rceil", Way((32, 1), "col", "plain")))
    assert asked == [("quantize", False), ("quantize_both", False)]
