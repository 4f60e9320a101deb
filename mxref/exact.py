"""A second implementation, in Python integers and fractions, straight from the definitions.

One block at a time, slow, and shares nothing with the fast path but the format table and Recipe:
no torch, no bit tricks. Where `quantize` compares patterns, this compares rational numbers.
"""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

from mxref.formats import (
    ELEMENTS,
    FP32,
    INPUTS,
    SCALE_BIAS,
    SCALE_NAN,
    ElementFormat,
    InputFormat,
)
from mxref.rational import (
    INF,
    NAN,
    Number,
    ceil_log2,
    code_of,
    floor_log2,
    log2_fp32,
    nearest,
    power,
    rounded_floor_log2,
)
from mxref.recipes import Recipe, resolve

MAX_ELEMENTS = 32 * 32


def quantize_block(bits: Sequence[int], dtype: str, recipe: str | Recipe) -> tuple[int, list[int]]:
    """The scale byte and the payload bytes of one block.

    Args:
        bits: 1 to 1024 bit patterns of the block's elements, as non-negative ints.
        dtype: "bf16", "fp16" or "fp32".
        recipe: a name in `RECIPES` or a `Recipe`.

    Special values under floor, rceil, ceil and even: a NaN or Inf anywhere gives (255,
    [0x7F, ...]); a block of zeros byte 0; the sign of zero is kept. Dialects: docs/dialects.md.

    Raises:
        TypeError: bits holds something else than ints, recipe is neither name nor Recipe.
        ValueError: a pattern out of range, no or too many patterns, unknown dtype or recipe.

    Source: OCP MX v1.0 sections 5 and 6.3; PTX cvt.rp.satfinite.ue8m0x2.f32 for rceil.

    >>> quantize_block([0x43F0, 0x8000], "bf16", "rceil")  # 480 and -0
    (128, [119, 128])
    """
    fmt = _require_dtype(dtype)
    patterns = _require_bits(bits, fmt)
    recipe = resolve(recipe)
    numbers = [_read(pattern, fmt, recipe) for pattern in patterns]
    byte = _scale(numbers, recipe, fmt)
    multiplier = _multiplier(byte, recipe)
    sees_nan = recipe.nan_scale in ("ff", "fe", "00") and recipe.poison == "block"
    if sees_nan and any(number.size == NAN for number in numbers):
        multiplier = Number(False, NAN)
    return byte, [_stored(number, multiplier, recipe) for number in numbers]


def cast(
    bits: int, dtype: str, byte: int, element: str = "e4m3", *, recipe: str | Recipe | None = None
) -> int:
    """The payload byte of one element under a given scale byte: round(x * 2^(127 - byte)).

    NaN or byte 255 give the NaN code, Inf and all above the maximum saturate, signs are kept;
    a `recipe`, which then says the element too, brings its own choices.

    >>> hex(cast(0xFF80, "bf16", 127)), hex(cast(0x7FC0, "bf16", 127))  # -Inf, NaN
    ('0xfe', '0x7f')
    >>> hex(cast(0x0080, "bf16", 0, recipe="torchao018_floor"))  # times 2^126
    '0x38'
    """
    fmt = _require_dtype(dtype)
    (pattern,) = _require_bits([bits], fmt)
    if not isinstance(element, str) or element not in ELEMENTS:
        raise ValueError(f"element={element!r}: expected one of {', '.join(map(repr, ELEMENTS))}")
    if type(byte) is not int or not 0 <= byte <= SCALE_NAN:
        raise ValueError(f"byte={byte!r}: expected 0 to 255")
    row = Recipe(element=element) if recipe is None else resolve(recipe)
    return _stored(_read(pattern, fmt, row), _multiplier(byte, row), row)


def value(bits: int, dtype: str) -> Fraction:
    """The exact value of a finite pattern; ValueError for Inf and NaN. The sign of zero is lost.

    >>> value(0x8001, "bf16") == -Fraction(1, 2**133)
    True
    """
    fmt = _require_dtype(dtype)
    (pattern,) = _require_bits([bits], fmt)
    number = _read(pattern, fmt, Recipe())
    if isinstance(number.size, str):
        raise ValueError(f"bits={bits:#x}: expected a finite {dtype} pattern")
    return -number.size if number.negative else number.size


def _read(pattern: int, fmt: InputFormat, recipe: Recipe) -> Number:
    """The number that a pattern names; an fp32 subnormal is a zero where inputs are flushed."""
    negative, magnitude = divmod(pattern, fmt.magnitude_mask + 1)
    field, fraction = divmod(magnitude, 1 << fmt.mantissa_bits)
    if magnitude >= fmt.exponent_mask:
        return Number(bool(negative), NAN if fraction else INF)
    significand = fraction + (1 << fmt.mantissa_bits if field else 0)
    size = significand * power(max(field, 1) - fmt.bias - fmt.mantissa_bits)
    if recipe.flush in ("inputs", "both") and size < power(1 - FP32.bias):
        size = Fraction(0)
    return Number(bool(negative), size)


def _scale(numbers: list[Number], recipe: Recipe, fmt: InputFormat) -> int:
    """The scale byte of a block."""
    sizes = [number.size for number in numbers]
    if NAN in sizes and not recipe.nan_scale.startswith("dropped"):
        return int(recipe.nan_scale, 16)
    if INF in sizes and recipe.inf_scale != "exponent":
        return int(recipe.inf_scale, 16)
    if INF in sizes:
        # Inf is 2^128 to one who reads exponents; a ratio of Inf is Inf, whose exponent is 128 too
        exponent = power(128 - (ELEMENTS[recipe.element].emax if recipe.ratio == "exponent" else 0))
        byte: float = _ROUNDINGS[recipe.round](exponent, ELEMENTS[recipe.element]) + SCALE_BIAS
    else:
        finite = [size for size in sizes if isinstance(size, Fraction)]
        byte = _byte(max(finite) if finite else _without_numbers(recipe), recipe, fmt)
    return int(min(max(byte, int(recipe.byte_min, 16)), int(recipe.byte_max, 16)))


def _without_numbers(recipe: Recipe) -> Fraction:
    """What counts as the maximum of NaN alone, where NaN is dropped."""
    return Fraction(1 if recipe.nan_scale == "dropped_from_1" else 0)


def _byte(amax: Fraction, recipe: Recipe, fmt: InputFormat) -> float:
    """The byte of a finite amax before the clamps; below every byte for a ratio of zero."""
    element = ELEMENTS[recipe.element]
    if recipe.tiny.startswith("amax_floor"):
        least = Fraction(recipe.tiny.removeprefix("amax_floor(").removesuffix(")"))
        amax = max(amax, nearest(least, FP32))
    ratio = _ratio(amax, recipe, fmt)
    if recipe.tiny == "flush" and ratio < power(1 - FP32.bias):
        ratio = Fraction(0)
    if not ratio:
        return -math.inf
    if recipe.ratio == "log2_f32":
        byte = _of_logarithm(ratio, recipe) + SCALE_BIAS
    else:
        byte = _ROUNDINGS[recipe.round](ratio, element) + SCALE_BIAS
    return max(byte, 1) if recipe.tiny == "bump" else byte


def _ratio(amax: Fraction, recipe: Recipe, fmt: InputFormat) -> Fraction:
    """amax over the element's maximum, as the recipe computes it, or over 2^emax exactly."""
    element = ELEMENTS[recipe.element]
    if recipe.ratio == "exponent" or (recipe.ratio == "log2_f32" and recipe.round != "rceil"):
        return amax / power(element.emax)
    maximum = element.max_significand * power(element.emax - element.mantissa_bits)
    kept = fmt if recipe.ratio == "div_in_input_dtype" else FP32
    if recipe.ratio == "mul_rcp_f32":
        ratio = nearest(amax * nearest(1 / maximum, FP32), FP32)
    elif recipe.ratio == "rcp_approx_ftz":
        # rcp.approx.ftz.f32(448) as measured: 0x3B124925
        ratio = nearest(amax * 0x924925 * power(0x3B124925 // 2**23 - 150), FP32)
    else:
        ratio = nearest(amax / maximum, kept)
    if recipe.flush in ("ratio", "both") and ratio < power(1 - kept.bias):
        return Fraction(0)
    return ratio


def _of_logarithm(ratio: Fraction, recipe: Recipe) -> int:
    """floor or ceil of the fp32 number nearest to log2 of the ratio (of amax, then minus emax)."""
    emax = 0 if recipe.round == "rceil" else ELEMENTS[recipe.element].emax
    rounded = log2_fp32(ratio * power(emax))
    return (math.floor if recipe.round == "floor" else math.ceil)(rounded) - emax


_ROUNDINGS: dict[str, Callable[[Fraction, ElementFormat], int]] = {
    "floor": lambda ratio, element: floor_log2(ratio),
    "rceil": lambda ratio, element: ceil_log2(ratio),
    "ceil": lambda ratio, element: ceil_log2(ratio),
    "even": lambda ratio, element: rounded_floor_log2(ratio, element.mantissa_bits),
    "even_fp4": lambda ratio, element: rounded_floor_log2(ratio, 1),
}


def _multiplier(byte: int, recipe: Recipe) -> Number:
    """What an element is multiplied by under this byte."""
    factor = power(SCALE_BIAS - byte)
    if byte == 0:
        choices = {"2^127": factor, "2^126": factor / 2, "1": Fraction(1), "0": Fraction(0)}
        factor = choices[recipe.byte0_multiplier]
    if byte == SCALE_NAN and recipe.byte255_multiplier in ("nan", "-inf"):
        return Number(False, NAN) if recipe.byte255_multiplier == "nan" else Number(True, INF)
    if byte == SCALE_NAN and recipe.byte255_multiplier == "0":
        factor = Fraction(0)
    if recipe.flush == "multiplier" and factor < power(1 - FP32.bias):
        factor = Fraction(0)
    return Number(False, factor)


def _stored(number: Number, multiplier: Number, recipe: Recipe) -> int:
    """The stored byte of number * multiplier."""
    element = ELEMENTS[recipe.element]
    negative = number.negative != multiplier.negative
    if number.size == NAN:
        return _nan(number.negative, recipe)
    if multiplier.size == NAN:
        return _nan(False, recipe)
    if INF in (number.size, multiplier.size):
        if 0 in (number.size, multiplier.size):
            return _nan(True, recipe)  # x86 makes a negative NaN
        if recipe.overflow == "nan_above_464":
            return _nan(negative, recipe)
        return negative << 7 | element.max_code
    exact = Fraction(number.size) * Fraction(multiplier.size)
    code = code_of(exact, element, recipe.element_round)
    if not exact and recipe.minus_zero == "plus":
        negative = False
    if code > element.max_code and recipe.overflow == "nan_above_464":
        return _nan(negative, recipe)
    return negative << 7 | min(code, element.max_code)


def _nan(negative: bool, recipe: Recipe) -> int:
    """What is stored for a NaN of this sign; a clamp before the cast may have turned it finite."""
    element = ELEMENTS[recipe.element]
    return {
        "preclamp_nan_max": element.max_code,
        "preclamp_nan_min": 0x80 | element.max_code,
    }.get(
        recipe.overflow,
        element.nan_code | {"7f": 0, "sign": negative << 7, "ff": 0x80}[recipe.nan_code],
    )


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
