"""A second implementation, in Python integers and fractions, straight from the definitions.

One block at a time, slow, and shares nothing with the fast path but the format table and Recipe:
no torch, no bit tricks. Where `quantize` compares patterns, this compares rational numbers.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction

from mxref.formats import ELEMENTS, FP32, INPUTS, SCALE_BIAS, SCALE_NAN, ElementFormat, InputFormat
from mxref.recipes import Recipe, resolve

MAX_ELEMENTS = 32 * 32


def quantize_block(bits: Sequence[int], dtype: str, recipe: str | Recipe) -> tuple[int, list[int]]:
    """The scale byte and the payload bytes of one block.

    Args:
        bits: 1 to 1024 bit patterns of the block's elements, as non-negative ints.
        dtype: "bf16", "fp16" or "fp32".
        recipe: a name in `RECIPES` or a `Recipe`.

    Special values: a NaN or Inf anywhere gives (255, [0x7F, ...]); a block of zeros byte 0; the
    sign of zero is kept.

    Raises:
        TypeError: bits holds something else than ints, recipe is neither name nor Recipe.
        ValueError: a pattern out of range, no or too many patterns, unknown dtype or recipe.
        NotImplementedError: an axis value of the recipe that is not built.

    Source: OCP MX v1.0 sections 5 and 6.3; PTX cvt.rp.satfinite.ue8m0x2.f32 for rceil.

    >>> quantize_block([0x43F0, 0x8000], "bf16", "rceil")  # 480 and -0
    (128, [119, 128])
    """
    fmt = _require_dtype(dtype)
    patterns = _require_bits(bits, fmt)
    recipe = resolve(recipe)
    rule = _require_rule(recipe)
    element = ELEMENTS[recipe.element]
    if any(pattern & fmt.exponent_mask == fmt.exponent_mask for pattern in patterns):
        return SCALE_NAN, [element.nan_code] * len(patterns)
    amax = max(abs(value(pattern, dtype)) for pattern in patterns)
    byte = max(rule(amax, element) + SCALE_BIAS, 0) if amax else 0
    return byte, [cast(pattern, dtype, byte, element.name) for pattern in patterns]


def cast(bits: int, dtype: str, byte: int, element: str = "e4m3") -> int:
    """The payload byte of one element under a given scale byte: round(x * 2^(127 - byte)).

    NaN or byte 255 give the NaN code, Inf and all above the maximum saturate, signs are kept.

    >>> hex(cast(0xFF80, "bf16", 127)), hex(cast(0x7FC0, "bf16", 127))  # -Inf, NaN
    ('0xfe', '0x7f')
    """
    fmt = _require_dtype(dtype)
    (pattern,) = _require_bits([bits], fmt)
    if not isinstance(element, str) or element not in ELEMENTS:
        raise ValueError(f"element={element!r}: expected one of {', '.join(map(repr, ELEMENTS))}")
    if type(byte) is not int or not 0 <= byte <= SCALE_NAN:
        raise ValueError(f"byte={byte!r}: expected 0 to 255")
    row = ELEMENTS[element]
    magnitude = pattern & fmt.magnitude_mask
    if byte == SCALE_NAN or magnitude > fmt.exponent_mask:
        return row.nan_code
    sign = 0x80 if pattern != magnitude else 0
    if magnitude == fmt.exponent_mask:
        return sign | row.max_code
    scaled = abs(value(pattern, dtype)) * _power(SCALE_BIAS - byte)
    return sign | _round(scaled, row)


def value(bits: int, dtype: str) -> Fraction:
    """The exact value of a finite pattern; ValueError for Inf and NaN. The sign of zero is lost.

    >>> value(0x8001, "bf16") == -Fraction(1, 2**133)
    True
    """
    fmt = _require_dtype(dtype)
    (pattern,) = _require_bits([bits], fmt)
    magnitude = pattern & fmt.magnitude_mask
    field, fraction = divmod(magnitude, 1 << fmt.mantissa_bits)
    if magnitude >= fmt.exponent_mask:
        raise ValueError(f"bits={bits:#x}: expected a finite {dtype} pattern")
    significand = fraction + (1 << fmt.mantissa_bits if field else 0)
    number = significand * _power(max(field, 1) - fmt.bias - fmt.mantissa_bits)
    return -number if pattern != magnitude else number


def _power(exponent: int) -> Fraction:
    return Fraction(2) ** exponent


def _floor_log2(number: Fraction) -> int:
    """The largest integer e with 2^e <= number."""
    e = number.numerator.bit_length() - number.denominator.bit_length()
    return e if _power(e) <= number else e - 1


def _ceil_log2(number: Fraction) -> int:
    """The smallest integer e with 2^e >= number."""
    e = _floor_log2(number)
    return e if _power(e) == number else e + 1


def _round_fp32(number: Fraction) -> Fraction:
    """The nearest fp32 number, ties to even, subnormals kept (no overflow occurs here)."""
    if not number:
        return number
    unit = _power(max(_floor_log2(number), 1 - FP32.bias) - FP32.mantissa_bits)
    return round(number / unit) * unit


def _round(scaled: Fraction, element: ElementFormat) -> int:
    """The code of the nearest element value, ties to even, saturated; `scaled` is not negative."""
    if not scaled:
        return 0
    unit = _power(max(_floor_log2(scaled), element.emin) - element.mantissa_bits)
    rounded = round(scaled / unit) * unit
    if rounded < _power(element.emin):
        return int(rounded / _power(element.emin - element.mantissa_bits))
    exponent = _floor_log2(rounded)
    significand = int(rounded / _power(exponent - element.mantissa_bits))
    code = ((exponent - element.emin) << element.mantissa_bits) + significand
    return min(code, element.max_code)


def _floor(amax: Fraction, element: ElementFormat) -> int:
    return _floor_log2(amax) - element.emax


def _ceil(amax: Fraction, element: ElementFormat) -> int:
    return _ceil_log2(amax) - element.emax


def _even(amax: Fraction, element: ElementFormat) -> int:
    half_ulp = _power(_floor_log2(amax) - element.mantissa_bits - 1)
    return _floor_log2(amax + half_ulp) - element.emax


def _rceil(amax: Fraction, element: ElementFormat) -> int:
    maximum = element.max_significand * _power(element.emax - element.mantissa_bits)
    ratio = _round_fp32(amax * _round_fp32(1 / maximum))
    return _ceil_log2(ratio) if ratio else -SCALE_BIAS


_RULES: dict[tuple[str, str], Callable[[Fraction, ElementFormat], int]] = {
    ("exponent", "floor"): _floor,
    ("mul_rcp_f32", "rceil"): _rceil,
    ("exponent", "ceil"): _ceil,
    ("exponent", "even"): _even,
}


def _require_rule(recipe: Recipe) -> Callable[[Fraction, ElementFormat], int]:
    built = Recipe(element=recipe.element, round=recipe.round, ratio=recipe.ratio)
    rule = _RULES.get((recipe.ratio, recipe.round))
    if rule is None or recipe != built:
        raise NotImplementedError(f"recipe={recipe!r} is not built in mxref.exact")
    return rule


def _require_dtype(dtype: str) -> InputFormat:
    if not isinstance(dtype, str) or dtype not in INPUTS:
        raise ValueError(f"dtype={dtype!r}: expected one of {', '.join(map(repr, INPUTS))}")
    return INPUTS[dtype]


def _require_bits(bits: Sequence[int], fmt: InputFormat) -> list[int]:
    if not isinstance(bits, Sequence) or isinstance(bits, (str, bytes, bytearray)):
        raise TypeError(f"bits={bits!r}: expected a sequence of ints, got {type(bits).__name__}")
    patterns = list(bits)
    if not 1 <= len(patterns) <= MAX_ELEMENTS:
        raise ValueError(f"bits has {len(patterns)} patterns: expected 1 to {MAX_ELEMENTS}")
    for pattern in patterns:
        if not isinstance(pattern, int) or isinstance(pattern, bool):
            raise TypeError(f"bits holds {pattern!r}: expected ints, got {type(pattern).__name__}")
        if not 0 <= pattern < 1 << fmt.bits:
            raise ValueError(f"bits holds {pattern:#x}: expected 0 to {(1 << fmt.bits) - 1:#x}")
    return patterns
