"""ceil: the exponent of amax rounded up, minus emax. Source: torchao, mode CEIL."""

from torch import Tensor

from mxref.formats import ElementFormat


def ceil(t: Tensor, element: ElementFormat) -> Tensor:
    """(t >> 23) + (mantissa != 0). POLICY: the increment comes before the clamp at byte 0."""
    return (t >> 23) + ((t & 0x7FFFFF) != 0).to(t.dtype)
