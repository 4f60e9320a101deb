"""even_fp4: amax rounded as if its elements were e2m1. Source: torchao's constant for fp4."""

from torch import Tensor

from mxref.formats import FP32, ElementFormat

E2M1_MANTISSA_BITS = 1


def even_fp4(t: Tensor, element: ElementFormat) -> Tensor:
    """(t + half an e2m1 ulp) >> 23, whatever the element: from 1.75 * 2^k on the byte is one up."""
    half_ulp = 1 << (FP32.mantissa_bits - E2M1_MANTISSA_BITS - 1)
    return (t + half_ulp) >> 23
