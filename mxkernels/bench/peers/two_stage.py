"""Two kernels where one is enough: quantize with unswizzled scales, then swizzle those.

Both are our own Triton kernels at their fastest. For a transposed view in blocks of 32x1 that is
1x32 quantization of the contiguous tensor behind it, then a swizzle of each expert's scales.
"""

from collections.abc import Callable
from typing import Any

import torch

import mxkernels
from mxkernels.bench.plan import Case
from mxkernels.quantize.shapes import SWIZZLE, contracted
from mxkernels.quantize.variants import Variant
from mxkernels.registry import KERNELS
from mxref import Quantized

NAME = "two_stage"


def prepare(case: Case, variant: Variant) -> Callable[[torch.Tensor], Any] | str | None:
    """Both stages for this case; None where there is nothing to swizzle."""
    block, order, layout, _ = variant
    if layout != SWIZZLE:
        return None
    quantize = next((s.call for s in KERNELS if s.op == "quantize" and s.backend == "triton"), None)
    if quantize is None:
        return "no Triton quantizer is registered"
    first = "plain_t" if order == "col" else "plain"
    square = block == (32, 32)
    options: dict[str, Any] = {"block": block}
    if square:
        options |= {"shape": case.shape, "contract": contracted(block, order)}

    def call(x: torch.Tensor) -> Quantized:
        payload, scale = quantize(x, case.recipe, block, order, first)
        logical = scale.mT if first == "plain_t" else scale
        return Quantized(payload, mxkernels.swizzle(logical, SWIZZLE, **options))

    return call
