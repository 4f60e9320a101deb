"""All 16-bit patterns as amax, and every (value, scale byte) pair that can occur."""

import pytest
import torch

import mxref
from tests.kernels.guarded import assert_bytes, bytes_of, expected

PAIRS = {"floor": 8_346_624, "rceil": 8_396_590, "ceil": 8_349_166, "even": 8_407_952}
"""(finite bf16 value, scale byte) pairs: value not above the largest amax of that byte."""


def amax_blocks(dtype):
    """65,536 blocks: pattern p at a lane that moves with p, the others smaller in magnitude."""
    patterns = torch.arange(65536)
    generator = torch.Generator().manual_seed(0)
    shares = torch.rand(65536, 32, generator=generator)
    infinity = 0x7F80 if dtype == torch.bfloat16 else 0x7C00
    limit = (patterns & 0x7FFF).clamp(max=infinity - 1)
    magnitudes = (shares * (limit + 1)[:, None]).long()
    signs = torch.randint(0, 2, (65536, 32), generator=generator) << 15
    blocks = magnitudes | signs
    blocks[patterns, patterns * 7 % 32] = patterns
    return blocks.to(torch.int16).view(dtype)


RECIPES = [
    "floor",
    "rceil",
    pytest.param("ceil", marks=pytest.mark.exhaustive),
    pytest.param("even", marks=pytest.mark.exhaustive),
]


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16], ids=["bf16", "fp16"])
def test_every_pattern_as_amax(kernel, recipe, kind, device):
    x = amax_blocks(kind)
    result = kernel.call(x.to(device), recipe, (1, 32), "row", "plain")
    assert_bytes(bytes_of(result), expected(x, recipe))


def largest_amax(recipe):
    """The largest finite bf16 magnitude pattern of each scale byte that occurs."""
    magnitudes = torch.arange(0x7F80, dtype=torch.int16)
    x = magnitudes.view(torch.bfloat16)[:, None].expand(-1, 32)
    codes = mxref.quantize(x, recipe).scale.view(torch.uint8).flatten().long()
    top = torch.full((256,), -1).scatter_reduce(0, codes, magnitudes.long(), "amax")
    return top[top >= 0]


def table_blocks(recipe):
    """Blocks of one amax and 31 values, padded with zeros, so that each pair occurs."""
    blocks = []
    for top in largest_amax(recipe).tolist():
        values = torch.arange(top + 1, dtype=torch.int32)
        values = torch.cat([values, values | 0x8000])
        values = torch.nn.functional.pad(values, (0, -len(values) % 31)).view(-1, 31)
        blocks.append(torch.nn.functional.pad(values, (1, 0), value=top))
    return torch.cat(blocks).to(torch.int16).view(torch.bfloat16)


@pytest.mark.parametrize("recipe", RECIPES)
def test_the_whole_payload_table(kernel, recipe, device):
    x = table_blocks(recipe)
    payload, scale = bytes_of(kernel.call(x.to(device), recipe, (1, 32), "row", "plain"))
    met = torch.zeros(256, 65536, dtype=torch.bool)
    for part, codes in zip(x.split(1 << 15), scale.split(1 << 15), strict=True):
        met[codes.long(), part.view(torch.int16).long() & 0xFFFF] = True
    assert int(met.sum()) == PAIRS[recipe]
    assert_bytes((payload, scale), expected(x, recipe))
