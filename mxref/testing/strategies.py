"""Hypothesis strategies for MX inputs: blocks, tensors, shapes, layouts. Needs mxref[verify].

Elements are never drawn one by one, which is unusable beyond a block or two. A tensor is either a
few boundary blocks from a pool, which shrink to readable ones, or a seed and a named recipe that
torch expands, which shrink to the recipe's name and the smallest shape. Nothing is excluded: NaN,
Inf, subnormals and zeros of both signs are in both.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from hypothesis import strategies as st
from torch import Tensor

from mxref.formats import ELEMENTS, FP32, InputFormat
from mxref.layouts import LAYOUTS
from mxref.testing.cases import edge_blocks, noise, thresholds
from mxref.testing.claims import INPUT_FORMATS
from mxref.tiles import Block, logical_shape

DTYPES = tuple(INPUT_FORMATS)
FILLS = ("zeros", "binades", "wide", "bits", "subnormals", "thresholds", "one large", "nonfinite")
MEMORY = ("contiguous", "offset", "transposed", "padded", "every other", "repeated")


class StoredLayout(NamedTuple):
    """A scale layout and the `contract` that goes with it, as `mxref.layouts.encode` takes them."""

    layout: str
    contract: int | None


def layouts(block: Block = (1, 32)) -> st.SearchStrategy[StoredLayout]:
    """Scale layouts that `block` can have, each with the contracts that it can have."""
    fixed = {(1, 32): (None, -1), (32, 1): (None, -2)}.get(block, (-1, -2))
    return st.sampled_from([StoredLayout(name, each) for name in LAYOUTS for each in fixed])


def shapes(
    *, min_rank: int = 1, max_rank: int = 3, max_side: int = 160, multiple_of: int = 1
) -> st.SearchStrategy[tuple[int, ...]]:
    """Shapes, sizes 0 and 1 too; the last two multiples of `multiple_of`, leading ones small."""
    side = st.integers(0, max_side // multiple_of).map(lambda size: size * multiple_of)

    def of_rank(rank: int) -> st.SearchStrategy[tuple[int, ...]]:
        lead = [st.integers(0, 3)] * max(rank - 2, 0)
        return st.tuples(*lead, *[side] * min(rank, 2))

    return st.integers(min_rank, max_rank).flatmap(of_rank)


def blocks(dtype: torch.dtype, *, element: str = "e4m3") -> st.SearchStrategy[Tensor]:
    """Blocks of 32 elements, shape (32,): the named edge blocks, thresholds, and seeded ones."""
    fmt = INPUT_FORMATS[dtype]
    pool = list(edge_blocks(fmt, ELEMENTS[element]).values())
    seeded = st.builds(
        lambda fill, seed: _filled(fill, seed, fmt, 32), st.sampled_from(FILLS), _seeds()
    )
    pooled = st.sampled_from(pool).map(torch.tensor)
    return st.one_of(pooled, seeded).map(lambda patterns: _values(patterns, dtype))


@st.composite
def tensors(
    draw: st.DrawFn,
    dtypes: Sequence[torch.dtype] = DTYPES,
    shapes: st.SearchStrategy[tuple[int, ...]] | None = None,
    block: Block = (1, 32),
    memory: Sequence[str] = MEMORY,
) -> Tensor:
    """Tensors of any shape with a rank that `block` allows, in any memory order.

    `memory` lists the orders to draw from: names in `MEMORY`. "repeated" has stride 0, so its rows
    are all alike.
    """
    dtype = draw(st.sampled_from(list(dtypes)))
    rank = 1 if block[0] == 1 else 2
    shape = draw(shapes if shapes is not None else globals()["shapes"](min_rank=rank))
    fmt = INPUT_FORMATS[dtype]
    if draw(st.booleans()):
        patterns = _filled(draw(st.sampled_from(FILLS)), draw(_seeds()), fmt, _count(shape))
        patterns = patterns.reshape(shape)
    else:
        pool = list(edge_blocks(fmt, ELEMENTS["e4m3"]).values())
        chosen = draw(st.lists(st.sampled_from(pool), min_size=1, max_size=4))
        patterns = _tiles(chosen, shape, block)
    return in_memory(_values(patterns, dtype), draw(st.sampled_from(list(memory))))


def in_memory(x: Tensor, order: str) -> Tensor:
    """The same elements in another memory order; "repeated" repeats the first row instead."""
    if order not in MEMORY:
        raise ValueError(f"order={order!r}: expected one of {', '.join(map(repr, MEMORY))}")
    if order == "offset":
        storage = x.new_empty(x.numel() + 3)
        view = storage[3:].view(x.shape)
    elif order == "transposed" and x.dim() > 1:
        view = torch.empty_like(x.mT, memory_format=torch.contiguous_format).mT
    elif order == "padded":
        view = x.new_empty((*x.shape[:-1], x.shape[-1] + 5))[..., : x.shape[-1]]
    elif order == "every other":
        view = x.new_empty((*x.shape[:-1], 2 * x.shape[-1]))[..., ::2]
    elif order == "repeated" and x.dim() > 1 and x.shape[-2] > 0:
        return x[..., :1, :].expand(x.shape)
    else:
        return x.contiguous()
    # a copy of integers: numbers could lose a NaN's payload
    integer = torch.int32 if x.dtype == torch.float32 else torch.int16
    view.view(integer).copy_(x.view(integer))
    return view


def _seeds() -> st.SearchStrategy[int]:
    return st.integers(0, (1 << 16) - 1)


def _count(shape: tuple[int, ...]) -> int:
    return torch.Size(shape).numel()


def _values(patterns: Tensor, dtype: torch.dtype) -> Tensor:
    integer = torch.int32 if INPUT_FORMATS[dtype].bits == 32 else torch.int16
    return patterns.to(integer).view(dtype)


def _tiles(chosen: list[list[int]], shape: tuple[int, ...], block: Block) -> Tensor:
    """Patterns of a shape whose blocks are the chosen ones, in turn."""
    rank = len(shape)
    whole = shape if rank > 1 else (1, *shape)
    grid = logical_shape(whole, block)
    tiles = torch.tensor(chosen)[torch.arange(_count(grid)) % len(chosen)]
    tiles = tiles.repeat(1, block[0] * block[1] // 32).reshape(
        _count(whole[:-2]), *grid[-2:], *block
    )
    sides = grid[-2] * block[0], grid[-1] * block[1]
    matrices = tiles.permute(0, 1, 3, 2, 4).reshape(*whole[:-2], *sides)
    return matrices[..., : whole[-2], : whole[-1]].reshape(shape)


def _filled(fill: str, seed: int, fmt: InputFormat, count: int) -> Tensor:
    """`count` patterns by a named recipe: the name and the seed say everything."""
    p, sign = fmt.mantissa_bits, 1 << (fmt.bits - 1)
    bits = noise(count, seed)
    mantissa, minus = bits & ((1 << p) - 1), ((bits >> 31) & 1) * sign
    if fill == "zeros":
        return minus
    if fill == "bits":
        return bits & (2 * sign - 1)
    if fill == "subnormals":
        return mantissa | minus
    if fill == "thresholds":
        points = _FP32_THRESHOLDS if fmt is FP32 else thresholds(fmt, ELEMENTS["e4m3"])
        return points[bits % len(points)] | minus
    last = fmt.exponent_mask >> p
    spread = {"binades": 4, "wide": last}.get(fill, 12)
    center = min(fmt.bias + 2, last - 1)
    field = (center - ((bits >> p) % spread)).clamp(0, last - 1)
    patterns = (field << p) | mantissa | minus
    if fill == "one large":
        patterns = torch.where(bits % 37 == 0, (fmt.exponent_mask - 1) | minus, patterns)
    if fill == "nonfinite":
        special = fmt.exponent_mask | (mantissa & (bits >> 8)) | minus
        patterns = torch.where(bits % 61 == 0, special, patterns)
    return patterns


_FP32_THRESHOLDS = thresholds(FP32, ELEMENTS["e4m3"])
