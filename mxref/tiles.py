"""Block geometry: logical scale shapes, bounded pieces of a tensor, and a view of them as tiles."""

from collections.abc import Iterator

import torch
from torch import Tensor

from mxref.formats import BLOCKS

PIECE = 1 << 17
"""Elements handled at a time: the working set stays in a core's second-level cache."""

PIECE_ON_DEVICE = 1 << 24
"""The same where a launch costs more than a cache miss: about 1 GiB of scratch."""

Block = tuple[int, int]


def require_block(block: object) -> Block:
    """`block` as a tuple, or an error that names what is allowed."""
    allowed = ", ".join(map(str, BLOCKS))
    if not isinstance(block, (tuple, list)):
        raise TypeError(f"block={block!r}: expected one of {allowed}, got {type(block).__name__}")
    if tuple(block) not in BLOCKS or any(type(size) is not int for size in block):
        raise ValueError(f"block={block!r}: expected one of {allowed}")
    return (block[0], block[1])


def require_rank(shape: tuple[int, ...], block: Block, name: str) -> None:
    """ValueError where `shape` has too few dimensions for the block."""
    least = 1 if block[0] == 1 else 2
    if len(shape) < least:
        raise ValueError(
            f"{name} has shape {tuple(shape)}: block={block} needs at least {least} dimension(s)"
        )


def logical_shape(shape: tuple[int, ...], block: Block) -> tuple[int, ...]:
    """The shape of the scale of a tensor of this shape: blocked dimensions divided, rounded up."""
    columns = -(-shape[-1] // block[1])
    if len(shape) == 1:
        return (columns,)
    return (*shape[:-2], -(-shape[-2] // block[0]), columns)


def pieces(shape: tuple[int, ...], block: Block, limit: int) -> Iterator[tuple[slice, ...]]:
    """Slices that cut a tensor of this shape along whole blocks into pieces of at most `limit`.

    A piece holds at least one block, so it can exceed a limit that is smaller than a block.
    """
    units = (1,) * (len(shape) - 2) + block if len(shape) > 1 else block[1:]
    numel = 1
    for size in shape:
        numel *= size
    if numel == 0:
        return
    yield from _cut(shape, units, 0, numel, limit)


def _cut(
    shape: tuple[int, ...], units: tuple[int, ...], dim: int, numel: int, limit: int
) -> Iterator[tuple[slice, ...]]:
    """Slices from dimension `dim` on; `numel` is the size of one piece as it is cut so far."""
    if dim == len(shape):
        yield ()
        return
    inner = numel // shape[dim]
    step = max(limit // inner // units[dim], 1) * units[dim]
    for start in range(0, shape[dim], step):
        taken = slice(start, min(start + step, shape[dim]))
        for rest in _cut(shape, units, dim + 1, inner * min(step, shape[dim]), limit):
            yield (taken, *rest)


def scale_index(index: tuple[slice, ...], block: Block) -> tuple[slice, ...]:
    """The slices of the scale that belong to a piece."""
    units = (1,) * (len(index) - 2) + block if len(index) > 1 else block[1:]
    return tuple(
        slice(part.start // unit, -(-part.stop // unit))
        for part, unit in zip(index, units, strict=True)
    )


def tiled(piece: Tensor, block: Block, missing: float = 0.0) -> Tensor:
    """The piece as (matrices, row tiles, block[0], column tiles, block[1]), `missing` filled in.

    A view where the strides and sizes allow it, else a copy.
    """
    rows = piece.shape[-2] if piece.dim() > 1 else 1
    matrices = piece.reshape(-1, rows, piece.shape[-1])
    padded = [-(-size // unit) * unit for size, unit in zip(matrices.shape[1:], block, strict=True)]
    if padded != list(matrices.shape[1:]):
        whole = matrices.new_full((matrices.shape[0], *padded), missing)
        whole[:, : matrices.shape[1], : matrices.shape[2]] = matrices
        matrices = whole
    return matrices.reshape(
        matrices.shape[0], padded[0] // block[0], block[0], padded[1] // block[1], block[1]
    )


def untiled(tiles: Tensor, piece_shape: torch.Size) -> Tensor:
    """The inverse of `tiled`: the elements of the piece, padding cut off."""
    matrices = tiles.reshape(tiles.shape[0], tiles.shape[1] * tiles.shape[2], -1)
    rows = piece_shape[-2] if len(piece_shape) > 1 else 1
    return matrices[:, :rows, : piece_shape[-1]].reshape(piece_shape)
