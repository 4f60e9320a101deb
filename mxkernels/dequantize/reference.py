"""backend="reference": mxref behind the signature of the op. Never judged as a kernel."""

import torch

import mxref
from mxkernels.dequantize.shapes import values_strides


def dequantize(
    payload: torch.Tensor,
    scale: torch.Tensor,
    block: tuple[int, int],
    scale_layout: str,
    contract: int,
    dtype: torch.dtype,
) -> torch.Tensor:
    """`mxref.dequantize` of decoded scales, ordered as the payload is; contract 0 is None."""
    logical = mxref.layouts.decode(
        scale, scale_layout, block=block, shape=tuple(payload.shape), contract=contract or None
    )
    found = mxref.dequantize(payload, logical, block=block, dtype=dtype)
    strides = values_strides(payload)
    if found.stride() == strides:
        return found
    return found.new_empty_strided(found.shape, strides).copy_(found)
