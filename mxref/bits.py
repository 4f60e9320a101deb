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

    `significand` holds integers from 0 to 2^24 - 1, `exponent` any integer (both int64).
    """
    normalized = significand.to(torch.float32).view(torch.int32).to(torch.int64)
    field = (normalized >> _FIELD) - SCALE_BIAS + exponent + fmt.bias
    wide = ((normalized & ((1 << _FIELD) - 1)) | (1 << _FIELD)) << 1
    drop = (_FIELD - fmt.mantissa_bits + 1 + (1 - field).clamp_min(0)).clamp_max(40)
    kept = (wide + (torch.ones_like(drop) << (drop - 1)) - 1 + ((wide >> drop) & 1)) >> drop
    bits = ((field.clamp_min(1) - 1) << fmt.mantissa_bits) + kept
    return torch.where(significand > 0, bits, 0).clamp_max(fmt.exponent_mask)
