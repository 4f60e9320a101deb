"""swizzle and unswizzle as citizens of torch, and what they say about bad arguments."""

from dataclasses import replace

import pytest
import torch

import mxref
from mxkernels import arch
from mxkernels.swizzle import arguments, op, shapes, swizzle, unswizzle
from mxkernels.swizzle.specs import SPECS
from mxref.formats import BLOCKS
from tests.kernels.test_swizzle import assert_same, contract_of, scales

S = torch.ones(4, 3, dtype=torch.uint8)
OFFS = torch.tensor([1, 4], dtype=torch.int32)
GROUPS = {"offs": OFFS, "axis": "M"}


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"scale": [1]}, TypeError, ["scale=[1]", "a tensor"]),
        ({"scale": S.int()}, TypeError, ["scale", "int32", "float8_e8m0fnu", "uint8"]),
        ({"scale": S[0, 0], "layout": "plain"}, ValueError, ["scale", "()", "rank 1"]),
        ({"layout": "blocked"}, ValueError, ["layout='blocked'", "'swizzle_32_4_4'"]),
        ({"block": (1, 16)}, ValueError, ["block=(1, 16)", "(32, 32)"]),
        ({"block": (32, 1), "scale": S[0]}, ValueError, ["scale", "rank 2"]),
        ({"block": (32, 32), "contract": -1}, ValueError, ["shape=None", "(32, 32)"]),
        ({"block": (32, 32), "shape": (100, 90)}, ValueError, ["contract=None", "-1 or -2"]),
        ({"contract": -2}, ValueError, ["contract=-2", "(1, 32)", "-1"]),
        ({"contract": 1}, ValueError, ["contract=1", "-1, -2"]),
        ({"shape": (4, 33)}, ValueError, ["(4, 3)", "(4, 2)", "shape=(4, 33)"]),
        ({"shape": (-4, 33)}, ValueError, ["shape=(-4, 33)", "non-negative"]),
        ({"axis": "M"}, ValueError, ["axis='M'", "without offs"]),
        (GROUPS | {"axis": "N"}, ValueError, ["axis='N'", "'M', 'K'"]),
        (GROUPS | {"axis": None}, ValueError, ["axis=None", "'M', 'K'"]),
        (GROUPS | {"offs": [1, 4]}, TypeError, ["offs=[1, 4]", "a tensor"]),
        (GROUPS | {"offs": OFFS.long()}, TypeError, ["offs", "int64", "int32"]),
        (GROUPS | {"offs": OFFS[:0]}, ValueError, ["offs", "(0,)", "G >= 1"]),
        (GROUPS | {"offs": OFFS.to("meta")}, ValueError, ["offs is on meta", "cpu"]),
        (GROUPS | {"layout": "plain"}, ValueError, ["layout='plain'", "with offs"]),
        (GROUPS | {"block": (32, 1)}, ValueError, ["block=(32, 1)", "with offs"]),
        (GROUPS | {"contract": -2}, ValueError, ["contract=-2", "with offs"]),
        (GROUPS | {"shape": (4, 96)}, ValueError, ["shape=(4, 96)", "with offs"]),
        (GROUPS | {"scale": S[None]}, ValueError, ["scale", "(1, 4, 3)", "two dimensions"]),
        ({"backend": "cuda"}, NotImplementedError, ["backend='cuda'", "'triton'"]),
        ({"backend": "tritn"}, ValueError, ["backend='tritn'", "'triton'"]),
    ],
)
@pytest.mark.parametrize("backend", ["auto", "triton", "reference"])
def test_a_bad_argument_is_named(backend, options, error, words):
    with pytest.raises(error) as raised:
        swizzle(**{"scale": S, "backend": backend} | options)
    for word in words:
        assert word in str(raised.value)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"stored": S}, ValueError, ["stored has 12 bytes", "512", "shape=(4, 96)"]),
        ({"shape": 5}, ValueError, ["shape=5", "the shape of x"]),
        ({"shape": (4, 2, 96)}, ValueError, ["stored has 512 bytes", "2048"]),
        (GROUPS | {"shape": (4,)}, ValueError, ["shape=(4,)", "(R, C)"]),
        (GROUPS | {"shape": (4, 3)}, ValueError, ["stored has 512 bytes", "1040", "2 groups"]),
    ],
)
def test_a_bad_argument_of_unswizzle_is_named(options, error, words):
    with pytest.raises(error) as raised:
        unswizzle(**{"stored": swizzle(S), "shape": (4, 96)} | options)
    for word in words:
        assert word in str(raised.value)


def test_an_unknown_configuration_raises():
    with pytest.raises(ValueError, match="config='fast'"):
        SPECS[0].call(S, shapes.SWIZZLE, config="fast")


def test_a_backend_that_cannot_run_names_what_is_missing(monkeypatch):
    arch.triton_missing.cache_clear()
    monkeypatch.setattr(arch, "installed", lambda module: module != "triton")
    try:
        with pytest.raises(RuntimeError, match="backend='triton' cannot run here"):
            swizzle(S, backend="triton")
        assert_same(swizzle(S), mxref.layouts.encode(S, shapes.SWIZZLE))
    finally:
        arch.triton_missing.cache_clear()


def test_ends_that_decrease_are_seen_by_the_reference_only():
    wrong = {"offs": OFFS.flip(0), "axis": "M"}
    with pytest.raises(ValueError, match="non-decreasing"):
        swizzle(S, backend="reference", **wrong)


@pytest.mark.parametrize("kind", [torch.uint8, torch.float8_e8m0fnu])
@pytest.mark.parametrize("backend", ["triton", "reference"])
def test_the_dtype_is_kept(kind, backend, device):
    scale = scales((5, 3), "contiguous", 0, 1, device).view(kind)
    stored = swizzle(scale, backend=backend)
    assert stored.dtype == kind
    assert_same(unswizzle(stored, shape=(5, 96), backend=backend), scale)


@pytest.mark.parametrize("layout", shapes.LAYOUTS)
@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("backend", ["triton", "reference"])
def test_fakes_equal_the_real_ones(backend, block, layout, device):
    for shape in ((40, 70), (2, 3, 33, 1), (2, 0, 70)):
        contract = contract_of(block, -2)
        scale = scales(shapes.logical_shape(shape, block), "contiguous", 0, 1, device)
        options = (backend, layout, block, shape, contract)
        stored = op.swizzle(scale, *options)
        pairs = [
            (op.swizzle_fake(scale.to("meta"), *options), stored),
            (op.unswizzle_fake(stored.to("meta"), *options), op.unswizzle(stored, *options)),
        ]
        for fake, real in pairs:
            assert fake.shape == real.shape
            assert fake.stride() == real.stride()
            assert fake.dtype == real.dtype


@pytest.mark.parametrize("axis", ["M", "K"])
@pytest.mark.parametrize("backend", ["triton", "reference"])
def test_fakes_of_groups_equal_the_real_ones(backend, axis, device):
    offs = torch.tensor([1, 3], dtype=torch.int32, device=device)
    scale = scales((5, 6), "contiguous", 0, 1, device)
    fake = op.swizzle_groups_fake(scale.to("meta"), offs, backend, axis)
    real = op.swizzle_groups(scale, offs, backend, axis)
    back = op.unswizzle_groups_fake(real.to("meta"), offs, backend, axis, (5, 6))
    for left, right in ((fake, real), (back, scale)):
        assert left.shape == right.shape
        assert left.stride() == right.stride()


def test_opcheck_passes(device):
    scale = scales((40, 6), "contiguous", 0, 1, device)
    offs = torch.tensor([1, 3], dtype=torch.int32, device=device)
    options = ("triton", shapes.SWIZZLE, (1, 32), (40, 192), -1)
    stored = op.swizzle(scale, *options)
    grouped = op.swizzle_groups(scale, offs, "triton", "M")
    for function, given in (
        (op.swizzle, (scale, *options)),
        (op.unswizzle, (stored, *options)),
        (op.swizzle_groups, (scale, offs, "triton", "M")),
        (op.unswizzle_groups, (grouped, offs, "triton", "M", (40, 6))),
    ):
        assert set(torch.library.opcheck(function, given).values()) == {"SUCCESS"}


@pytest.mark.parametrize("backend", ["triton", "reference", "auto"])
def test_compiled_fullgraph_equals_eager(backend, device):
    scale = scales((40, 6), "contiguous", 0, 1, device).view(torch.float8_e8m0fnu)
    offs = torch.tensor([1, 3], dtype=torch.int32, device=device)

    @torch.compile(fullgraph=True)
    def both(scale, offs):
        stored = swizzle(scale, backend=backend)
        grouped = swizzle(scale, offs=offs, axis="K", backend=backend)
        back = unswizzle(grouped, shape=(40, 6), offs=offs, axis="K", backend=backend)
        return stored, grouped, unswizzle(stored, shape=(40, 192), backend=backend), back

    stored, grouped, scale_again, covered = both(scale, offs)
    wanted = mxref.layouts.encode_groups(scale, offs, axis="K")
    assert_same(stored, mxref.layouts.encode(scale, shapes.SWIZZLE))
    assert_same(grouped, wanted)
    assert_same(scale_again, scale)
    assert_same(covered, mxref.layouts.decode_groups(wanted, offs, axis="K", shape=(40, 6)))


def test_the_specs_say_where_they_run():
    for spec in SPECS:
        assert spec.op in ("swizzle", "unswizzle")
        assert "'xpu'" in spec.missing("xpu")
        assert replace(spec, name="other").dtypes == arguments.SCALE_DTYPES


@pytest.mark.gpu
def test_no_synchronisation_and_graph_capture():
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    scale = scales((1000, 16), "contiguous", 0, 1, "cuda")
    offs = torch.tensor([100, 100, 900], dtype=torch.int32, device="cuda")
    before = torch.cuda.get_sync_debug_mode()
    try:
        torch.cuda.set_sync_debug_mode("error")
        stored = swizzle(scale, offs=offs, axis="M")
        unswizzle(stored, shape=(1000, 16), offs=offs, axis="M")
    finally:
        torch.cuda.set_sync_debug_mode(before)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = swizzle(scale, offs=offs, axis="M")
    offs.copy_(torch.tensor([1, 500, 1000]))
    graph.replay()
    assert_same(captured, mxref.layouts.encode_groups(scale, offs, axis="M"))
