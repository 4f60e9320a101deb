"""Hypothesis strategies for MX inputs: blocks, tensors, shapes, layouts. Needs mxref[verify].

Elements are never drawn one by one, which is unusable beyond a block or two. A tensor is either a
few boundary blocks from a pool, which shrink to readable ones, or a seed and a named recipe that
torch expands, which shrink to the recipe's name and the smallest shape. Nothing is excluded: NaN,
Inf, subnormals and zeros of both signs are in both, partial and empty shapes are among the shapes.

`blocks`, `tensors`, `layouts`, `shapes` and `register_profiles` are public and stable: arguments
are only ever added, with a default that keeps what was. Wrong ones raise where they are written,
not where a test draws.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from mxref.formats import ELEMENTS, ElementFormat, InputFormat
from mxref.layouts import LAYOUTS
from mxref.testing.cases import edge_blocks, noise, thresholds
from mxref.testing.claims import INPUT_FORMATS
from mxref.testing.drawing import HealthCheck, note, settings, st
from mxref.testing.memory_order import MEMORY, in_memory
from mxref.tiles import Block, logical_shape, require_block

DTYPES = tuple(INPUT_FORMATS)
FILLS = ("nonfinite", "bits", "thresholds", "one large", "binades", "wide", "subnormals", "zeros")

__all__ = [
    "DTYPES", "FILLS", "MEMORY", "StoredLayout", "blocks", "in_memory", "layouts",
    "register_profiles", "shapes", "tensors",
]  # fmt: skip


class StoredLayout(NamedTuple):
    """A scale layout and the `contract` that goes with it, as `mxref.layouts.encode` takes them."""

    layout: str
    contract: int | None


def layouts(block: Block = (1, 32)) -> st.SearchStrategy[StoredLayout]:
    """Scale layouts that `block` can have, each with the contracts that it can have.

    Raises TypeError or ValueError for a block that is not (1, 32), (32, 1) or (32, 32).

    >>> layouts((2, 2))
    Traceback (most recent call last):
    ValueError: block=(2, 2): expected one of (1, 32), (32, 1), (32, 32)
    """
    fixed = {(1, 32): (None, -1), (32, 1): (None, -2)}.get(require_block(block), (-1, -2))
    return st.sampled_from([StoredLayout(name, each) for name in LAYOUTS for each in fixed])


def shapes(
    *, min_rank: int = 1, max_rank: int = 3, max_side: int = 160, multiple_of: int = 1
) -> st.SearchStrategy[tuple[int, ...]]:
    """Shapes, sizes 0 and 1 too; the last two multiples of `multiple_of`, leading ones 0 to 3.

    Raises TypeError or ValueError: ranks that are not 1 <= min_rank <= max_rank, a negative
    max_side, multiple_of below 1; anything that is no int.

    >>> shapes(min_rank=3, max_rank=2)
    Traceback (most recent call last):
    ValueError: max_rank=2: expected an int of at least 3
    """
    least = {"min_rank": 1, "max_rank": min_rank, "max_side": 0, "multiple_of": 1}
    given = (min_rank, max_rank, max_side, multiple_of)
    for (name, lowest), value in zip(least.items(), given, strict=True):
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"{name}={value!r}: expected an int of at least {lowest}")
        if value < lowest:
            raise ValueError(f"{name}={value!r}: expected an int of at least {lowest}")
    side = st.integers(0, max_side // multiple_of).map(lambda size: size * multiple_of)

    def of_rank(rank: int) -> st.SearchStrategy[tuple[int, ...]]:
        lead = [st.integers(0, 3)] * max(rank - 2, 0)
        return st.tuples(*lead, *[side] * min(rank, 2))

    return st.integers(min_rank, max_rank).flatmap(of_rank)


def blocks(
    dtypes: torch.dtype | Sequence[torch.dtype] = DTYPES,
    *,
    element: str = "e4m3",
    block: Block = (1, 32),
) -> st.SearchStrategy[Tensor]:
    """Single blocks: the named edge blocks, and seeded ones filled by a named recipe.

    Args:
        dtypes: a dtype or several: bfloat16, float16, float32.
        element: whose boundaries the edge blocks sit on: "e4m3" or "e5m2".
        block: (1, 32) gives shape (32,), (32, 1) gives (32, 1), (32, 32) itself.

    A failing example is noted with the name of its block or its recipe and seed, and its bits.

    Raises TypeError or ValueError for a wrong argument.
    """
    one = (dtypes,) if isinstance(dtypes, torch.dtype) else dtypes
    tile = require_block(block)
    shape = (32,) if tile == (1, 32) else tile
    return _tensors(_dtypes(one), st.just(shape), tile, ("contiguous",), _element(element), 1)


def tensors(
    dtypes: Sequence[torch.dtype] = DTYPES,
    shapes: st.SearchStrategy[tuple[int, ...]] | None = None,
    block: Block = (1, 32),
    memory: Sequence[str] = MEMORY,
    element: str = "e4m3",
) -> st.SearchStrategy[Tensor]:
    """Tensors of any shape with a rank that `block` allows, in any memory order.

    Args:
        dtypes: those to draw from: bfloat16, float16, float32.
        shapes: a strategy for shapes; left out, `shapes()` of the ranks that `block` allows.
        block: (1, 32), (32, 1) or (32, 32): where the edge blocks lie in the tensor.
        memory: the orders to draw from, names in `MEMORY`. "repeated" has stride 0, so its rows
            are all alike.
        element: whose boundaries the values sit on: "e4m3" or "e5m2".

    Raises TypeError or ValueError for a wrong argument.

    >>> tensors(dtypes=[torch.float64])
    ... # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: dtypes=[torch.float64]: torch.float64 is not one of torch.bfloat16, ...
    """
    tile = require_block(block)
    if shapes is None:
        shapes = globals()["shapes"](min_rank=1 if tile[0] == 1 else 2)
    if not isinstance(shapes, st.SearchStrategy):
        raise TypeError(f"shapes={shapes!r}: expected a Hypothesis strategy, such as shapes()")
    orders = _names(memory, "memory", MEMORY)
    return _tensors(_dtypes(dtypes), shapes, tile, orders, _element(element), 4)


@st.composite
def _tensors(
    draw: st.DrawFn,
    dtypes: Sequence[torch.dtype],
    shapes: st.SearchStrategy[tuple[int, ...]],
    block: Block,
    memory: Sequence[str],
    element: ElementFormat,
    most: int,
) -> Tensor:
    """A tensor of up to `most` different edge blocks, or one filled by a recipe."""
    dtype = draw(st.sampled_from(dtypes))
    shape = draw(shapes)
    fmt = INPUT_FORMATS[dtype]
    pool, source = _pool(fmt, element), draw(st.sampled_from(_sources(fmt, element)))
    if source in FILLS:
        seed = draw(_seeds())
        patterns = _filled(source, seed, fmt, element, _count(shape)).reshape(shape)
        said = f"recipe {source!r} of seed {seed}"
    else:
        more = draw(st.lists(st.sampled_from(list(pool)), max_size=most - 1)) if most > 1 else []
        patterns = _tiles([pool[name] for name in (source, *more)], shape, block)
        said = f"edge blocks {', '.join(map(repr, (source, *more)))}"
    order = draw(st.sampled_from(memory))
    note(f"{fmt.name} {tuple(shape)}, {order} in memory: {said}")
    return in_memory(_values(patterns, dtype), order)


def register_profiles() -> None:
    """Register the Hypothesis profiles dev, ci and fuzz; none has a deadline, as a JIT needs.

    dev: 50 examples. ci: 25, the same in every run. fuzz: 2,000, new ones in every run. Loading
    one is left to the caller: `hypothesis.settings.load_profile("ci")`.
    """
    every = list(HealthCheck)
    settings.register_profile("dev", deadline=None, max_examples=50)
    settings.register_profile(
        "ci", deadline=None, max_examples=25, derandomize=True, suppress_health_check=every
    )
    settings.register_profile(
        "fuzz", deadline=None, max_examples=2000, derandomize=False, suppress_health_check=every
    )


@lru_cache(maxsize=8)
def _pool(fmt: InputFormat, element: ElementFormat) -> Mapping[str, list[int]]:
    """The named edge blocks, made once."""
    return edge_blocks(fmt, element)


@lru_cache(maxsize=8)
def _sources(fmt: InputFormat, element: ElementFormat) -> tuple[str, ...]:
    """Names of edge blocks, then of recipes, as many in all: one choice, so that shrinking crosses.

    The recipes' order carries a failure on NaN step by step into the edge blocks that end with it.
    """
    names = list(_pool(fmt, element))
    repeats = -(-len(names) // len(FILLS))
    return (*names, *(fill for fill in FILLS for _ in range(repeats)))


def _element(name: object) -> ElementFormat:
    expected = ", ".join(map(repr, ELEMENTS))
    if not isinstance(name, str):
        raise TypeError(f"element={name!r}: expected one of {expected}")
    if name not in ELEMENTS:
        raise ValueError(f"element={name!r}: expected one of {expected}")
    return ELEMENTS[name]


def _dtypes(values: object) -> tuple[torch.dtype, ...]:
    expected = ", ".join(map(str, DTYPES))
    if not isinstance(values, (tuple, list)):
        raise TypeError(f"dtypes={values!r}: expected a list of {expected}")
    for each in values:
        if each not in DTYPES:
            kind = ValueError if isinstance(each, torch.dtype) else TypeError
            raise kind(f"dtypes={values!r}: {each!r} is not one of {expected}")
    if not values:
        raise ValueError(f"dtypes={values!r}: expected at least one of {expected}")
    return tuple(values)


def _names(values: object, argument: str, allowed: Sequence[str]) -> tuple[str, ...]:
    expected = ", ".join(map(repr, allowed))
    if not isinstance(values, (tuple, list)):
        raise TypeError(f"{argument}={values!r}: expected a list of {expected}")
    if not values or any(each not in allowed for each in values):
        raise ValueError(f"{argument}={values!r}: expected some of {expected}")
    return tuple(values)


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


def _filled(fill: str, seed: int, fmt: InputFormat, element: ElementFormat, count: int) -> Tensor:
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
        points = _thresholds(fmt, element)
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


@lru_cache(maxsize=8)
def _thresholds(fmt: InputFormat, element: ElementFormat) -> Tensor:
    """Made once: fp32 has some 50,000."""
    return thresholds(fmt, element)
