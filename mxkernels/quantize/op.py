"""`torch.ops.mxkernels.quantize`: the schema, its fake kernel, and the way to each back end.

One custom op serves all back ends, so a graph that torch.compile captures holds a single opaque
node and no float8_e8m0fnu view reaches inductor. What only the machine knows (is Triton there,
which GPU) is asked when the op runs, never while it is traced.
"""

from collections.abc import Sequence

import torch

from mxkernels import arch
from mxkernels.quantize import shapes
from mxkernels.quantize.configs import BOTH, TRITON, FlatConfig, TileConfig
from mxkernels.quantize.launch import launch_both, launch_triton
from mxref import RECIPES

MIN_ARCH = 80
"""The oldest GPU the kernels are compiled for; below sm_80 nothing is tested."""

CONFIGS: dict[str, tuple[FlatConfig | TileConfig, ...]] = {
    "triton": TRITON,
    "compile": (),
    "reference": (),
}


def missing(backend: str, device: torch.device) -> str | None:
    """One line that names what `backend` lacks on `device` on this machine, or None."""
    lacking = arch.device_missing(device, MIN_ARCH)
    if lacking:
        return lacking
    if backend == "compile":
        return arch.compiler_missing(device.type)
    return arch.triton_missing(interpret=device.type == "cpu")


@torch.library.custom_op("mxkernels::quantize", mutates_args=())
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
    if backend == "reference":
        from mxkernels import reference

        return reference.quantize(x, recipe, tuple(block), payload_order, scale_layout)
    lacking = missing(backend, x.device)
    if lacking:
        raise RuntimeError(f"backend={backend!r} cannot run here: {lacking}")
    if backend == "compile":
        from mxkernels.quantize import compile as plain

        return plain.quantize(x, recipe)
    payload, scale = _fake(x, backend, recipe, block, payload_order, scale_layout)
    chosen = None if config < 0 else CONFIGS[backend][config]
    buffers = payload.view(torch.uint8), scale.view(torch.uint8)
    pair = (block[0], block[1])
    launch_triton(x, *buffers, recipe, pair, payload_order, scale_layout, chosen)
    return payload, scale


@quantize.register_fake
def _fake(
    x: torch.Tensor,
    backend: str,
    recipe: str,
    block: Sequence[int],
    payload_order: str,
    scale_layout: str,
    config: int = -1,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Empty outputs of the right shape and strides: real kernels allocate by this as well."""
    return _empty(x, recipe, (int(block[0]), int(block[1])), payload_order, scale_layout)


def _empty(
    x: torch.Tensor, recipe: str, block: tuple[int, int], payload_order: str, scale_layout: str
) -> tuple[torch.Tensor, torch.Tensor]:
    element = {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}[RECIPES[recipe].element]
    strides = shapes.payload_strides(x.shape, payload_order)
    payload = torch.empty_strided(x.shape, strides, dtype=element, device=x.device)
    stored = shapes.stored_shape(x.shape, block, payload_order, scale_layout)
    return payload, torch.empty(stored, dtype=torch.float8_e8m0fnu, device=x.device)


Four = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]


@torch.library.custom_op("mxkernels::quantize_both", mutates_args=())
def quantize_both(
    x: torch.Tensor,
    backend: str,
    recipe: str,
    row_layout: str,
    column_layout: str,
    config: int = -1,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Payload and scale in blocks (1, 32), row; payload and scale in blocks (32, 1), col."""
    if backend == "reference":
        from mxkernels import reference

        first, second = reference.quantize_both(x, recipe, (row_layout, column_layout))
        return (*first, *second)
    lacking = missing(backend, x.device)
    if lacking:
        raise RuntimeError(f"backend={backend!r} cannot run here: {lacking}")
    outputs = _fake_both(x, backend, recipe, row_layout, column_layout)
    a, b, c, d = (part.view(torch.uint8) for part in outputs)
    chosen = None if config < 0 else BOTH.configs[config]
    launch_both(x, (a, b, c, d), recipe, (row_layout, column_layout), chosen)
    return outputs


@quantize_both.register_fake
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
