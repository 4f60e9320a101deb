"""Every value of every axis, on a throw-away Recipe, with bytes derived by hand from its words."""

from dataclasses import replace

import pytest
import torch

import mxref
from mxref import exact
from mxref.recipes import AXES

ZERO, MINUS_ZERO, ONE, MINUS_ONE = 0x00000000, 0x80000000, 0x3F800000, 0xBF800000
NAN, MINUS_NAN, INF, MINUS_INF = 0x7FC00000, 0xFFC00000, 0x7F800000, 0xFF800000
POWER_M127, POWER_M126, POWER_127 = 0x00400000, 0x00800000, 0x7F000000
SUBNORMAL_RATIO = 0x04A80000  # 448 * 1.5 * 2^-127: the ratio is the subnormal 0x00600000
ROUNDED_DOWN = 0x04600001  # its exact ratio is just above 2^-127, its fp32 ratio is 2^-127

# axis, value, other choices, fp32 patterns, scale byte, payload
RULES = [
    ("ratio", "exponent", {}, [0x43E00000], 128, [0x76]),  # 448 = 1.75 * 2^8, rounded up
    ("ratio", "mul_rcp_f32", {}, [ROUNDED_DOWN], 0, [0x7E]),
    ("ratio", "div_f32", {}, [ROUNDED_DOWN], 0, [0x7E]),
    ("ratio", "rcp_approx_ftz", {}, [ROUNDED_DOWN], 0, [0x7E]),
    # half an ulp at 64 is 2^-18, and 2^(2^-18) = 1 + 22.18 * 2^-23; 38 and 40 ulps above
    # 448 * 2^64 are 21.7 and 22.9 of these
    ("ratio", "log2_f32", {}, [0x63E00026], 191, [0x7E]),
    ("ratio", "log2_f32", {}, [0x63E00028], 192, [0x76]),
    # below 64 half an ulp is 2^-19: 22 steps of 2^-24 below 2^64 count as 2^64, 23 do not
    ("ratio", "log2_f32", {"round": "floor"}, [0x5F7FFFEA], 183, [0x78]),
    ("ratio", "log2_f32", {"round": "floor"}, [0x5F7FFFE9], 182, [0x7E]),
    ("ratio", "log2_f32", {"round": "ceil"}, [0x5F800016], 183, [0x78]),
    ("ratio", "log2_f32", {"round": "ceil"}, [0x5F80002D], 184, [0x70]),
    ("round", "floor", {}, [0x43DC0000], 126, [0x7E]),  # 440 / 448 < 1
    ("round", "rceil", {}, [0x43E10000], 128, [0x76]),  # 450
    ("round", "ceil", {}, [0x43E10000], 128, [0x76]),
    ("round", "even", {"ratio": "exponent"}, [0x43F80000], 128, [0x78]),  # 1.9375 * 2^8
    ("round", "even", {"ratio": "exponent"}, [0x43F7FFFF], 127, [0x7E]),
    ("round", "even", {}, [0x44590000], 128, [0x7E]),  # 1.9375 * 448
    ("round", "even_fp4", {"ratio": "exponent"}, [0x43E00000], 128, [0x76]),  # 1.75 * 2^8
    ("round", "even_fp4", {"ratio": "exponent"}, [0x43DFFFFF], 127, [0x7E]),
    ("byte_min", "00", {}, [POWER_M127], 0, [0x38]),
    ("byte_min", "01", {}, [POWER_M127], 1, [0x30]),
    ("byte_min", "01", {}, [ZERO, MINUS_ZERO], 1, [0x00, 0x80]),
    ("byte_max", "fe", {"inf_scale": "exponent"}, [INF], 254, [0x7E]),
    ("byte_max", "f7", {"inf_scale": "exponent"}, [INF], 247, [0x7E]),
    ("tiny", "nv", {}, [POWER_M126], 0, [0x40]),
    ("tiny", "nv", {}, [SUBNORMAL_RATIO], 1, [0x7A]),  # 336 is a tie
    ("tiny", "bump", {}, [POWER_M126], 1, [0x38]),
    ("tiny", "bump", {}, [ZERO], 0, [0x00]),
    # 224 * 2^-149 / 448 is a tie, to zero; fp32(1/448) lies above 1/448, so the product is none
    ("tiny", "bump", {"ratio": "div_f32"}, [0x000000E0], 0, [0x00]),
    ("tiny", "bump", {"ratio": "mul_rcp_f32"}, [0x000000E0], 1, [0x00]),
    ("tiny", "flush", {}, [SUBNORMAL_RATIO], 0, [0x7E]),
    ("tiny", "amax_floor(1e-4)", {}, [ZERO, POWER_M126], 0x69, [0x00, 0x00]),
    ("tiny", "amax_floor(1e-4)", {}, [ONE], 119, [0x78]),
    ("tiny", "amax_floor(1e-10)", {}, [ZERO], 0x55, [0x00]),
    ("nan_scale", "ff", {}, [NAN, ONE], 255, [0x7F, 0x7F]),
    ("nan_scale", "fe", {}, [NAN, ONE], 254, [0x7F, 0x7F]),
    ("nan_scale", "00", {}, [ONE, NAN], 0, [0x7F, 0x7F]),
    ("nan_scale", "dropped", {}, [NAN, ONE], 119, [0x7F, 0x78]),
    ("nan_scale", "dropped", {}, [NAN, NAN], 0, [0x7F, 0x7F]),
    ("nan_scale", "dropped_from_1", {}, [NAN, NAN], 119, [0x7F, 0x7F]),
    ("nan_scale", "dropped_from_1", {}, [NAN, 0x40000000], 120, [0x7F, 0x78]),
    ("nan_scale", "dropped_from_1", {}, [NAN, ZERO], 0, [0x7F, 0x00]),
    ("inf_scale", "ff", {}, [INF, ONE], 255, [0x7F, 0x7F]),
    ("inf_scale", "fe", {}, [MINUS_INF, ONE], 254, [0xFE, 0x00]),
    ("inf_scale", "exponent", {}, [INF, ONE], 254, [0x7E, 0x00]),
    ("inf_scale", "exponent", {"ratio": "exponent"}, [INF, ONE], 247, [0x7E, 0x00]),
    ("byte0_multiplier", "2^127", {}, [POWER_M126], 0, [0x40]),
    ("byte0_multiplier", "2^126", {}, [POWER_M126], 0, [0x38]),
    ("byte0_multiplier", "1", {}, [POWER_M126], 0, [0x00]),
    ("byte0_multiplier", "0", {}, [POWER_M126], 0, [0x00]),
    ("byte255_multiplier", "nan", {"poison": "element"}, [NAN, ONE], 255, [0x7F, 0x7F]),
    ("byte255_multiplier", "0", {"poison": "element"}, [NAN, ONE, MINUS_ONE, INF], 255,
     [0x7F, 0x00, 0x80, 0x7F]),
    ("byte255_multiplier", "-inf", {"poison": "element"}, [NAN, ONE, MINUS_ONE, ZERO], 255,
     [0x7F, 0xFE, 0x7E, 0x7F]),
    ("byte255_multiplier", "2^-128", {"poison": "element"}, [NAN, 0x7F7FFFFF, INF], 255,
     [0x7F, 0x38, 0x7E]),
    ("poison", "block", {"nan_scale": "00"}, [NAN, ONE], 0, [0x7F, 0x7F]),
    ("poison", "element", {"nan_scale": "00"}, [NAN, ONE], 0, [0x7F, 0x7E]),
    ("minus_zero", "keep", {}, [MINUS_ZERO, ONE, 0x8DA24260], 119, [0x80, 0x78, 0x80]),
    ("minus_zero", "plus", {}, [MINUS_ZERO, ONE, 0x8DA24260], 119, [0x00, 0x78, 0x80]),
    ("flush", "none", {}, [POWER_M127], 0, [0x38]),
    ("flush", "none", {}, [SUBNORMAL_RATIO], 1, [0x7A]),
    ("flush", "inputs", {}, [POWER_M127, POWER_M127 | 1 << 31], 0, [0x00, 0x80]),
    ("flush", "inputs", {}, [SUBNORMAL_RATIO], 1, [0x7A]),
    ("flush", "ratio", {}, [POWER_M127], 0, [0x38]),
    ("flush", "ratio", {}, [SUBNORMAL_RATIO], 0, [0x7E]),
    ("flush", "both", {}, [POWER_M127], 0, [0x00]),
    ("flush", "both", {}, [SUBNORMAL_RATIO], 0, [0x7E]),
]  # fmt: skip

# axis, value, fp32 patterns, given scale byte, payload
UNDER_A_GIVEN_SCALE = [
    ("byte0_multiplier", "1", [ONE], 0, [0x38]),
    ("byte0_multiplier", "0", [ONE, MINUS_ONE], 0, [0x00, 0x80]),
    ("byte255_multiplier", "nan", [ONE], 255, [0x7F]),
    ("overflow", "satfinite", [0x43E80000, 0x43E88000, MINUS_INF, NAN], 127,
     [0x7E, 0x7E, 0xFE, 0x7F]),  # 464, 465
    ("overflow", "nan_above_464", [0x43E80000, 0x43E88000, MINUS_INF], 127, [0x7E, 0x7F, 0x7F]),
    ("overflow", "preclamp_nan_max", [NAN, MINUS_NAN, INF, MINUS_INF], 127,
     [0x7E, 0x7E, 0x7E, 0xFE]),
    ("overflow", "preclamp_nan_min", [NAN, MINUS_NAN, INF, MINUS_INF], 127,
     [0xFE, 0xFE, 0x7E, 0xFE]),
    ("element_round", "rne", [0x41880000, 0xC1880000, 0x3A800000], 127,
     [0x58, 0xD8, 0x00]),  # 17, -17, 2^-10: ties
    ("element_round", "half_away", [0x41880000, 0xC1880000, 0x3A800000], 127, [0x59, 0xD9, 0x01]),
    ("element_round", "half_away", [0x3A7FFFFF, 0x3F7FFFFF, 0x43E80000], 127, [0x00, 0x38, 0x7E]),
    ("nan_code", "7f", [NAN, MINUS_NAN], 127, [0x7F, 0x7F]),
    ("nan_code", "sign", [NAN, MINUS_NAN], 127, [0x7F, 0xFF]),
    ("nan_code", "ff", [NAN, MINUS_NAN], 127, [0xFF, 0xFF]),
    ("minus_zero", "plus", [MINUS_ZERO, 0x80000001], 200, [0x00, 0x80]),
    ("flush", "none", [POWER_127], 254, [0x38]),
    ("flush", "multiplier", [POWER_127, MINUS_ONE], 254, [0x00, 0x80]),
    ("flush", "multiplier", [POWER_127], 253, [0x40]),
]  # fmt: skip


def fp32(patterns: list[int]) -> torch.Tensor:
    return torch.tensor(patterns, dtype=torch.int64).to(torch.int32).view(torch.float32)


@pytest.mark.parametrize(("axis", "value", "others", "patterns", "byte", "payload"), RULES)
def test_a_value_of_an_axis_gives_these_bytes(axis, value, others, patterns, byte, payload):
    recipe = replace(mxref.RECIPES["rceil"], name="", **{axis: value}, **others)
    found = mxref.quantize(fp32(patterns), recipe)
    codes = found.scale.view(torch.uint8).tolist(), found.payload.view(torch.uint8).tolist()
    assert codes == ([byte], payload)
    assert exact.quantize_block(patterns, "fp32", recipe) == (byte, payload)


@pytest.mark.parametrize(("axis", "value", "patterns", "byte", "payload"), UNDER_A_GIVEN_SCALE)
def test_a_value_of_an_axis_under_a_given_scale(axis, value, patterns, byte, payload):
    recipe = replace(mxref.RECIPES["rceil"], **{axis: value})
    scale = torch.tensor([byte], dtype=torch.uint8)
    found = mxref.quantize(fp32(patterns), recipe, scale=scale)
    assert found.payload.view(torch.uint8).tolist() == payload
    assert [exact.cast(bits, "fp32", byte, recipe=recipe) for bits in patterns] == payload


def test_a_ratio_in_the_dtype_of_the_input():
    """2^-14 / 448 is 2.29 * 2^-24 in fp16, which keeps 2 * 2^-24: one byte less than exactly."""
    x = torch.tensor([2.0**-14], dtype=torch.float16)
    recipe = replace(mxref.RECIPES["rceil"], ratio="div_in_input_dtype")
    for each, byte, code in ((recipe, 104, 0x7E), (mxref.RECIPES["rceil"], 105, 0x78)):
        found = mxref.quantize(x, each)
        assert found.scale.view(torch.uint8).tolist() == [byte]
        assert found.payload.view(torch.uint8).tolist() == [code]
        assert exact.quantize_block([0x0400], "fp16", each) == (byte, [code])


def test_every_value_of_every_axis_is_here():
    here = {case[:2] for case in (*RULES, *UNDER_A_GIVEN_SCALE)} | {("ratio", "div_in_input_dtype")}
    assert here == {(axis, value) for axis, values in AXES.items() for value in values}


def under(recipe: mxref.Recipe, patterns: list[int], byte: int | None) -> object:
    """The exact answer, under a given scale if there is one."""
    if byte is None:
        return exact.quantize_block(patterns, "fp32", recipe)
    return [exact.cast(bits, "fp32", byte, recipe=recipe) for bits in patterns]


def test_another_value_of_the_axis_gives_other_bytes():
    """The cases can fail: each value has a case in which another value answers differently."""
    cases = [(axis, value, others, bits, None) for axis, value, others, bits, _, _ in RULES]
    cases += [(axis, value, {}, bits, byte) for axis, value, bits, byte, _ in UNDER_A_GIVEN_SCALE]
    sharp = set()
    for axis, value, others, bits, byte in cases:
        recipe = replace(mxref.RECIPES["rceil"], name="", **{axis: value} | others)
        for other in AXES[axis]:
            changed = replace(recipe, **{axis: other})
            if under(changed, bits, byte) != under(recipe, bits, byte):
                sharp.add((axis, value))
    assert sharp >= {(axis, value) for axis, value, *_ in cases}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (("ratio", "log2_f32"), ("round", "even")),
        (("ratio", "log2_f32"), ("round", "even_fp4")),
        (("ratio", "rcp_approx_ftz"), ("element", "e5m2")),
        (("overflow", "nan_above_464"), ("element", "e5m2")),
    ],
)
def test_choices_that_contradict_each_other_are_named(first, second):
    words = "^{}={!r} does not go with {}={!r}$".format(*first, *second)
    with pytest.raises(ValueError, match=words):
        mxref.Recipe(**dict((first, second)))
    mxref.Recipe(**dict([first]))
    mxref.Recipe(**dict([second]))
