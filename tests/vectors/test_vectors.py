"""The golden vectors: their bytes are frozen, they reach everything, no other road disagrees."""

import hashlib
from dataclasses import replace

import pytest
import torch
from torch import Tensor

import mxref
from mxref import vectors
from mxref.formats import BLOCKS, E4M3, INPUTS
from mxref.testing.cases import thresholds
from mxref.vectors.inputs import inputs, noise
from mxref.vectors.text import parse

DIGESTS = {
    ("floor", (1, 32)): "000b582b62eb1bc65b8af6016067754237583d652c869a08117e8552a91de297",
    ("floor", (32, 1)): "3647cf7165976f29053d11df52eeb26b0c24ea460706fda25d17be47e783bc35",
    ("floor", (32, 32)): "7ca961dd95f1c48552a89d3020f391374a34b8ae7f9056b932ae3725d641f596",
    ("rceil", (1, 32)): "1eb0c086862e255c3ba9f3b7cd818ca64776ed34338000f3df8ce307434cace3",
    ("rceil", (32, 1)): "5a062ad02b1474ef0706575982d5a1995537d9ddf87481616ee45b42c16bca4e",
    ("rceil", (32, 32)): "cf5e5202e16912a776c243643aff0d5d22141c08792b6ce4d513f1daf1f91693",
    ("ceil", (1, 32)): "25a0cafd4e3c67d5330eaf2f0182f4e9ad3e4ed7bb4b9620e13ebf2201aab338",
    ("ceil", (32, 1)): "c271ad9dd6aab929235747719e2f10743ffed91273c8a1890e3d67fd8b99026f",
    ("ceil", (32, 32)): "6800539d879e0a652f5abe5b6071cc3c33b64a749cf5a728c1ad2231e7b74d9b",
    ("even", (1, 32)): "3752c98991c643e1f5e40b2824b215b1c3be491dfd04827340cc73cebee5f9f2",
    ("even", (32, 1)): "2dd5697a5c3631b2d26a03eb4cc79283fdda4b22ee675a8c7e9954ee153b0a9b",
    ("even", (32, 32)): "66fb7c14f10e0b22be60ab8d44194573aeae5ceec9415bcb2b4380c681a4127d",
}
"""The same under torch 2.7 and 2.13. A change is a new `mxref.SPEC` or `mxref.vectors.FORMAT`."""

FOUR = tuple(dict.fromkeys(name for name, _ in DIGESTS))


@pytest.mark.parametrize(("recipe", "block"), list(DIGESTS))
def test_the_vectors_are_frozen(recipe, block):
    assert vectors.digest(vectors.make(recipe, block=block)) == DIGESTS[recipe, block]


def test_every_digest_differs():
    assert len(set(DIGESTS.values())) == len(FOUR) * len(BLOCKS)


def test_layout_element_and_one_code_change_the_digest():
    made = vectors.make("floor", dtypes=(torch.float16,))
    e5m2 = vectors.make(mxref.Recipe(round="floor", element="e5m2"), dtypes=(torch.float16,))
    swizzled = vectors.make("floor", scale_layout="swizzle_32_4_4", dtypes=(torch.float16,))
    payload = made.cases[5].payload.clone()
    payload[0, 31] ^= 1
    changed = (*made.cases[:5], replace(made.cases[5], payload=payload), *made.cases[6:])
    every = [made, e5m2, swizzled, replace(made, cases=changed)]
    assert len({vectors.digest(each) for each in every}) == 4


def patterns(bits: Tensor, fmt_name: str) -> Tensor:
    return vectors.sets.values(bits, fmt_name)


def reachable_bytes(recipe: str, fmt_name: str) -> set[int]:
    """From every finite amax of a 16-bit dtype, and from both sides of every threshold of fp32."""
    fmt = INPUTS[fmt_name]
    amax = thresholds(fmt, E4M3) if fmt.bits == 32 else torch.arange(fmt.exponent_mask)
    scale = mxref.quantize(patterns(amax, fmt_name)[:, None], recipe).scale
    return set(scale.view(torch.uint8).flatten().tolist()) | {255}


@pytest.mark.parametrize("fmt_name", list(INPUTS))
@pytest.mark.parametrize("recipe", FOUR)
def test_every_reachable_scale_byte_occurs(recipe, fmt_name):
    dtype = getattr(torch, INPUTS[fmt_name].torch_dtype)
    made = vectors.make(recipe, dtypes=(dtype,))
    found = {byte for case in made.cases for byte in case.scale.flatten().tolist()}
    assert found == reachable_bytes(recipe, fmt_name)


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize(("recipe", "top"), [("floor", 0x7E), ("rceil", 0x7E), ("ceil", 0x78)])
def test_every_reachable_payload_code_occurs(recipe, top, block):
    """Under ceil amax / scale is at most 256, so the codes above 0x78 do not occur."""
    wanted = {code | sign for code in range(top + 1) for sign in (0, 0x80)} | {0x7F}
    for dtype in vectors.DTYPES:
        made = vectors.make(recipe, block=block, dtypes=(dtype,))
        assert {c for case in made.cases for c in case.payload.flatten().tolist()} == wanted


@pytest.mark.parametrize("recipe", FOUR)
def test_the_exact_road_gives_the_same_bytes(recipe):
    count = 0
    for case in vectors.make(recipe).cases:
        if case.shape != (1, 32):
            continue
        bits = case.bits.flatten().tolist()
        byte, codes = mxref.exact.quantize_block(bits, case.dtype, recipe)
        assert (byte, codes) == (int(case.scale), case.payload.flatten().tolist()), case.name
        count += 1
    assert count > 100


def test_names_are_single_words_and_differ():
    for fmt in INPUTS.values():
        for block in BLOCKS:
            for name, bits in inputs(fmt, E4M3, block).items():
                assert name.split() == [name]
                assert bits.numel() == 0 or 0 <= int(bits.min()) <= int(bits.max()) < 1 << fmt.bits


def test_partial_empty_and_other_ranks_are_there():
    shapes = {case.shape for case in vectors.make("floor").cases}
    assert {(45,), (33, 70), (2, 3, 40), (0, 64), (64, 0), (160, 160)} <= shapes


def test_x_has_the_bits_and_gives_the_bytes():
    for case in vectors.make("rceil", block=(32, 1)).cases:
        q = mxref.quantize(case.x, "rceil", block=(32, 1))
        assert torch.equal(q.payload.view(torch.uint8), case.payload)
        assert torch.equal(q.scale.view(torch.uint8), case.scale)


def test_noise_is_the_documented_hash():
    def hashed(index, salt):
        h = (index + 2654435769 * salt) % 2**32
        h ^= h >> 16
        h = h * 0x7FEB352D % 2**32
        h ^= h >> 15
        h = h * 0x045D9F3B % 2**32
        return h ^ h >> 16

    assert noise(50, 7).tolist() == [hashed(i, 7) for i in range(50)]


@pytest.mark.parametrize("layout", list(mxref.layouts.LAYOUTS))
def test_text_reads_back(layout):
    keywords = {"block": (32, 32), "scale_layout": layout, "contract": -2}
    made = vectors.make("even", dtypes=(torch.float16,), **keywords)
    content = vectors.text(made)
    again = parse(content, made.recipe)
    assert (again.contract, again.elements, again.blocks) == (-2, made.elements, made.blocks)
    assert vectors.text(again) == content
    assert vectors.digest(made) == hashlib.sha256(content.encode()).hexdigest()


@pytest.mark.parametrize(
    ("old", "new", "part"),
    [
        ("format mxref-vectors-1", "format x", "expected mxref-vectors-1"),
        ("\nx\n", "\ny\n", "the word 'y': expected 'x'"),
        ("dtype bf16", "dtype bf8", "bf16, fp16, fp32"),
        ("cases 71", "cases 70", "more words"),
        ("cases 71", "cases 72", "ends too early"),
    ],
)
def test_a_text_that_is_not_one_is_refused(old, new, part):
    made = vectors.make("floor", dtypes=(torch.bfloat16,))
    content = vectors.text(made)
    assert old in content
    with pytest.raises(ValueError, match=part):
        parse(content.replace(old, new, 1), made.recipe)


@pytest.mark.parametrize(
    ("keywords", "kind", "part"),
    [
        ({"recipe": "flor"}, ValueError, "recipe='flor'"),
        ({"block": (1, 16)}, ValueError, r"block=\(1, 16\)"),
        ({"scale_layout": "swizzle"}, ValueError, "scale_layout='swizzle'"),
        ({"block": (32, 32), "scale_layout": "swizzle_32_4_4"}, ValueError, "contract=None"),
        ({"contract": -3, "scale_layout": "swizzle_32_4_4"}, ValueError, "contract=-3"),
        ({"dtypes": ()}, ValueError, r"dtypes=\(\)"),
        ({"dtypes": torch.bfloat16}, TypeError, "dtypes=torch.bfloat16"),
        ({"dtypes": ("bf16",)}, TypeError, "'bf16' is not one of"),
        ({"dtypes": (torch.float64,)}, ValueError, "torch.float64 is not one of"),
    ],
)
def test_wrong_arguments_are_named(keywords, kind, part):
    with pytest.raises(kind, match=part):
        vectors.make(**keywords)
