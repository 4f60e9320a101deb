"""Two roads to a byte: the fast path against `exact.py`, and `scale=` against a third form."""

from dataclasses import replace

import pytest
import torch

import mxref
from mxref import exact
from mxref.formats import ELEMENTS, INPUTS

RECIPES = [
    replace(mxref.RECIPES[name], element=element)
    for name in ("floor", "rceil", "ceil", "even")
    for element in ELEMENTS
]
INTEGERS = {16: torch.int16, 32: torch.int32}


def from_bits(bits: torch.Tensor, dtype: str) -> torch.Tensor:
    row = INPUTS[dtype]
    signed = bits - ((bits >> (row.bits - 1)) << row.bits)
    return signed.to(INTEGERS[row.bits]).view(getattr(torch, row.torch_dtype))


def assert_agrees(bits: torch.Tensor, dtype: str, recipe: mxref.Recipe) -> None:
    """Each row of `bits` is one block."""
    payload, scale = mxref.quantize(from_bits(bits, dtype), recipe)
    bytes_, rows = scale.view(torch.uint8)[:, 0].tolist(), payload.view(torch.uint8).tolist()
    for row, byte, codes in zip(bits.tolist(), bytes_, rows, strict=True):
        assert (byte, codes) == exact.quantize_block(row, dtype, recipe), [hex(b) for b in row]


@pytest.mark.parametrize("dtype", ["bf16", "fp16"])
@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.label)
def test_every_16_bit_pattern_as_amax(recipe, dtype):
    """Every pattern alone in a partial block, then every magnitude beside one that it scales."""
    assert_agrees(torch.arange(1 << 16).reshape(-1, 1), dtype, recipe)
    magnitudes = torch.arange(0, 1 << 15, 5)
    other = (magnitudes * 40503 + 12345) % (magnitudes + 1)
    assert_agrees(torch.stack([magnitudes, other | 0x8000], 1), dtype, recipe)


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.label)
def test_fp32_boundaries(recipe):
    """A few ulps around 2^k, 1.75 * 2^k, the largest that `even` leaves, and the ends."""
    binades = torch.arange(255).reshape(-1, 1, 1) << 23
    points = torch.tensor([0, 0x600000, 0x780000, 0x700000, 0x7FFFFF]).reshape(1, -1, 1)
    bits = (binades + points + torch.arange(-3, 4)).reshape(-1, 1).clamp(0, 0x7FFFFFFF)
    special = torch.tensor([[0x7F800000], [0x7F800001], [0x7FFFFFFF], [0x04600001], [0x07E00001]])
    assert_agrees(torch.cat([bits, special]), "fp32", recipe)


def test_every_random_block_of_every_geometry():
    generator = torch.Generator().manual_seed(0)
    for dtype, row in INPUTS.items():
        for block in ((1, 32), (32, 1), (32, 32)):
            bits = torch.randint(0, 1 << row.bits, (64, 64), generator=generator)
            for recipe in RECIPES:
                payload, scale = mxref.quantize(from_bits(bits, dtype), recipe, block=block)
                for i in range(scale.shape[0]):
                    for j in range(scale.shape[1]):
                        tile = (
                            slice(i * block[0], (i + 1) * block[0]),
                            slice(j * block[1], (j + 1) * block[1]),
                        )
                        expected = exact.quantize_block(
                            bits[tile].flatten().tolist(), dtype, recipe
                        )
                        codes = payload.view(torch.uint8)[tile].flatten().tolist()
                        assert (int(scale.view(torch.uint8)[i, j]), codes) == expected


def nearest_code(x: torch.Tensor, byte: torch.Tensor, element: str) -> torch.Tensor:
    """The element code by its definition: a search among the exact midpoints, in float64.

    Independent of the fast path: no bit of x is looked at. float64 holds every product exactly.
    """
    row = ELEMENTS[element]
    codes = torch.arange(row.max_code + 1)
    fields = codes >> row.mantissa_bits
    significands = (codes & ((1 << row.mantissa_bits) - 1)) + (fields > 0) * (
        1 << row.mantissa_bits
    )
    powers = (fields.clamp_min(1) - row.bias - row.mantissa_bits).double()
    values = significands.double() * torch.pow(torch.tensor(2.0, dtype=torch.float64), powers)
    midpoints = (values[1:] + values[:-1]) / 2
    scaled = x.double() * torch.pow(torch.tensor(2.0, dtype=torch.float64), (127 - byte).double())
    magnitude = scaled.abs().nan_to_num(nan=0.0)
    above = torch.bucketize(magnitude, midpoints, right=True)  # ties go up
    tie = above != torch.bucketize(magnitude, midpoints)
    code = above - (tie & (above % 2 == 1)).to(above.dtype)  # a tie goes to the even code
    code = code + 0x80 * torch.signbit(x).to(code.dtype)
    return code.masked_fill(x.isnan() | (byte == 255), row.nan_code).to(torch.uint8)


@pytest.mark.parametrize("flush", [False, True])
@pytest.mark.parametrize("element", list(ELEMENTS))
@pytest.mark.parametrize("dtype", ["bf16", "fp16"])
def test_all_65536_patterns_under_all_256_scales(dtype, element, flush):
    x = from_bits(torch.arange(1 << 16), dtype)
    recipe = mxref.Recipe(element=element)
    for start in range(0, 256, 16):
        byte = torch.arange(start, start + 16).reshape(-1, 1)
        expected = nearest_code(x.expand(16, -1), byte, element)
        scale = byte.expand(16, (1 << 16) // 32).to(torch.uint8)
        torch.set_flush_denormal(flush)
        try:
            payload = mxref.quantize(x.expand(16, -1), recipe, scale=scale).payload
        finally:
            torch.set_flush_denormal(False)
        assert torch.equal(payload.view(torch.uint8), expected)


@pytest.mark.parametrize("element", list(ELEMENTS))
def test_the_third_form_agrees_with_exact(element):
    """The independent form is checked too, and so can fail: it is not the fast path."""
    generator = torch.Generator().manual_seed(1)
    bits = torch.randint(0, 1 << 16, (4000,), generator=generator)
    byte = torch.randint(0, 256, (4000,), generator=generator)
    found = nearest_code(from_bits(bits, "bf16"), byte, element).tolist()
    for pattern, scale, code in zip(bits.tolist(), byte.tolist(), found, strict=True):
        assert exact.cast(pattern, "bf16", scale, element) == code


@pytest.mark.parametrize("element", list(ELEMENTS))
def test_given_scales_on_random_fp32(element):
    generator = torch.Generator().manual_seed(2)
    bits = torch.randint(0, 1 << 32, (512, 32 * 256), generator=generator)
    byte = torch.arange(256).repeat(512, 1)
    x = from_bits(bits, "fp32")
    payload = mxref.quantize(x, mxref.Recipe(element=element), scale=byte.to(torch.uint8)).payload
    expected = nearest_code(x, byte.repeat_interleave(32, 1), element)
    assert torch.equal(payload.view(torch.uint8), expected)
