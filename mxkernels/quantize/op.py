"""`torch.ops.mxkernels.quantize`: the schema, its fake kernel, and the way to each back end.

One op serves all back ends, so a graph that torch.compile captures holds a single opaque node and
no float8_e8m0fnu view reaches inductor. What only the machine knows (is Triton there, which GPU) is
asked when the op runs, never while it is traced.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch

from mxkernels import arch
from mxkernels.library import operator
from mxkernels.quantize import again, shapes
from mxkernels.quantize.configs import BOTH, TRITON
from mxkernels.quantize.cuda import plan_both_cuda, plan_cuda
from mxkernels.quantize.cuda_configs import BOTH as BOTH_CUDA
from mxkernels.quantize.cuda_configs import CUDA
from mxkernels.quantize.launch import launch, plan_both, plan_triton
from mxkernels.quantize.ue8m0 import NAMED, in_hardware
from mxref import RECIPES

MIN_ARCH = 80
"""The oldest GPU the kernels are compiled for; below sm_80 nothing is tested."""

CONFIGS: dict[str, tuple[Any, ...]] = {
    "triton": TRITON,
    "cuda": CUDA,
    "triton_ue8m0": TRITON,
    "cuda_ue8m0": CUDA,
}
BOTH_CONFIGS: dict[str, tuple[Any, ...]] = {"triton": BOTH.configs, "cuda": BOTH_CUDA}
"""What `config` counts into, by back end."""

PLANS: dict[str, Callable[..., Any]] = {
    "triton": plan_triton,
    "cuda": plan_cuda,
    "triton_ue8m0": in_hardware(plan_triton),
    "cuda_ue8m0": in_hardware(plan_cuda),
}
BOTH_PLANS: dict[str, Callable[..., Any]] = {"triton": plan_both, "cuda": plan_both_cuda}
"""What a back end launches."""

ELEMENTS = {
    name: {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}[row.element]
    for name, row in RECIPES.items()
}
"""The dtype of a recipe's payload."""


def missing(backend: str, device: torch.device) -> str | None:
    """One line that names what `backend` lacks on `device` on this machine, or None."""
    if backend in NAMED:
        return arch.ue8m0_missing(device) or missing(NAMED[backend], device)
    lacking = arch.device_missing(device, MIN_ARCH)
    if lacking:
        return lacking
    if backend == "cuda":
        return arch.cuda_missing(device.type)
    if backend == "compile":
        return arch.compiler_missing(device.type)
    return arch.triton_missing(interpret=device.type == "cpu")


_READY: set[tuple[str, torch.device]] = set()


def _require(backend: str, device: torch.device) -> None:
    """RuntimeError naming what lacks; a GPU that was found ready is not asked again."""
    if (backend, device) in _READY:
        return
    lacking = missing(backend, device)
    if lacking:
        raise RuntimeError(f"backend={backend!r} cannot run here: {lacking}")
    if device.type == "cuda":
        _READY.add((backend, device))


@functools.cache
def _chosen(operation: str, variant: tuple[Any, ...], device: torch.device) -> str:
    """What "auto" means, asked when a graph runs: nothing of the machine is traced."""
    from mxkernels.registry import chosen_backend  # registry imports this module

    return chosen_backend(operation, variant, device)


def _empty(
    x: torch.Tensor, recipe: str, block: tuple[int, int], payload_order: str, scale_layout: str
) -> tuple[torch.Tensor, torch.Tensor]:
    strides = shapes.payload_strides(x.shape, payload_order)
    payload = torch.empty_strided(x.shape, strides, dtype=ELEMENTS[recipe], device=x.device)
    stored = shapes.stored_shape(x.shape, block, payload_order, scale_layout)
    return payload, torch.empty(stored, dtype=torch.float8_e8m0fnu, device=x.device)


def _fake(
    x: torch.Tensor,
    backend: str,
    recipe: str,
    block: Sequence[int],
    payload_order: str,
    scale_layout: str,
    config: int = -1,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Empty outputs of the right shape and strides."""
    return _empty(x, recipe, (int(block[0]), int(block[1])), payload_order, scale_layout)


@operator("quantize", _fake)
def quantize(
    x: torch.Tensor,
    backend: str,
    recipe: str,
    block: Sequence[int],
    payload_order: str,
    scale_layout: str,
    config: int = -1,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Payload and scale of `x`; `config` counts into the configurations of the back end.

    A thin layer: arguments are checked by `mxkernels.quantize` and `KernelSpec.call`.
    """
    pair = (block[0], block[1])
    if backend == "auto":
        backend = _chosen("quantize", (pair, payload_order, scale_layout), x.device)
    if backend == "reference":
        from mxkernels import reference

        return reference.quantize(x, recipe, pair, payload_order, scale_layout)
    _require(backend, x.device)
    if backend == "compile":
        from mxkernels.quantize import compile as plain

        return plain.quantize(x, recipe, scale_layout)
    outputs = _allocated(x, recipe, pair, payload_order, scale_layout)
    chosen = None if config < 0 else CONFIGS[backend][config]
    launch(PLANS[backend], x, outputs, recipe, pair, payload_order, scale_layout, chosen)
    return outputs


@functools.lru_cache(4096)
def _places(
    shape: torch.Size, recipe: str, block: tuple[int, int], payload_order: str, scale_layout: str
) -> tuple[again.Place, again.Place]:
    """Shape, strides and dtype of payload and scales, remembered."""
    stored = shapes.stored_shape(shape, block, payload_order, scale_layout)
    strides = shapes.payload_strides(shape, payload_order)
    payload = tuple(shape), strides, ELEMENTS[recipe]
    return payload, (stored, shapes.payload_strides(stored, "row"), torch.float8_e8m0fnu)


def _allocated(
    x: torch.Tensor, recipe: str, block: tuple[int, int], payload_order: str, scale_layout: str
) -> tuple[torch.Tensor, torch.Tensor]:
    """What `_empty` gives, for sizes that are numbers."""
    device = x.device
    payload, scale = _places(x.shape, recipe, block, payload_order, scale_layout)
    if x.is_cuda and device.index == again.current_device():
        return again.allocate(*payload), again.allocate(*scale)
    return (
        torch.empty_strided(*payload[:2], dtype=payload[2], device=device),
        torch.empty_strided(*scale[:2], dtype=scale[2], device=device),
    )


Four = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]


def _fake_both(
    x: torch.Tensor,
    backend: str,
    recipe: str,
    row_layout: str,
    column_layout: str,
    config: int = -1,
) -> Four:
    along = _empty(x, recipe, (1, 32), "row", row_layout)
    return (*along, *_empty(x, recipe, (32, 1), "col", column_layout))


@operator("quantize_both", _fake_both)
def quantize_both(
    x: torch.Tensor,
    backend: str,
    recipe: str,
    row_layout: str,
    column_layout: str,
    config: int = -1,
) -> Four:
    """Payload and scale in blocks (1, 32), row; payload and scale in blocks (32, 1), col."""
    if backend == "auto":
        backend = _chosen("quantize_both", (row_layout, column_layout), x.device)
    if backend == "reference":
        from mxkernels import reference

        first, second = reference.quantize_both(x, recipe, (row_layout, column_layout))
        return (*first, *second)
    _require(backend, x.device)
    outputs = (
        *_allocated(x, recipe, (1, 32), "row", row_layout),
        *_allocated(x, recipe, (32, 1), "col", column_layout),
    )
    chosen = None if config < 0 else BOTH_CONFIGS[backend][config]
    launch(BOTH_PLANS[backend], x, outputs, recipe, (row_layout, column_layout), chosen)
    return outputs
