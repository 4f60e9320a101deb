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


def digest(recipe: mxref.Recipe) -> str:
    found = hashlib.sha256()
    for dtype in (torch.bfloat16, torch.float16, torch.float32):
        x = every_pattern(dtype)
        for block in BLOCKS:
            for part in (x, x[:1000, :1000]):
                for tensor in mxref.quantize(part, recipe, block=block):
                    found.update(tensor.view(torch.uint8).numpy().tobytes())
    return found.hexdigest()


@pytest.mark.parametrize("element", list(ELEMENTS))
@pytest.mark.parametrize("name", list(mxref.RECIPES))
def test_the_bytes_of_a_recipe_are_frozen(name, element):
    recipe = replace(mxref.RECIPES[name], element=element)
    assert digest(recipe) == DIGESTS[recipe.label]


def test_every_digest_differs():
    assert len(set(DIGESTS.values())) == len(DIGESTS) == len(mxref.RECIPES) * len(ELEMENTS)


def test_the_spec_names_these_digests():
    assert mxref.SPEC == "mxref-1"
