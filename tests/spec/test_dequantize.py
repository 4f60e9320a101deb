"""dequantize: every pair of scale byte and code, in every output dtype, against exact fractions."""

from fractions import Fraction

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import mxref
from mxref import blocks
from mxref.formats import ELEMENTS, INPUTS

INTEGERS = {16: torch.int16, 32: torch.int32}


def exact_bits(byte: int, code: int, element: str, dtype: str) -> int:
    """payload * 2^(byte - 127): first fp32, then dtype, each rounded by the definition."""
    row, fmt = ELEMENTS[element], INPUTS[dtype]
    magnitude, sign = code & 0x7F, (code >> 7) << (fmt.bits - 1)
    field, fraction = divmod(magnitude, 1 << row.mantissa_bits)
    nan = magnitude == row.nan_code if row.inf_code is None else magnitude > row.inf_code
    if byte == 255 or nan:
        return fmt.exponent_mask | 1 << (fmt.mantissa_bits - 1)
    if magnitude == row.inf_code:
        return sign | fmt.exponent_mask
    significand = fraction + (field > 0) * (1 << row.mantissa_bits)
    number = significand * Fraction(2) ** (
        max(field, 1) - row.bias - row.mantissa_bits + byte - 127
    )
    if not number:
        return sign
    for target in (INPUTS["fp32"], fmt):
        # number is a fraction of powers of two, so its bit lengths give its exponent
        top = number.numerator.bit_length() - number.denominator.bit_length()
        unit = Fraction(2) ** (max(top, 1 - target.bias) - target.mantissa_bits)
        number = round(number / unit) * unit
        if not number:
            return sign
        if number >= Fraction(2) ** (target.bias + 1):
            return sign | fmt.exponent_mask
    top = number.numerator.bit_length() - number.denominator.bit_length()
    field = max(top, 1 - fmt.bias) + fmt.bias - 1
    count = number / Fraction(2) ** (field + 1 - fmt.bias - fmt.mantissa_bits)
    return sign | (int(count) + (field << fmt.mantissa_bits))


def every_pair(element: str) -> tuple[torch.Tensor, torch.Tensor]:
    payload = torch.arange(256).to(torch.uint8).expand(256, 256).contiguous()
    scale = torch.arange(256).to(torch.uint8).reshape(256, 1).expand(256, 8)
    return payload.view(getattr(torch, ELEMENTS[element].torch_dtype)), scale


@pytest.mark.parametrize("dtype", list(INPUTS))
@pytest.mark.parametrize("element", list(ELEMENTS))
def test_every_pair_of_scale_and_code(element, dtype):
    fmt = INPUTS[dtype]
    payload, scale = every_pair(element)
    plain = mxref.dequantize(payload, scale, dtype=getattr(torch, fmt.torch_dtype))
    blocks._TABLES.clear()  # the table is made anew, under flush-to-zero
    torch.set_flush_denormal(True)
    try:
        flushed = mxref.dequantize(payload, scale, dtype=plain.dtype)
    finally:
        torch.set_flush_denormal(False)
    assert torch.equal(plain.view(torch.uint8), flushed.view(torch.uint8))
    bits = plain.view(INTEGERS[fmt.bits]).to(torch.int64) & ((1 << fmt.bits) - 1)
    for byte in range(256):
        expected = [exact_bits(byte, code, element, dtype) for code in range(256)]
        assert bits[byte].tolist() == expected, byte


@pytest.mark.parametrize("block", [(1, 32), (32, 1), (32, 32)])
@pytest.mark.parametrize("shape", [(70, 50), (3, 33, 65), (2, 2, 32, 32), (0, 5), (5, 0)])
def test_each_element_uses_the_scale_of_its_block(shape, block):
    generator = torch.Generator().manual_seed(0)
    codes = torch.randint(0, 256, shape, generator=generator, dtype=torch.uint8)
    rows, columns = -(-shape[-2] // block[0]), -(-shape[-1] // block[1])
    scale = torch.randint(
        0, 256, (*shape[:-2], rows, columns), generator=generator, dtype=torch.uint8
    )
    payload = codes.view(torch.float8_e4m3fn)
    out = mxref.dequantize(payload, scale.view(torch.float8_e8m0fnu), block=block)
    spread = scale.repeat_interleave(block[0], -2).repeat_interleave(block[1], -1)
    table = mxref.dequantize(*every_pair("e4m3"))
    expected = table[spread[..., : shape[-2], : shape[-1]].to(torch.int64), codes.to(torch.int64)]
    assert torch.equal(out.view(torch.int32), expected.view(torch.int32))
    assert out.is_contiguous()


def test_a_transposed_payload_is_read_by_logical_index():
    payload, scale = mxref.quantize(torch.randn(64, 96))
    columns_first = payload.view(torch.uint8).t().contiguous().t().view(torch.float8_e4m3fn)
    assert not columns_first.is_contiguous()
    assert torch.equal(mxref.dequantize(columns_first, scale), mxref.dequantize(payload, scale))


def test_a_fake_tensor_leaves_nothing_behind():
    payload, scale = mxref.quantize(torch.ones(1, 32))
    blocks._TABLES.clear()
    with FakeTensorMode() as mode:
        fake = mxref.dequantize(mode.from_tensor(payload), mode.from_tensor(scale))
        assert fake.shape == (1, 32)
    with torch.device("meta"):
        assert mxref.dequantize(payload, scale).tolist() == [[1.0] * 32]
    assert mxref.dequantize(payload, scale).tolist() == [[1.0] * 32]
