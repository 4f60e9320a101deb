"""All 16-bit patterns as amax, and every (value, scale byte) pair that can occur."""

import pytest
import torch

import mxref
from mxkernels.registry import KERNELS
from tests.kernels.guarded import DIM0, Way, assert_bytes, bytes_of, expected

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


WAYS = [DIM0, Way((32, 1), "col", "plain_t"), Way((32, 32), "col", "plain_t")]
SPECS = [spec for spec in KERNELS if spec.op == "quantize"]
CASES = [(spec, way) for spec in SPECS for way in WAYS if way.block in spec.blocks]


def cases(*exhaustive):
    """Every kernel with every way; blocks listed here only when all is run."""
    return pytest.mark.parametrize(
        ("spec", "way"),
        [
            pytest.param(
                *case,
                marks=[pytest.mark.exhaustive] if case[1].block in exhaustive else [],
                id=f"{case[0].name}-{case[1]}",
            )
            for case in CASES
        ],
    )


def arranged(blocks, way):
    """A contiguous matrix whose blocks are these (n, 32); of (32, 32), 32 of them make a tile.

    Blocks over rows lie side by side, 16 bands of them, so that a tile of a kernel holds many.
    """
    height = way.block[0]
    if height == 1:
        return blocks
    tiles = blocks.view(-1, 32, 32) if way.block[1] == 32 else blocks.view(-1, 32, 32).mT
    tiles = tiles.view(16, -1, 32, 32)
    return tiles.transpose(1, 2).reshape(512, -1)


def run(spec, way, x, recipe, device):
    if spec.missing(device):
        pytest.skip(spec.missing(device))
    return bytes_of(spec.call(x.to(device), recipe, *way))


@cases((32, 32))
@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16], ids=["bf16", "fp16"])
def test_every_pattern_as_amax(spec, way, recipe, kind, device):
    blocks = amax_blocks(kind)
    if way.block == (32, 32):
        # A pattern for a tile, whose other 31 rows are zeros: 67 million elements.
        blocks = torch.nn.functional.pad(blocks[:, None], (0, 0, 0, 31)).reshape(-1, 32)
    x = arranged(blocks, way)
    assert_bytes(run(spec, way, x, recipe, device), expected(x, recipe, way))


def largest_amax(recipe):
    """The largest finite bf16 magnitude pattern of each scale byte that occurs."""
    magnitudes = torch.arange(0x7F80, dtype=torch.int16)
    x = magnitudes.view(torch.bfloat16)[:, None].expand(-1, 32)
    codes = mxref.quantize(x, recipe).scale.view(torch.uint8).flatten().long()
    top = torch.full((256,), -1).scatter_reduce(0, codes, magnitudes.long(), "amax")
    return top[top >= 0]


def table_blocks(recipe):
    """Blocks of one amax and 31 values, padded with zeros, so that each pair occurs.

    A multiple of 512 blocks in all and of 32 blocks for each amax: a tile holds one scale.
    """
    blocks = []
    for top in largest_amax(recipe).tolist():
        values = torch.arange(top + 1, dtype=torch.int32)
        values = torch.cat([values, values | 0x8000])
        values = torch.nn.functional.pad(values, (0, -len(values) % (31 * 32))).view(-1, 31)
        blocks.append(torch.nn.functional.pad(values, (1, 0), value=top))
    whole = torch.cat(blocks)
    whole = torch.nn.functional.pad(whole, (0, 0, 0, -len(whole) % 512))
    return whole.to(torch.int16).view(torch.bfloat16)


def pairs_met(x, scale, way):
    """Which (scale byte, bf16 pattern) pairs a result holds."""
    met = torch.zeros(256 << 16, dtype=torch.bool)
    codes = scale if way.scale_layout == "plain" else scale.mT
    for dim, size in enumerate(way.block):
        codes = codes.repeat_interleave(size, dim)
    met[(codes.to(torch.int32) << 16 | x.view(torch.int16).to(torch.int32) & 0xFFFF).long()] = True
    return int(met.sum())


@cases()
@pytest.mark.parametrize("recipe", RECIPES)
def test_the_whole_payload_table(spec, way, recipe, device):
    x = arranged(table_blocks(recipe), way)
    payload, scale = run(spec, way, x, recipe, device)
    assert pairs_met(x, scale, way) == PAIRS[recipe]
    assert_bytes((payload, scale), expected(x, recipe, way))
