"""The names that the literature and torchao use for a block, an order and a layout."""

from typing import NamedTuple

from mxkernels.quantize.shapes import SWIZZLE


class Variant(NamedTuple):
    """What a name stands for: three arguments of `quantize`, and how its input lies.

    `input_order`: "n", a contiguous tensor, or "t", a transposed view.
    """

    block: tuple[int, int]
    payload_order: str
    scale_layout: str
    input_order: str


VARIANTS = {
    "dim0": Variant((1, 32), "row", "plain", "n"),
    "dim1": Variant((32, 1), "col", "plain_t", "n"),
    "32x1_n": Variant((32, 1), "col", SWIZZLE, "n"),
    "32x1_t": Variant((32, 1), "col", SWIZZLE, "t"),
    "32x32_n": Variant((32, 32), "col", SWIZZLE, "n"),
    "32x32_t": Variant((32, 32), "col", SWIZZLE, "t"),
}
"""dim0 and dim1 are torchao's 2-D quantizers, the others those of 3-D expert weights."""


def variant(name: str) -> Variant:
    """The variant of this name; ValueError, with the list, for any other.

    >>> variant("32x1_t")
    Variant(block=(32, 1), payload_order='col', scale_layout='swizzle_32_4_4', input_order='t')
    """
    if name not in VARIANTS:
        raise ValueError(f"variant={name!r}: expected one of {', '.join(map(repr, VARIANTS))}")
    return VARIANTS[name]
