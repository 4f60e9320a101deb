"""plain_t: the logical matrix stored transposed, as torchao's dim1 kernel returns it."""

from torch import Tensor

from mxref.tiles import Block, logical_shape

needs_contract = False


def stored_shape(shape: tuple[int, ...], block: Block, contract: int | None) -> tuple[int, ...]:
    """The logical shape with its last two dimensions swapped; (C, 1) for rank 1."""
    logical = logical_shape(shape, block)
    if len(logical) == 1:
        return (logical[0], 1)
    return (*logical[:-2], logical[-1], logical[-2])


def encode(scale: Tensor, shape: tuple[int, ...], block: Block, contract: int | None) -> Tensor:
    """The logical scales with the last two dimensions swapped."""
    return scale.unsqueeze(1) if scale.dim() == 1 else scale.mT


def decode(stored: Tensor, shape: tuple[int, ...], block: Block, contract: int | None) -> Tensor:
    """The stored scales with the last two dimensions swapped back."""
    return stored.squeeze(1) if len(shape) == 1 else stored.mT
