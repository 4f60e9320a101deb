"""Element casts in float64 with the steps that go wrong made replaceable. Exact: 53 bits suffice.

Used to predict what a faulty quantizer stores, never to say what is right.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from mxref.formats import FP32, SCALE_BIAS, SCALE_NAN, ElementFormat

Step = Callable[[Tensor], Tensor]


def power(exponent: Tensor) -> Tensor:
    """2^exponent in float64, for exponents of normal numbers."""
    return ((exponent.to(torch.int64) + 1023) << 52).view(torch.float64)


def to_float64(x: Tensor) -> Tensor:
    """x in float64, exact, subnormals too where the process flushes them."""
    bits = x.to(torch.float32).view(torch.int32).to(torch.int64)
    if x.dtype == torch.bfloat16:
        bits = x.contiguous().view(torch.int16).to(torch.int64) << 16
    field, mantissa = (bits >> 23) & 0xFF, bits & 0x7FFFFF
    significand = mantissa | ((field > 0).to(torch.int64) << 23)
    magnitude = significand.to(torch.float64) * power(field.clamp_min(1) - (FP32.bias + 23))
    magnitude = magnitude.masked_fill((field == 0xFF) & (mantissa == 0), torch.inf)
    magnitude = magnitude.masked_fill((field == 0xFF) & (mantissa != 0), torch.nan)
    return torch.where(bits & 0x80000000 != 0, -magnitude, magnitude)


def floor_log2(magnitude: Tensor) -> Tensor:
    """The exponent of the leading bit; of 0 a small number."""
    field = (magnitude.view(torch.int64) >> 52) & 0x7FF
    return field - 1023


def scaled(values: Tensor, byte: Tensor) -> Tensor:
    """values * 2^(127 - byte), byte of each row; NaN under byte 255."""
    exponent = SCALE_BIAS - byte.to(torch.int64)
    return (values * power(exponent)[:, None]).masked_fill((byte == SCALE_NAN)[:, None], torch.nan)


def narrowed(magnitude: Tensor, mantissa_bits: int, lowest: int) -> Tensor:
    """Rounded to nearest even at mantissa_bits; `lowest` is the smallest normal exponent."""
    unit = power(floor_log2(magnitude).clamp_min(lowest) - mantissa_bits)
    return torch.where(magnitude.isfinite(), torch.round(magnitude / unit) * unit, magnitude)


def saturated(codes: Tensor, element: ElementFormat) -> Tensor:
    """Codes above the largest finite one become it."""
    return codes.clamp_max(element.max_code)


def encoded(
    scaled_values: Tensor,
    element: ElementFormat,
    *,
    narrow: Step = lambda magnitude: magnitude,
    rounding: Step = torch.round,
    overflow: Callable[[Tensor, ElementFormat], Tensor] = saturated,
) -> Tensor:
    """The codes (uint8) of scaled values; NaN is 0x7F, the sign of zero kept.

    `narrow` acts on the magnitude, `rounding` on it in units of the last bit, `overflow` on the
    code as if the format went on past its maximum.
    """
    magnitude = narrow(scaled_values.abs())
    finite = magnitude.nan_to_num(nan=0.0).clamp_max(2.0**100)
    exponent = floor_log2(finite).clamp_min(element.emin)
    units = rounding(finite / power(exponent - element.mantissa_bits)).to(torch.int64)
    codes = overflow(((exponent - element.emin) << element.mantissa_bits) + units, element)
    signed = codes | (torch.signbit(scaled_values).to(torch.int64) << 7)
    return signed.masked_fill(scaled_values.isnan(), element.nan_code).to(torch.uint8)
