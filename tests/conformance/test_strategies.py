"""The Hypothesis strategies: what they make, and that they reach what matters."""

from collections.abc import Callable

import pytest
import torch
from hypothesis import HealthCheck, find, given, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample
from torch import Tensor

import mxref
from mxref.formats import BF16, E4M3, ELEMENTS, FP32
from mxref.testing import strategies as mx
from mxref.testing.cases import edge_blocks

BLOCKS = [(1, 32), (32, 1), (32, 32)]
FAST = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
SEARCH = settings(max_examples=2000, deadline=None, database=None, derandomize=True)
FAST_SEARCH = settings(SEARCH, max_examples=100)


@pytest.mark.parametrize("block", BLOCKS)
@FAST
@given(data=st.data())
def test_tensors_can_be_quantized(block: tuple[int, int], data: st.DataObject) -> None:
    x = data.draw(mx.tensors(block=block))
    payload, _ = mxref.quantize(x, block=block)
    assert payload.shape == x.shape


@FAST
@given(x=mx.blocks(torch.float32))
def test_blocks_are_32_elements(x: Tensor) -> None:
    assert x.shape == (32,)
    assert x.dtype == torch.float32


@pytest.mark.parametrize("element", list(ELEMENTS))
@pytest.mark.parametrize("block", BLOCKS)
@FAST
@given(data=st.data())
def test_blocks_are_one_block(block: tuple[int, int], element: str, data: st.DataObject) -> None:
    x = data.draw(mx.blocks(element=element, block=block))
    assert x.dtype in mx.DTYPES
    scale = mxref.quantize(x, mxref.Recipe(element=element), block=block).scale
    assert (x.numel(), scale.numel()) == (block[0] * block[1], 1)


@FAST
@given(shape=mx.shapes(min_rank=2, max_rank=4, multiple_of=32))
def test_shapes_obey_their_bounds(shape: tuple[int, ...]) -> None:
    assert 2 <= len(shape) <= 4
    assert all(size % 32 == 0 for size in shape[-2:])


@pytest.mark.parametrize("block", BLOCKS)
@FAST
@given(data=st.data())
def test_layouts_fit_their_block(block: tuple[int, int], data: st.DataObject) -> None:
    layout, contract = data.draw(mx.layouts(block))
    scale = mxref.quantize(torch.ones(64, 96), block=block).scale
    stored = mxref.layouts.encode(scale, layout, block=block, shape=(64, 96), contract=contract)
    back = mxref.layouts.decode(stored, layout, block=block, shape=(64, 96), contract=contract)
    assert torch.equal(back.view(torch.uint8), scale.view(torch.uint8))


@pytest.mark.parametrize("order", mx.MEMORY)
def test_memory_orders_keep_the_bits(order: str) -> None:
    x = torch.arange(24, dtype=torch.int32).view(torch.float32).reshape(2, 3, 4)
    y = mx.in_memory(x, order)
    wanted = x[..., :1, :].expand(x.shape) if order == "repeated" else x
    assert torch.equal(y.contiguous().view(torch.int32), wanted.contiguous().view(torch.int32))
    if order not in ("contiguous", "offset"):
        assert not y.is_contiguous()


@pytest.mark.parametrize(
    "wanted",
    [
        lambda x: bool(x.isnan().any()),
        lambda x: bool(x.isinf().any()),
        lambda x: bool(((x == 0) & x.signbit()).any()),
        lambda x: x.numel() == 0,
        lambda x: x.numel() > 32 and x.shape[-1] % 32 != 0,
        lambda x: x.dim() > 1 and not x.is_contiguous(),
        lambda x: x.storage_offset() > 0,
        lambda x: x.numel() > 0 and bool(((x.abs() > 0) & (x.abs() < 2.0**-126)).any()),
    ],
    ids=["nan", "inf", "minus zero", "empty", "ragged", "strided", "offset", "subnormal"],
)
def test_nothing_is_excluded(wanted: object) -> None:
    find(mx.tensors(), wanted, settings=SEARCH)  # type: ignore[arg-type]


def test_a_failing_block_shrinks_to_a_named_one() -> None:
    found = find(mx.blocks(torch.bfloat16), lambda x: bool(x.isnan().any()), settings=SEARCH)
    named = edge_blocks(BF16, E4M3).values()
    assert [bits & 0xFFFF for bits in found.view(torch.int16).tolist()] in list(named)


def test_a_failing_tensor_shrinks_to_the_smallest_shape() -> None:
    found = find(mx.tensors(), lambda x: x.numel() > 0, settings=SEARCH)
    assert found.shape == (1,)
    assert found.dtype == torch.bfloat16


def test_a_failing_block_among_many_shrinks_to_few() -> None:
    found = find(
        mx.tensors(dtypes=[torch.bfloat16], memory=["contiguous"]),
        lambda x: x.numel() > 40 and bool((x[..., -1] == 0).any()),
        settings=SEARCH,
    )
    assert found.numel() <= 64


def half_up(x: Tensor) -> mxref.Quantized:
    """A wrong quantizer: ties are rounded away from zero. Found by comparing bytes."""
    scale = mxref.quantize(x, "floor").scale
    nudged = x.double() * (1 + 2.0**-20)
    bigger = torch.where(x.isfinite() & (x.abs() < 1e38), nudged, x).float()
    return mxref.quantize(bigger, "floor", scale=scale)


def drops_nan(x: Tensor) -> mxref.Quantized:
    """A wrong quantizer: NaN counts as zero."""
    return mxref.quantize(torch.where(x.isnan(), 0, x), "floor")


def ignores_the_tail(x: Tensor) -> mxref.Quantized:
    """A wrong quantizer: the last, partial block is left zero."""
    payload, scale = mxref.quantize(x, "floor")
    codes = payload.view(torch.uint8).clone()
    codes[..., x.shape[-1] // 32 * 32 :] = 0
    return mxref.Quantized(codes.view(payload.dtype), scale)


def differs(wrong: Callable[[Tensor], mxref.Quantized]) -> Callable[[Tensor], bool]:
    def found(x: Tensor) -> bool:
        pairs = zip(wrong(x), mxref.quantize(x, "floor"), strict=True)
        return any(not torch.equal(a.view(torch.uint8), b.view(torch.uint8)) for a, b in pairs)

    return found


@pytest.mark.parametrize(("wrong", "most"), [(half_up, 32), (drops_nan, 32), (ignores_the_tail, 1)])
def test_a_wrong_quantizer_is_found_and_its_example_is_small(
    wrong: Callable[[Tensor], mxref.Quantized], most: int
) -> None:
    found = find(mx.tensors(), differs(wrong), settings=SEARCH)
    assert differs(wrong)(found)
    assert found.dim() == 1
    assert found.numel() <= most
    assert found.is_contiguous()
    with pytest.raises(NoSuchExample):
        find(mx.tensors(), differs(lambda x: mxref.quantize(x, "floor")), settings=FAST_SEARCH)


def test_a_wrong_quantizer_is_found_on_a_named_block() -> None:
    found = find(mx.blocks(torch.float32), differs(drops_nan), settings=SEARCH)
    bits = [pattern & 0xFFFFFFFF for pattern in found.view(torch.int32).tolist()]
    names = [name for name, each in edge_blocks(FP32, E4M3).items() if each == bits]
    assert len(names) == 1
    assert "NaN" in names[0]


def test_a_failing_example_is_noted_by_name() -> None:
    @settings(max_examples=200, deadline=None, database=None, derandomize=True)
    @given(x=mx.blocks(torch.bfloat16))
    def fails_on_nan(x: Tensor) -> None:
        assert not x.isnan().any()

    with pytest.raises(AssertionError) as caught:
        fails_on_nan()
    assert "bf16 (32,), contiguous in memory: edge blocks '" in caught.value.__notes__[0]


def test_profiles_have_no_deadline() -> None:
    mx.register_profiles()
    found = {name: settings.get_profile(name) for name in ("dev", "ci", "fuzz")}
    assert [each.deadline for each in found.values()] == [None] * 3
    assert found["ci"].derandomize
    assert found["fuzz"].max_examples > found["dev"].max_examples > found["ci"].max_examples


@pytest.mark.parametrize(
    ("make", "kind", "part"),
    [
        (lambda: mx.blocks(torch.float64), ValueError, "torch.float64 is not one of"),
        (lambda: mx.blocks(["bf16"]), TypeError, "'bf16' is not one of"),
        (lambda: mx.blocks([]), ValueError, "at least one of"),
        (lambda: mx.blocks("bf16"), TypeError, "dtypes='bf16'"),
        (lambda: mx.blocks(element="e2m1"), ValueError, "element='e2m1'"),
        (lambda: mx.blocks(element=None), TypeError, "element=None"),
        (lambda: mx.blocks(block=(1, 16)), ValueError, r"block=\(1, 16\)"),
        (lambda: mx.tensors(block=32), TypeError, "block=32"),
        (lambda: mx.tensors(dtypes=()), ValueError, r"dtypes=\(\)"),
        (lambda: mx.tensors(shapes=(3, 4)), TypeError, r"shapes=\(3, 4\)"),
        (lambda: mx.tensors(memory=["sideways"]), ValueError, "memory="),
        (lambda: mx.tensors(memory="offset"), TypeError, "memory='offset'"),
        (lambda: mx.tensors(memory=[]), ValueError, r"memory=\[\]"),
        (lambda: mx.layouts((3, 3)), ValueError, r"block=\(3, 3\)"),
        (lambda: mx.shapes(min_rank=0), ValueError, "min_rank=0"),
        (lambda: mx.shapes(max_rank=True), TypeError, "max_rank=True"),
        (lambda: mx.shapes(max_side=-1), ValueError, "max_side=-1"),
        (lambda: mx.shapes(multiple_of=0), ValueError, "multiple_of=0"),
        (lambda: mx.shapes(multiple_of=1.5), TypeError, "multiple_of=1.5"),
    ],
)
def test_wrong_arguments_raise_at_once(
    make: Callable[[], object], kind: type[Exception], part: str
) -> None:
    with pytest.raises(kind, match=part):
        make()
