"""Bit patterns for people: sign, exponent and mantissa apart, and the value they mean."""

import struct
from typing import NamedTuple

import torch

from mxref.formats import ELEMENTS, SCALE_BIAS, SCALE_NAN


class Layout(NamedTuple):
    """Bits of a float dtype: `sign`, `exponent`, `mantissa`."""

    sign: int
    exponent: int
    mantissa: int

    @property
    def bits(self) -> int:
        """All of them."""
        return sum(self)


LAYOUTS: dict[torch.dtype, Layout] = {
    torch.float64: Layout(1, 11, 52),
    torch.float32: Layout(1, 8, 23),
    torch.bfloat16: Layout(1, 8, 7),
    torch.float16: Layout(1, 5, 10),
    torch.float8_e4m3fn: Layout(1, 4, 3),
    torch.float8_e4m3fnuz: Layout(1, 4, 3),
    torch.float8_e5m2: Layout(1, 5, 2),
    torch.float8_e5m2fnuz: Layout(1, 5, 2),
    torch.float8_e8m0fnu: Layout(0, 8, 0),
}
"""The float dtypes whose fields are known; others are shown in hex alone."""

_ELEMENTS = {getattr(torch, row.torch_dtype): row for row in ELEMENTS.values()}


def fields(bits: int, dtype: torch.dtype) -> str:
    """The pattern in hex, and its fields in binary.

    >>> fields(0x7E, torch.float8_e4m3fn), fields(0x43E0, torch.bfloat16)
    ('0x7E 0 1111 110', '0x43E0 0 10000111 1100000')
    >>> fields(0x80, torch.float8_e8m0fnu), fields(200, torch.uint8)
    ('0x80 10000000', '0xC8')
    """
    layout = LAYOUTS.get(dtype)
    digits = dtype.itemsize * 2
    text = f"0x{bits:0{digits}X}"
    if layout is None:
        return text
    binary, at = f"{bits:0{layout.bits}b}", 0
    for size in layout:
        if size:
            text += " " + binary[at : at + size]
            at += size
    return text


def value(bits: int, dtype: torch.dtype) -> str:
    """What the pattern means, as text; "" where that is not known.

    >>> value(0x7E, torch.float8_e4m3fn), value(0x8000, torch.bfloat16), value(0, torch.float16)
    ('448.0', '-0.0', '0.0')
    >>> value(0x80, torch.float8_e8m0fnu), value(0xFF, torch.float8_e8m0fnu)
    ('2^1', 'NaN')
    """
    if dtype == torch.float8_e8m0fnu:
        return "NaN" if bits == SCALE_NAN else f"2^{bits - SCALE_BIAS}"
    if dtype in _ELEMENTS:
        return number(code_value(bits, dtype))
    if dtype == torch.bfloat16:
        return number(struct.unpack("<f", (bits << 16).to_bytes(4, "little"))[0])
    codes = {torch.float16: "<e", torch.float32: "<f", torch.float64: "<d"}
    if dtype in codes:
        return number(struct.unpack(codes[dtype], bits.to_bytes(dtype.itemsize, "little"))[0])
    if dtype in LAYOUTS or dtype.is_complex:
        return ""
    if dtype.is_signed and bits >> (dtype.itemsize * 8 - 1):
        return str(bits - (1 << (dtype.itemsize * 8)))
    return str(bits)


def code_value(code: int, dtype: torch.dtype) -> float:
    """The value of a float8_e4m3fn or float8_e5m2 code.

    >>> code_value(0x01, torch.float8_e4m3fn) == 2**-9, code_value(0xFC, torch.float8_e5m2)
    (True, -inf)
    """
    element = _ELEMENTS[dtype]
    magnitude, sign = code & 0x7F, -1.0 if code >> 7 else 1.0
    if magnitude == element.inf_code:
        return sign * float("inf")
    if magnitude > element.max_code:
        return float("nan")
    field, mantissa = divmod(magnitude, 1 << element.mantissa_bits)
    significand = mantissa + ((1 << element.mantissa_bits) if field else 0)
    return sign * significand * 2.0 ** (max(field, 1) - element.bias - element.mantissa_bits)


def number(found: float) -> str:
    """A float as text: the shortest that is exact, NaN and Inf as the field writes them."""
    if found != found:
        return "NaN"
    if found in (float("inf"), float("-inf")):
        return "Inf" if found > 0 else "-Inf"
    return repr(found)
