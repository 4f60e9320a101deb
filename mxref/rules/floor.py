"""floor: the power of two at or below the ratio. Source: OCP MX v1.0 section 6.3."""

from torch import Tensor

from mxref.formats import ElementFormat


def floor(t: Tensor, element: ElementFormat) -> Tensor:
    """t >> 23: amax / 2^byte lies in [2^emax, 2^(emax + 1)), so the top of a binade saturates."""
    return t >> 23
