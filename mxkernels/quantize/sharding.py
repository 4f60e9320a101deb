"""How the quantizers may be sharded: rules for torch.distributed.tensor (DTensor).

One placement an input dimension, and what it makes of the outputs. A dimension along which no
block lies can be cut anywhere. One along which blocks lie can be cut where a shard is a whole
number of blocks on every rank, so its size must be a multiple of 32 times the number of ranks;
else the input is replicated first. Swizzled scales mix the last two dimensions, so there only
leading dimensions are cut. So a sharded result has the bytes of the unsharded one.

Importing this file loads torch.distributed.tensor; nothing else in mxkernels does.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor._op_schema import RuntimeSchemaInfo
from torch.distributed.tensor.experimental import register_sharding

import mxkernels.quantize.op  # noqa: F401 - defines the ops
from mxkernels.quantize.shapes import SWIZZLE

Placements = tuple[list[Any], list[Any]]


def cuttable(shape: Sequence[int], block: tuple[int, int], ranks: int) -> list[int]:
    """The dimensions that can be cut into `ranks` shards of whole blocks.

    >>> cuttable((5, 64), (1, 32), 2), cuttable((64, 96), (32, 1), 2), cuttable((5, 96), (1, 32), 2)
    ([0, 1], [0, 1], [0])
    """
    last = len(shape) - 1
    blocked = {last: block[1], last - 1: block[0]}
    return [
        dim
        for dim, size in enumerate(shape)
        if blocked.get(dim, 1) == 1 or size % (blocked[dim] * ranks) == 0
    ]


def scale_dim(dim: int, rank: int, layout: str) -> int | None:
    """The dimension of the stored scale that a cut of the input's `dim` cuts; None: it cannot.

    >>> scale_dim(1, 2, "plain"), scale_dim(1, 2, "plain_t"), scale_dim(1, 2, "swizzle_32_4_4")
    (1, 0, None)
    >>> scale_dim(0, 3, "swizzle_32_4_4")
    0
    """
    if dim < rank - 2 or layout == "plain":
        return dim
    if layout == SWIZZLE:
        return None
    # a vector is stored as one column
    return 0 if rank == 1 else {rank - 2: rank - 1, rank - 1: rank - 2}[dim]


def placements(
    x: Any, outputs: Sequence[tuple[tuple[int, int], str]], others: int
) -> list[Placements]:
    """Acceptable (outputs, inputs): replicated, and one for each dimension that can be cut.

    `x` has a shape and a mesh; `outputs` are the block and the scale layout of each (payload,
    scale) pair; `others` is the number of arguments after x.
    """
    rank, ranks = len(x.shape), x.mesh.size()
    rest = [None] * others
    found: list[Placements] = [([Replicate()] * (2 * len(outputs)), [Replicate(), *rest])]
    for dim in range(rank):
        made: list[Any] = []
        for block, layout in outputs:
            place = scale_dim(dim, rank, layout)
            if place is None or dim not in cuttable(x.shape, block, ranks):
                break
            made += [Shard(dim), Shard(place)]
        else:
            found.append((made, [Shard(dim), *rest]))
    return found


def register() -> None:
    """Tell DTensor how to shard `mxkernels.quantize` and `quantize_both`; again is harmless.

    quantize(x sharded by rows, by columns or replicated) then gives payload and scale sharded
    alike, with the bytes of the unsharded result; where a shard would end inside a block, x is
    replicated. Source: torch.distributed.tensor.experimental.register_sharding.

    >>> register()
    """

    @register_sharding(torch.ops.mxkernels.quantize.default)
    def quantize(
        x: Any, backend: str, recipe: str, block: Sequence[int], order: str, layout: str, *rest: int
    ) -> list[Placements]:
        return placements(x, [((block[0], block[1]), layout)], 5 + len(rest))

    @register_sharding(torch.ops.mxkernels.quantize_both.default)
    def quantize_both(
        x: Any, backend: str, recipe: str, row_layout: str, column_layout: str, *rest: int
    ) -> list[Placements]:
        pairs = [((1, 32), row_layout), ((32, 1), column_layout)]
        return placements(x, pairs, 4 + len(rest))

    _tell_cases_apart(
        torch.ops.mxkernels.quantize.default, torch.ops.mxkernels.quantize_both.default
    )


def _tell_cases_apart(*ops: Any) -> None:
    """Make DTensor remember a decision by every argument after x.

    `register_sharding` has it remember by the first integer on: block and layout, which come before
    it, would not count, and the second layout asked for would get the placements of the first.
    """
    propagator = DTensor._op_dispatcher.sharding_propagator
    for each in ops:
        known = RuntimeSchemaInfo(1, needs_pytree=True)
        propagator.register_op_strategy(each, propagator.op_strategy_funcs[each], known)


__all__ = ["cuttable", "placements", "register", "scale_dim"]
