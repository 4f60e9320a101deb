"""Operands of a product: a matrix cast along one dimension or both, contracted one last.

The ops are called as they are, without the public functions' checks of arguments: `require` stands
in for those.
"""

import torch

from mxkernels import registry
from mxkernels.linear.config import DIMENSIONS, CastConfig
from mxkernels.matmul import table
from mxkernels.quantize import op
from mxkernels.quantize.shapes import SWIZZLE
from mxref import Quantized

TURNED = {"plain": "plain_t", SWIZZLE: SWIZZLE}
"""The layout in which dim1's scales lie as the rows that a back end reads."""


def require(config: CastConfig, device: torch.device, layouts: tuple[str, str]) -> None:
    """NotImplementedError unless the chosen kernels are built; layouts of dim0 and of dim1."""
    stored = {"dim0": layouts[0], "dim1": TURNED[layouts[1]]}
    for name, (block, order) in DIMENSIONS.items():
        backend = config.kernel(name, device)
        if backend != "reference":
            spec = registry.find("quantize", backend)
            spec.require(config.recipe, block, order, stored[name])


def along(x: torch.Tensor, config: CastConfig, layout: str) -> Quantized:
    """x (..., R, C) cast along C: payload of its shape, scales of R rows in `layout`."""
    block, order = DIMENSIONS["dim0"]
    backend = config.kernel("dim0", x.device)
    return Quantized(*op.quantize(x, backend, config.recipe, block, order, layout))


def across(x: torch.Tensor, config: CastConfig, layout: str) -> Quantized:
    """x (..., R, C) cast along R: payload (..., C, R), scales of C rows in `layout`."""
    block, order = DIMENSIONS["dim1"]
    backend = config.kernel("dim1", x.device)
    payload, scale = op.quantize(x, backend, config.recipe, block, order, TURNED[layout])
    return Quantized(payload.mT, scale)


def both(
    x: torch.Tensor, config: CastConfig, layouts: tuple[str, str]
) -> tuple[Quantized, Quantized]:
    """`along` and `across`, from one read of x where the configuration has a kernel for that."""
    backend = config.one_read(x.device)
    if backend is None:
        return along(x, config, layouts[0]), across(x, config, layouts[1])
    pair = layouts[0], TURNED[layouts[1]]
    rows, row_scale, columns, scale = op.quantize_both(x, backend, config.recipe, *pair)
    return Quantized(rows, row_scale), Quantized(columns.mT, scale)


def layout_for(backend: str) -> str:
    """How the scales lie that this back end of the matmul reads."""
    return table.find(backend).scale_layout
