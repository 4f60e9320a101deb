"""identify: the dialect that a black box speaks, or the nearest one and where it departs."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from mxref.blocks import quantize
from mxref.formats import ELEMENTS
from mxref.layouts import LAYOUTS
from mxref.recipes import RECIPES, Recipe
from mxref.testing.blackbox import FORMATS, Answer, BlackBox, Geometry, rows_of
from mxref.testing.identity import Departure, Identity, Refusal, described
from mxref.testing.report import BlockBytes
from mxref.tiles import require_block

MOST_DEPARTURES = 8


def identify(
    fn: Callable[[Tensor], Any],
    *,
    block: tuple[int, int] | None = (1, 32),
    dtypes: tuple[torch.dtype, ...] = (torch.bfloat16, torch.float16, torch.float32),
    device: str | torch.device = "cpu",
    scale_layout: str | None = None,
    contract: int | None = None,
) -> Identity:
    """Name the dialect that `fn` speaks: its recipe, special values, block and scale layout.

    Every recipe of `mxref.RECIPES` predicts the bytes of some thousand blocks; the one that
    predicts them all is the answer, with those that cannot be told apart from it on the inputs
    answered; else the nearest, with the blocks on which fn departs from it.

    Args:
        fn: x -> (payload, scale), as for `verify`.
        block: the geometry that is tried first; another is named where its bytes fit better.
        dtypes: the input dtypes to ask for.
        device: where inputs are made.
        scale_layout: a name in `mxref.layouts.LAYOUTS`, or None to find it out.
        contract: of a swizzled (32, 32), or None to find it out.

    Returns:
        An `Identity`; its str() begins with the recipe's name. Inputs that fn refuses (raises) are
        left out and listed.

    Raises:
        TypeError, ValueError: a wrong argument.

    >>> import mxref
    >>> found = identify(lambda x: mxref.quantize(x, "floor"), dtypes=(torch.bfloat16,))
    >>> found.recipe, found.exact, found.block, found.scale_layout
    ('floor', True, (1, 32), 'plain')
    """
    if not callable(fn):
        raise TypeError(f"fn={fn!r}: expected a function x -> (payload, scale)")
    first = None if block is None else require_block(block)
    if scale_layout is not None and scale_layout not in LAYOUTS:
        expected = ", ".join(map(repr, LAYOUTS))
        raise ValueError(f"scale_layout={scale_layout!r}: expected one of {expected}, or None")
    for dtype in dtypes:
        if dtype not in FORMATS:
            allowed = ", ".join(map(str, FORMATS))
            raise ValueError(f"dtypes={dtypes!r}: {dtype!r} is not one of {allowed}")
    target = BlackBox(fn, torch.device(device))
    geometry = target.geometry(first, dtypes, scale_layout, contract)
    if geometry is None:
        return Identity.unknown(tuple(target.refused), first or (1, 32))
    answers = list(target.answers(geometry, dtypes))
    return _named(geometry, answers, tuple(target.refused))


def _named(geometry: Geometry, answers: list[Answer], refused: tuple[Refusal, ...]) -> Identity:
    """The recipe that predicts most, by the mean over the groups."""
    scores: dict[str, float] = {}
    equal: dict[str, list[Tensor]] = {}
    for name, row in RECIPES.items():
        try:
            recipe = replace(row, element=geometry.element)
            equal[name] = [_equal(answer, recipe, geometry) for answer in answers]
        except (NotImplementedError, ValueError):
            continue  # ValueError: a dialect that another element format cannot have
        shares = [float(each.double().mean()) for each in equal[name]]
        scores[name] = sum(shares) / max(len(shares), 1)
    best = max(scores, key=lambda name: scores[name])
    total = sum(each.numel() for each in equal[best])
    right = sum(int(each.sum()) for each in equal[best])
    alike = tuple(
        name
        for name in scores
        if name != best
        and all(torch.equal(a, b) for a, b in zip(equal[name], equal[best], strict=True))
        and _same_bytes(name, best, answers, geometry)
    )
    row = replace(RECIPES[best], element=geometry.element)
    return Identity(
        recipe=best,
        known_by=row.known_by,
        exact=right == total,
        alike=alike,
        block=geometry.block,
        scale_layout=geometry.layout,
        contract=geometry.contract,
        element=geometry.element,
        dtypes=tuple(dict.fromkeys(FORMATS[answer.dtype].name for answer in answers)),
        blocks=total,
        equal_blocks=right,
        special_values=described(_by_name(answers)),
        departures=tuple(_departures(answers, equal[best], row, geometry)),
        refused=refused,
    )


def _predicted(answer: Answer, recipe: Recipe, geometry: Geometry) -> tuple[Tensor, Tensor]:
    payload, scale = (
        each.view(torch.uint8) for each in quantize(answer.x, recipe, block=geometry.block)
    )
    return rows_of(payload, geometry.block), scale.reshape(-1)


def _equal(answer: Answer, recipe: Recipe, geometry: Geometry) -> Tensor:
    """For each probe whether the recipe predicts its bytes, one NaN code as good as another."""
    codes, scale = _predicted(answer, recipe, geometry)
    row = ELEMENTS[geometry.element]
    last = row.nan_code - 1 if row.inf_code is None else row.inf_code
    nan = ((codes & 0x7F) > last) & ((answer.codes & 0x7F) > last)
    same = ((codes == answer.codes) | nan).all(1) & (scale == answer.bytes)
    return same[: len(answer.blocks)]


def _same_bytes(first: str, second: str, answers: list[Answer], geometry: Geometry) -> bool:
    """Whether two recipes predict the same bytes for everything that was answered."""
    rows = [replace(RECIPES[name], element=geometry.element) for name in (first, second)]
    for answer in answers:
        (codes, scale), (others, other_scale) = (_predicted(answer, row, geometry) for row in rows)
        if not torch.equal(scale, other_scale):
            return False
        if bool(((codes != others) & ((codes & 0x7F) != 0x7F)).any()):
            return False
    return True


def _by_name(answers: list[Answer]) -> dict[str, BlockBytes]:
    """The target's bytes of each named probe; of several dtypes the first."""
    found: dict[str, BlockBytes] = {}
    for answer in answers:
        for i, name in enumerate(answer.blocks):
            codes = tuple(answer.codes[i, :32].tolist())
            found.setdefault(name, BlockBytes(int(answer.bytes[i]), codes))
    return found


def _departures(
    answers: list[Answer], equal: list[Tensor], recipe: Recipe, geometry: Geometry
) -> Iterator[Departure]:
    """Some blocks that are not as predicted, a few of each group."""
    each = max(MOST_DEPARTURES // max(sum(not bool(e.all()) for e in equal), 1), 1)
    for answer, right in zip(answers, equal, strict=True):
        codes, scale = _predicted(answer, recipe, geometry)
        for i in (~right).nonzero()[:each, 0].tolist():
            name, bits = list(answer.blocks.items())[i]
            yield Departure(
                f"{answer.group}: {name}",
                FORMATS[answer.dtype].name,
                tuple(bits),
                BlockBytes(int(scale[i]), tuple(codes[i, :32].tolist())),
                BlockBytes(int(answer.bytes[i]), tuple(answer.codes[i, :32].tolist())),
            )
