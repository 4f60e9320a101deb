"""Where blocks lie: x as rows, and the shapes of payload and scale in every order and layout.

Also what a fake kernel knows, so nothing here reads a value or a device.
"""

from collections.abc import Sequence

import torch

SWIZZLE = "swizzle_32_4_4"
PAYLOAD_ORDERS = ("row", "col")
SCALE_LAYOUTS = ("plain", "plain_t", SWIZZLE)


def as_rows(x: torch.Tensor) -> torch.Tensor:
    """`x` as (rows, columns) whose columns have stride 1: a view where one exists, else a copy.

    Read in place: contiguous tensors, and those whose last dimension has stride 1 while the
    others collapse into one stride (a slice of columns, every second row, one row expanded).
    """
    columns = x.shape[-1]
    rows = x.resolve_neg().reshape(x.numel() // max(columns, 1), columns)
    return rows if rows.stride(1) == 1 or columns == 1 else rows.contiguous()


def scale_shape(shape: Sequence[int], block: tuple[int, int]) -> tuple[int, ...]:
    """The logical shape of the scales of an x of this shape: one entry for each block."""
    *lead, last = shape
    if block[0] > 1:
        lead[-1] = -(-lead[-1] // block[0])
    return (*lead, -(-last // block[1]))


def stored_shape(
    shape: Sequence[int], block: tuple[int, int], payload_order: str, scale_layout: str
) -> tuple[int, ...]:
    """The shape in which the scales of an x of this shape are stored; always contiguous."""
    logical = scale_shape(shape, block)
    if scale_layout == "plain":
        return logical
    # A vector is one row of blocks.
    *lead, rows, columns = (1, *logical) if len(logical) == 1 else logical
    if scale_layout == "plain_t":
        return (*lead, columns, rows)
    if contracted(block, payload_order) == -2:
        rows, columns = shape[-1], -(-shape[-2] // 32)
    else:
        rows = 1 if len(shape) == 1 else shape[-2]
    padded = -(-rows // 128) * 128 * (-(-columns // 4) * 4)
    return (*lead, padded)


def tile_count(size: int, unit: int, tile: int) -> int:
    """How many tiles cover `size` rounded up to a multiple of `unit`.

    >>> tile_count(130, 128, 64)
    4
    """
    return -(-(-(-size // unit) * unit) // tile)


def contracted(block: tuple[int, int], payload_order: str) -> int:
    """The dimension a GEMM sums over: the blocked one; for a tile the one stored contiguously."""
    if block[0] == 1:
        return -1
    return -2 if block[1] == 1 or payload_order == "col" else -1


def payload_strides(shape: Sequence[int], payload_order: str) -> tuple[int, ...]:
    """The strides of the payload: contiguous, for "col" with the last two dimensions swapped."""
    swap = payload_order == "col" and len(shape) > 1
    order = list(range(len(shape)))
    if swap:
        order[-2:] = order[-1], order[-2]
    strides = [0] * len(shape)
    step = 1
    for dim in reversed(order):
        strides[dim] = step
        step = step * max(shape[dim], 1)
    return tuple(strides)
