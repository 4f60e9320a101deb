"""The Hypothesis strategies: what they make, and that they reach what matters."""

import pytest
import torch
from hypothesis import HealthCheck, find, given, settings
from hypothesis import strategies as st
from torch import Tensor

import mxref
from mxref.formats import BF16, E4M3
from mxref.testing import strategies as mx
from mxref.testing.cases import edge_blocks

BLOCKS = [(1, 32), (32, 1), (32, 32)]
FAST = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
SEARCH = settings(max_examples=2000, deadline=None, database=None, derandomize=True)


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
        lambda x: x.dim() > 1 and not x.is_contiguous(),
        lambda x: x.storage_offset() > 0,
        lambda x: x.numel() > 0 and bool(((x.abs() > 0) & (x.abs() < 2.0**-126)).any()),
    ],
    ids=["nan", "inf", "minus zero", "empty", "strided", "offset", "subnormal"],
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
