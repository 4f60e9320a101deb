"""The element cast: x * 2^(127 - byte), round to nearest even, saturate. Integers decide every bit.

Two roads lead to the scaled pattern. `multiply` is one fp32 multiply by a power of two: exact and
fast, but only where no subnormal matters, since flush-to-zero would lose it. `shift` adds to an
unbounded exponent: exact everywhere. Both end in `encode`.
"""

import torch
from torch import Tensor

from mxref.bits import INFINITY, MAGNITUDE, extended
from mxref.formats import FP32, SCALE_BIAS, ElementFormat

_FIELD = FP32.mantissa_bits


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


def shift(patterns: Tensor, byte: Tensor, element: ElementFormat) -> Tensor:
    """The patterns times 2^(127 - byte), saturated at the maximum; NaN saturates too.

    Any byte from 0 to 254, any pattern, with no floating point arithmetic on the values.
    """
    top = max_pattern(element)
    up = (SCALE_BIAS - byte) << _FIELD
    # below 2^-149 * 2^127 nothing reaches half the smallest element: keep the sum inside int32
    z = extended(patterns).clamp_min_(-_FIELD << _FIELD)
    limit = (top - up.to(torch.int64)).clamp_max_(INFINITY).to(torch.int32)
    z = torch.minimum(z, limit).add_(up).clamp_min_(0)
    return z.masked_fill_(patterns >= INFINITY, top)


def is_nan(patterns: Tensor) -> Tensor:
    """Which patterns are NaN."""
    return (patterns & MAGNITUDE) > INFINITY
