"""Numbers as people write them <-> bit patterns of bf16, fp16 and fp32, exactly, in Fractions."""

import re
from dataclasses import dataclass
from fractions import Fraction

from mxref.cli.errors import WrongCallError
from mxref.formats import InputFormat

_DECIMAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d{1,4})?", re.IGNORECASE)
_HEX_FLOAT = re.compile(
    r"([+-]?)0x([0-9a-f]*)(?:\.([0-9a-f]*))?(?:p([+-]?\d{1,4}))?", re.IGNORECASE
)
_PATTERN = re.compile(r"0x[0-9a-f]+", re.IGNORECASE)
_SPECIAL = re.compile(r"([+-]?)(inf|infinity|nan)", re.IGNORECASE)
_LONGEST = 1000
"""Characters that a number may have: Python refuses to convert some thousand digits."""

FORMS = "decimal (957, -3.5, 1e-3), bit pattern (0x7F80), hex float (0x1.8p3), inf or nan"


@dataclass(frozen=True)
class Given:
    """A number of the call: its text, its bits, and its exact value where it had to be rounded."""

    text: str
    bits: int
    exact: Fraction | None = None


def parse(text: str, fmt: InputFormat) -> Given:
    """The number that the text names, rounded to nearest even where the format lacks it."""
    sign = 1 << (fmt.bits - 1)
    if special := _SPECIAL.fullmatch(text):
        nan = special[2].lower() == "nan"
        bits = fmt.exponent_mask | (nan << (fmt.mantissa_bits - 1))
        return Given(text, bits | (sign if special[1] == "-" else 0))
    if _PATTERN.fullmatch(text):
        bits = int(text, 16)
        if bits >> fmt.bits:
            raise WrongCallError(f"VALUE={text!r}: a bit pattern of {fmt.name} has {fmt.bits} bits")
        return Given(text, bits)
    exact = _number(text)
    bits = nearest(abs(exact), fmt) | (sign if text.startswith("-") else 0)
    return Given(text, bits, None if value(bits, fmt) == exact else exact)


def _number(text: str) -> Fraction:
    if len(text) <= _LONGEST:
        if _DECIMAL.fullmatch(text):
            return Fraction(text)
        match = _HEX_FLOAT.fullmatch(text)
        # without point and exponent it would read like a bit pattern with a sign
        if match and (match[2] or match[3]) and (match[3] is not None or match[4]):
            fraction = match[3] or ""
            size = int(match[2] + fraction, 16) * Fraction(2) ** (
                int(match[4] or 0) - 4 * len(fraction)
            )
            return -size if match[1] == "-" else size
    raise WrongCallError(f"VALUE={text[:60]!r}: expected a {FORMS}")


def value(bits: int, fmt: InputFormat) -> Fraction | None:
    """The value of a pattern; None for NaN and Inf."""
    size = bits & fmt.magnitude_mask
    if size >= fmt.exponent_mask:
        return None
    field, fraction = size >> fmt.mantissa_bits, size & ((1 << fmt.mantissa_bits) - 1)
    significand = fraction | ((field > 0) << fmt.mantissa_bits)
    size_value = significand * Fraction(2) ** (max(field, 1) - fmt.bias - fmt.mantissa_bits)
    return -size_value if bits >> (fmt.bits - 1) else size_value


def nearest(size: Fraction, fmt: InputFormat) -> int:
    """The pattern nearest to a number >= 0, ties to even; the pattern of Inf past the end."""
    if not size:
        return 0
    smallest = 1 - fmt.bias
    exponent = max(size.numerator.bit_length() - size.denominator.bit_length(), smallest)
    if exponent > smallest and size < Fraction(2) ** exponent:
        exponent -= 1
    # round() of a Fraction is to nearest even, and a carry runs into the exponent field by itself
    units = round(size / Fraction(2) ** (exponent - fmt.mantissa_bits))
    return min(((exponent - smallest) << fmt.mantissa_bits) + units, fmt.exponent_mask)


def name(bits: int, fmt: InputFormat) -> str:
    """The pattern's value in words: a number, -0, Inf, NaN."""
    number = value(bits, fmt)
    sign = "-" if bits >> (fmt.bits - 1) else ""
    if number is None:
        return "NaN" if bits & fmt.magnitude_mask > fmt.exponent_mask else f"{sign}Inf"
    return show(number) if number else f"{sign}0"


def fields(bits: int, width: int, mantissa_bits: int) -> str:
    """A pattern as hex and as sign, exponent and mantissa bits: `0x3F80 = 0 01111111 0000000`."""
    text = f"{bits:0{width}b}"
    split = width - mantissa_bits
    return f"0x{bits:0{width // 4}X} = {text[0]} {text[1:split]} {text[split:]}"


def show(number: Fraction) -> str:
    """A dyadic number exactly: its decimals if they are few, else integer * 2^exponent."""
    if number == 0:
        return "0"
    places = number.denominator.bit_length() - 1
    digits = str(abs(number.numerator) * 5**places).zfill(places + 1)
    whole, decimals = digits[: len(digits) - places], digits[len(digits) - places :]
    if len(digits) <= 20:
        return ("-" if number < 0 else "") + whole + (f".{decimals}" if decimals else "")
    twos = (number.numerator & -number.numerator).bit_length() - 1
    return f"{number.numerator >> twos} * 2^{twos - places} (about {float(number):.6g})"
