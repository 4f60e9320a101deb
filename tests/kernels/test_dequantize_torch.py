"""dequantize as a citizen of torch, and what it says about bad arguments."""

import pytest
import torch

import mxref
from mxkernels import arch
from mxkernels.dequantize import dequantize, op
from mxkernels.dequantize.specs import SPECS
from mxkernels.swizzle.shapes import LAYOUTS, stored_shape
from mxref.formats import BLOCKS
from tests.kernels.test_dequantize import DTYPES, assert_bits, payload_of, wanted_of

P = torch.ones(2, 96).to(torch.float8_e4m3fn)
S = torch.ones(2, 3, dtype=torch.uint8)
SWIZZLED = {"scale_layout": "swizzle_32_4_4"}


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"payload": [1.0]}, TypeError, ["payload=[1.0]", "a tensor"]),
        ({"payload": P.float()}, TypeError, ["payload", "float32", "float8_e4m3fn"]),
        ({"payload": P[0, 0]}, ValueError, ["payload", "()", "rank 1"]),
        ({"payload": P[0], "block": (32, 1)}, ValueError, ["payload", "(96,)", "rank 2"]),
        ({"scale": S.float()}, TypeError, ["scale", "float32", "float8_e8m0fnu"]),
        ({"scale": S.mT}, ValueError, ["scale", "(3, 2)", "(2, 3)", "'plain'"]),
        ({"scale_layout": "plain_t"}, ValueError, ["scale", "(2, 3)", "(3, 2)", "'plain_t'"]),
        (SWIZZLED, ValueError, ["scale has 6 bytes", "512"]),
        (SWIZZLED | {"block": (32, 32)}, ValueError, ["contract=None", "-1 or -2"]),
        ({"scale": S.to("meta")}, ValueError, ["scale is on meta", "cpu"]),
        ({"contract": -2}, ValueError, ["contract=-2", "(1, 32)"]),
        ({"block": 32}, TypeError, ["block=32", "int"]),
        ({"scale_layout": "blocked"}, ValueError, ["scale_layout='blocked'", "'plain_t'"]),
        ({"dtype": torch.float64}, TypeError, ["dtype=torch.float64", "bfloat16"]),
        ({"backend": "compile"}, NotImplementedError, ["backend='compile'", "'triton'"]),
        ({"backend": None}, TypeError, ["backend=None", "'auto'"]),
    ],
)
@pytest.mark.parametrize("backend", ["auto", "triton", "reference"])
def test_a_bad_argument_is_named(backend, options, error, words):
    with pytest.raises(error) as raised:
        dequantize(**{"payload": P, "scale": S, "backend": backend} | options)
    for word in words:
        assert word in str(raised.value)


def test_e5m2_is_for_the_reference_only():
    payload = P.to(torch.float8_e5m2)
    assert_bits(dequantize(payload, S), mxref.dequantize(payload, S))
    with pytest.raises(NotImplementedError, match="float8_e5m2"):
        dequantize(payload, S, backend="triton")


def test_an_unknown_configuration_raises():
    with pytest.raises(ValueError, match="config='fast'"):
        SPECS[0].call(P, S, (1, 32), "row", "plain", torch.float32, "fast")


def test_a_backend_that_cannot_run_names_what_is_missing(monkeypatch):
    arch.triton_missing.cache_clear()
    monkeypatch.setattr(arch, "installed", lambda module: module != "triton")
    try:
        with pytest.raises(RuntimeError, match="backend='triton' cannot run here"):
            dequantize(P, S, backend="triton")
        assert dequantize(P, S).shape == P.shape
    finally:
        arch.triton_missing.cache_clear()


@pytest.mark.parametrize("memory", ["row", "col", "columns", "col columns", "permuted"])
@pytest.mark.parametrize("backend", ["triton", "reference"])
def test_fakes_equal_the_real_ones_and_lie_as_the_payload(backend, memory, device):
    for shape in ((40, 64), (2, 3, 33, 5), (2, 1, 64), (2, 33, 1), (2, 0, 32)):
        payload = payload_of(shape, memory, 0, 1, device)
        for layout in LAYOUTS:
            stored = stored_shape(shape, layout, (1, 32), -1)
            scale = torch.full(stored, 127, dtype=torch.uint8, device=device)
            options = (scale, backend, (1, 32), layout, -1, torch.bfloat16)
            fake = op._fake(payload, *options)
            real = op.dequantize(payload, *options)
            assert fake.shape == real.shape
            assert fake.stride() == real.stride()
            assert fake.dtype == real.dtype
            # Sizes of 0 and 1 leave torch a choice of strides.
            if min(shape) > 1 and (payload.is_contiguous() or payload.mT.is_contiguous()):
                assert real.stride() == payload.to(torch.bfloat16).stride()


@pytest.mark.parametrize("backend", ["triton", "reference"])
def test_opcheck_passes(backend, device):
    options = (S.to(device), backend, (1, 32), "plain", -1, torch.float16)
    # test_schema multiplies its inputs, which torch does not do with float8 on a CPU.
    utils = ("test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic")
    checks = torch.library.opcheck(op.dequantize, (P.to(device), *options), test_utils=utils)
    assert set(checks.values()) == {"SUCCESS"}


def test_opcheck_of_the_schema_passes_on_codes(device):
    options = (S.to(device), "triton", (1, 32), "plain", -1, torch.float16)
    checks = torch.library.opcheck(op.dequantize, (P.view(torch.uint8).to(device), *options))
    assert set(checks.values()) == {"SUCCESS"}


@pytest.mark.parametrize("backend", ["auto", "triton", "reference"])
def test_compiled_fullgraph_equals_eager(backend, device):
    @torch.compile(fullgraph=True)
    def doubled(payload, scale):
        return dequantize(payload, scale, dtype=torch.bfloat16, backend=backend) * 2

    payload, scale = P.to(device), S.to(device).view(torch.float8_e8m0fnu)
    assert_bits(doubled(payload, scale), 2 * wanted_of(payload, scale, (1, 32), torch.bfloat16))


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_reference_equals_mxref(block, layout):
    payload = payload_of((2, 40, 70), "col", 0, 1)
    logical = stored_shape((2, 40, 70), "plain", block, -1)
    scale = torch.arange(torch.Size(logical).numel()).to(torch.uint8).view(logical)
    where = {"block": block, "contract": -2 if block[0] > 1 else -1}
    stored = mxref.layouts.encode(scale, layout, shape=(2, 40, 70), **where)
    for dtype in DTYPES:
        found = dequantize(payload, stored, scale_layout=layout, dtype=dtype, **where)
        assert_bits(found, wanted_of(payload, scale, block, dtype))
        assert found.stride() == payload.stride()


def test_results_are_new_and_detached(device):
    first = dequantize(P.to(device), S.to(device), backend="triton")
    second = dequantize(P.to(device), 2 * S.to(device), backend="triton")
    assert not first.requires_grad
    assert first.data_ptr() != second.data_ptr()
    assert torch.equal(2 * first, second)


@pytest.mark.gpu
def test_graph_capture_replays():
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    payload = payload_of((512, 512), "row", 0, 1, "cuda")
    scale = torch.full((512, 16), 120, dtype=torch.uint8, device="cuda")
    dequantize(payload, scale, dtype=torch.bfloat16)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = dequantize(payload, scale, dtype=torch.bfloat16)
    scale.fill_(131)
    graph.replay()
    assert_bits(captured, wanted_of(payload, scale, (1, 32), torch.bfloat16))
