"""Recipe x dtype x shape x strides x storage offset x configuration, byte for byte."""

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import HealthCheck, given, settings

from mxkernels.registry import KERNELS
from tests.kernels.guarded import assert_bytes, bytes_of, expected, launch_guarded

LEADING = st.lists(st.sampled_from([3, 1, 2, 5, 4, 33, 64, 0]), max_size=3)
COLUMNS = st.sampled_from([64, 33, 32, 31, 65, 96, 127, 128, 1, 2, 0])
SHAPES = st.builds(lambda lead, columns: (*lead, columns), LEADING, COLUMNS).filter(
    lambda shape: torch.Size(shape).numel() <= 1 << 16
)
FILLS = ("random bits", "one binade", "thresholds", "small", "zeros", "poisoned")
STRIDES = ("contiguous", "transposed", "columns", "every second", "expanded")


def bit_dtype(dtype):
    return torch.int32 if dtype == torch.float32 else torch.int16


def filled(count, fill, dtype, seed):
    """`count` values; the bits where random are all patterns, NaN and subnormals among them."""
    generator = torch.Generator().manual_seed(seed)
    if fill == "zeros":
        return torch.zeros(count, dtype=dtype) * torch.randn(count, generator=generator).to(dtype)
    if fill == "one binade":
        return (1 + torch.rand(count, generator=generator)).to(dtype)
    info = torch.iinfo(bit_dtype(dtype))
    bits = torch.randint(info.min, info.max + 1, (count,), generator=generator)
    if fill == "poisoned" or fill == "random bits":
        finite = torch.randn(count, generator=generator).to(dtype)
        raw = bits.to(bit_dtype(dtype)).view(dtype)
        rate = 0.02 if fill == "poisoned" else 1.0
        return torch.where(torch.rand(count, generator=generator) < rate, raw, finite)
    if fill == "small":
        return (bits % 1024).to(bit_dtype(dtype)).view(dtype)
    # Around 2^k and 1.75 * 2^k, where the rules change their mind.
    mantissa = {torch.bfloat16: 7, torch.float16: 10, torch.float32: 23}[dtype]
    nudge = torch.randint(-1, 2, (count,), generator=generator)
    edge = torch.randint(0, 2, (count,), generator=generator) * (3 << (mantissa - 2))
    base = bits >> mantissa << mantissa
    return (base + edge + nudge).clamp(info.min, info.max).to(bit_dtype(dtype)).view(dtype)


def strided(shape, strides, offset, make):
    """A tensor of this shape whose memory lies as `strides` and the storage offset say."""
    shape = tuple(shape)
    if strides == "transposed":
        storage = shape[::-1]
    elif strides == "columns":
        storage = (*shape[:-1], shape[-1] + 7)
    elif strides == "every second":
        storage = tuple(2 * size for size in shape)
    elif strides == "expanded":
        storage = (1, *shape[1:])
    else:
        storage = shape
    count = torch.Size(storage).numel()
    x = make(count + offset)[offset:].view(storage)
    if strides == "transposed":
        x = x.permute(*reversed(range(len(shape))))
    elif strides == "columns":
        x = x[..., 3 : 3 + shape[-1]]
    elif strides == "every second":
        x = x[tuple(slice(None, None, 2) for _ in shape)]
    elif strides == "expanded":
        x = x.expand(shape)
    return x


def check(spec, x, recipe, config=None):
    """Bytes by the call and, between guards, by the launch; the input as it was."""
    before = x.cpu().clone().view(bit_dtype(x.dtype))
    wanted = expected(x, recipe)
    result = spec.call(x, recipe, (1, 32), "row", "plain", config)
    assert_bytes(bytes_of(result), wanted)
    assert all(part.is_contiguous() for part in result)
    if spec.launch:
        shapes = [part.shape for part in wanted]
        assert_bytes(launch_guarded(spec.launch, x, shapes, recipe, config), wanted)
    assert torch.equal(x.cpu().view(bit_dtype(x.dtype)), before), "the input was changed"


def check_drawn(spec, device, data):
    recipe = data.draw(st.sampled_from(spec.recipes))
    dtype = data.draw(st.sampled_from(spec.dtypes))
    shape = data.draw(SHAPES)
    strides = data.draw(st.sampled_from(STRIDES))
    fill = data.draw(st.sampled_from(FILLS))
    offset = data.draw(st.sampled_from([0, 1, 8, 13]))
    config = data.draw(st.sampled_from((None, *spec.configs)))
    seed = data.draw(st.integers(0, 2**32 - 1))
    check(
        spec,
        strided(shape, strides, offset, lambda n: filled(n, fill, dtype, seed).to(device)),
        recipe,
        config,
    )


@pytest.mark.parametrize("strides", STRIDES)
@pytest.mark.parametrize("shape", [(5, 64), (3, 50), (2, 3, 96), (2, 3, 2, 33), (70,)])
def test_every_shape_in_every_memory_order(kernel, device, dtype, shape, strides):
    for offset in (0, 3):
        x = strided(shape, strides, offset, lambda n: filled(n, "one binade", dtype, n).to(device))
        assert x.shape == shape
        assert x.storage_offset() >= offset
        check(kernel, x, "rceil")


def test_a_view_with_the_negative_bit_is_read_as_its_values(kernel, device):
    x = torch.linspace(-3, 500, 96, device=device).view(2, 48)
    view = torch._neg_view(x)
    assert view.is_neg()
    assert view.data_ptr() == x.data_ptr()
    result = kernel.call(view, "rceil", (1, 32), "row", "plain")
    assert_bytes(bytes_of(result), expected(-x, "rceil"))


@pytest.mark.parametrize("spec", KERNELS, ids=lambda spec: spec.name)
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


@pytest.mark.exhaustive
@pytest.mark.parametrize("spec", KERNELS, ids=lambda spec: spec.name)
def test_kernel_equals_the_reference_at_length(spec, device):
    if spec.missing(device):
        pytest.skip(spec.missing(device))

    @settings(max_examples=5000, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def sweep(data):
        check_drawn(spec, device, data)

    sweep()
