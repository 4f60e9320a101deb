"""The scale rules: one file per value of the axis `round`, `ratio.py` beside them.

A rule maps the integer that a ratio gives (see `ratio.py`) to a byte that is not clamped yet;
`scale_bytes` applies what the other axes say about the byte.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import torch
from torch import Tensor

from mxref.bits import INFINITY, ZERO, pattern
from mxref.formats import ELEMENTS, FP32, SCALE_NAN, ElementFormat, InputFormat
from mxref.recipes import RECIPES, Recipe
from mxref.rules.ceil import ceil
from mxref.rules.even import even
from mxref.rules.even_fp4 import even_fp4
from mxref.rules.floor import floor
from mxref.rules.ratio import (
    div_f32,
    div_in_input_dtype,
    exponent,
    log2_f32,
    mul_rcp_f32,
    rcp_approx_ftz,
)
from mxref.rules.rceil import rceil

Rule = Callable[[Tensor, ElementFormat], Tensor]
Ratio = Callable[[Tensor, Recipe, InputFormat], Tensor]

RULES: tuple[Rule, ...] = (floor, rceil, ceil, even, even_fp4)
RATIOS: tuple[Ratio, ...] = (
    exponent,
    mul_rcp_f32,
    div_f32,
    div_in_input_dtype,
    log2_f32,
    rcp_approx_ftz,
)

_RULES = {rule.__name__: rule for rule in RULES}
_RATIOS = {ratio.__name__: ratio for ratio in RATIOS}

_FLOORS = {
    # fp32(10^-4) = 13743895 * 2^-37 and fp32(10^-10) = 14411519 * 2^-57
    "amax_floor(1e-4)": pattern(13743895, -37),
    "amax_floor(1e-10)": pattern(14411519, -57),
}
_FIXED = {"ff": 255, "fe": 254, "00": 0}

_CONTRACT = tuple(RECIPES[name] for name in ("floor", "rceil", "ceil", "even"))


@cache
def is_contract(recipe: Recipe) -> bool:
    """Whether the recipe differs from floor, rceil, ceil or even in its element at most."""
    return any(recipe == replace(row, element=recipe.element) for row in _CONTRACT)


def scale_bytes(amax: Tensor, recipe: Recipe, fmt: InputFormat = FP32) -> Tensor:
    """The scale byte (int32) of each amax, given as fp32 patterns (int32) of inputs in `fmt`.

    As integers NaN > Inf > every number: a pattern above Inf says that the block holds a NaN.
    """
    element = ELEMENTS[recipe.element]
    if not is_contract(recipe):
        return _general(amax, recipe, element, fmt)
    t = _above_maximum(amax, element) if recipe.round == "rceil" else exponent(amax, recipe, fmt)
    byte = _RULES[recipe.round](t, element).clamp_min_(0)
    return byte.masked_fill_(amax >= INFINITY, SCALE_NAN)


def _above_maximum(amax: Tensor, element: ElementFormat) -> Tensor:
    """`mul_rcp_f32` for rounding up: amax minus the maximum, as patterns.

    For every fp32 amax the product exceeds 2^k exactly when amax exceeds maximum * 2^k, but for
    one: one ulp above maximum * 2^-127, where the product is subnormal, rounds down to 2^-127.
    """
    t = amax - (pattern(*element.maximum) - pattern(1, 0))
    return t - (t == 1).to(t.dtype)


def _general(amax: Tensor, recipe: Recipe, element: ElementFormat, fmt: InputFormat) -> Tensor:
    """One step an axis: tiny, ratio, round, tiny again, the clamps, Inf, NaN."""
    size = amax.masked_fill(amax > INFINITY, 0)
    if recipe.tiny in _FLOORS:
        size.clamp_min_(_FLOORS[recipe.tiny])
    t = _RATIOS[recipe.ratio](size, recipe, fmt)
    byte = _RULES[recipe.round](t, element)
    if recipe.tiny == "bump":
        byte = torch.where((t > ZERO) & (size > 0), byte.clamp_min(1), byte)
    byte = byte.clamp(int(recipe.byte_min, 16), int(recipe.byte_max, 16))
    if recipe.inf_scale in _FIXED:
        byte.masked_fill_(amax == INFINITY, _FIXED[recipe.inf_scale])
    return byte.masked_fill_(amax > INFINITY, _FIXED.get(recipe.nan_scale, 0))
