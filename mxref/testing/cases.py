"""Where the inputs of the checks come from: named edge blocks, bit noise, thresholds, tie points.

Everything is integers, so the same bytes come out on every machine and version of torch. Patterns
are the bits of a format as non-negative int64.
"""

from functools import lru_cache

import torch
from torch import Tensor

from mxref.blocks import quantize
from mxref.formats import SCALE_BIAS, ElementFormat, InputFormat
from mxref.recipes import Recipe

_WORD = (1 << 32) - 1


def noise(count: int, seed: int, salt: int = 0) -> Tensor:
    """`count` well mixed 32-bit integers (int64): a hash of their index, so no generator state.

    Source: the lowbias32 finalizer of C. Wellons' hash prospector.

    >>> noise(3, seed=0).tolist()
    [1753845952, 3507691905, 1408362973]
    """
    x = torch.arange(1, count + 1) + ((seed * 0x9E3779B1 + salt * 0x85EBCA77) & _WORD)
    x &= _WORD
    x ^= x >> 16
    x = (x * 0x7FEB352D) & _WORD
    x ^= x >> 15
    # the multiplier is split: 32 x 32 bits would overflow int64
    x = ((x * 0x846C & 0xFFFF) * 65536 + x * 0xA68B) & _WORD
    return x ^ (x >> 16)


def distinct(values: Tensor) -> Tensor:
    """The different ones of some integers, ascending."""
    ordered = values.sort().values
    return ordered[ordered.diff(prepend=ordered[:1] - 1) != 0]


def pattern(significand: int, exponent: int, fmt: InputFormat) -> int | None:
    """The bits of significand * 2^exponent, None if the format does not hold it exactly.

    >>> from mxref.formats import BF16, FP16
    >>> hex(pattern(7, 6, BF16)), pattern(7, 20, FP16)
    ('0x43e0', None)
    """
    if significand == 0:
        return 0
    lowest = 1 - fmt.bias - fmt.mantissa_bits
    top = significand.bit_length() - 1 + exponent
    unit = max(top - fmt.mantissa_bits, lowest)
    shifted = significand << (exponent - unit) if exponent >= unit else significand
    if exponent < unit:
        if significand & ((1 << (unit - exponent)) - 1):
            return None
        shifted = significand >> (unit - exponent)
    bits = ((unit - lowest) << fmt.mantissa_bits) + shifted
    return bits if bits < fmt.exponent_mask else None


def edge_blocks(fmt: InputFormat, element: ElementFormat) -> dict[str, list[int]]:
    """Named blocks of 32 patterns: every special value, and each side of each boundary.

    >>> from mxref.formats import BF16, E4M3
    >>> [hex(bits) for bits in edge_blocks(BF16, E4M3)["maximum"][:2]]
    ['0x43e0', '0x43d0']
    """
    return {**_numbers(fmt), **_boundaries(fmt, element), **_nonfinite(fmt)}


def _numbers(fmt: InputFormat) -> dict[str, list[int]]:
    sign, one = 1 << (fmt.bits - 1), fmt.bias << fmt.mantissa_bits
    normal, largest = 1 << fmt.mantissa_bits, fmt.exponent_mask - 1
    alike = {
        "zeros": 0,
        "minus zeros": sign,
        "ones": one,
        "smallest subnormals": 1,
        "smallest subnormals, negative": sign | 1,
        "largest subnormals": normal - 1,
        "smallest normals": normal,
        "largest finite": largest,
        "largest finite, negative": sign | largest,
    }
    blocks = {name: [bits] * 32 for name, bits in alike.items()}
    blocks["zeros of both signs"] = [0, sign] * 16
    blocks["one and minus zeros"] = [one] + [sign] * 31
    blocks["largest among smallest"] = [1, sign | 1] * 8 + [largest] + [sign | 1] * 15
    blocks["signs alternate"] = [one, sign | one] * 16
    blocks["around the smallest normal"] = [normal - 16 + i for i in range(32)]
    blocks["smallest normal, then subnormals"] = [normal] + [normal >> 1, 1, sign | 3] * 10 + [0]
    return blocks


def _boundaries(fmt: InputFormat, element: ElementFormat) -> dict[str, list[int]]:
    """Amax at, one ulp above and one below the boundaries of the scale rules and of saturation."""
    bits, top = element.mantissa_bits, element.max_significand
    unit = element.emax - bits
    points = {
        "maximum": (top, unit),
        "halfway above the maximum": (2 * top + 1, unit - 1),
        "one step above the maximum": (top + 1, unit),
        "power of two above the maximum": (1, element.emax + 1),
        "where even rounds up": ((4 << bits) - 1, unit - 1),
        "power of two": (1, element.emax),
    }
    blocks = {}
    for name, (significand, exponent) in points.items():
        for k in (0, -element.emax, -20, 20, -60, 60, -100, 100):
            middle = pattern(significand, exponent + k, fmt)
            if middle is None:
                continue
            half = max(middle - (1 << fmt.mantissa_bits), 0)
            for label, amax in (("", middle), (" + ulp", middle + 1), (" - ulp", middle - 1)):
                title = name + label + (f" x 2^{k}" if k else "")
                second = amax - (1 << (fmt.mantissa_bits - 3))
                blocks[title] = [amax, second, half, half + 1, middle - 1, 1, 0, half | 3] * 4
    if fmt.bits == 32:
        # the one amax where the rounded product and the exact one disagree, and past reports
        for amax in (0x04600001, 0x40600001, 0x43FFFFFF):
            blocks[f"0x{amax:08X}"] = [amax] + [amax - (1 << 23)] * 31
    return blocks


def _nonfinite(fmt: InputFormat) -> dict[str, list[int]]:
    sign, inf = 1 << (fmt.bits - 1), fmt.exponent_mask
    quiet, one = inf | (1 << (fmt.mantissa_bits - 1)), fmt.bias << fmt.mantissa_bits
    lone = {
        "NaN": quiet,
        "negative NaN": sign | quiet,
        "signalling NaN": inf | 1,
        "NaN of all ones": sign - 1,
        "Inf": inf,
        "negative Inf": sign | inf,
    }
    blocks = {f"{name}, all": [bits] * 32 for name, bits in lone.items()}
    for at in (0, 17, 31):
        for name, bits in lone.items():
            blocks[f"{name} at {at}"] = [bits if i == at else one for i in range(32)]
    blocks["Inf, then NaN"] = [one] * 8 + [inf, quiet] + [one] * 22
    blocks["NaN, then negative Inf"] = [one] * 20 + [sign | quiet, sign | inf] + [one] * 10
    blocks["Inf among zeros"] = [0] * 31 + [inf]
    blocks["NaN among minus zeros"] = [sign] * 31 + [inf | 1]
    return blocks


def thresholds(fmt: InputFormat, element: ElementFormat) -> Tensor:
    """Amax patterns on both sides of every place where a scale rule changes its byte.

    2^k, the element's maximum times 2^k (1.75 * 2^k) and the point where `even` rounds up, for
    every k, some ulps each side: near ones, those that a wrong log2 confuses, and those that
    rounding amax to bf16 or fp16 first would carry over.
    """
    p, bits = fmt.mantissa_bits, element.mantissa_bits
    top = element.max_significand - (1 << bits)
    fractions = (0, top << (p - bits), ((2 << bits) - 1) << (p - bits - 1))
    field = torch.arange(fmt.exponent_mask >> p) << p
    centers = [field + fraction for fraction in fractions]
    subnormal = [s << j for j in range(p) for s in (1, 7, 15, 31) if (s << j) < (1 << p)]
    centers.append(torch.tensor(subnormal))
    far = (8, 16, 24, 40, 64, 4095, 4096, 4097, 32767, 32768, 32769) if fmt.bits == 32 else ()
    offsets = torch.tensor([*range(-5, 6), *far, *(-each for each in far)])
    patterns = (torch.cat(centers)[:, None] + offsets).reshape(-1)
    return distinct(patterns[(patterns >= 0) & (patterns < fmt.exponent_mask)])


def tie_points(element: ElementFormat) -> tuple[Tensor, Tensor]:
    """(significand, exponent) of every code, every halfway and every quarter point between codes.

    They go on past the maximum to the next power of two, where `floor` saturates.
    """
    lowest = element.emin - element.mantissa_bits - 2
    normal = torch.arange(4 << element.mantissa_bits, 8 << element.mantissa_bits)
    binades = torch.arange(element.emax - element.emin + 1)
    significand = normal.repeat(len(binades))
    exponent = binades.repeat_interleave(len(normal))
    subnormal = torch.arange(4 << element.mantissa_bits)
    significand = torch.cat([subnormal, significand])
    return significand, torch.cat([torch.zeros_like(subnormal), exponent]) + lowest


@lru_cache(maxsize=64)
def largest_amax(recipe: Recipe, fmt: InputFormat) -> tuple[tuple[int, int], ...]:
    """(byte, pattern): the largest finite amax of each scale byte that finite inputs reach.

    By bisection, so it needs only that the byte never falls as amax grows.
    """
    last = fmt.exponent_mask - 1
    low = torch.zeros(SCALE_BIAS * 2 + 1, dtype=torch.int64)
    high = torch.full_like(low, last)
    wanted = torch.arange(len(low))
    for _ in range(fmt.bits):
        middle = (low + high + 1) >> 1
        fits = _bytes_of(middle, recipe, fmt) <= wanted
        low, high = torch.where(fits, middle, low), torch.where(fits, high, middle - 1)
    reached = _bytes_of(low, recipe, fmt) == wanted
    return tuple(zip(wanted[reached].tolist(), low[reached].tolist(), strict=True))


def _bytes_of(amax: Tensor, recipe: Recipe, fmt: InputFormat) -> Tensor:
    integer = torch.int32 if fmt.bits == 32 else torch.int16
    x = amax.to(integer).view(getattr(torch, fmt.torch_dtype))[:, None]
    return quantize(x, recipe).scale.view(torch.uint8)[:, 0].to(torch.int64)
