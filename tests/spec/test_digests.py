"""Frozen digests: no byte of a recipe can change unnoticed. A change is a new `mxref.SPEC`."""

import hashlib
from dataclasses import replace

import pytest
import torch

import mxref
from mxref.formats import BLOCKS, ELEMENTS

DIGESTS = {
    "floor": "ae3d004046295edd37cf1f81781b29b8e34702b6f7949ea49624199e0b115255",
    "floor/e5m2": "7575588480445f1117acd0c9f41a0bf796c45bda1afc16bdddec9a6e93c1f612",
    "rceil": "31c20158d17dc703dcd2fd92433433ff7328556a7f1547c40f3374e4a052bd29",
    "rceil/e5m2": "7f9acf8519d9e02719361a29fa7188eda8f5bb845cde5e8b71588ea4eb63dadc",
    "ceil": "2018e0ef24036ff5358b6b1b1669a67e504b5a0e780de96954ac6a317065f811",
    "ceil/e5m2": "7b9b685cd503ebf6bfb2528b76471f9268cdc3a843b7431b1f64ddc1dc060e44",
    "even": "c8817e679865ed5896a5944056975ce651d33bbe1ed1b2cdca9394b10df6d6d9",
    "even/e5m2": "a3bbfb963df8c8e81094c2bbc78c74e2974b406f62764588004dde06c191cd1f",
}

DIALECT_DIGESTS = {
    "deepgemm": "53e35ced045fa1ea95766e005e0188ed6e93ec24bc4cab1cdde7c089af66bc90",
    "fbgemm": "0b3f88d3c6f3af5b3cedfd32d92ce9551358fe48a47cfab7d5339074e9f1d511",
    "flashinfer_cute": "8edaf75296443c97280f838852caa452d9aadec78423193911d4f19c5c4a8927",
    "flashinfer_ref": "7830ee55e33d497c325cdfb7dd19848da746ffdbc5d9663eb200281f681feb8b",
    "gfloat": "364b062d7a868e9a62a05a0e13feb0c5418d7410881a9702dd4300a3477f6c86",
    "quack_floor": "7dc66dd5c97cd84cb00edcf900cfe480d5dc96cde7b9066aad9e96b33f1e1e54",
    "quack_rceil": "feea5d088038d459a7219cdf1d92ca3fade85d510bdbcd8ddd1047aebb2de06b",
    "sglang_col": "72698a9ccf104e33b56bbc8eb4965ca665bdbd87db6931b5b84c398a5db91645",
    "te": "e2c6192b6dc9bafcfb7b9e33e9fd6bfe0247381837f20fd643a6a4547cddc0b2",
    "te_fma": "49613b71153f471142f65e5d02d02391fbbbd3d15552cc5d95ccbc5f5a945492",
    "torchao018_ceil": "4d239089628ae3d831e2417399eeee86bb79be278f94295816827825e1c39a31",
    "torchao018_even": "3f97f82c0c25d2f33e854d5a6700b2b2038d029925c2a95a1364a74a4fb71f95",
    "torchao018_floor": "7dc66dd5c97cd84cb00edcf900cfe480d5dc96cde7b9066aad9e96b33f1e1e54",
    "torchao018_rceil": "aa101a1534475dff50207f88bd67217dad46ac0b21f26b27c5295ba2df58b04d",
    "triton_kernels_up": "23bffca51533e6a9c2628ee6bb436fd47ada3860b535ef6a4b1926447a6d5907",
    "vllm": "dd76b0a103a87fcdf5bc650862f403a60520f6a2d6cd6a77dfdfef71fb845330",
}

CONTRACT = ("floor", "rceil", "ceil", "even")


def every_pattern(dtype: torch.dtype) -> torch.Tensor:
    """A 1024 x 1024 tensor made with integers alone: the same on every platform.

    16-bit dtypes: half in order, so that a block stays within a binade or two, half scattered.
    fp32: the bits of a multiplicative sequence, exponents kept near their row's.
    """
    index = torch.arange(1 << 20, dtype=torch.int64)
    noise = (index * 2654435761) & 0xFFFFFFFF
    if dtype != torch.float32:
        in_order = (index & 0xFFFF) ^ (noise >> 31 << 15)
        scattered = (index * 40503 + (index >> 16) * 7919) & 0xFFFF
        pattern = torch.where(index < 1 << 19, in_order, scattered)
        return (pattern - ((pattern >> 15) << 16)).to(torch.int16).view(dtype).reshape(1024, 1024)
    exponent = ((index >> 12) + (noise >> 29)) & 0xFF
    pattern = (noise & 0x807FFFFF) | (exponent << 23)
    return (pattern - ((pattern >> 31) << 32)).to(torch.int32).view(dtype).reshape(1024, 1024)


def digest(recipe: mxref.Recipe, step: int = 1) -> str:
    found = hashlib.sha256()
    for dtype in (torch.bfloat16, torch.float16, torch.float32):
        x = every_pattern(dtype)[::step]
        for block in BLOCKS:
            for part in (x, x[: len(x) - 24, :1000]):
                for tensor in mxref.quantize(part, recipe, block=block):
                    found.update(tensor.view(torch.uint8).numpy().tobytes())
    return found.hexdigest()


@pytest.mark.parametrize("element", list(ELEMENTS))
@pytest.mark.parametrize("name", CONTRACT)
def test_the_bytes_of_a_recipe_are_frozen(name, element):
    recipe = replace(mxref.RECIPES[name], element=element)
    assert digest(recipe) == DIGESTS[recipe.label]


@pytest.mark.parametrize("name", [name for name in mxref.RECIPES if name not in CONTRACT])
def test_the_bytes_of_a_dialect_are_frozen(name):
    """Every fifth row of the same patterns, e4m3."""
    assert digest(mxref.RECIPES[name], step=5) == DIALECT_DIGESTS[name]


def test_every_digest_differs():
    assert len(set(DIGESTS.values())) == len(DIGESTS) == len(CONTRACT) * len(ELEMENTS)
    # quack_floor and torchao018_floor are one recipe under two names
    assert len(set(DIALECT_DIGESTS.values())) == len(DIALECT_DIGESTS) - 1
    assert {*DIALECT_DIGESTS, *CONTRACT} == set(mxref.RECIPES)


def test_the_spec_names_these_digests():
    assert mxref.SPEC == "mxref-1"
