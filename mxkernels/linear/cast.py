"""Operands of a product: a matrix cast along one dimension or both, contracted one last.

The ops are called as they are, without the public functions' checks of arguments: `require` stands
in for those.
"""

import torch

from mxkernels import registry
from mxkernels.linear.config import DIMENSIONS, CastConfig
from mxkernels.quantize import op
from mxkernels.quantize.shapes import SWIZZLE
from mxref import Quantized

LAYOUT = SWIZZLE
"""How a layer's scales lie: every back end of the matmul reads it, and a cast writes whole tiles of
512 bytes, where plain scales leave it in pieces of 4 or 8."""

TURNED = {"plain": "plain_t", SWIZZLE: SWIZZLE}
"""The layout in which dim1's scales lie as the rows that a back end reads."""


def require(config: CastConfig, device: torch.device, layout: str = LAYOUT) -> None:
    """NotImplementedError unless the chosen kernels are built, for scales that lie so."""
    stored = {"dim0": layout, "dim1": TURNED[layout]}
    for name, (block, order) in DIMENSIONS.items():
        backend = config.kernel(name, device)
        if backend != "reference":
            spec = registry.find("quantize", backend)
            try:
                spec.require(config.recipe, block, order, stored[name])
            except NotImplementedError as error:
                raise NotImplementedError(f"{name}={backend!r}: {error}") from None


def along(x: torch.Tensor, config: CastConfig, layout: str = LAYOUT) -> Quantized:
    """x (..., R, C) cast along C: payload of its shape, scales of R rows in `layout`."""
    block, order = DIMENSIONS["dim0"]
    backend = config.kernel("dim0", x.device)
    return Quantized(*op.quantize(x, backend, config.recipe, block, order, layout))


def across(x: torch.Tensor, config: CastConfig, layout: str = LAYOUT) -> Quantized:
    """x (..., R, C) cast along R: payload (..., C, R), scales of C rows in `layout`."""
    block, order = DIMENSIONS["dim1"]
    backend = config.kernel("dim1", x.device)
    payload, scale = op.quantize(x, backend, config.recipe, block, order, TURNED[layout])
    return Quantized(payload.mT, scale)


def both(x: torch.Tensor, config: CastConfig, layout: str = LAYOUT) -> tuple[Quantized, Quantized]:
    """`along` and `across`, from one read of x where the configuration has a kernel for that."""
    backend = config.one_read(x.device)
    if backend is None:
        return along(x, config, layout), across(x, config, layout)
    layouts = layout, TURNED[layout]
    rows, row_scale, columns, scale = op.quantize_both(x, backend, config.recipe, *layouts)
    return Quantized(rows, row_scale), Quantized(columns.mT, scale)
