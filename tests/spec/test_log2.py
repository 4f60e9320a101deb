"""log2_f32: integer thresholds against sixty digits, around every power of two."""

import struct
from decimal import Context, Decimal
from fractions import Fraction

import pytest
import torch

import mxref
from mxref import bits, rational
from mxref.rules.ratio import RCP_APPROX_448

DIGITS = Context(prec=60)


def logarithm(number: Fraction) -> Decimal:
    """log2 to about sixty digits, through Decimal's correctly rounded ln."""
    quotient = DIGITS.divide(Decimal(number.numerator), Decimal(number.denominator))
    return DIGITS.divide(DIGITS.ln(quotient), DIGITS.ln(Decimal(2)))


def midpoint(integer: int, side: int) -> Decimal:
    """The number halfway from the integer to the next fp32 number above (1) or below (-1) it.

    By bits: the fp32 patterns of a number and of its neighbour, no formula for an ulp.
    """
    (pattern,) = struct.unpack("<i", struct.pack("<f", float(abs(integer))))
    outward = (integer > 0) == (side > 0)
    (other,) = struct.unpack("<f", struct.pack("<i", pattern + (1 if outward else -1)))
    return Decimal(integer) + Decimal(side) * abs(Decimal(other) - abs(Decimal(integer))) / 2


@pytest.mark.parametrize("side", [1, -1])
def test_the_thresholds_around_every_power_of_two(side):
    """The last number whose rounded log2 is the integer lies before the midpoint."""
    for integer in range(-149, 129):
        if integer == 0:
            assert bits._reach(0, side) == 0
            continue
        reach = bits._reach(integer, side)
        step = Fraction(side, 1 << (23 if side > 0 else 24))
        power = Fraction(2) ** integer
        last, following = (logarithm(power * (1 + step * j)) for j in (reach, reach + 1))
        middle = midpoint(integer, side)
        assert abs(last - integer) < abs(middle - integer) < abs(following - integer), integer


def test_a_midpoint_is_never_close_enough_to_doubt_the_digits():
    closest = min(
        abs(logarithm(Fraction(2) ** integer * (1 + Fraction(j, 1 << 23))) - midpoint(integer, 1))
        for integer in (1, 2, 4, 8, 16, 32, 64, 127)
        for j in range(100)
    )
    assert closest > Decimal("1e-9")


@pytest.mark.parametrize("round_", ["floor", "rceil", "ceil"])
def test_both_roads_around_every_threshold(round_):
    """100 ulps on each side of every power of two and of every 448 * 2^k."""
    recipe = mxref.Recipe(round=round_, ratio="log2_f32")
    start = 0x600000 if round_ == "rceil" else 0
    near = torch.tensor([-90, -89, -46, -45, -44, -23, -22, -21, 0, 1, 2, 11, 12, 22, 23, 38, 40,
                         44, 45, 77, 80])  # fmt: skip
    points = (torch.arange(0, 255).reshape(-1, 1) << 23) + start + near
    x = points.clamp(0, 0x7F7FFFFF).flatten().to(torch.int32)
    _, scale = mxref.quantize(x.view(torch.float32).reshape(-1, 1), recipe)
    for pattern, byte in zip(x.tolist(), scale.view(torch.uint8).flatten().tolist(), strict=True):
        assert mxref.exact.quantize_block([pattern], "fp32", recipe)[0] == byte, hex(pattern)


def test_the_rounded_logarithm_is_not_the_exact_one():
    """The test above can fail: without thresholds these bytes differ."""
    pattern = 0x63E00026  # 38 ulps above 448 * 2^64
    for ratio, byte in (("log2_f32", 191), ("div_f32", 192)):
        recipe = mxref.Recipe(round="rceil", ratio=ratio)
        assert mxref.exact.quantize_block([pattern], "fp32", recipe)[0] == byte


def test_log2_fp32_of_numbers_whose_logarithm_is_known():
    assert rational.log2_fp32(Fraction(8)) == 3
    assert rational.log2_fp32(Fraction(1, 1 << 149)) == -149
    # log2(3) = 1.1001010111000000000110100011... in binary
    assert rational.log2_fp32(Fraction(3)) == Fraction(0b110010101110000000001101, 1 << 23)


def test_the_reciprocals_are_the_fp32_numbers_nearest_to_them():
    assert bits.reciprocal(14, 5) == RCP_APPROX_448 == 0x3B124925
    assert bits.reciprocal(7, 13) == 0x37924925  # 1 / 57344 = 2^-7 / 448
