"""How one element gets from its value to its code, in words: scaled value, neighbours, choice."""

from fractions import Fraction

from mxref.cli import values
from mxref.cli.scale_rules import Step
from mxref.formats import SCALE_BIAS, SCALE_NAN, ElementFormat, InputFormat

_FP64_DIGITS = "+.6g"


def code_value(code: int, element: ElementFormat) -> Fraction:
    """The value of a finite code, its sign included; a zero has none."""
    field, fraction = (
        (code & 0x7F) >> element.mantissa_bits,
        code & ((1 << element.mantissa_bits) - 1),
    )
    significand = fraction | ((field > 0) << element.mantissa_bits)
    size = significand * Fraction(2) ** (max(field, 1) - element.bias - element.mantissa_bits)
    return -size if code & 0x80 else size


def steps(bits: int, fmt: InputFormat, byte: int, code: int, element: ElementFormat) -> list[Step]:
    """The lines from the pattern to `code`, which the reference gave, and back to a value."""
    number = values.value(bits, fmt)
    stored = values.fields(code, 8, element.mantissa_bits)
    if number is None or byte == SCALE_NAN:
        return [("payload", f"{stored}, NaN: a NaN or Inf poisons its whole block")]
    scaled = number * Fraction(2) ** (SCALE_BIAS - byte)
    back = code_value(code, element) * Fraction(2) ** (byte - SCALE_BIAS)
    sign = "-" if bits >> (fmt.bits - 1) and not number else ""
    back_sign = "-" if code & 0x80 and not back else ""
    return [
        ("scaled", f"value * 2^{SCALE_BIAS - byte} = {sign}{values.show(scaled)}"),
        ("neighbours", _neighbours(abs(scaled), code & 0x80, element)),
        ("taken", _choice(abs(scaled), code, element)),
        ("payload", stored),
        ("dequantized", f"{back_sign}{values.show(back)}{_error(number, back)}"),
    ]


def below(size: Fraction, element: ElementFormat) -> int:
    """The largest code without sign whose value is at or below `size`."""
    low, high = 0, element.max_code
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if code_value(middle, element) <= size else (low, middle - 1)
    return low


def _neighbours(size: Fraction, sign: int, element: ElementFormat) -> str:
    low = below(size, element)
    texts = [_named(low | sign, element)]
    if code_value(low, element) == size:
        return f"{texts[0]} exactly"
    if low == element.max_code:
        return f"{texts[0]}, the largest; nothing finite above it in {element.name}"
    texts.append(_named((low + 1) | sign, element))
    return " and ".join(texts)


def _named(code: int, element: ElementFormat) -> str:
    number = code_value(code, element)
    text = values.show(number) if number or not code & 0x80 else "-0"
    return f"0x{code:02X} ({text})"


def _choice(size: Fraction, code: int, element: ElementFormat) -> str:
    """Why the code was taken; AssertionError if none of the reasons fits."""
    low, magnitude = below(size, element), code & 0x7F
    low_value = code_value(low, element)
    if low_value == size:
        reason, fits = "exact", magnitude == low
    elif low == element.max_code:
        reason, fits = f"saturated, above the maximum {values.show(low_value)}", magnitude == low
    else:
        high_value = code_value(low + 1, element)
        middle = (low_value + high_value) / 2
        at = f"the midpoint is {values.show(middle)}"
        if size == middle:
            reason, fits = "a tie, so the even code", magnitude == low + (low & 1)
        else:
            reason, fits = f"the nearer, {at}", magnitude == low + (size > middle)
        if not magnitude:
            reason += "; flushed to zero"
    if not fits:
        raise AssertionError(f"the steps do not lead to the reference's code 0x{code:02X}")
    return f"0x{code:02X}: {reason}"


def _error(number: Fraction, back: Fraction) -> str:
    if number == back:
        return ", no error"
    share = float((back - number) / abs(number)) * 100
    return f", error {values.show(back - number)} ({share:{_FP64_DIGITS}} % of the value)"
