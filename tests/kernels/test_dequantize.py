"""Values byte for byte: every (scale byte, code), then blocks x orders x layouts x shapes."""

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import HealthCheck, given, settings

import mxref
from mxkernels.dequantize import op, shapes
from mxkernels.dequantize.specs import SPECS
from mxkernels.swizzle.shapes import LAYOUTS, logical_shape
from mxref.formats import BLOCKS
from tests.kernels.guarded import POISONS, GuardedBuffer

SPEC = SPECS[0]
DTYPES = (torch.float32, torch.bfloat16, torch.float16)
NANS = {torch.float32: 0x7FC00000, torch.bfloat16: 0x7FC0, torch.float16: 0x7E00}
MEMORY = ("row", "col", "columns", "col columns", "every second", "expanded", "permuted")
SHAPES = st.builds(
    lambda lead, rows, columns: (*lead, rows, columns),
    st.lists(st.sampled_from([2, 1, 3, 0]), max_size=2),
    st.sampled_from([33, 1, 32, 64, 65, 100, 130, 0]),
    st.sampled_from([64, 33, 32, 31, 96, 128, 130, 1, 0]),
)


@pytest.fixture(autouse=True)
def _can_run(request):
    if "device" in request.fixturenames:
        lacking = SPEC.missing(request.getfixturevalue("device"))
        if lacking:
            pytest.skip(lacking)


def bits_of(values):
    return values.view(torch.int32 if values.dtype == torch.float32 else torch.int16).cpu()


def assert_bits(actual, wanted):
    assert actual.shape == wanted.shape
    left, right = bits_of(actual), bits_of(wanted)
    wrong = (left != right).nonzero()
    if len(wrong):
        at = tuple(wrong[0].tolist())
        raise AssertionError(
            f"{len(wrong)} values differ, first at {at}: {left[at]:#x}, expected {right[at]:#x}"
        )


def drawn(count, seed):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, 256, (count,), generator=generator, dtype=torch.uint8)


def payload_of(shape, memory, offset, seed, device="cpu"):
    """Codes of this shape whose memory lies as the names say."""
    shape = tuple(shape)
    storage = list(shape)
    if memory.startswith("col ") or memory == "col":
        storage[-2:] = storage[-1], storage[-2]
    if memory.endswith("columns"):
        storage[-1] += 7
    if memory == "every second":
        storage = [2 * size for size in storage]
    if memory == "expanded":
        storage[0] = min(storage[0], 1)
    if memory == "permuted":
        storage.reverse()
    count = torch.Size(storage).numel()
    codes = drawn(count + offset, seed).to(device)[offset:].view(storage)
    if memory.endswith("columns"):
        codes = codes[..., 3 : codes.shape[-1] - 4]
    if memory == "every second":
        codes = codes[tuple(slice(None, None, 2) for _ in shape)]
    if memory == "permuted":
        codes = codes.permute(*reversed(range(len(shape))))
    if memory.startswith("col ") or memory == "col":
        codes = codes.mT
    return codes.expand(shape).view(torch.float8_e4m3fn)


def wanted_of(payload, scale, block, dtype):
    return mxref.dequantize(payload.cpu(), scale.cpu(), block=block, dtype=dtype)


def check(payload, block, order, layout, dtype, seed, config=None):
    """By the call and, between guards and over poison, by the launch; inputs unchanged."""
    shape = tuple(payload.shape)
    contract = {"row": -1, "col": -2}[order] if block == (32, 32) else None
    logical = logical_shape(shape, block)
    scale = drawn(torch.Size(logical).numel(), seed + 1).view(logical).to(payload.device)
    where = {"block": block, "shape": shape, "contract": contract}
    stored = mxref.layouts.encode(scale, layout, **where)
    before = payload.view(torch.uint8).clone(), stored.clone()
    wanted = wanted_of(payload, scale, block, dtype)
    result = SPEC.call(payload, stored, block, order, layout, dtype, config)
    assert_bits(result, wanted)
    assert result.stride() == shapes.values_strides(payload)
    index = -1 if config is None else SPEC.configs.index(config)
    buffer = GuardedBuffer((result.nbytes,), POISONS[seed % 2], payload.device)
    values = buffer.inner.view(dtype)
    values = values.as_strided(shape, result.stride(), values.storage_offset())
    op.launch(payload, stored, values, block, layout, contract or (-1, -2)[block[0] > 1], index)
    buffer.assert_guards()
    assert_bits(values, wanted)
    assert torch.equal(before[0], payload.view(torch.uint8))
    assert torch.equal(before[1], stored)


def every_pair():
    """256 rows of all codes, one row for each scale byte, each row 8 blocks."""
    codes = torch.arange(256, dtype=torch.uint8).repeat(256, 1).view(torch.float8_e4m3fn)
    return codes, torch.arange(256, dtype=torch.uint8)[:, None].repeat(1, 8)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_scale_byte_and_code(dtype, device):
    payload, scale = (part.to(device) for part in every_pair())
    wanted = wanted_of(payload, scale, (1, 32), dtype)
    for config in SPEC.configs:
        assert_bits(SPEC.call(payload, scale, (1, 32), "row", "plain", dtype, config), wanted)
    turned = SPEC.call(payload.mT, scale.mT.contiguous(), (32, 1), "col", "plain", dtype)
    assert_bits(turned.mT, wanted)


@pytest.mark.parametrize("dtype", DTYPES)
def test_nan_zero_and_the_ends(dtype, device):
    payload, scale = (part.to(device) for part in every_pair())
    bits = bits_of(SPEC.call(payload, scale, (1, 32), "row", "plain", dtype))
    assert set(bits[255].tolist()) == {NANS[dtype]}
    assert set(bits[:, [0x7F, 0xFF]].flatten().tolist()) == {NANS[dtype]}
    assert bits[:255, 0].eq(0).all()
    lowest = torch.iinfo(bits.dtype).min
    assert bits[:255, 0x80].eq(lowest).all()
    infinity = {torch.float32: 0x7F800000, torch.bfloat16: 0x7F80, torch.float16: 0x7C00}[dtype]
    assert bits[254, 0x7E] == infinity
    assert bits[254, 0xFE] == infinity + lowest
    # Codes of 2^-9, 2^-7, 2^-6 and 1.5 * 2^-6 times 2^-127: bf16 counts in 2^-133, ties to even.
    tiny = {torch.float32: [0x2000, 0x8000, 0x10000, 0x18000], torch.bfloat16: [0, 0, 1, 2]}
    assert bits[0, [1, 4, 8, 12]].tolist() == tiny.get(dtype, [0] * 4)


def test_a_wrong_value_is_seen():
    payload, scale = every_pair()
    wanted = wanted_of(payload, scale, (1, 32), torch.float32)
    wrong = wanted.clone()
    wrong.view(torch.int32)[0, 0x80] = 0
    with pytest.raises(AssertionError, match="1 values differ"):
        assert_bits(wrong, wanted)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("order", ["row", "col"])
def test_every_block_order_and_layout(block, order, layout, device):
    for number, shape in enumerate([(2, 65, 96), (100, 90), (128, 256)]):
        payload = payload_of(shape, order, 0, number, device)
        check(payload, block, order, layout, DTYPES[number], number)


@pytest.mark.parametrize("memory", MEMORY)
def test_every_memory_order(memory, device):
    for number, shape in enumerate([(3, 50, 64), (2, 2, 40, 33), (64, 128)]):
        payload = payload_of(shape, memory, (0, 3, 16)[number], number, device)
        assert payload.shape == shape
        check(payload, (1, 32), "row", "plain", DTYPES[number], number)
        check(payload, (32, 1), "col", "plain_t", DTYPES[number], number)


@pytest.mark.parametrize("shape", [(33,), (64,), (1,), (0,)])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_vector(shape, layout, device):
    payload = payload_of((1, *shape), "row", 0, 5, device)[0]
    check(payload, (1, 32), "row", layout, torch.bfloat16, 5)


def check_drawn(data, device):
    shape = data.draw(SHAPES)
    memory = data.draw(st.sampled_from(MEMORY))
    offset = data.draw(st.sampled_from([0, 1, 8, 13]))
    seed = data.draw(st.integers(0, 2**32 - 2))
    check(
        payload_of(shape, memory, offset, seed, device),
        data.draw(st.sampled_from(BLOCKS)),
        data.draw(st.sampled_from(["row", "col"])),
        data.draw(st.sampled_from(LAYOUTS)),
        data.draw(st.sampled_from(DTYPES)),
        seed,
        data.draw(st.sampled_from((None, *SPEC.configs))),
    )


@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(st.data())
def test_values_equal_the_reference(device, data):
    check_drawn(data, device)


@pytest.mark.exhaustive
@settings(max_examples=5000, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_values_equal_the_reference_at_length(device, data):
    check_drawn(data, device)


def test_many_small_matrices_and_many_programs(device):
    payload = payload_of((20, 3, 64), "row", 0, 1, device)
    check(payload, (1, 32), "row", "swizzle_32_4_4", torch.float16, 1)
    for config in SPEC.configs:
        large = payload_of((config.rows + 5, 2 * config.columns + 32), "row", 0, 2, device)
        check(large, (32, 32), "col", "swizzle_32_4_4", torch.bfloat16, 2, config)


def test_subnormals_survive_flush_to_zero(device):
    payload, scale = (part.to(device) for part in every_pair())
    wanted = wanted_of(payload, scale, (1, 32), torch.float32)
    assert torch.set_flush_denormal(True)
    try:
        result = bits_of(SPEC.call(payload, scale, (1, 32), "row", "plain", torch.float32))
    finally:
        torch.set_flush_denormal(False)
    assert torch.equal(result, bits_of(wanted))


def test_dequantize_inverts_quantize_where_it_is_exact(device):
    x = torch.randint(-8, 9, (96, 160), generator=torch.Generator().manual_seed(3)).float()
    payload, scale = mxref.quantize(x.to(device), "rceil")
    assert torch.equal(SPEC.call(payload, scale, (1, 32), "row", "plain", torch.float32).cpu(), x)


@pytest.mark.gpu
@pytest.mark.exhaustive
@pytest.mark.xdist_group("large")
def test_more_than_two_to_the_31_elements():
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    rows, columns = (1 << 16) + 3, 1 << 15
    codes = torch.randint(0, 256, (rows, columns), dtype=torch.uint8, device="cuda")
    scale = torch.randint(0, 256, (rows, columns // 32), dtype=torch.uint8, device="cuda")
    for stored, layout in ((scale, "plain"), (scale.mT.contiguous(), "plain_t")):
        payload = codes.view(torch.float8_e4m3fn)
        values = SPEC.call(payload, stored, (1, 32), "row", layout, torch.bfloat16)
        for part in (slice(rows - 8, rows), slice(40000, 40008)):
            wanted = wanted_of(payload[part], scale[part], (1, 32), torch.bfloat16)
            assert_bits(values[part], wanted)
