"""plain: the logical matrix, row-major."""

from torch import Tensor

from mxref.tiles import Block, logical_shape

needs_contract = False


def stored_shape(shape: tuple[int, ...], block: Block, contract: int | None) -> tuple[int, ...]:
    """The logical shape itself."""
    return logical_shape(shape, block)


def encode(scale: Tensor, shape: tuple[int, ...], block: Block, contract: int | None) -> Tensor:
    """The logical scales as they are."""
    return scale


def decode(stored: Tensor, shape: tuple[int, ...], block: Block, contract: int | None) -> Tensor:
    """The stored scales as they are."""
    return stored
