"""How one element gets from its value to its code, in words: scaled value, neighbours, choice."""

from dataclasses import dataclass
from fractions import Fraction

from mxref.cli import values
from mxref.cli.scale_rules import Step
from mxref.formats import ELEMENTS, FP32, SCALE_BIAS, SCALE_NAN, ElementFormat, InputFormat
from mxref.recipes import Recipe

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


@dataclass(frozen=True)
class Under:
    """What an element of a block under a dialect is multiplied by depends on these."""

    fmt: InputFormat
    byte: int
    recipe: Recipe
    has_nan: bool


def dialect_steps(bits: int, code: int, under: Under) -> list[Step]:
    """As `steps`, under any recipe: what it multiplies by, and what it makes of NaN and Inf."""
    recipe, element = under.recipe, ELEMENTS[under.recipe.element]
    text, factor = _multiplier(under)
    number = values.value(bits, under.fmt)
    rows = [("multiplier", text)]
    if (
        number
        and abs(number) < Fraction(2) ** (1 - FP32.bias)
        and recipe.flush in ("inputs", "both")
    ):
        rows.append(("flush", "a subnormal input counts as zero"))
        number = Fraction(0)
    stored = values.fields(code, 8, element.mantissa_bits)
    if number is None or factor is None:
        rows.append(("scaled", f"{values.name(bits, under.fmt)} times that is not finite"))
        return [*rows, ("payload", f"{stored}, {_in_words(code, recipe)}")]
    scaled = number * factor
    rows.append(("scaled", f"value * multiplier = {values.show(scaled)}"))
    rows.append(("neighbours", _neighbours(abs(scaled), code & 0x80, element)))
    if (code & 0x7F) > element.max_code:
        return [*rows, ("payload", f"{stored}, NaN: overflow={recipe.overflow}")]
    rows.append(("taken", _choice(abs(scaled), code, element, recipe.element_round)))
    rows.append(("payload", stored))
    if under.byte == SCALE_NAN:
        return [*rows, ("dequantized", "NaN, as every element under byte 255")]
    back = code_value(code, element) * Fraction(2) ** (under.byte - SCALE_BIAS)
    given = values.value(bits, under.fmt) or Fraction(0)
    sign = "-" if code & 0x80 and not back else ""
    error = _error(given, back) if given else ", no error"
    return [*rows, ("dequantized", f"{sign}{values.show(back)}{error}")]


def _multiplier(under: Under) -> tuple[str, Fraction | None]:
    """In words and as a number, None for NaN and -Inf."""
    recipe, byte = under.recipe, under.byte
    if under.has_nan and recipe.poison == "block" and not recipe.nan_scale.startswith("dropped"):
        return "NaN: poison=block, and the block holds a NaN", None
    text = f"2^{SCALE_BIAS - byte}"
    if byte == 0:
        text = recipe.byte0_multiplier
    if byte == SCALE_NAN:
        text = recipe.byte255_multiplier
    if text in ("nan", "-inf"):
        return f"byte255_multiplier={text}", None
    base, _, power = text.partition("^")
    factor = Fraction(int(base)) ** int(power or 1)
    if recipe.flush == "multiplier" and factor < Fraction(2) ** (1 - FP32.bias):
        return f"{text} is subnormal and flushed: 0", Fraction(0)
    return text, factor


def _in_words(code: int, recipe: Recipe) -> str:
    if (code & 0x7F) > ELEMENTS[recipe.element].max_code:
        return f"NaN: nan_code={recipe.nan_code}"
    return f"overflow={recipe.overflow}" if code & 0x7F else "zero"


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


def _choice(size: Fraction, code: int, element: ElementFormat, rounding: str = "rne") -> str:
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
        if size == middle and rounding == "half_away":
            reason, fits = "a tie, so away from zero", magnitude == low + 1
        elif size == middle:
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
