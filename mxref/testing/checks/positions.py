"""Unique ids: no two positions of payload or of scale have the same bytes in all of the tensors.

Each tensor writes one digit of every element's position into its payload code, and one digit of
every block's position into its scale byte. The tensors are long in both directions: more than 128
rows and columns of elements, and of scales.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from mxref.formats import InputFormat
from mxref.testing.check import Check, Setting


def inputs(setting: Setting) -> Iterator[Tensor]:
    """For each shape the digits twice, with the amax of each block at another place."""
    for tiles in _grids(setting):
        elements = tiles[0] * tiles[1] * setting.block_elements
        digits = max(
            _digits(elements, len(_codes(setting))),
            _digits(tiles[0] * tiles[1], len(_exponents(setting.fmt))),
        )
        for turn in range(2 if setting.full else 1):
            for digit in range(digits):
                yield _tensor(setting, tiles, digit, turn)


def _grids(setting: Setting) -> tuple[tuple[int, int], ...]:
    """Rows and columns of blocks: a tall matrix and a wide one."""
    long = {1: 288, 32: 160} if setting.full else {1: 160, 32: 136}
    short = {1: 192, 32: 6} if setting.full else {1: 64, 32: 2}
    block, step = setting.claims.block, setting.step

    def tiles(dim: int, count: int) -> int:
        return -(-count * block[dim] // step) * step // block[dim]

    tall = tiles(0, long[block[0]]), tiles(1, short[block[1]])
    wide = tiles(0, short[block[0]]), tiles(1, long[block[1]])
    return (tall, wide)


def _codes(setting: Setting) -> Tensor:
    """Patterns below 2^0 with payload codes of their own, when the block's amax is 2^0."""
    fmt, bits = setting.fmt, setting.element.mantissa_bits
    significands = torch.arange(1 << bits)
    binades = [
        ((fmt.bias - below) << fmt.mantissa_bits) | (significands << (fmt.mantissa_bits - bits))
        for below in (1, 2)
    ]
    codes = torch.cat(binades)
    return torch.cat([codes, codes | (1 << (fmt.bits - 1))])


def _exponents(fmt: InputFormat) -> range:
    """Powers of two that amax can be, all with bytes of their own and with normal elements."""
    return range(4 - fmt.bias, fmt.bias) if fmt.bits == 16 and fmt.bias < 127 else range(-100, 120)


def _digits(count: int, base: int) -> int:
    digits = 1
    while base**digits < count:
        digits += 1
    return digits


def _tensor(setting: Setting, grid: tuple[int, int], digit: int, turn: int) -> Tensor:
    block, fmt = setting.claims.block, setting.fmt
    rows, columns = grid[0] * block[0], grid[1] * block[1]
    codes, exponents = _codes(setting), _exponents(fmt)
    position = torch.arange(rows * columns).reshape(rows, columns)
    patterns = codes[(position // len(codes) ** digit) % len(codes)]
    tile = torch.arange(grid[0] * grid[1]).reshape(grid)
    exponent = (tile // len(exponents) ** digit) % len(exponents) + exponents[0]
    shift = exponent << fmt.mantissa_bits
    patterns += shift.repeat_interleave(block[0], 0).repeat_interleave(block[1], 1)
    at = (digit + 7 * turn) % block[0], (5 * digit + 11 * turn + 1) % block[1]
    patterns[at[0] :: block[0], at[1] :: block[1]] = (fmt.bias << fmt.mantissa_bits) + shift
    return setting.values(patterns)


CHECK = Check("positions", inputs)
