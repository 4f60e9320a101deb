"""How each scale rule gets from amax to a byte, with the integers of the case at hand, in words.

A rule returns its text and the byte that its integers lead to; `explain` holds that byte against
those of `mxref.quantize` and `mxref.exact` and shows none of its own.
"""

from collections.abc import Callable
from fractions import Fraction

from mxref.cli import values
from mxref.formats import FP32, ElementFormat

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
"""(ratio, round) of a recipe -> the words for it."""
