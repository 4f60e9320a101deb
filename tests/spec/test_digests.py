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
    "deepgemm": "e460325ac92e26675c635fa48eaa22366eb23b6d5ceff2e9431b1387d91ca07d",
    "fbgemm": "3599884d1fe057dfb25be1ac820d3752692067bb8ca4da987ee23c68fc428b49",
    "flashinfer_cute": "cd68da5538cc1ace2e1ecf764ca300494055b44539e41673a707778eadcc12d7",
    "flashinfer_ref": "643937ece110a1c60becd8b04b3a4a450c19b1caa4cf0055d72e78dbcff7e718",
    "gfloat": "d9e8616ade24b1b79f5877eedc551a3365675710b4d51e605b44793e3f1b565d",
    "quack_floor": "b23ce43c5c806309b6f41dc30599c42dcc3ed4df12c6072bb1b9e7a9aac83a91",
    "quack_rceil": "1e9feb49c782ff1c36bb6fde39e7c34eeeba99b2f19b8f832f50eb1fed984ee5",
    "sglang_col": "28b71c8fd7428b48128b3400cadf509a509a6603d3fee8da15d39f941b0fa32b",
    "te": "8f3860d3a5620fd9c45d63f54119514d3028cf96d3db4177af999a144e75c348",
    "te_fma": "29504ce39504b33dbaafef87211e5c358333fe68ba1a6d2c01bcdff5ed9dbe76",
    "torchao018_ceil": "9914d95454761afa5d12164a566a8b3f287637755face71485fb520a4e3e031e",
    "torchao018_even": "891397b5ba8c48efdf96920b1f837152ba3a5fde8a3cb423da01ea6daad939ca",
    "torchao018_floor": "b23ce43c5c806309b6f41dc30599c42dcc3ed4df12c6072bb1b9e7a9aac83a91",
    "torchao018_rceil": "2530d8b715a20f4e328118e176c49530b4357952f07e4f43d23a23f17958f779",
    "triton_kernels_up": "c5c74596fbc3f48d02aa488142e83ee0310c80657f06e6f10c36f6a64307108f",
    "vllm": "398f0be4dda4f14139f3fe9bc1ae80d7336326b830571a74b12049076b52596c",
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
    """Every 15th row of the same patterns, e4m3."""
    assert digest(mxref.RECIPES[name], step=15) == DIALECT_DIGESTS[name]


def test_every_digest_differs():
    assert len(set(DIGESTS.values())) == len(DIGESTS) == len(CONTRACT) * len(ELEMENTS)
    # quack_floor and torchao018_floor are one recipe under two names
    assert len(set(DIALECT_DIGESTS.values())) == len(DIALECT_DIGESTS) - 1
    assert {*DIALECT_DIGESTS, *CONTRACT} == set(mxref.RECIPES)


def test_the_spec_names_these_digests():
    assert mxref.SPEC == "mxref-1"
