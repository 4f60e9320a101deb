"""rceil: the power of two at or above the ratio to the maximum. Source: PTX cvt.rp.ue8m0x2."""

from torch import Tensor

from mxref.formats import ElementFormat


def rceil(t: Tensor, element: ElementFormat) -> Tensor:
    """ceil(t / 2^23), with the ratio to the element's maximum: no element is clamped."""
    return (t + 0x7FFFFF) >> 23
