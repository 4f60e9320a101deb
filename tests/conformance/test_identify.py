"""identify names what a black box speaks, and says what it could not tell."""

import json
import sys

import pytest
import torch

import mxref
from mxref.testing import identify
from mxref.testing.probes import GROUPS, probes

BF16 = (torch.bfloat16,)
MAIN = ("floor", "rceil", "ceil", "even")


def box(recipe="rceil", block=(1, 32), layout="plain", contract=None):
    def quantizer(x):
        payload, scale = mxref.quantize(x, recipe, block=block)
        keywords = {"block": block, "shape": tuple(x.shape), "contract": contract}
        return payload, mxref.layouts.encode(scale, layout, **keywords)

    return quantizer


def built() -> list[str]:
    found = []
    for name in mxref.RECIPES:
        try:
            mxref.quantize(torch.ones(1, 32), name)
        except NotImplementedError:
            continue
        found.append(name)
    return found


@pytest.mark.parametrize("name", built())
def test_every_named_recipe_is_recognized(name):
    found = identify(box(name))
    assert found.exact
    assert name in (found.recipe, *found.alike)
    mark = "" if mxref.RECIPES[found.recipe].known_by == "run" else " (unverified)"
    assert str(found).startswith(f"{found.recipe}{mark}: every byte of")
    assert not found.departures


@pytest.mark.parametrize("name", MAIN)
def test_a_main_recipe_is_like_no_other_on_all_dtypes(name):
    found = identify(box(name))
    assert found.recipe == name
    assert not set(found.alike) & set(MAIN)


@pytest.mark.parametrize("layout", mxref.layouts.LAYOUTS)
@pytest.mark.parametrize("block", [(1, 32), (32, 1), (32, 32)])
@pytest.mark.parametrize("given", [(1, 32), None])
def test_block_and_layout_are_found(block, layout, given):
    needs = block == (32, 32) and layout == "swizzle_32_4_4"
    for contract in (-1, -2) if needs else (None,):
        found = identify(box("floor", block, layout, contract), block=given, dtypes=BF16)
        assert (found.recipe, found.exact) == ("floor", True)
        assert (found.block, found.scale_layout) == (block, layout)
        assert found.contract == contract


def test_uint8_outputs_and_e5m2_are_understood():
    def codes(x):
        recipe = mxref.Recipe(round="floor", element="e5m2")
        return tuple(each.view(torch.uint8) for each in mxref.quantize(x, recipe))

    found = identify(codes, dtypes=BF16)
    assert (found.recipe, found.element, found.exact) == ("floor", "e5m2", True)


def drops_nan(x):
    payload, scale = mxref.quantize(x.nan_to_num(nan=0.0, posinf=torch.inf, neginf=-torch.inf))
    return payload.view(torch.uint8).masked_fill(x.isnan(), 0x33), scale


def test_the_nearest_is_named_with_the_inputs_on_which_it_departs():
    found = identify(drops_nan)
    assert not found.exact
    assert found.recipe in mxref.RECIPES
    assert "the nearest, 9" in str(found).splitlines()[0]
    assert found.departures
    assert any("NaN" in each.probe for each in found.departures)
    for each in found.departures:
        assert each.expected != each.actual
    assert "payload 33" in found.special_values["a NaN among ones"]


def test_what_is_refused_is_left_out_and_listed():
    def quantizer(x):
        if x.dtype != torch.bfloat16:
            raise TypeError("bf16 only")
        if not x.isfinite().all():
            raise ValueError("not finite")
        return mxref.quantize(x, "floor")

    found = identify(quantizer)
    assert found.exact
    assert "floor" in (found.recipe, *found.alike)
    assert found.dtypes == ("bf16",)
    assert {(each.inputs, each.dtype) for each in found.refused if each.dtype == "bf16"} == {
        (group, "bf16") for group in ("NaN", "Inf", "NaN and Inf")
    }
    text = str(found)
    assert "NaN, Inf, NaN and Inf [bf16]: ValueError: not finite" in text
    assert "TypeError: bf16 only" in text


def test_recipes_that_cannot_be_told_apart_are_said(monkeypatch):
    twin = mxref.Recipe(name="twin", round="floor", known_by="src")
    table = {"twin": twin, **mxref.RECIPES}
    # the function of this name hides the module
    monkeypatch.setattr(sys.modules[identify.__module__], "RECIPES", table)
    found = identify(box("floor"), dtypes=BF16)
    assert (found.recipe, "floor" in found.alike) == ("twin", True)
    assert str(found).startswith("twin (unverified): ")
    assert "cannot be told apart from it on the inputs answered: floor" in str(found)


@pytest.mark.parametrize(
    "target", [lambda x: 1 / 0, lambda x: None, lambda x: (x, x), lambda x: (x.float(), 1)]
)
def test_what_is_no_quantizer_is_unknown(target):
    found = identify(target, dtypes=BF16)
    assert str(found).startswith("unknown: no input was answered")
    assert not found.exact
    assert found.refused


def test_the_target_cannot_change_its_probes():
    def scribbles(x):
        answer = mxref.quantize(x, "floor")
        x.zero_()
        return answer

    assert identify(scribbles, dtypes=BF16).recipe == "floor"


def test_json_holds_what_was_found():
    content = json.loads(identify(drops_nan, dtypes=BF16).to_json())
    assert content["exact"] is False
    assert content["departures"][0]["actual"]["payload"]
    assert {"recipe", "known_by", "unverified", "alike", "block", "verdict"} <= set(content)


def test_every_group_has_blocks_of_32():
    for fmt in mxref.formats.INPUTS.values():
        found = probes(fmt, mxref.formats.E4M3)
        assert tuple(found) == GROUPS
        for group, blocks in found.items():
            assert blocks, (fmt.name, group)
            assert all(len(block) == 32 for block in blocks.values())
            assert all(0 <= bits < 1 << fmt.bits for block in blocks.values() for bits in block)


@pytest.mark.parametrize(
    ("keywords", "kind", "text"),
    [
        ({"fn": 3}, TypeError, "fn=3"),
        ({"block": (2, 2)}, ValueError, "block="),
        ({"scale_layout": "x"}, ValueError, "scale_layout='x'"),
        ({"dtypes": (torch.int8,)}, ValueError, "dtypes="),
    ],
)
def test_a_wrong_argument_is_named(keywords, kind, text):
    with pytest.raises(kind, match=text):
        identify(**{"fn": box(), **keywords})


def test_nothing_near_is_unknown():
    def noise(x):
        right = mxref.quantize(x)
        codes = torch.randint(0, 127, x.shape, dtype=torch.uint8)
        return codes.view(torch.float8_e4m3fn), right.scale

    found = identify(noise, dtypes=(torch.bfloat16,))
    assert not found.exact
    assert found.verdict.startswith("unknown: ")
    assert "the nearest, 0." in found.verdict


def test_what_is_no_pair_is_named():
    found = identify(lambda x: "hello", dtypes=(torch.bfloat16,))
    assert "returned a str, expected (payload, scale)" in found.verdict
