"""The element cast: x * multiplier, round, saturate. Integers decide every bit.

Two roads lead to the scaled pattern. `multiply` is one fp32 multiply by a power of two: exact and
fast, but only where no subnormal matters, since flush-to-zero would lose it. `shift` adds to an
unbounded exponent: exact everywhere. Both end in `encode`. `cast` is the road of the dialects: any
choice on the axes that bear on an element, always by `shift`.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from mxref.bits import INFINITY, MAGNITUDE, SMALLEST_NORMAL, extended
from mxref.formats import ELEMENTS, FP32, SCALE_BIAS, SCALE_NAN, ElementFormat
from mxref.recipes import Recipe

_FIELD = FP32.mantissa_bits


def widened(tiles: Tensor) -> Tensor:
    """The tiles in fp32, a new contiguous tensor; NaN keep their sign.

    A GPU's conversion from fp16 makes every NaN positive, and dialects store the sign.
    """
    values = tiles.to(torch.float32, copy=True, memory_format=torch.contiguous_format)
    if tiles.dtype == torch.float16 and not tiles.is_cpu:
        patterns = values.view(torch.int32)
        patterns &= MAGNITUDE
        patterns |= tiles.view(torch.int16).to(torch.int32) & ~MAGNITUDE
    return values


def max_pattern(element: ElementFormat) -> int:
    """The fp32 pattern of the element's largest finite value."""
    fraction = element.max_significand - (1 << element.mantissa_bits)
    return ((element.emax + FP32.bias) << _FIELD) | (fraction << (_FIELD - element.mantissa_bits))


def needs_shift(amax: Tensor, byte: Tensor, element: ElementFormat) -> Tensor:
    """The blocks in which `multiply` could meet a subnormal that matters, on either side.

    A subnormal fp32 times 2^(127 - byte) is below 2^(1 - byte), which from a byte on is less than
    half the smallest element. Byte 254 has a subnormal multiplier.
    """
    safe = 2 - element.emin + element.mantissa_bits
    return ((byte < safe) & (amax > 0)) | (byte == 254)


def encode(patterns: Tensor, work: Tensor, element: ElementFormat) -> Tensor:
    """Codes without sign of finite patterns up to the maximum, in place; `work` is scratch.

    Adding c = 2^(23 - mantissa_bits) * 2^max(exponent, emin) makes fp32's own rounding to nearest
    even round at the element's last bit. What the sum exceeds c by is the rounded significand M;
    the code is ((exponent - emin) << mantissa_bits) + M, carries and subnormals included.
    """
    drop = _FIELD - element.mantissa_bits
    torch.bitwise_and(patterns, INFINITY, out=work)
    work.clamp_min_((element.emin + FP32.bias) << _FIELD).add_(drop << _FIELD)
    values = patterns.view(torch.float32)
    values.add_(work.view(torch.float32))
    patterns.sub_(work)
    work.sub_((element.emin + FP32.bias + drop) << _FIELD).bitwise_right_shift_(drop)
    return patterns.add_(work)


def multiply(values: Tensor, byte: Tensor) -> None:
    """values *= 2^(127 - byte), in place. Needs byte <= 253, and no subnormal that matters."""
    values.mul_(((254 - byte) << _FIELD).view(torch.float32))


def shift(patterns: Tensor, byte: Tensor, element: ElementFormat, top: int | None = None) -> Tensor:
    """The patterns times 2^(127 - byte), saturated at `top`, the maximum; NaN saturates too.

    Any byte from 0 to 255, any pattern, with no floating point arithmetic on the values.
    """
    top = max_pattern(element) if top is None else top
    up = (SCALE_BIAS - byte) << _FIELD
    # below 2^-149 * 2^127 nothing reaches half the smallest element: keep the sum inside int32
    z = extended(patterns).clamp_min_(-_FIELD << _FIELD)
    limit = (top - up.to(torch.int64)).clamp_max_(INFINITY).to(torch.int32)
    z = torch.minimum(z, limit).add_(up).clamp_min_(0)
    return z.masked_fill_(patterns >= INFINITY, top)


def is_nan(patterns: Tensor) -> Tensor:
    """Which patterns are NaN."""
    return (patterns & MAGNITUDE) > INFINITY


def flush_inputs(patterns: Tensor) -> Tensor:
    """The signed patterns with every subnormal a zero of its sign."""
    return torch.where((patterns & MAGNITUDE) < SMALLEST_NORMAL, patterns & ~MAGNITUDE, patterns)


def encode_half_away(patterns: Tensor, element: ElementFormat) -> Tensor:
    """As `encode`, but ties go away from zero; a new tensor."""
    drop = _FIELD - element.mantissa_bits
    field = patterns >> _FIELD
    least = element.emin + FP32.bias
    significand = (patterns & (SMALLEST_NORMAL - 1)) | SMALLEST_NORMAL
    # 26 places leave nothing of a significand, ties included
    places = (least - field).clamp(0, 26 - drop) + drop
    rounded = (significand + (torch.ones_like(places) << (places - 1))) >> places
    return rounded + ((field - least).clamp_min(0) << element.mantissa_bits)


def is_ordinary(values: Tensor, byte: Tensor, recipe: Recipe) -> bool:
    """Whether finite values and bytes from 1 to 253 leave the recipe's own axes nothing to say."""
    own = (recipe.element_round, recipe.minus_zero) != ("rne", "keep")
    if own or recipe.overflow == "nan_above_464":
        return False
    if bool(((byte == 0) | (byte >= 254)).any()):
        return False
    return bool((values.view(torch.int32) & MAGNITUDE).amax() < INFINITY)


class Multiplier(NamedTuple):
    """What the elements of each block are multiplied by: 2^(127 - byte), unless a mask is set."""

    byte: Tensor
    zero: Tensor
    nan: Tensor
    minus_inf: Tensor


def multiplier(byte: Tensor, poisoned: Tensor, recipe: Recipe) -> Multiplier:
    """The multiplier of blocks with these scale bytes; `poisoned` blocks are multiplied by NaN."""
    first, last = byte == 0, byte == SCALE_NAN
    zero = first & (recipe.byte0_multiplier == "0")
    zero |= last & (recipe.byte255_multiplier == "0")
    if recipe.flush == "multiplier":
        zero |= byte == 254
        zero |= last & (recipe.byte255_multiplier == "2^-128")
    zero &= ~poisoned
    nan = poisoned | (last & (recipe.byte255_multiplier == "nan"))
    power = byte
    if recipe.byte0_multiplier in ("2^126", "1"):
        power = byte.masked_fill(first, 1 if recipe.byte0_multiplier == "2^126" else SCALE_BIAS)
    minus_inf = last & ~poisoned & (recipe.byte255_multiplier == "-inf")
    return Multiplier(power, zero, nan, minus_inf)


def cast(patterns: Tensor, by: Multiplier, recipe: Recipe) -> Tensor:
    """The stored codes (uint8) of signed fp32 patterns (int32): product, rounding, overflow, NaN.

    The sign of a NaN that is kept is that of the input's NaN; Inf * 0 makes a negative one, as x86
    does, the scale's own NaN is positive, and an overflow keeps the sign of its value (POLICY).
    """
    element = ELEMENTS[recipe.element]
    size, negative = patterns & MAGNITUDE, patterns < 0
    infinite_product = by.minus_inf & (size > 0)
    code = _rounded(size, by.byte, recipe, element).masked_fill_(by.zero, 0)
    overflowed = code > element.max_code
    if recipe.overflow == "nan_above_464":
        overflowed |= infinite_product
    code = torch.where(infinite_product, element.max_code, code)
    own = size > INFINITY
    made = ((by.zero & (size == INFINITY)) | (by.minus_inf & (size == 0))) & ~own
    sign = negative ^ by.minus_inf
    if recipe.minus_zero == "plus":
        sign &= ~((size == 0) | by.zero)
    code |= sign.to(torch.int32) << 7
    nan_sign = torch.where(own, negative, made | (sign & ~by.nan))
    return torch.where(own | made | by.nan | overflowed, _nan(nan_sign, recipe, element), code).to(
        torch.uint8
    )


def _rounded(size: Tensor, byte: Tensor, recipe: Recipe, element: ElementFormat) -> Tensor:
    """Codes without sign of the products; above `max_code` where an overflow is to give NaN."""
    top = max_pattern(element)
    if recipe.overflow == "nan_above_464":
        # one step past the maximum is where a NaN's code lies in e4m3
        top += 1 << (_FIELD - element.mantissa_bits)
    scaled = shift(size, byte, element, top)
    if recipe.element_round == "half_away":
        return encode_half_away(scaled, element)
    return encode(scaled, torch.empty_like(scaled), element)


def _nan(sign: Tensor, recipe: Recipe, element: ElementFormat) -> Tensor:
    """What is stored (int32) for a NaN: a code, or a finite one where a clamp drops NaN."""
    if recipe.overflow.startswith("preclamp"):
        code = element.max_code | (0x80 if recipe.overflow == "preclamp_nan_min" else 0)
    else:
        code = element.nan_code | (0x80 if recipe.nan_code == "ff" else 0)
    stored = torch.full_like(sign, code, dtype=torch.int32)
    if recipe.nan_code == "sign" and not recipe.overflow.startswith("preclamp"):
        stored |= sign.to(torch.int32) << 7
    return stored
