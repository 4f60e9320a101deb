"""Scale layouts byte for byte: blocks x layouts x shapes x strides, groups with random ends."""

import json
from pathlib import Path

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import HealthCheck, given, settings

import mxref
from mxkernels.swizzle import op, shapes
from mxkernels.swizzle.specs import SPECS
from mxref.formats import BLOCKS
from tests.kernels.guarded import POISONS, GuardedBuffer

SWIZZLE, UNSWIZZLE = SPECS
MEMORY = ("contiguous", "transposed", "columns", "every second", "expanded")
CASES = json.loads((Path(__file__).parents[1] / "cases" / "layouts.json").read_text())["cases"]
SHAPES = st.builds(
    lambda lead, rows, columns: (*lead, rows, columns),
    st.lists(st.sampled_from([2, 1, 0]), max_size=2),
    st.sampled_from([33, 1, 128, 64, 129, 260, 0]),
    st.sampled_from([64, 33, 128, 31, 300, 1, 0]),
)
GROUPED = [(300, 20, 3), (300, 16, 33), (40, 13, 5), (257, 7, 100), (129, 16, 300), (7, 3, 1),
           (0, 4, 2), (5, 0, 2), (128, 32, 1), (512, 64, 4)]  # fmt: skip


@pytest.fixture(autouse=True)
def _can_run(request):
    if "device" in request.fixturenames:
        lacking = SWIZZLE.missing(request.getfixturevalue("device"))
        if lacking:
            pytest.skip(lacking)


def assert_same(actual, wanted):
    assert actual.shape == wanted.shape
    assert actual.dtype == wanted.dtype
    left, right = actual.view(torch.uint8).cpu(), wanted.view(torch.uint8).cpu()
    wrong = (left != right).nonzero()
    if len(wrong):
        at = tuple(wrong[0].tolist())
        raise AssertionError(
            f"{len(wrong)} bytes differ, first at {at}: {left[at]:#04x}, expected {right[at]:#04x}"
        )


def scales(shape, memory, offset, seed, device="cpu"):
    """Scale bytes of this shape, none of them 0, whose memory lies as the name says."""
    shape = tuple(shape)
    storage = list(shape)
    if memory == "transposed":
        storage.reverse()
    if memory == "columns":
        storage[-1] += 8
    if memory == "every second":
        storage = [2 * size for size in storage]
    if memory == "expanded":
        storage[0] = min(storage[0], 1)
    generator = torch.Generator().manual_seed(seed)
    count = torch.Size(storage).numel() + offset
    codes = torch.randint(1, 256, (count,), generator=generator, dtype=torch.uint8).to(device)
    codes = codes[offset:].view(storage)
    if memory == "transposed":
        codes = codes.permute(*reversed(range(len(shape))))
    if memory == "columns":
        codes = codes[..., 4 : codes.shape[-1] - 4]
    if memory == "every second":
        codes = codes[tuple(slice(None, None, 2) for _ in shape)]
    return codes.expand(shape)


def check_guarded(scale, stored, matrix, config, *, inverse, offs=None):
    """The launch over poison and between guards writes what is wanted, all of it, nothing else."""
    wanted = scale if inverse else stored
    buffer = GuardedBuffer(wanted.shape, POISONS[wanted.numel() % 2], wanted.device)
    pair = (buffer.inner, stored) if inverse else (scale, buffer.inner)
    op.launch(*pair, matrix, config, inverse=inverse, offs=offs)
    buffer.assert_guards()
    assert_same(buffer.inner, wanted)


def check(shape, block, contract, layout, memory, offset, seed, device, config=None):
    logical = shapes.logical_shape(shape, block)
    scale = scales(logical, memory, offset, seed, device)
    where = {"block": block, "shape": tuple(shape), "contract": contract}
    wanted = mxref.layouts.encode(scale, layout, **where)
    before = scale.clone()
    assert_same(SWIZZLE.call(scale, layout, config=config, **where), wanted)
    assert_same(UNSWIZZLE.call(wanted, layout, config=config, **where), scale)
    assert torch.equal(before, scale)
    if layout == shapes.SWIZZLE:
        index = -1 if config is None else SWIZZLE.configs.index(config)
        matrices = op._as_matrices(scale)
        matrix = shapes.matrix_of(matrices, shape, block, contract)
        check_guarded(matrices, wanted, matrix, index, inverse=False)
        dense = matrices.contiguous()
        matrix = shapes.matrix_of(dense, shape, block, contract)
        check_guarded(dense, wanted, matrix, index, inverse=True)


def contract_of(block, order):
    return order if block == (32, 32) else -1 if block[0] == 1 else -2


def random_ends(size, groups, seed):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, size + 1, (groups,), generator=generator).sort().values.int()


def check_groups(rows, columns, offs, axis, memory, offset, seed, device, config=None):
    scale = scales((rows, columns), memory, offset, seed, device)
    ends = offs.to(device)
    wanted = mxref.layouts.encode_groups(scale, ends, axis=axis)
    covered = mxref.layouts.decode_groups(wanted, ends, axis=axis, shape=(rows, columns))
    options = {"offs": ends, "axis": axis, "config": config}
    assert_same(SWIZZLE.call(scale, shapes.SWIZZLE, **options), wanted)
    back = UNSWIZZLE.call(wanted, shapes.SWIZZLE, shape=(rows, columns), **options)
    assert_same(back, covered)
    index = -1 if config is None else SWIZZLE.configs.index(config)
    matrix = shapes.grouped_matrix(scale, len(offs), axis)
    check_guarded(scale, wanted, matrix, index, inverse=False, offs=ends)
    matrix = shapes.grouped_matrix(covered, len(offs), axis)
    check_guarded(covered, wanted, matrix, index, inverse=True, offs=ends)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['layout']} {case['R']}")
def test_the_handed_bytes(case, device):
    rows, columns = case["R"], case["C"]
    at = torch.arange(rows * columns, device=device)
    scale = (at % 251 + 1).to(torch.uint8).view(rows, columns)
    options = {}
    if "ends" in case:
        offs = torch.tensor(case["ends"], dtype=torch.int32, device=device)
        options = {"offs": offs, "axis": case["layout"][0].upper()}
    if "block" in case:
        options = {"block": tuple(case["block"]), "shape": tuple(case["shape"])}
        options["contract"] = case["contract"]
    found = SWIZZLE.call(scale, shapes.SWIZZLE, **options)
    assert bytes(found.flatten().tolist()).hex() == case["bytes"]


@pytest.mark.parametrize("layout", shapes.LAYOUTS)
@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("order", [-1, -2])
def test_every_block_and_layout(block, layout, order, device):
    for seed, shape in enumerate([(300, 520), (2, 130, 256), (2, 2, 40, 70), (128, 512)]):
        check(shape, block, contract_of(block, order), layout, "contiguous", 0, seed, device)


@pytest.mark.parametrize("memory", MEMORY)
def test_every_memory_order(memory, device):
    for seed, shape in enumerate([(260, 256), (2, 130, 384), (3, 64)]):
        check(shape, (1, 32), -1, shapes.SWIZZLE, memory, (0, 3, 4)[seed], seed, device)
    check((64, 200), (32, 1), -2, shapes.SWIZZLE, memory, 0, 7, device)


@pytest.mark.parametrize("layout", shapes.LAYOUTS)
@pytest.mark.parametrize("shape", [(70,), (1,), (0,), (4096,)])
def test_a_vector(shape, layout, device):
    check(shape, (1, 32), -1, layout, "contiguous", 0, 1, device)


@pytest.mark.parametrize("axis", ["M", "K"])
@pytest.mark.parametrize(("rows", "columns", "groups"), GROUPED)
def test_groups(rows, columns, groups, axis, device):
    offs = random_ends(rows if axis == "M" else columns, groups, groups)
    check_groups(rows, columns, offs, axis, "contiguous", 0, 1, device)


@pytest.mark.parametrize("axis", ["M", "K"])
@pytest.mark.parametrize(
    "ends", [[0], [0, 0, 0], [0, 48, 48], [48], [1], [0, 0, 47, 47, 47], [4, 8, 12, 48]]
)
def test_empty_groups_and_uncovered_ends(ends, axis, device):
    offs = torch.tensor(ends, dtype=torch.int32)
    check_groups(48, 48, offs, axis, "contiguous", 0, 2, device)


@pytest.mark.parametrize("axis", ["M", "K"])
def test_every_configuration_takes_several_programs(axis, device):
    for config in SWIZZLE.configs:
        if axis == "M":
            check((300, 300), (1, 32), -1, shapes.SWIZZLE, "contiguous", 0, 3, device, config)
        check_groups(150, 48, random_ends(48, 5, 4), axis, "contiguous", 0, 3, device, config)


@pytest.mark.parametrize("axis", ["M", "K"])
@pytest.mark.parametrize("ends", [[40, 10, 90], [-5, 3, 1 << 30], [200, 200, 200, 200]])
def test_wrong_ends_reach_nothing_outside(ends, axis, device):
    scale = scales((48, 48), "contiguous", 0, 1, device)
    offs = torch.tensor(ends, dtype=torch.int32, device=device)
    matrix = shapes.grouped_matrix(scale, len(ends), axis)
    stored = GuardedBuffer(shapes.grouped_shape((48, 48), len(ends), axis), 0xA5, device)
    op.launch(scale, stored.inner, matrix, inverse=False, offs=offs)
    stored.assert_guards()
    back = GuardedBuffer((48, 48), 0xA5, device)
    op.launch(back.inner, stored.inner, matrix, inverse=True, offs=offs)
    back.assert_guards()


def test_a_wrong_byte_is_seen():
    wanted = mxref.layouts.encode(scales((5, 3), "contiguous", 0, 1), shapes.SWIZZLE)
    wrong = wanted.clone()
    wrong[511] = 1
    with pytest.raises(AssertionError, match="1 bytes differ"):
        assert_same(wrong, wanted)


def check_drawn(data, device):
    configs = (None, None, None, *SWIZZLE.configs)
    memory = data.draw(st.sampled_from(MEMORY))
    offset = data.draw(st.sampled_from([0, 1, 4, 16]))
    seed = data.draw(st.integers(0, 2**32 - 1))
    config = data.draw(st.sampled_from(configs))
    axis = data.draw(st.sampled_from(["", "M", "K"]))
    if axis:
        rows, columns, groups = data.draw(st.sampled_from(GROUPED))
        offs = random_ends(rows if axis == "M" else columns, groups, seed)
        # Small tiles of many groups are many programs, each some 7 ms of the interpreter.
        config = config if groups < 10 or device == "cuda" else None
        check_groups(rows, columns, offs, axis, memory, offset, seed, device, config)
        return
    block = data.draw(st.sampled_from(BLOCKS))
    contract = contract_of(block, data.draw(st.sampled_from([-1, -2])))
    layout = data.draw(st.sampled_from(shapes.LAYOUTS))
    check(data.draw(SHAPES), block, contract, layout, memory, offset, seed, device, config)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(st.data())
def test_layouts_equal_the_reference(device, data):
    check_drawn(data, device)


@pytest.mark.exhaustive
@settings(max_examples=3000, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_layouts_equal_the_reference_at_length(device, data):
    check_drawn(data, device)
