"""Arguments of `swizzle` and `unswizzle`, checked and handed to the op they belong to.

What the public functions and the KernelSpecs share; `config` counts into `configs.SWIZZLES`.
"""

import torch

from mxkernels import arguments as named
from mxkernels.swizzle import arguments, op
from mxkernels.swizzle.shapes import LAYOUTS


def swizzle(
    scale: torch.Tensor,
    layout: str,
    block: tuple[int, int] = (1, 32),
    shape: tuple[int, ...] | None = None,
    contract: int | None = None,
    offs: torch.Tensor | None = None,
    axis: str | None = None,
    backend: str = "auto",
    config: int = -1,
) -> torch.Tensor:
    """`mxkernels.swizzle` with a configuration."""
    scale = arguments.tensor("scale", scale, arguments.SCALE_DTYPES)
    named.one_of("layout", layout, LAYOUTS)
    pair = named.block_pair(block)
    backend = arguments.backend_name(backend, scale)
    if offs is None:
        arguments.no_axis(axis)
        summed = arguments.direction(contract, pair, layout)
        sizes = arguments.logical(scale, layout, pair, shape)
        return op.swizzle(scale, backend, layout, pair, sizes, summed, config)
    arguments.group_only(layout, pair, contract)
    if shape is not None:
        raise ValueError(f"shape={shape!r}: expected None with offs, scale is S[R, C] itself")
    if scale.dim() != 2:
        raise ValueError(f"scale has shape {tuple(scale.shape)}: expected two dimensions with offs")
    offs = arguments.ends(offs, axis, scale.device)
    return op.swizzle_groups(scale, offs, backend, axis, config)


def unswizzle(
    stored: torch.Tensor,
    layout: str,
    block: tuple[int, int] = (1, 32),
    shape: tuple[int, ...] | None = None,
    contract: int | None = None,
    offs: torch.Tensor | None = None,
    axis: str | None = None,
    backend: str = "auto",
    config: int = -1,
) -> torch.Tensor:
    """`mxkernels.unswizzle` with a configuration."""
    stored = arguments.tensor("stored", stored, arguments.SCALE_DTYPES)
    named.one_of("layout", layout, LAYOUTS)
    pair = named.block_pair(block)
    backend = arguments.backend_name(backend, stored)
    if offs is None:
        arguments.no_axis(axis)
        summed = arguments.direction(contract, pair, layout)
        sizes = arguments.x_shape(shape, pair)
        arguments.stored_scale("stored", stored, layout, pair, sizes, summed)
        return op.unswizzle(stored, backend, layout, pair, sizes, summed, config)
    arguments.group_only(layout, pair, contract)
    offs = arguments.ends(offs, axis, stored.device)
    sizes = arguments.group_shape(shape)
    arguments.grouped_bytes(stored, sizes, offs.shape[0], axis)
    return op.unswizzle_groups(stored, offs, backend, axis, sizes, config)
