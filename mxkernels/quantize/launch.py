"""From a tensor and buffers to a kernel: the case, the kernel that serves it, the copy of Triton.

Buffers are dense memory of bytes of the right size, written in the order of payload and layout;
their own shape and strides are not looked at. What only the machine knows is asked here.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

import torch

from mxkernels.loader import interpreting, kernels
from mxkernels.quantize.canonical import Both, both, canonical
from mxkernels.quantize.configs import FlatConfig, TileConfig


@contextmanager
def _module(name: str, device: torch.device) -> Iterator[ModuleType]:
    """The compiled kernels for a GPU; for a CPU tensor the interpreted ones, one thread in."""
    if device.type == "cpu":
        with interpreting():
            yield kernels(name, interpret=True)
    else:
        yield kernels(name, interpret=False)


def launch_triton(
    x: torch.Tensor,
    payload: torch.Tensor,
    scale: torch.Tensor,
    recipe: str,
    block: tuple[int, int] = (1, 32),
    payload_order: str = "row",
    scale_layout: str = "plain",
    config: FlatConfig | TileConfig | None = None,
) -> None:
    """Write payload and stored scales of `x` into two buffers.

    A FlatConfig asks for the kernel without tiles, which serves blocks that follow one another.
    """
    if not x.numel():
        return
    payload, scale = payload.view(torch.uint8), scale.view(torch.uint8)
    case = canonical(x, block, payload_order, scale_layout)
    flat = case.flat if config is None else isinstance(config, FlatConfig)
    if not flat:
        with _module("quantize.tiled", x.device) as module:
            module.launch(case, payload, scale, recipe, config)
        return
    if not case.along:
        raise ValueError(
            f"config={config!r}: expected a TileConfig for block={block}, "
            f"payload_order={payload_order!r}, scale_layout={scale_layout!r}"
        )
    rows = case.x[0] if case.flat else case.x.contiguous().flatten(0, 1)
    with _module("quantize.triton", x.device) as module:
        module.launch(rows, payload, scale, recipe, config)


def launch_both(
    x: torch.Tensor,
    buffers: tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor],
    recipe: str,
    layouts: tuple[str, str] = ("plain", "plain"),
    config: TileConfig | None = None,
) -> None:
    """Write payload and stored scales of both directions: (1, 32) row, then (32, 1) col."""
    if not x.numel():
        return
    a, b, c, d = (buffer.view(torch.uint8) for buffer in buffers)
    case: Both = both(x, (a, b, c, d), layouts)
    with _module("quantize.both", x.device) as module:
        module.launch(case.x, case.buffers, recipe, case.layouts, config)
