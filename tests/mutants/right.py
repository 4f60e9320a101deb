"""Right quantizers of other make: none of them may raise an alarm."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

import mxref
from tests.mutants.model import fault


def divides(x: Tensor) -> Any:
    """A float formula: frexp for the scale, a division by it for the elements."""
    return fault(multiplier=reciprocal)(x)


def reciprocal(byte: Tensor) -> Tensor:
    return 1 / torch.ldexp(torch.ones_like(byte, dtype=torch.float64), byte - 127)


def plain_bytes(x: Tensor) -> Any:
    payload, scale = mxref.quantize(x, "rceil")
    return payload.view(torch.uint8), scale.view(torch.uint8)


def nan_is_ff(x: Tensor) -> Any:
    payload, scale = (each.view(torch.uint8) for each in mxref.quantize(x, "rceil"))
    return payload.masked_fill(payload == 0x7F, 0xFF), scale


def other_strides(x: Tensor) -> Any:
    payload, scale = mxref.quantize(x, "rceil")
    if x.dim() < 2:
        return [payload, scale]
    return [each.mT.contiguous().mT for each in (payload, scale)]


def multiples_only(x: Tensor) -> Any:
    if x.dim() != 2 or not x.numel() or any(size % 32 for size in x.shape):
        raise ValueError("sizes must be multiples of 32")
    if not x.is_contiguous() or x.storage_offset():
        raise ValueError("contiguous only")
    return mxref.quantize(x, "rceil")


def bf16_only(x: Tensor) -> Any:
    if x.dtype != torch.bfloat16:
        raise NotImplementedError(str(x.dtype))
    return mxref.quantize(x, "rceil")


RIGHT: dict[str, Callable[[Tensor], Any]] = {
    function.__name__: function
    for function in (divides, plain_bytes, nan_is_ff, other_strides, multiples_only, bf16_only)
}
