"""Fractions for `exact.py`: signed numbers, powers of two, logarithms and roundings."""

import math
from decimal import Context, Decimal
from fractions import Fraction
from typing import NamedTuple

from mxref.formats import FP32, ElementFormat, InputFormat

INF = "inf"
NAN = "nan"


class Number(NamedTuple):
    """A sign and a size: a fraction not below zero, INF or NAN."""

    negative: bool
    size: Fraction | str


def power(exponent: int) -> Fraction:
    """2^exponent."""
    return Fraction(2) ** exponent


def floor_log2(number: Fraction) -> int:
    """The largest integer e with 2^e <= number."""
    e = number.numerator.bit_length() - number.denominator.bit_length()
    return e if power(e) <= number else e - 1


def ceil_log2(number: Fraction) -> int:
    """The smallest integer e with 2^e >= number."""
    e = floor_log2(number)
    return e if power(e) == number else e + 1


def nearest(number: Fraction, fmt: InputFormat) -> Fraction:
    """The nearest number of the format, ties to even, subnormals kept (no overflow occurs here)."""
    if not number:
        return number
    unit = power(max(floor_log2(number), 1 - fmt.bias) - fmt.mantissa_bits)
    return round(number / unit) * unit


def log2_fp32(number: Fraction) -> Fraction:
    """The correctly rounded fp32 log2.

    Fifty digits decide what floor and ceil see: around an integer the midpoint of two fp32 numbers
    is the log2 of no number of 24 bits, nor of one within 10^-9 of it.
    """
    if power(floor_log2(number)) == number:
        return Fraction(floor_log2(number))
    digits = Context(prec=50)
    quotient = digits.divide(Decimal(number.numerator), Decimal(number.denominator))
    exact = Fraction(digits.divide(quotient.ln(digits), Decimal(2).ln(digits)))
    size = nearest(abs(exact), FP32)
    return size if exact > 0 else -size


def rounded_floor_log2(ratio: Fraction, mantissa_bits: int) -> int:
    """floor(log2) of the ratio and half a unit of its mantissa, cut to so many bits."""
    return floor_log2(ratio + power(floor_log2(ratio) - mantissa_bits - 1))


def code_of(scaled: Fraction, element: ElementFormat, rounding: str) -> int:
    """The code of the nearest element value, as if the exponent went on; `scaled` is >= 0."""
    if not scaled:
        return 0
    unit = power(max(floor_log2(scaled), element.emin) - element.mantissa_bits)
    count = scaled / unit
    rounded = (round(count) if rounding == "rne" else math.floor(count + Fraction(1, 2))) * unit
    if rounded < power(element.emin):
        return int(rounded / power(element.emin - element.mantissa_bits))
    exponent = floor_log2(rounded)
    significand = int(rounded / power(exponent - element.mantissa_bits))
    return ((exponent - element.emin) << element.mantissa_bits) + significand
