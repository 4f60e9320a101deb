"""swizzle_32_4_4: torch's name for cuBLAS' 128x4 scale tiles (tcgen05, "blocked").

S[R, C] is padded with zero bytes to Rp = 128 * ceil(R / 128) rows and Cp = 4 * ceil(C / 4) columns:
offset(r, c) = ((r // 128) * (Cp // 4) + c // 4) * 512 + (r % 32) * 16 + (r % 128 // 32) * 4 + c % 4
"""

from torch import Tensor

from mxref.layouts.matrix import from_matrix, matrix_shape, require_contract, to_matrix
from mxref.tiles import Block

NAME = "swizzle_32_4_4"
ROWS, COLUMNS = 128, 4

needs_contract = True


def padded(rows: int, columns: int) -> tuple[int, int]:
    """(Rp, Cp): the sizes with padding."""
    return -(-rows // ROWS) * ROWS, -(-columns // COLUMNS) * COLUMNS


def swizzle(matrix: Tensor) -> Tensor:
    """S[..., R, C] (uint8) to the stored bytes, (..., Rp * Cp)."""
    rows, columns = matrix.shape[-2:]
    row_size, column_size = padded(rows, columns)
    lead = matrix.shape[:-2]
    whole = matrix.new_zeros((*lead, row_size, column_size))
    whole[..., :rows, :columns] = matrix
    tiles = whole.reshape(*lead, row_size // ROWS, 4, 32, column_size // COLUMNS, COLUMNS)
    n = len(lead)
    order = (*range(n), n, n + 3, n + 2, n + 1, n + 4)
    return tiles.permute(order).reshape(*lead, row_size * column_size)


def unswizzle(stored: Tensor, rows: int, columns: int) -> Tensor:
    """The inverse of `swizzle`: (..., Rp * Cp) to S[..., R, C]."""
    row_size, column_size = padded(rows, columns)
    lead = stored.shape[:-1]
    tiles = stored.reshape(*lead, row_size // ROWS, column_size // COLUMNS, 32, 4, COLUMNS)
    n = len(lead)
    order = (*range(n), n, n + 3, n + 2, n + 1, n + 4)
    return tiles.permute(order).reshape(*lead, row_size, column_size)[..., :rows, :columns]


def stored_shape(shape: tuple[int, ...], block: Block, contract: int | None) -> tuple[int, ...]:
    """(Rp * Cp,) up to rank 2, (*lead, Rp * Cp) above."""
    *lead, rows, columns = matrix_shape(shape, require_contract(contract, block, NAME))
    row_size, column_size = padded(rows, columns)
    return (*lead, row_size * column_size)


def encode(scale: Tensor, shape: tuple[int, ...], block: Block, contract: int | None) -> Tensor:
    """The logical scales as 512-byte tiles of 128 x 4 scales, each leading index on its own."""
    return swizzle(to_matrix(scale, block, require_contract(contract, block, NAME), shape))


def decode(stored: Tensor, shape: tuple[int, ...], block: Block, contract: int | None) -> Tensor:
    """The logical scales; of a (32, 32) tile's 32 copies the first is taken."""
    summed = require_contract(contract, block, NAME)
    rows, columns = matrix_shape(shape, summed)[-2:]
    return from_matrix(unswizzle(stored, rows, columns), block, summed, len(shape))
