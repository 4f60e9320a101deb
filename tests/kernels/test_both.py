"""Both directions from one read: the bytes of two calls; and the named variants."""

from itertools import product

import pytest
import torch

import mxkernels
from mxkernels.quantize import op
from mxkernels.quantize.launch import launch
from mxkernels.quantize.shapes import SCALE_LAYOUTS
from mxkernels.registry import KERNELS, find
from tests.kernels.guarded import (
    POISONS,
    GuardedBuffer,
    Way,
    assert_bytes,
    bytes_of,
    expected,
    lies_in_order,
)
from tests.kernels.inputs import STRIDES, filled, strided
from tests.kernels.pairwise import pairwise

SPEC = find("quantize_both", "triton")
LAYOUTS = list(product(SCALE_LAYOUTS, repeat=2))
SHAPES = ((256, 128), (33, 70), (130, 140), (2, 40, 96), (2, 2, 33, 31), (1, 200), (3, 0, 64))
SPECS = [spec for spec in KERNELS if spec.op == "quantize_both"]
SLOTS = range(1 + max(len(spec.configs) for spec in SPECS))
ROWS = pairwise(LAYOUTS, SLOTS, SHAPES, STRIDES, SPEC.recipes, SPEC.dtypes, (0, 3))


@pytest.fixture(autouse=True, params=SPECS, ids=lambda spec: spec.name)
def runs(request, device, monkeypatch):
    """Each test once for every spec, which is SPEC."""
    if request.param.missing(device):
        pytest.skip(request.param.missing(device))
    monkeypatch.setitem(globals(), "SPEC", request.param)


def configured(slot):
    """The configuration in a slot, the default one in the first and in those past the end."""
    return (None, *SPEC.configs)[slot] if slot <= len(SPEC.configs) else None


def both_expected(x, recipe, layouts):
    ways = Way((1, 32), "row", layouts[0]), Way((32, 1), "col", layouts[1])
    return [expected(x, recipe, way) for way in ways]


def assert_both(result, wanted):
    for part, bytes_wanted in zip(result, wanted, strict=True):
        assert_bytes(bytes_of(part), bytes_wanted)


@pytest.mark.parametrize(("layouts", "slot", "shape", "strides", "recipe", "dtype", "offset"), ROWS)
def test_both_equal_two_calls(device, layouts, slot, shape, strides, recipe, dtype, offset):
    x = strided(shape, strides, offset, lambda n: filled(n, "poisoned", dtype, n).to(device))
    result = SPEC.call(x, recipe, layouts, configured(slot))
    wanted = both_expected(x, recipe, layouts)
    assert_both(result, wanted)
    assert lies_in_order(result[0].payload, Way())
    assert lies_in_order(result[1].payload, Way(payload_order="col"))


@pytest.mark.parametrize("slot", SLOTS)
@pytest.mark.parametrize("shape", [(130, 140), (128, 128)])
def test_both_write_all_of_their_buffers_and_nothing_else(device, slot, shape):
    x = torch.randn(shape, generator=torch.Generator().manual_seed(3)).to(device)
    layouts = ("swizzle_32_4_4", "plain_t")
    (a, b), (c, d) = both_expected(x, "rceil", layouts)
    for poison in POISONS:
        buffers = [GuardedBuffer(part.shape, poison, device) for part in (a, b, c.mT, d)]
        inner = tuple(each.inner for each in buffers)
        launch(op.BOTH_PLANS[SPEC.backend], x, inner, "rceil", layouts, configured(slot))
        for buffer in buffers:
            buffer.assert_guards()
        first, second, third, fourth = (each.inner.cpu() for each in buffers)
        assert_bytes((first, second), (a, b))
        assert_bytes((third.mT, fourth), (c, d))


def test_one_layout_serves_both(device):
    x = torch.randn(40, 70, generator=torch.Generator().manual_seed(4)).to(device)
    for backend in ("auto", "reference", SPEC.backend):
        for given, layouts in (
            ({}, ("plain", "plain")),
            ({"scale_layout": "swizzle_32_4_4"}, ("swizzle_32_4_4",) * 2),
            ({"scale_layout": ["plain", "plain_t"]}, ("plain", "plain_t")),
        ):
            result = mxkernels.quantize_both(x, "even", backend=backend, **given)
            assert_both(result, both_expected(x, "even", layouts))


def test_both_pass_opcheck_and_their_fakes_have_the_real_strides(device):
    x = torch.linspace(-3, 500, 5 * 50, device=device).view(5, 50)
    for view in (x, x.mT, x.view(5, 5, 10)):
        arguments = (view, SPEC.backend, "rceil", "plain", "swizzle_32_4_4")
        assert set(torch.library.opcheck(op.quantize_both, arguments).values()) == {"SUCCESS"}
        fakes = op._fake_both(view.to("meta"), *arguments[1:])
        for fake, real in zip(fakes, op.quantize_both(*arguments), strict=True):
            assert (fake.shape, fake.stride(), fake.dtype) == (
                real.shape,
                real.stride(),
                real.dtype,
            )


@pytest.mark.parametrize("own", [True, False])
def test_both_compile_to_one_graph(device, own):
    backend = SPEC.backend if own else "reference"

    @torch.compile(fullgraph=True)
    def doubled(x):
        return mxkernels.quantize_both(x * 2, backend=backend, scale_layout=("plain", "plain_t"))

    x = torch.linspace(-3, 500, 6 * 50, device=device).view(6, 50)
    assert_both(doubled(x), both_expected(x * 2, "rceil", ("plain", "plain_t")))


@pytest.mark.parametrize("name", ["dim0", "dim1", "32x1_n", "32x1_t", "32x32_n", "32x32_t"])
def test_a_variant_names_a_way_and_how_its_input_lies(device, name):
    variant = mxkernels.variant(name)
    x = torch.randn(2, 64, 96, generator=torch.Generator().manual_seed(5)).to(device)
    if variant.input_order == "t":
        x = x.mT.contiguous().mT
        assert x.stride(1) == 1
    way = Way(*variant[:3])
    result = mxkernels.quantize(
        x,
        block=variant.block,
        payload_order=variant.payload_order,
        scale_layout=variant.scale_layout,
        backend=SPEC.backend,
    )
    assert_bytes(bytes_of(result), expected(x, "rceil", way))
    strides = (64 * 96, 1, 64) if variant.payload_order == "col" else (64 * 96, 96, 1)
    assert result.payload.stride() == strides
