"""From a tensor and buffers to a kernel: the case, the kernel that serves it, the copy of Triton.

Buffers are dense memory of bytes of the right size, written in the order of payload and layout;
their own shape and strides are not looked at. What only the machine knows is asked here.
"""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch

from mxkernels.loader import interpreting, kernels
from mxkernels.quantize.canonical import both, canonical
from mxkernels.quantize.configs import FlatConfig, TileConfig
from mxkernels.quantize.plan import Launch
from mxkernels.quantize.plans import Buffers, Started, planned

_PLANS: dict[tuple[Any, ...], Launch] = {}


def launch(
    plan: Callable[..., tuple[Started, torch.Tensor]],
    x: torch.Tensor,
    buffers: Buffers,
    *request: object,
) -> None:
    """Write payload and stored scales of `x` into buffers, as `plan` plans it for the request.

    Both directions: payload and scales in blocks (1, 32), row, then those in (32, 1), col.
    """
    if x.numel():
        # The interpreter runs for one thread at a time.
        with interpreting() if x.device.type == "cpu" else nullcontext():
            started, source = plan(x, buffers, *request)
            started.start(source, buffers)


def _module(name: str, device: torch.device) -> Any:
    """The compiled kernels for a GPU; the interpreted ones for a CPU tensor."""
    return kernels(name, interpret=device.type == "cpu")


def plan_triton(
    x: torch.Tensor,
    buffers: Buffers,
    recipe: str,
    block: tuple[int, int],
    payload_order: str,
    scale_layout: str,
    config: FlatConfig | TileConfig | None,
) -> tuple[Launch, torch.Tensor]:
    """The launch of a request, and x or the copy of it that the launch is for.

    A FlatConfig asks for the kernel without tiles, which serves blocks that follow one another.
    """

    def make() -> tuple[Launch, torch.Tensor]:
        case = canonical(x, block, payload_order, scale_layout)
        if not (case.flat if config is None else isinstance(config, FlatConfig)):
            module = _module("quantize.tiled", x.device)
            return module.prepare(case, buffers, recipe, config), case.x
        if not case.along:
            raise ValueError(
                f"config={config!r}: expected a TileConfig for block={block}, "
                f"payload_order={payload_order!r}, scale_layout={scale_layout!r}"
            )
        rows = case.x[0] if case.flat else case.x.contiguous().flatten(0, 1)
        module = _module("quantize.triton", x.device)
        return module.prepare(rows, buffers[1], recipe, config), rows

    request = (recipe, block, payload_order, scale_layout, config)
    return planned(_PLANS, x, buffers, request, make)


def plan_both(
    x: torch.Tensor,
    buffers: Buffers,
    recipe: str,
    layouts: tuple[str, str],
    config: TileConfig | None,
) -> tuple[Launch, torch.Tensor]:
    """The same of both directions."""

    def make() -> tuple[Launch, torch.Tensor]:
        case = both(x, buffers, layouts)
        launch: Launch = _module("quantize.both", x.device).prepare(case, recipe, config)
        launch.swapped = case.buffers[0] is not buffers[0]
        return launch, case.x

    return planned(_PLANS, x, buffers, (recipe, layouts, config), make)
