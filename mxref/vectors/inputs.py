"""The inputs of the golden vectors: named tensors of bit patterns, from integer arithmetic alone.

They are part of the frozen vectors, so nothing here may change without a new name of the format,
and nothing is shared with the inputs of the conformance run, which grow with every fault found.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from mxref.formats import FP32, ElementFormat, InputFormat
from mxref.tiles import Block

_WORD = (1 << 32) - 1
RAGGED = ((1, 1), (5, 33), (33, 70), (31, 31), (2, 3, 40), (3, 1, 64), (0, 64), (64, 0), (2, 0, 3))
"""Shapes of rank 2 and 3: partial blocks in both dimensions, empty ones."""


def noise(count: int, salt: int) -> Tensor:
    """`count` mixed 32-bit integers (int64), the hash of index + 2654435769 * salt, modulo 2^32.

    h ^= h >> 16; h *= 0x7FEB352D; h ^= h >> 15; h *= 0x045D9F3B; h ^= h >> 16. Both multipliers are
    below 2^31, so that no product leaves int64.

    >>> noise(3, salt=1).tolist()
    [2512935494, 1258706082, 861977857]
    """
    h = (torch.arange(count) + 0x9E3779B9 * salt) & _WORD
    for shift, factor in ((16, 0x7FEB352D), (15, 0x045D9F3B)):
        h = ((h ^ (h >> shift)) * factor) & _WORD
    return h ^ (h >> 16)


def inputs(fmt: InputFormat, element: ElementFormat, block: Block) -> dict[str, Tensor]:
    """Every case of one dtype: its name and its patterns (int64), in the shape of x.

    A named block is a tensor of one block. Thresholds lie side by side, each in a block of 32
    elements: in (32, 32) the tile's first row, the rest of it missing, since 1,024 elements for
    each of some thousand would make no file for people; a selection of them fills whole tiles.
    """
    n = block[0] * block[1]
    named = {**_specials(fmt), **_boundaries(fmt, element)}
    cases = {
        name: torch.tensor([at(i, n) for i in range(n)]).reshape(block)
        for name, at in named.items()
    }
    for name, amax in thresholds(fmt, element).items():
        rows = around(amax, fmt, 32)
        cases[name] = rows.mT.contiguous() if block == (32, 1) else rows
        if n > 32:
            cases[name] = rows.reshape(1, -1)
            cases[f"{name}-whole-tiles"] = _side_by_side(around(amax[::47], fmt, n), block)
    cases["codes-and-ties"] = _side_by_side(_codes(fmt, element, n), block)
    for number, shape in enumerate((*RAGGED, (160, 160), (2, 32, 64))):
        cases["shape-" + "x".join(map(str, shape))] = _scattered(shape, number, fmt)
    if block[0] == 1:
        cases["shape-45"] = _scattered((45,), 90, fmt)
    cases["any-bits-64x64"] = (noise(64 * 64, 91) & ((1 << fmt.bits) - 1)).reshape(64, 64)
    return cases


def _specials(fmt: InputFormat) -> dict[str, Callable[[int, int], int]]:
    """name -> f(index, elements of the block): zeros, subnormals, ends, NaN and Inf."""
    sign, inf, p = 1 << (fmt.bits - 1), fmt.exponent_mask, fmt.mantissa_bits
    one, quiet, normal = fmt.bias << p, inf | (1 << (p - 1)), 1 << p

    def alike(bits: int) -> Callable[[int, int], int]:
        return lambda i, n: bits

    def lone(bits: int, others: int, place: Callable[[int], int]) -> Callable[[int, int], int]:
        return lambda i, n: bits if i == place(n) else others

    ends = {
        "zeros": 0,
        "smallest-subnormals": 1,
        "largest-subnormals": normal - 1,
        "smallest-normals": normal,
        "ones": one,
        "largest-finite": inf - 1,
    }
    found = {name: alike(bits) for name, bits in ends.items()}
    found |= {f"minus-{name}": alike(sign | bits) for name, bits in ends.items()}
    found["zeros-of-both-signs"] = lambda i, n: (i % 2) * sign
    found["one-among-minus-zeros"] = lone(one, sign, lambda n: n // 2)
    found["largest-among-smallest-subnormals"] = lone(inf - 1, 1, lambda n: 5)
    found["around-the-smallest-normal"] = lambda i, n: normal - 16 + i % 32
    unusual = {
        "nan": quiet,
        "minus-nan": sign | quiet,
        "signalling-nan": inf | 1,
        "nan-of-all-ones": sign - 1,
        "inf": inf,
        "minus-inf": sign | inf,
    }
    for name, bits in unusual.items():
        found[f"{name}-alone"] = alike(bits)
        found[f"{name}-first-among-ones"] = lone(bits, one, lambda n: 0)
        found[f"{name}-last-among-minus-zeros"] = lone(bits, sign, lambda n: n - 1)
    found["inf-then-nan"] = lambda i, n: {8: inf, 9: quiet}.get(i, one)
    return found


def _boundaries(fmt: InputFormat, element: ElementFormat) -> dict[str, Callable[[int, int], int]]:
    """Blocks whose amax lies at a boundary of the scale rules, or one ulp beside it."""
    bits, top = element.mantissa_bits, element.max_significand
    unit = element.emax - bits
    points = {
        "maximum": exact(top, unit, fmt),
        "halfway-above-maximum": exact(2 * top + 1, unit - 1, fmt),
        "one-step-above-maximum": exact(top + 1, unit, fmt),
        "where-even-rounds-up": exact((4 << bits) - 1, unit - 1, fmt),
        "power-of-two": exact(1, element.emax, fmt),
        "next-power-of-two": exact(1, element.emax + 1, fmt),
    }
    found: dict[str, Callable[[int, int], int]] = {}
    for name, middle in points.items():
        for label, step in (("", 0), ("-plus-ulp", 1), ("-minus-ulp", -1)):
            amax = middle + step
            if middle > 0 and amax < fmt.exponent_mask:
                found[name + label] = _falling(amax, fmt)
    if fmt is FP32:
        # the one amax where rounded product and exact ratio part; past reports
        for amax in (0x04600001, 0x40600001, 0x43FFFFFF):
            found[f"amax-{amax:08x}"] = _falling(amax, fmt)
    return found


def _falling(amax: int, fmt: InputFormat) -> Callable[[int, int], int]:
    """amax, then magnitudes that fall by an eighth of a binade and an ulp; signs alternate."""
    step = (1 << (fmt.mantissa_bits - 3)) + 1
    return lambda i, n: max(amax - (i % 32) * step, 0) | ((i % 2) << (fmt.bits - 1))


def thresholds(fmt: InputFormat, element: ElementFormat) -> dict[str, Tensor]:
    """name -> amax patterns: where a rule may change its byte, in every binade, and one ulp beside.

    Powers of two (floor, ceil), the element's maximum (rceil), half an ulp below the next power of
    two (even), and some subnormals.
    """
    p, bits = fmt.mantissa_bits, element.mantissa_bits
    last = fmt.exponent_mask >> p
    field = torch.arange(1, last) << p
    top = element.max_significand - (1 << bits)
    fractions = {
        "powers-of-two": 0,
        "maxima": top << (p - bits),
        "where-even-rounds-up": ((2 << bits) - 1) << (p - bits - 1),
    }
    found = {}
    for name, fraction in fractions.items():
        middle = (field + fraction)[:, None] + torch.tensor([-1, 0, 1])
        found[f"thresholds-{name}"] = middle.reshape(-1)
    small = sorted({s << j for j in range(p) for s in (1, 3, 7, 15, 31) if (s << j) < (1 << p)})
    found["thresholds-subnormal"] = torch.tensor(small)
    return found


def around(amax: Tensor, fmt: InputFormat, n: int) -> Tensor:
    """(len(amax), n) patterns: amax at element 7 * block mod n, the others smaller, any sign."""
    sign = 1 << (fmt.bits - 1)
    bits = noise(len(amax) * n, 92).reshape(-1, n)
    smaller = (amax[:, None] - 1 - (bits >> 1) % (12 << fmt.mantissa_bits)).clamp_min(0)
    rows = smaller | ((bits & 1) * sign)
    index = torch.arange(len(amax))
    rows[index, (7 * index) % n] = amax | ((index & 1) * sign)
    return rows


def _codes(fmt: InputFormat, element: ElementFormat, n: int) -> Tensor:
    """Blocks that hold each code, each tie between codes and one ulp beside, in both signs.

    Three times, under an amax of 2^emax, of the maximum and of the last number below the next power
    of two: one of them gives each rule scale 1, the last one saturates under floor.
    """
    points = set()
    for code in range(element.max_code + 1):
        for half in (0, 1):
            middle = exact(*_halves(2 * code + half, element), fmt)
            points |= {max(middle - 1, 0), middle, middle + 1}
    anchors = (
        exact(1, element.emax, fmt),
        exact(element.max_significand, element.emax - element.mantissa_bits, fmt),
        min(((fmt.bias + element.emax + 1) << fmt.mantissa_bits) - 1, fmt.exponent_mask - 1),
    )
    rows = []
    for anchor in anchors:
        fitting = [each for each in sorted(points) if each <= anchor]
        both = [each | sign for each in fitting for sign in (0, 1 << (fmt.bits - 1))]
        for start in range(0, len(both), n - 1):
            part = both[start : start + n - 1]
            rows.append([anchor, *part, *[0] * (n - 1 - len(part))])
    return torch.tensor(rows)


def _halves(twice: int, element: ElementFormat) -> tuple[int, int]:
    """(significand, exponent) of the code twice / 2, or of the point halfway to the next one."""
    code, half = divmod(twice, 2)
    field, fraction = divmod(code, 1 << element.mantissa_bits)
    significand = fraction + ((1 << element.mantissa_bits) if field else 0)
    return 2 * significand + half, max(field, 1) - element.bias - element.mantissa_bits - 1


def exact(significand: int, exponent: int, fmt: InputFormat) -> int:
    """The pattern of significand * 2^exponent; Inf past the end of the format.

    >>> from mxref.formats import BF16
    >>> hex(exact(7, 6, BF16))
    '0x43e0'
    """
    if not significand:
        return 0
    lowest = 1 - fmt.bias - fmt.mantissa_bits
    unit = max(significand.bit_length() - 1 + exponent - fmt.mantissa_bits, lowest)
    shift = exponent - unit
    kept = significand << shift if shift >= 0 else significand >> -shift
    assert shift >= 0 or kept << -shift == significand, "not a number of the format"
    return min(((unit - lowest) << fmt.mantissa_bits) + kept, fmt.exponent_mask)


def _side_by_side(rows: Tensor, block: Block) -> Tensor:
    """A matrix one block high whose blocks are the rows."""
    return rows.reshape(-1, *block).permute(1, 0, 2).reshape(block[0], -1)


def _scattered(shape: Sequence[int], salt: int, fmt: InputFormat) -> Tensor:
    """Numbers of both signs over six binades around 1, moved by up to seven by the element's index.

    The move changes every 32 elements of the flat index, so that neighbouring blocks differ.
    """
    bits = noise(torch.Size(shape).numel(), salt)
    move = (torch.arange(bits.numel()) // 32 * 5 + salt) % 8
    field = fmt.bias - 6 + (bits >> 24) % 6 + move
    patterns = (field << fmt.mantissa_bits) | (bits & ((1 << fmt.mantissa_bits) - 1))
    return (patterns | (((bits >> 31) & 1) << (fmt.bits - 1))).reshape(tuple(shape))
