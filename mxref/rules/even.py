"""even: amax rounded to the element's precision first. Source: torchao, mode EVEN."""

from torch import Tensor

from mxref.formats import FP32, ElementFormat


def even(t: Tensor, element: ElementFormat) -> Tensor:
    """(t + half an element ulp) >> 23. POLICY: finite in, finite out, up to the largest fp32."""
    half_ulp = 1 << (FP32.mantissa_bits - element.mantissa_bits - 1)
    return (t + half_ulp) >> 23
