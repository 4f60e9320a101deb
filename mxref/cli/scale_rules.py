"""How each scale rule gets from amax to a byte, with the integers of the case at hand, in words.

A rule returns its text and the byte that its integers lead to; `explain` holds that byte against
those of `mxref.quantize` and `mxref.exact` and shows none of its own.
"""

import math
from collections.abc import Callable
from fractions import Fraction

from mxref import rational
from mxref.cli import values
from mxref.formats import ELEMENTS, FP32, SCALE_BIAS, ElementFormat, InputFormat
from mxref.recipes import Recipe

Step = tuple[str, str]
"""What a line is about, and the line."""

_FIELD = FP32.mantissa_bits


def _split(bits: int) -> tuple[int, int]:
    return bits >> _FIELD, bits & ((1 << _FIELD) - 1)


def floor(amax: int, element: ElementFormat) -> tuple[list[Step], int]:
    """The biased exponent minus emax, not below 0."""
    field, _ = _split(amax)
    byte = max(field - element.emax, 0)
    text = f"floor: max(biased exponent - emax, 0) = max({field} - {element.emax}, 0) = {byte}"
    return [("rule", text)], byte


def ceil(amax: int, element: ElementFormat) -> tuple[list[Step], int]:
    """The same, one more where the mantissa is not zero."""
    field, mantissa = _split(amax)
    more = int(mantissa != 0)
    byte = max(field - element.emax + more, 0)
    text = (
        f"ceil: max(biased exponent - emax + (mantissa != 0), 0) = "
        f"max({field} - {element.emax} + {more}, 0) = {byte}"
    )
    return [("rule", text)], byte


def even(amax: int, element: ElementFormat) -> tuple[list[Step], int]:
    """Half an element ulp is added to the pattern first."""
    half = 1 << (_FIELD - element.mantissa_bits - 1)
    field = (amax + half) >> _FIELD
    byte = max(field - element.emax, 0)
    text = (
        f"even: max(((0x{amax:08X} + 0x{half:X}) >> 23) - emax, 0) = "
        f"max({field} - {element.emax}, 0) = {byte}"
    )
    return [("rule", text)], byte


def rceil(amax: int, element: ElementFormat) -> tuple[list[Step], int]:
    """The ratio to the maximum, one rounded fp32 multiply, then the power of two at or above it."""
    maximum = element.max_significand * Fraction(2) ** (element.emax - element.mantissa_bits)
    reciprocal = values.nearest(1 / maximum, FP32)
    factors = values.value(amax, FP32), values.value(reciprocal, FP32)
    ratio = values.nearest((factors[0] or Fraction(0)) * (factors[1] or Fraction(0)), FP32)
    field, mantissa = _split(ratio)
    limit = 0 if field else 0x400000
    byte = field + (mantissa > limit)
    condition = "mantissa not 0" if field else "subnormal with mantissa above 0x400000"
    holds = "yes, so + 1" if mantissa > limit else "no"
    return [
        (
            "ratio",
            f"d = amax * fp32(1/{maximum}) (0x{reciprocal:08X}), one rounded fp32 multiply: "
            f"{values.show(values.value(ratio, FP32) or Fraction(0))}",
        ),
        ("", f"d bits {values.fields(ratio, FP32.bits, _FIELD)}"),
        ("rule", f"rceil: biased exponent {field}; {condition}: {holds} = {byte}"),
    ], byte


RULES: dict[tuple[str, str], Callable[[int, ElementFormat], tuple[list[Step], int]]] = {
    ("exponent", "floor"): floor,
    ("exponent", "ceil"): ceil,
    ("exponent", "even"): even,
    ("mul_rcp_f32", "rceil"): rceil,
}
"""(ratio, round) of a recipe -> the words for it. Other pairs are put together by `dialect`."""

_TIES = {"even": "half an element ulp", "even_fp4": "half an e2m1 ulp"}
_SUBNORMAL = "a subnormal ratio counts as zero"


def dialect(amax: int, recipe: Recipe, fmt: InputFormat) -> tuple[list[Step], int]:
    """The steps of any recipe from a finite amax (its fp32 pattern): one line an axis that acts."""
    rows: list[Step] = []
    if recipe.tiny.startswith("amax_floor"):
        least = Fraction(recipe.tiny.removeprefix("amax_floor(").removesuffix(")"))
        floor_bits = values.nearest(least, FP32)
        amax = max(amax, floor_bits)
        shown = values.show(_number(amax))
        rows.append(("tiny", f"{recipe.tiny}: not below fp32 0x{floor_bits:08X}: {shown}"))
    natural = RULES.get((recipe.ratio, recipe.round))
    if natural and recipe.tiny != "flush" and recipe.flush not in ("ratio", "both"):
        lines, byte = natural(amax, ELEMENTS[recipe.element])
        zero = not amax
    else:
        lines, byte, zero = _general(amax, recipe, fmt)
    rows += lines
    if recipe.tiny == "bump" and not zero and byte < 1:
        byte = 1
        rows.append(("tiny", "bump: a ratio that is not zero gets byte 1 at least"))
    low, high = int(recipe.byte_min, 16), int(recipe.byte_max, 16)
    if not low <= byte <= high:
        rows.append(("clamp", f"byte {byte} to [{low}, {high}]"))
    return rows, min(max(byte, low), high)


def _general(amax: int, recipe: Recipe, fmt: InputFormat) -> tuple[list[Step], int, bool]:
    """Ratio, flush and rule, and whether the ratio is zero."""
    ratio, text = _ratio(_number(amax), recipe, fmt)
    rows = [("ratio", f"d = {text}: {values.show(ratio)}")]
    kept = fmt if recipe.ratio == "div_in_input_dtype" else FP32
    exact = recipe.ratio == "exponent" or (recipe.ratio == "log2_f32" and recipe.round != "rceil")
    least = Fraction(2) ** (1 - kept.bias) if recipe.flush in ("ratio", "both") else Fraction(0)
    least = Fraction(0) if exact else least
    least = max(least, Fraction(2) ** (1 - FP32.bias)) if recipe.tiny == "flush" else least
    if 0 < ratio < least:
        rows.append(("flush", _SUBNORMAL))
    if not ratio or ratio < least:
        return [*rows, ("rule", "a ratio of zero gives the lowest byte")], 0, True
    exponent, words = _rounded(ratio, recipe)
    byte = exponent + SCALE_BIAS
    return [*rows, ("rule", f"{recipe.round}: {words} = 2^{exponent}, byte {byte}")], byte, False


def _number(pattern: int) -> Fraction:
    return values.value(pattern, FP32) or Fraction(0)


def _ratio(amax: Fraction, recipe: Recipe, fmt: InputFormat) -> tuple[Fraction, str]:
    element = ELEMENTS[recipe.element]
    maximum = element.max_significand * Fraction(2) ** (element.emax - element.mantissa_bits)
    if recipe.ratio == "exponent" or (recipe.ratio == "log2_f32" and recipe.round != "rceil"):
        return amax / 2**element.emax, f"amax / 2^{element.emax}"
    if recipe.ratio in ("mul_rcp_f32", "rcp_approx_ftz"):
        reciprocal = values.nearest(1 / maximum, FP32)
        name = "fp32(1/{})" if recipe.ratio == "mul_rcp_f32" else "rcp.approx.ftz({})"
        ratio = _number(values.nearest(amax * _number(reciprocal), FP32))
        return ratio, f"amax * {name.format(maximum)} (0x{reciprocal:08X}), rounded to fp32"
    kept = fmt if recipe.ratio == "div_in_input_dtype" else FP32
    ratio = values.value(values.nearest(amax / maximum, kept), kept) or Fraction(0)
    return ratio, f"amax / {maximum}, rounded to {kept.name}"


def _rounded(ratio: Fraction, recipe: Recipe) -> tuple[int, str]:
    """The exponent that the rule takes, in words."""
    if recipe.ratio == "log2_f32":
        emax = 0 if recipe.round == "rceil" else ELEMENTS[recipe.element].emax
        logarithm = rational.log2_fp32(ratio * 2**emax)
        down = recipe.round == "floor"
        whole = (math.floor if down else math.ceil)(logarithm) - emax
        less = f" - {emax}" if emax else ""
        of = "amax" if emax else "d"
        word = "floor" if down else "ceil"
        return whole, f"{word} of fp32(log2 {of}) = {float(logarithm):.9g}{less}"
    if recipe.round in _TIES:
        mantissa_bits = 1 if recipe.round == "even_fp4" else ELEMENTS[recipe.element].mantissa_bits
        exponent = rational.rounded_floor_log2(ratio, mantissa_bits)
        return exponent, f"the power of two at or below d and {_TIES[recipe.round]}"
    if recipe.round == "floor":
        return rational.floor_log2(ratio), "the power of two at or below d"
    return rational.ceil_log2(ratio), "the power of two at or above d"
