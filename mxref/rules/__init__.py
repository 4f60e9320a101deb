"""The scale rules: one file per value of the axis `round`, `ratio.py` beside them.

A rule maps the integer that a ratio gives (see `ratio.py`) to a byte that is not clamped yet.
"""

from collections.abc import Callable

from torch import Tensor

from mxref.bits import INFINITY
from mxref.formats import ELEMENTS, SCALE_NAN, ElementFormat
from mxref.recipes import Recipe
from mxref.rules.ceil import ceil
from mxref.rules.even import even
from mxref.rules.floor import floor
from mxref.rules.ratio import RATIOS
from mxref.rules.rceil import rceil

Rule = Callable[[Tensor, ElementFormat], Tensor]

RULES: tuple[Rule, ...] = (floor, rceil, ceil, even)

_RATIOS = {ratio.__name__: ratio for ratio in RATIOS}
_RULES = {rule.__name__: rule for rule in RULES}

_PAIRS = (
    ("exponent", "floor"),
    ("exponent", "ceil"),
    ("exponent", "even"),
    ("mul_rcp_f32", "rceil"),
)
"""The pairs (ratio, round) that are proved: other pairs need bits that the ratio does not carry."""

_SUPPORTED = {
    "byte_min": ("00",),
    "byte_max": ("fe",),
    "tiny": ("nv",),
    "nan_scale": ("ff",),
    "inf_scale": ("ff",),
    "byte0_multiplier": ("2^127",),
    "byte255_multiplier": ("nan",),
    "overflow": ("satfinite",),
    "element_round": ("rne",),
    "nan_code": ("7f",),
    "poison": ("block",),
    "minus_zero": ("keep",),
    "flush": ("none",),
}


def require(recipe: Recipe) -> None:
    """NotImplementedError that names the axis, for a recipe whose numerics are not built yet."""
    if (recipe.ratio, recipe.round) not in _PAIRS:
        built = ", ".join(f"ratio={ratio!r} with round={rule!r}" for ratio, rule in _PAIRS)
        raise NotImplementedError(
            f"ratio={recipe.ratio!r} with round={recipe.round!r} is not built; built are {built}"
        )
    for axis, built_values in _SUPPORTED.items():
        value = getattr(recipe, axis)
        if value not in built_values:
            raise NotImplementedError(
                f"{axis}={value!r} is not built; built is {', '.join(map(repr, built_values))}"
            )


def scale_bytes(amax: Tensor, recipe: Recipe) -> Tensor:
    """The scale byte (int32) of each amax, given as fp32 patterns (int32)."""
    element = ELEMENTS[recipe.element]
    byte = _RULES[recipe.round](_RATIOS[recipe.ratio](amax, element), element).clamp_min_(0)
    return byte.masked_fill_(amax >= INFINITY, SCALE_NAN)
