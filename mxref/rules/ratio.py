"""The axis `ratio`: amax brought to the element's range, as an integer that a rule can round.

Each function maps the fp32 patterns of amax to an int32 `t` whose high part t >> 23 is a scale byte
and whose low part says how far amax lies above that power of two. The subtraction of two bit
patterns is a piecewise linear logarithm: monotone, and exact at every power of two of the ratio,
which is all that rounding to a power of two can see.
"""

from torch import Tensor

from mxref.formats import FP32, ElementFormat

_FIELD = FP32.mantissa_bits


def exponent(amax: Tensor, element: ElementFormat) -> Tensor:
    """amax / 2^emax. Source: OCP MX v1.0 section 6.3."""
    return amax - (element.emax << _FIELD)


def mul_rcp_f32(amax: Tensor, element: ElementFormat) -> Tensor:
    """amax * fp32(1 / maximum), one rounded multiply. Source: cuBLAS 1D block scaling, PTX cvt.rp.

    For every fp32 amax the product exceeds 2^k exactly when amax exceeds maximum * 2^k, but for
    one: one ulp above maximum * 2^-127, where the product is subnormal, rounds down to 2^-127.
    """
    maximum = (element.emax << _FIELD) | (
        (element.max_significand << (_FIELD - element.mantissa_bits)) & ((1 << _FIELD) - 1)
    )
    t = amax - maximum
    return t - (t == 1).to(t.dtype)


RATIOS = (exponent, mul_rcp_f32)
"""The ratios that can be applied; the other names on the axis raise NotImplementedError."""
