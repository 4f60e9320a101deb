"""The scale matrix S[R, C] that a layout stores, made from logical scales and back.

R is the dimension that the GEMM does not contract, in x's own size; C counts blocks of the
contracted one. Block (1, 32): S is the logical matrix. (32, 1): its transpose. (32, 32): a tile's
byte serves the 32 rows it covers, in the direction that `contract` names.
"""

from torch import Tensor

from mxref.formats import BLOCK_SIZE
from mxref.tiles import Block

CONTRACTS = (-1, -2)


def require_contract(contract: object, block: Block, layout: str) -> int:
    """The dimension that the GEMM sums over: fixed by (1, 32) and (32, 1), else the caller's."""
    if contract is not None and (type(contract) is not int or contract not in CONTRACTS):
        raise ValueError(f"contract={contract!r}: expected -1, -2 or None")
    if block[0] == block[1]:
        if contract is None:
            raise ValueError(f"contract=None: expected -1 or -2 for block={block} in {layout!r}")
        return -1 if contract == -1 else -2
    fixed = -1 if block[0] == 1 else -2
    if contract not in (None, fixed):
        raise ValueError(f"contract={contract!r}: block={block} contracts {fixed}")
    return fixed


def to_matrix(scale: Tensor, block: Block, contract: int, shape: tuple[int, ...]) -> Tensor:
    """S[..., R, C] of logical scales; `shape` is that of x."""
    matrix = scale.unsqueeze(0) if scale.dim() == 1 else scale
    if contract == -2:
        matrix = matrix.mT
    if block[0] == block[1]:
        rows = shape[-2] if contract == -1 else shape[-1]
        matrix = matrix.repeat_interleave(BLOCK_SIZE, dim=-2)[..., :rows, :]
    return matrix


def from_matrix(matrix: Tensor, block: Block, contract: int, rank: int) -> Tensor:
    """The inverse of `to_matrix`: the logical scales, for a tensor x of this rank."""
    if block[0] == block[1]:
        matrix = matrix[..., ::BLOCK_SIZE, :]
    if contract == -2:
        matrix = matrix.mT
    return matrix.squeeze(0) if rank == 1 else matrix


def matrix_shape(shape: tuple[int, ...], contract: int) -> tuple[int, ...]:
    """The shape (*lead, R, C) of S for a tensor x of this shape."""
    rows = shape[-2] if len(shape) > 1 else 1
    kept, summed = (rows, shape[-1]) if contract == -1 else (shape[-1], rows)
    return (*shape[:-2], kept, -(-summed // BLOCK_SIZE))
