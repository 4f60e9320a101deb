"""`mxref explain` under dialects: the words lead to the reference's bytes, whatever the recipe."""

import random
from dataclasses import replace

import pytest

from mxref.cli import explain, screen
from mxref.formats import FP16, FP32, INPUTS
from mxref.recipes import AXES, RECIPES, Recipe
from tests.cli.cli_call import call

SPECIAL = ["nan", "-nan", "inf", "-inf", "0", "-0", "0x1p-126", "-0x1p-127", "448", "450", "-17"]


def lines_of(texts: list[str], recipe: Recipe, dtype: str) -> str:
    """The steps, without the process of a call; they assert their own byte and choice."""
    block = explain.answer(texts, None, INPUTS[dtype], recipe)
    rows = explain._scale_steps(block)
    for index in range(len(texts)):
        rows += explain._value_steps(block, index, len(texts))
    assert all(label is not None and text for label, text in rows)
    return "\n".join(f"{label} {text}" for label, text in rows)


@pytest.mark.parametrize("name", list(RECIPES))
def test_the_words_lead_to_the_bytes_of_every_dialect(name):
    for dtype, fmt in INPUTS.items():
        top = fmt.exponent_mask
        texts = [f"0x{bits:X}" for bits in (1, 2, top - 1, top // 2, top // 3, top // 5, top // 7)]
        if fmt is FP32:
            texts += ["0x04600001", "0x04A80000", "0x63E00026", "0x63E00028"]
        for element in ("e4m3", "e5m2"):
            recipe = replace(RECIPES[name], element=element)
            for text in [*texts, *SPECIAL]:
                if fmt is not FP16 or "p" not in text:
                    lines_of([text], recipe, dtype)
            for other in SPECIAL:
                lines_of(["1", other, "-3.5"], recipe, dtype)


def test_the_words_lead_to_the_bytes_of_recipes_that_nobody_ships():
    draw = random.Random(0)
    for _ in range(400):
        choices = {axis: draw.choice(values) for axis, values in AXES.items()}
        if choices["ratio"] == "log2_f32":
            choices["round"] = draw.choice(["floor", "rceil", "ceil"])
        dtype = draw.choice(list(INPUTS))
        texts = draw.sample(SPECIAL, 2)
        texts += [f"0x{draw.randrange(INPUTS[dtype].exponent_mask):X}"]
        if draw.random() < 0.5:
            texts = texts[-1:]
        lines_of(texts, Recipe(**choices), dtype)


def test_957_under_te_is_marked_as_unverified():
    lines = [line.rstrip() for line in call("explain", "957", "--recipe", "te").ok.splitlines()]
    assert lines[0] == "recipe       te (unverified), element e4m3, bf16 input"
    assert "scale        byte 129 = 0x81 = 2^2" in lines
    assert "multiplier   2^-2" in lines
    assert "payload      0x77 = 0 1110 111" in lines


@pytest.mark.parametrize(
    ("texts", "recipe", "words"),
    [
        (["nan", "1"], "te", ["nan_scale=dropped", "byte 119", "payload 0x7F", "payload 0x78"]),
        (["inf", "1"], "deepgemm", ["inf_scale=fe gives the byte", "byte 254", "overflow=satf"]),
        (["inf"], "quack_floor", ["Inf goes through ratio=exponent", "byte 247"]),
        (["0"], "deepgemm", ["amax_floor(1e-4)", "byte 105"]),
        (["0x1p-126"], "quack_rceil", ["bump: a ratio that is not zero", "byte 1 ="]),
        (["0x1p-126"], "fbgemm", ["multiplier 1", "flushed to zero"]),
        (["nan", "1"], "vllm", ["nan_scale=00 gives the byte", "multiplier NaN: poison=block"]),
        (["nan", "1"], "flashinfer_ref", ["byte 0 =", "multiplier 0"]),
        (["nan"] * 32, "triton_kernels_up", ["nan_scale=dropped_from_1", "byte 119"]),
        (["450"], "vllm", ["rounded to fp32", "fp32(log2 d)"]),
    ],
)
def test_what_a_dialect_does_is_said(texts, recipe, words):
    said = lines_of(texts, RECIPES[recipe], "bf16")
    for word in words:
        assert word in said


def test_an_element_that_does_not_go_with_the_recipe_is_a_wrong_call(monkeypatch):
    row = Recipe(name="te", overflow="nan_above_464")
    monkeypatch.setattr(explain, "RECIPES", {"te": row})
    with pytest.raises(explain.WrongCallError, match="does not go with element='e5m2'"):
        explain.explain(["1"], recipe="te", element="e5m2")
    assert screen.steps() is not None
