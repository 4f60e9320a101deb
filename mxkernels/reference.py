"""backend="reference": mxref itself behind the signature of a kernel. Never judged as one."""

import torch

import mxref
from mxkernels.quantize.shapes import contracted, payload_strides
from mxref import Quantized, Recipe


def quantize(
    x: torch.Tensor,
    recipe: str | Recipe,
    block: tuple[int, int],
    payload_order: str,
    scale_layout: str,
) -> Quantized:
    """`mxref.quantize`, its scale stored by `mxref.layouts.encode`, its payload in either order."""
    payload, scale = mxref.quantize(x, recipe, block=block)
    if payload_order == "col" and x.dim() > 1:
        strides = payload_strides(x.shape, payload_order)
        payload = payload.new_empty_strided(x.shape, strides).copy_(payload)
    if scale_layout != "plain":
        contract = contracted(block, payload_order)
        scale = mxref.layouts.encode(
            scale, scale_layout, block=block, shape=tuple(x.shape), contract=contract
        )
    return Quantized(payload, scale)


def quantize_both(
    x: torch.Tensor, recipe: str | Recipe, scale_layouts: tuple[str, str]
) -> tuple[Quantized, Quantized]:
    """Blocks (1, 32) in row order, blocks (32, 1) in col order, by two calls."""
    first, second = scale_layouts
    return (
        quantize(x, recipe, (1, 32), "row", first),
        quantize(x, recipe, (32, 1), "col", second),
    )
