"""Plans that are kept: what a launch decides once for a request and how its tensors lie.

A plan belongs to a back end. `start(x, buffers)` launches it on tensors that lie as those it was
made for: same shape, strides, dtype, device and alignment, other addresses.
"""

from collections.abc import Callable
from typing import Any, Protocol

import torch

MOST = 4096
"""Entries kept by a table; past that all are dropped, so that ever new shapes cost no memory."""

Buffers = tuple[torch.Tensor, ...]


class Started(Protocol):
    """What is kept."""

    def start(self, x: torch.Tensor, buffers: Buffers) -> None:
        """Launch on torch's current stream of the device of x, which need not be current."""


def keep(table: dict[Any, Any], key: tuple[Any, ...], entry: Any) -> None:
    """Put an entry into a table of at most MOST."""
    if len(table) >= MOST:
        table.clear()
    table[key] = entry


def planned(
    table: dict[Any, Any],
    x: torch.Tensor,
    buffers: Buffers,
    request: tuple[Any, ...],
    make: Callable[[], tuple[Started, torch.Tensor]],
) -> tuple[Any, torch.Tensor]:
    """The plan of a request and the tensor to start it on: x, or the copy that `make` made of it.

    A plan for a copy is not kept.
    """
    key = (
        request,
        x.shape,
        x.stride(),
        x.dtype,
        x.device,
        x.is_neg(),
        x.data_ptr() % 16,
        *[buffer.data_ptr() % 16 for buffer in buffers],
    )
    plan = table.get(key)
    if plan is None:
        plan, source = make()
        if source.data_ptr() != x.data_ptr():
            return plan, source
        keep(table, key, plan)
    return plan, x
