"""fp32, bf16 and fp16 bit patterns as integers: taking numbers apart and putting them together.

`patterns` are int32 tensors that hold the bits of non-negative fp32 numbers. Nothing in this file
depends on flush-to-zero: subnormals are normalized by an integer to float conversion,
whose result is a normal number.
"""

import torch
from torch import Tensor

from mxref.formats import FP32, SCALE_BIAS, InputFormat

MAGNITUDE = FP32.magnitude_mask
INFINITY = FP32.exponent_mask
_FIELD = FP32.mantissa_bits
SMALLEST_NORMAL = 1 << _FIELD
"""The pattern of 2^-126. Patterns below it are subnormal or zero."""

ZERO = -149 * SMALLEST_NORMAL
"""What `extended` makes of 0: below what it makes of any number."""

_WIDE = 52
"""The mantissa of float64, which normalizes integers below 2^53 exactly."""


def extended(patterns: Tensor) -> Tensor:
    """The patterns with their exponent unbounded below: subnormals normalized, 0 very small.

    The result's high bits (>> 23) are the biased exponent, negative for subnormals; the low 23 are
    the mantissa. 0 becomes -149 << 23, below every number.
    """
    exponent = patterns >> _FIELD
    significand = (patterns & ((1 << _FIELD) - 1)) | ((exponent > 0).to(torch.int32) << _FIELD)
    # an integer below 2^24 is exact in fp32, and the hardware finds its leading bit for us
    normalized = significand.to(torch.float32).view(torch.int32)
    return normalized + ((exponent.clamp_min(1) - (SCALE_BIAS + _FIELD)) << _FIELD)


def pack(significand: Tensor, exponent: Tensor, fmt: InputFormat) -> Tensor:
    """The bits (int64) of significand * 2^exponent in `fmt`: to nearest even, Inf past the end.

    `significand` holds integers from 0 to 2^53 - 1, `exponent` any integer (both int64).
    """
    normalized = significand.to(torch.float64).view(torch.int64)
    field = (normalized >> _WIDE) - 1023 + exponent + fmt.bias
    wide = (normalized & ((1 << _WIDE) - 1)) | (1 << _WIDE)
    drop = (_WIDE - fmt.mantissa_bits + (1 - field).clamp_min(0)).clamp_max(60)
    kept = (wide + (torch.ones_like(drop) << (drop - 1)) - 1 + ((wide >> drop) & 1)) >> drop
    bits = ((field.clamp_min(1) - 1) << fmt.mantissa_bits) + kept
    return torch.where(significand > 0, bits, 0).clamp_max(fmt.exponent_mask)


def _apart(patterns: Tensor) -> tuple[Tensor, Tensor]:
    """Significand and exponent (int64): the number is significand * 2^exponent."""
    wide = patterns.to(torch.int64)
    field = wide >> _FIELD
    significand = (wide & (SMALLEST_NORMAL - 1)) | ((field > 0).to(torch.int64) << _FIELD)
    return significand, field.clamp_min(1) - (SCALE_BIAS + _FIELD)


def pattern(significand: int, exponent: int) -> int:
    """The fp32 pattern of significand * 2^exponent, an exact normal number."""
    top = significand.bit_length() - 1
    fraction = (significand << (_FIELD - top)) - SMALLEST_NORMAL
    return ((top + exponent + SCALE_BIAS) << _FIELD) + fraction


def reciprocal(significand: int, exponent: int) -> int:
    """The pattern of the fp32 number nearest to 1 / (significand * 2^exponent).

    Not for powers of two: no other quotient is halfway between two fp32 numbers.
    """
    up = _FIELD + significand.bit_length()
    return pattern(((1 << (up + 1)) // significand + 1) >> 1, -up - exponent)


def product(patterns: Tensor, factor: int) -> Tensor:
    """The patterns times the number that the normal pattern `factor` names, one fp32 rounding."""
    significand, exponent = _apart(patterns)
    scale = (factor >> _FIELD) - (SCALE_BIAS + _FIELD)
    exact = significand * ((factor & (SMALLEST_NORMAL - 1)) | SMALLEST_NORMAL)
    return pack(exact, exponent + scale, FP32).to(torch.int32)


def quotient(patterns: Tensor, divisor: int, exponent: int, fmt: InputFormat) -> Tensor:
    """The patterns / (divisor * 2^exponent), rounded once to `fmt`, as fp32 patterns.

    `divisor` is an integer from 1 to 15.
    """
    significand, power = _apart(patterns)
    # 24 more bits than any format keeps; a remainder only has to be seen, as one more bit
    shifted = significand << 26
    whole = torch.div(shifted, divisor, rounding_mode="floor")
    sticky = (whole * divisor != shifted).to(torch.int64)
    bits = pack((whole << 1) | sticky, power - 27 - exponent, fmt)
    if fmt is FP32:
        return bits.to(torch.int32)
    field = bits >> fmt.mantissa_bits
    kept = (bits & ((1 << fmt.mantissa_bits) - 1)) | (
        (field > 0).to(torch.int64) << fmt.mantissa_bits
    )
    return pack(kept, field.clamp_min(1) - fmt.bias - fmt.mantissa_bits, FP32).to(torch.int32)


_LN2_128 = 88
"""floor(128 * ln 2). Its leading bits are floor(2^k * ln 2) for every k below 7."""


def _spacing(exponent: int, side: int) -> int:
    """floor(log2) of the numbers next to the integer `exponent`, above (1) or below (-1) it.

    Half an ulp there is 2^(spacing - 24). -1 stands for [0.5, 1).
    """
    size = abs(exponent) - (side * exponent < 0)
    return size.bit_length() - 1


def _reach(exponent: int, side: int) -> int:
    """How many steps (2^-23 above 2^exponent, 2^-24 below) its rounded fp32 log2 is `exponent`.

    log2(1 + j * 2^-23) is within half an ulp, 2^(p - 24), as long as j < 2^(p - 1) * ln 2; below
    the power of two j < 2^p * ln 2. Next to log2 = 0 every fp32 number is representable.
    """
    if exponent == 0:
        return 0
    return _LN2_128 >> (7 - _spacing(exponent, side) + (side > 0))


_LEAST_EXPONENT = -150
_ABOVE = [_reach(exponent, 1) for exponent in range(_LEAST_EXPONENT, 129)]
_BELOW = [_reach(exponent + 1, -1) for exponent in range(_LEAST_EXPONENT, 129)]


def rounded_log2(t: Tensor) -> Tensor:
    """`extended` patterns, moved to the power of two where the rounded fp32 log2 is an integer.

    The correctly rounded log2 of a number next to 2^k is k itself; then floor and ceil see 2^k.
    """
    index = ((t >> _FIELD) - (SCALE_BIAS + _LEAST_EXPONENT)).clamp_min(0).to(torch.int64)
    above = torch.tensor(_ABOVE, dtype=torch.int32, device=t.device)[index]
    below = torch.tensor(_BELOW, dtype=torch.int32, device=t.device)[index]
    mantissa = t & (SMALLEST_NORMAL - 1)
    up = torch.where(mantissa >= SMALLEST_NORMAL - below, t - mantissa + SMALLEST_NORMAL, t)
    return torch.where(mantissa <= above, t - mantissa, up)
