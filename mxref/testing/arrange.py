"""Blocks to matrices and back: any list of blocks becomes a matrix whose tiles are these blocks."""

import math

from torch import Tensor

from mxref.tiles import Block


def arrange(blocks: Tensor, block: Block, step: int) -> Tensor:
    """A contiguous, nearly square matrix whose tiles, in row-major order, are `blocks`.

    Args:
        blocks: (count, block[0] * block[1]), the elements of each block row by row.
        block: the block geometry.
        step: both sizes of the matrix are multiples of it. Blocks of zeros fill the rest.

    >>> import torch
    >>> blocks = torch.arange(3)[:, None].expand(3, 32) + 1
    >>> x = arrange(blocks, (32, 1), 32)
    >>> x.shape, x[0, :5].tolist()
    (torch.Size([32, 32]), [1, 2, 3, 0, 0])
    """
    count, elements = blocks.shape
    unit_rows = math.lcm(step, block[0]) // block[0]
    unit_columns = math.lcm(step, block[1]) // block[1]
    side = math.isqrt(count * elements)
    columns = max(side // (unit_columns * block[1]), 1) * unit_columns
    rows = max(-(-count // (columns * unit_rows)), 1) * unit_rows
    whole = blocks.new_zeros((rows * columns, elements))
    whole[:count] = blocks
    tiles = whole.reshape(rows, columns, block[0], block[1]).permute(0, 2, 1, 3)
    return tiles.reshape(rows * block[0], columns * block[1]).contiguous()


def tile_of(x: Tensor, index: tuple[int, ...], block: Block) -> Tensor:
    """The elements of one block, cut off at the ends of x; `index` indexes the logical scale."""
    return x[tile_slices(index, block)]


def tile_slices(index: tuple[int, ...], block: Block) -> tuple[slice | int, ...]:
    """The index of one block's elements in x."""
    sizes = block if len(index) > 1 else block[1:]
    lead = len(index) - len(sizes)
    inner = (
        slice(at * size, (at + 1) * size) for at, size in zip(index[lead:], sizes, strict=True)
    )
    return (*index[:lead], *inner)
