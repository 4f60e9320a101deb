"""Recipe x way x dtype x shape x strides x storage offset x configuration, byte for byte."""

import time

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import HealthCheck, given, settings

from mxkernels.quantize.canonical import is_transposed
from mxkernels.registry import KERNELS
from tests.kernels.guarded import (
    DIM0,
    POISONS,
    assert_bytes,
    bytes_of,
    expected,
    launch_guarded,
    lies_in_order,
    ways_of,
)
from tests.kernels.inputs import FILLS, STRIDES, bit_dtype, filled, strided
from tests.kernels.pairwise import pairwise

SPECS = [spec for spec in KERNELS if spec.op == "quantize"]
DTYPES = {torch.bfloat16: "bf16", torch.float16: "fp16", torch.float32: "fp32"}

SIZES = st.sampled_from([64, 33, 32, 31, 65, 96, 127, 128, 1, 2, 129, 160, 256, 0])
LEADING = st.lists(st.sampled_from([2, 1, 3, 5, 0]), max_size=2)
RANK_1 = st.builds(lambda columns: (columns,), SIZES)
MATRICES = st.builds(lambda lead, rows, columns: (*lead, rows, columns), LEADING, SIZES, SIZES)


def small(shapes):
    return shapes.filter(lambda shape: torch.Size(shape).numel() <= 1 << 15)


def check(spec, x, recipe, way=DIM0, config=None, poisons=POISONS):
    """Bytes by the call and, between guards, by the launch; the input as it was."""
    before = x.cpu().clone().view(bit_dtype(x.dtype))
    wanted = expected(x, recipe, way)
    result = spec.call(x, recipe, *way, config)
    assert_bytes(bytes_of(result), wanted)
    assert lies_in_order(result.payload, way)
    assert result.scale.is_contiguous()
    if spec.launch:
        shapes = [part.shape for part in wanted]
        written = launch_guarded(spec.launch, x, shapes, recipe, way, config, poisons)
        assert_bytes(written, wanted)
    assert torch.equal(x.cpu().view(bit_dtype(x.dtype)), before), "the input was changed"


def configs_for(spec, x, way):
    """The default, and the configurations meant for the way as this tensor is read."""
    return (None, *spec.configs_for(*way, "t" if is_transposed(x) else "n"))


def check_drawn(spec, device, data):
    recipe = data.draw(st.sampled_from(spec.recipes))
    way = data.draw(st.sampled_from(ways_of(spec)))
    dtype = data.draw(st.sampled_from(spec.dtypes))
    ranks = [MATRICES] if way.block[0] > 1 else [MATRICES, RANK_1]
    shape = data.draw(small(st.one_of(ranks)))
    strides = data.draw(st.sampled_from(STRIDES))
    fill = data.draw(st.sampled_from(FILLS))
    offset = data.draw(st.sampled_from([0, 1, 8, 13]))
    seed = data.draw(st.integers(0, 2**32 - 1))
    x = strided(shape, strides, offset, lambda n: filled(n, fill, dtype, seed).to(device))
    check(spec, x, recipe, way, data.draw(st.sampled_from(configs_for(spec, x, way))))


@pytest.mark.parametrize("strides", STRIDES)
@pytest.mark.parametrize("shape", [(5, 64), (3, 50), (2, 3, 96), (2, 3, 2, 33), (70,)])
def test_every_shape_in_every_memory_order(kernel, device, dtype, shape, strides):
    x = strided(shape, strides, 3, lambda n: filled(n, "one binade", dtype, n).to(device))
    assert x.shape == shape
    assert x.storage_offset() >= 3
    check(kernel, x, "rceil")


SHAPES = ((256, 128), (33, 70), (130, 140), (2, 40, 96), (2, 2, 33, 31), (1, 200), (3, 0, 64))
CONFIGURED = [spec for spec in SPECS if spec.configs]


def rows_of(spec):
    """Every way with every configuration meant for it, with every shape, with every recipe, ..."""
    rows = pairwise(
        ways_of(spec),
        range(1 + max(len(spec.configs_for(*way)) for way in ways_of(spec))),
        SHAPES,
        STRIDES[:4],
        spec.recipes,
        spec.dtypes,
        ("thresholds", "random bits", "one binade"),
        (0, 3),
    )
    return [(spec, *row) for row in rows]


ROWS = [row for spec in CONFIGURED for row in rows_of(spec)]


def ident(value):
    if hasattr(value, "backend"):
        return value.backend
    return DTYPES.get(value, "x".join(map(str, value)) if type(value) is tuple else str(value))


@pytest.mark.parametrize(
    ("spec", "way", "slot", "shape", "strides", "recipe", "dtype", "fill", "offset"),
    ROWS,
    ids=ident,
)
def test_every_two_choices_together(
    device, spec, way, slot, shape, strides, recipe, dtype, fill, offset
):
    if spec.missing(device):
        pytest.skip(spec.missing(device))
    x = strided(shape, strides, offset, lambda n: filled(n, fill, dtype, n).to(device))
    configs = configs_for(spec, x, way)
    check(spec, x, recipe, way, configs[slot] if slot < len(configs) else None, POISONS[:1])


def test_a_view_with_the_negative_bit_is_read_as_its_values(kernel, device):
    x = torch.linspace(-3, 500, 96, device=device).view(2, 48)
    view = torch._neg_view(x)
    assert view.is_neg()
    assert view.data_ptr() == x.data_ptr()
    for way in ways_of(kernel)[::5]:
        assert_bytes(bytes_of(kernel.call(view, "rceil", *way)), expected(-x, "rceil", way))


@pytest.mark.parametrize("spec", CONFIGURED, ids=lambda spec: spec.name)
@pytest.mark.parametrize("way", [DIM0, *ways_of(CONFIGURED[0])[3::4]], ids=str)
def test_rows_may_lie_far_apart(device, spec, way):
    """An offset inside a tile does not fit int32; the memory between the rows is not touched."""
    if spec.missing(device):
        pytest.skip(spec.missing(device))
    stride = (1 << 24) + 16
    x = torch.empty(130 * stride, dtype=torch.bfloat16, device=device)
    x = x.as_strided((130, 70), (stride, 1))
    x.copy_(filled(130 * 70, "one binade", torch.bfloat16, 7).view(130, 70))
    for config in configs_for(spec, x, way)[:2]:
        assert_bytes(bytes_of(spec.call(x, "rceil", *way, config)), expected(x, "rceil", way))


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_kernel_equals_the_reference(spec, device):
    if spec.missing(device):
        pytest.skip(spec.missing(device))

    @settings(
        max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
    )
    @given(st.data())
    def sweep(data):
        check_drawn(spec, device, data)

    sweep()


SECONDS = 150
"""A new combination costs a GPU a compilation; what is drawn after that time is let through."""


@pytest.mark.exhaustive
@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_kernel_equals_the_reference_at_length(spec, device):
    if spec.missing(device):
        pytest.skip(spec.missing(device))

    end = time.monotonic() + SECONDS

    @settings(max_examples=5000, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def sweep(data):
        if time.monotonic() < end:
            check_drawn(spec, device, data)

    sweep()
