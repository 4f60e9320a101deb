"""Named blocks that tell dialects apart: special values, tiny amax, thresholds, ties, noise."""

from collections.abc import Iterator
from functools import lru_cache

import torch

from mxref.formats import ElementFormat, InputFormat
from mxref.testing.cases import edge_blocks, noise, pattern, thresholds, tie_points

Blocks = dict[str, list[int]]

GROUPS = ("noise", "numbers", "zeros", "subnormals", "tiny", "large", "thresholds", "ties",
          "NaN", "Inf", "NaN and Inf")  # fmt: skip
"""The groups; a target that refuses one is still asked for the others."""

_SEED = 20
_THRESHOLDS = 768


@lru_cache(maxsize=8)
def probes(fmt: InputFormat, element: ElementFormat) -> dict[str, Blocks]:
    """Blocks of 32 bit patterns by group and name, the same on every machine.

    >>> from mxref.formats import BF16, E4M3
    >>> found = probes(BF16, E4M3)
    >>> tuple(found) == GROUPS, hex(found["NaN"]["NaN at 17"][17])
    (True, '0x7fc0')
    """
    found: dict[str, Blocks] = {group: {} for group in GROUPS}
    for name, block in edge_blocks(fmt, element).items():
        found[_group(block, fmt)][name] = block
    found["noise"] |= {f"noise {i}": row for i, row in enumerate(noise_blocks(fmt, 128).tolist())}
    found["tiny"] |= _tiny(fmt)
    found["large"] |= _large(fmt)
    found["thresholds"] |= _thresholds(fmt, element)
    found["ties"] |= _ties(fmt, element)
    return found


def _group(block: list[int], fmt: InputFormat) -> str:
    magnitudes = [bits & fmt.magnitude_mask for bits in block]
    nan = any(bits > fmt.exponent_mask for bits in magnitudes)
    inf = fmt.exponent_mask in magnitudes
    if nan or inf:
        return "NaN and Inf" if nan and inf else "NaN" if nan else "Inf"
    if not any(magnitudes):
        return "zeros"
    least = 1 << fmt.mantissa_bits
    return "subnormals" if any(0 < bits < least for bits in magnitudes) else "numbers"


def noise_blocks(fmt: InputFormat, count: int) -> torch.Tensor:
    """(count, 32) patterns of both signs, over eight binades that change from block to block."""
    bits = noise(count * 32, _SEED).reshape(count, 32)
    base = (noise(count, _SEED, 1) % 8)[:, None]
    field = base + ((bits >> 24) & 7) + fmt.bias - 8
    mantissa = bits & ((1 << fmt.mantissa_bits) - 1)
    return (field << fmt.mantissa_bits) | mantissa | (((bits >> 28) & 1) << (fmt.bits - 1))


def noise_matrix(fmt: InputFormat, rows: int, columns: int) -> torch.Tensor:
    """(rows, columns) patterns whose binades change by 32 x 32 area, by row and by column of it.

    Scales of any block geometry differ between neighbours, so each layout shows.
    """
    bits = noise(rows * columns, _SEED, 2).reshape(rows, columns)

    def areas(height: int, width: int, most: int, salt: int) -> torch.Tensor:
        found = noise((rows // height) * (columns // width), _SEED, salt) % most
        grid = found.reshape(rows // height, columns // width)
        return grid.repeat_interleave(height, 0).repeat_interleave(width, 1)

    field = areas(32, 32, 6, 3) + areas(1, 32, 4, 4) + areas(32, 1, 4, 5) + ((bits >> 24) & 3)
    mantissa = bits & ((1 << fmt.mantissa_bits) - 1)
    sign = ((bits >> 28) & 1) << (fmt.bits - 1)
    return ((field + fmt.bias - 8) << fmt.mantissa_bits) | mantissa | sign


def _around(amax: int, fmt: InputFormat) -> list[int]:
    """amax first, then smaller numbers of both signs and +0; -0 has probes of its own."""
    sign, step = 1 << (fmt.bits - 1), 1 << fmt.mantissa_bits
    rest = [max(amax - (i * step) // 5 - i, 0) | (sign * (i % 3 == 0)) for i in range(1, 30)]
    return [amax, *rest, 0, 0]


def _tiny(fmt: InputFormat) -> Blocks:
    """Every power of two among the smallest, and 1.5 times it: where bytes reach 0, and before."""
    binades = 64 if fmt.bias == 127 else 12
    blocks = {}
    for k in range(binades):
        exponent = 1 - fmt.bias - fmt.mantissa_bits + k
        for significand, text in ((1, ""), (3, "1.5 * ")):
            bits = pattern(significand, exponent + (significand == 1), fmt)
            if bits:
                blocks[f"amax {text}2^{exponent + 1}"] = _around(bits, fmt)
    for k in (-34, -14):
        for bits in (pattern(1, k, fmt), pattern(7, k, fmt)):
            if bits:
                blocks[f"amax 0x{bits:X}"] = _around(bits, fmt)
    return blocks


def _large(fmt: InputFormat) -> Blocks:
    """The binades below Inf."""
    top = fmt.exponent_mask
    step = 1 << (fmt.mantissa_bits - 3)
    return {f"amax 0x{top - n * step:X}": _around(top - n * step, fmt) for n in range(1, 20)}


def _thresholds(fmt: InputFormat, element: ElementFormat) -> Blocks:
    patterns = thresholds(fmt, element)
    # an odd stride: the same offset from a threshold is not taken each time
    stride = (len(patterns) // _THRESHOLDS) | 1
    return {f"amax 0x{bits:X}": _around(bits, fmt) for bits in patterns[::stride].tolist()}


def _ties(fmt: InputFormat, element: ElementFormat) -> Blocks:
    """Every tie and quarter point of the element, under scale 2^0 where the format has them."""
    top = pattern(element.max_significand, element.emax - element.mantissa_bits, fmt)
    found = list(_exact(fmt, element))
    if top is None:
        return {}
    cut = [found[i : i + 30] for i in range(0, len(found), 30)]
    sign = 1 << (fmt.bits - 1)
    return {
        f"ties {i}": ([top, *(b | sign * (n % 2) for n, b in enumerate(part))] + [0] * 32)[:32]
        for i, part in enumerate(cut)
    }


def _exact(fmt: InputFormat, element: ElementFormat) -> Iterator[int]:
    limit = element.max_significand * 2.0 ** (element.emax - element.mantissa_bits)
    for significand, exponent in zip(*(each.tolist() for each in tie_points(element)), strict=True):
        bits = pattern(significand, exponent, fmt)
        if bits is None:
            continue
        if significand * 2.0**exponent <= limit:
            yield bits
            if fmt.bits == 32:  # beside a tie: what rounding twice moves onto it
                yield from (bits + 1, max(bits - 1, 0))


def as_patterns(blocks: Blocks, elements: int) -> torch.Tensor:
    """The blocks as (count, elements): the 32 patterns repeated over the rows of a square."""
    return torch.tensor(list(blocks.values())).repeat(1, elements // 32)
