"""All 2^32 fp32 patterns through the scalar functions, against forms that share nothing."""

import pytest
import torch

import mxref
from mxref import casting
from mxref.formats import ELEMENTS
from mxref.rules import scale_bytes

pytestmark = pytest.mark.exhaustive

CHUNK = 1 << 24
MAXIMUM = {"e4m3": 448.0, "e5m2": 57344.0}
EMAX = {"e4m3": 8, "e5m2": 15}


def magnitudes():
    """Every non-negative fp32 pattern, NaN included, in chunks."""
    for start in range(0, 1 << 31, CHUNK):
        yield torch.arange(start, start + CHUNK, dtype=torch.int64).to(torch.int32)


def ceil_log2(ratio: torch.Tensor) -> torch.Tensor:
    """The smallest integer e with 2^e >= ratio, through float64's frexp."""
    mantissa, exponent = torch.frexp(ratio.double())
    return exponent - (mantissa == 0.5).to(torch.int32)


def expected_bytes(amax: torch.Tensor, name: str, element: str) -> torch.Tensor:
    """The rules in floating point: the fp32 multiply itself for rceil, float64 for the others."""
    if name == "rceil":
        ratio = amax * (torch.tensor(1.0) / torch.tensor(MAXIMUM[element]))
        byte = torch.where(ratio == 0, 0, ceil_log2(ratio) + 127)
    else:
        wide = amax.double()
        exponent = torch.frexp(wide)[1] - 1
        if name == "ceil":
            exponent = ceil_log2(wide)
        elif name == "even":
            ulps = {"e4m3": 4, "e5m2": 3}[element]
            exponent = (
                torch.frexp(wide + torch.ldexp(torch.ones_like(wide), exponent - ulps))[1] - 1
            )
        byte = exponent - EMAX[element] + 127
    byte = torch.where(amax == 0, 0, byte.clamp_min(0))
    return torch.where(amax.isfinite(), byte, 255).to(torch.int32)


@pytest.mark.parametrize("element", list(ELEMENTS))
@pytest.mark.parametrize("name", ["floor", "rceil", "ceil", "even"])
def test_scale_byte_of_every_amax(name, element):
    recipe = mxref.Recipe(round=name, element=element)
    count = 0
    for patterns in magnitudes():
        amax = patterns.view(torch.float32)
        assert torch.equal(scale_bytes(patterns, recipe), expected_bytes(amax, name, element))
        count += patterns.numel()
    assert count == 1 << 31


@pytest.mark.parametrize("element", list(ELEMENTS))
def test_code_of_every_element(element):
    """Both roads at scale 1 against torch's own cast of the clamped value, both signs, NaN too."""
    row = ELEMENTS[element]
    count = 0
    for patterns in magnitudes():
        for sign in (0, -(1 << 31)):
            x = (patterns | sign).view(torch.float32)
            clamped = x.clamp(-MAXIMUM[element], MAXIMUM[element])
            expected = clamped.to(getattr(torch, row.torch_dtype)).view(torch.uint8)
            expected = torch.where(x.isnan(), row.nan_code, expected)
            scale = torch.full((CHUNK // 32,), 127, dtype=torch.uint8)
            recipe = mxref.Recipe(element=element)
            payload = mxref.quantize(x, recipe, scale=scale).payload.view(torch.uint8)
            assert torch.equal(payload, expected)
            count += x.numel()
        shifted = casting.shift(patterns, torch.tensor(127, dtype=torch.int32), element=row)
        codes = casting.encode(shifted, torch.empty_like(shifted), row).to(torch.uint8)
        finite = ~x.isnan()
        assert torch.equal(codes[finite], (expected & 0x7F)[finite])
    assert count == 1 << 32


@pytest.mark.parametrize("element", list(ELEMENTS))
def test_both_roads_agree_under_every_scale(element):
    """A multiply by a power of two equals the shift of the exponent, wherever it may be taken."""
    row = ELEMENTS[element]
    generator = torch.Generator().manual_seed(0)
    count = 0
    for byte_value in range(254):
        patterns = torch.randint(0, 0x7F800000, (CHUNK,), generator=generator).to(torch.int32)
        byte = torch.tensor(byte_value, dtype=torch.int32)
        safe = ~casting.needs_shift(patterns, byte, row) | (patterns >= 1 << 23)
        patterns = patterns[safe]
        values = patterns.view(torch.float32).clone()
        casting.multiply(values, byte)
        scaled = values.view(torch.int32).clamp_max_(casting.max_pattern(row))
        codes = casting.encode(scaled, torch.empty_like(scaled), row)
        shifted = casting.shift(patterns, byte, row)
        assert torch.equal(codes, casting.encode(shifted, torch.empty_like(shifted), row))
        count += patterns.numel()
    assert count > 254 * CHUNK * 0.99
