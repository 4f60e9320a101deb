"""`torch.ops.mxkernels.swizzle`, `unswizzle` and their forms for groups: schemas and fakes.

Contract 0 stands for none. Arguments are checked by the public functions; what only the machine
knows is asked when an op runs, never while it is traced.
"""

from collections.abc import Sequence
from contextlib import nullcontext

import torch

from mxkernels import arch
from mxkernels.library import operator
from mxkernels.loader import interpreting, kernels
from mxkernels.swizzle import reference, shapes
from mxkernels.swizzle.configs import SWIZZLES

MIN_ARCH = 80
"""The oldest GPU the kernels are compiled for; below sm_80 nothing is tested."""


def missing(device: torch.device) -> str | None:
    """One line that names what the Triton kernels lack on `device` on this machine, or None."""
    lacking = arch.device_missing(device, MIN_ARCH)
    return lacking or arch.triton_missing(interpret=device.type == "cpu")


def launch(
    scale: torch.Tensor,
    stored: torch.Tensor,
    matrix: shapes.Matrix,
    config: int = -1,
    *,
    inverse: bool,
    offs: torch.Tensor | None = None,
) -> None:
    """Write `stored` (uint8, contiguous) from `scale` (uint8), or back where `inverse`."""
    lacking = missing(scale.device)
    if lacking:
        raise RuntimeError(f"backend='triton' cannot run here: {lacking}")
    chosen = None if config < 0 else SWIZZLES[config]
    offs = offs if offs is None else offs.contiguous()
    cpu = scale.device.type == "cpu"
    with interpreting() if cpu else nullcontext():
        module = kernels("swizzle.triton", interpret=cpu)
        module.launch(scale, stored, matrix, chosen, inverse=inverse, offs=offs)


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.view(torch.uint8)


def _as_matrices(scale: torch.Tensor) -> torch.Tensor:
    """Logical scales as (count, rows, columns); a view where the leading dimensions collapse."""
    if scale.dim() == 1:
        return scale[None, None]
    rows, columns = scale.shape[-2:]
    count = torch.Size(scale.shape[:-2]).numel()
    return scale.reshape(count, rows, columns)


def _pair(block: Sequence[int]) -> tuple[int, int]:
    return int(block[0]), int(block[1])


def swizzle_fake(
    scale: torch.Tensor,
    backend: str,
    layout: str,
    block: Sequence[int],
    shape: Sequence[int],
    contract: int,
    config: int = -1,
) -> torch.Tensor:
    """An empty output of the right shape: the real op allocates by this as well."""
    stored = shapes.stored_shape(shape, layout, _pair(block), contract)
    return torch.empty(stored, dtype=scale.dtype, device=scale.device)


@operator("swizzle", swizzle_fake)
def swizzle(
    scale: torch.Tensor,
    backend: str,
    layout: str,
    block: Sequence[int],
    shape: Sequence[int],
    contract: int,
    config: int = -1,
) -> torch.Tensor:
    """Logical scales to a layout; `shape` is that of x."""
    pair, sizes = _pair(block), tuple(shape)
    if backend == "reference":
        return reference.swizzle(scale, layout, pair, sizes, contract)
    stored = swizzle_fake(scale, backend, layout, block, shape, contract)
    if layout == shapes.SWIZZLE:
        logical = _as_matrices(_bytes(scale))
        matrix = shapes.matrix_of(logical, sizes, pair, contract)
        launch(logical, _bytes(stored), matrix, config, inverse=False)
    else:
        ordered = scale.unsqueeze(0) if scale.dim() == 1 else scale
        ordered = ordered.mT if layout == "plain_t" else scale
        _bytes(stored).copy_(_bytes(ordered))
    return stored


def unswizzle_fake(
    stored: torch.Tensor,
    backend: str,
    layout: str,
    block: Sequence[int],
    shape: Sequence[int],
    contract: int,
    config: int = -1,
) -> torch.Tensor:
    """Empty logical scales."""
    logical = shapes.logical_shape(shape, _pair(block))
    return torch.empty(logical, dtype=stored.dtype, device=stored.device)


@operator("unswizzle", unswizzle_fake)
def unswizzle(
    stored: torch.Tensor,
    backend: str,
    layout: str,
    block: Sequence[int],
    shape: Sequence[int],
    contract: int,
    config: int = -1,
) -> torch.Tensor:
    """The logical scales from a layout; `shape` is that of x."""
    pair, sizes = _pair(block), tuple(shape)
    if backend == "reference":
        return reference.unswizzle(stored, layout, pair, sizes, contract)
    scale = unswizzle_fake(stored, backend, layout, block, shape, contract)
    if layout == shapes.SWIZZLE:
        logical = _as_matrices(_bytes(scale))
        matrix = shapes.matrix_of(logical, sizes, pair, contract)
        launch(logical, _bytes(stored).contiguous(), matrix, config, inverse=True)
    else:
        expected = shapes.stored_shape(sizes, layout, pair, contract)
        ordered = _bytes(stored).reshape(expected)
        ordered = ordered.mT if layout == "plain_t" else ordered
        _bytes(scale).copy_(ordered.reshape(scale.shape))
    return scale


def swizzle_groups_fake(
    scale: torch.Tensor, offs: torch.Tensor, backend: str, axis: str, config: int = -1
) -> torch.Tensor:
    """An empty output of the right shape."""
    stored = shapes.grouped_shape(scale.shape, offs.shape[0], axis)
    return torch.empty(stored, dtype=scale.dtype, device=scale.device)


@operator("swizzle_groups", swizzle_groups_fake)
def swizzle_groups(
    scale: torch.Tensor, offs: torch.Tensor, backend: str, axis: str, config: int = -1
) -> torch.Tensor:
    """S[R, C] to the grouped layout, by ends on its device."""
    if backend == "reference":
        return reference.swizzle_groups(scale, offs, axis)
    stored = swizzle_groups_fake(scale, offs, backend, axis)
    codes = _bytes(scale)
    matrix = shapes.grouped_matrix(codes, offs.numel(), axis)
    launch(codes, _bytes(stored), matrix, config, inverse=False, offs=offs)
    return stored


def unswizzle_groups_fake(
    stored: torch.Tensor,
    offs: torch.Tensor,
    backend: str,
    axis: str,
    shape: Sequence[int],
    config: int = -1,
) -> torch.Tensor:
    """An empty S[R, C]."""
    return torch.empty(tuple(shape), dtype=stored.dtype, device=stored.device)


@operator("unswizzle_groups", unswizzle_groups_fake)
def unswizzle_groups(
    stored: torch.Tensor,
    offs: torch.Tensor,
    backend: str,
    axis: str,
    shape: Sequence[int],
    config: int = -1,
) -> torch.Tensor:
    """S[R, C] from the grouped layout; what no group covers is 0."""
    if backend == "reference":
        return reference.unswizzle_groups(stored, offs, axis, (shape[0], shape[1]))
    scale = unswizzle_groups_fake(stored, offs, backend, axis, shape)
    codes = _bytes(scale)
    matrix = shapes.grouped_matrix(codes, offs.numel(), axis)
    launch(codes, _bytes(stored).contiguous(), matrix, config, inverse=True, offs=offs)
    return scale
