"""Diagnosis: the cause that was put in is the one that comes out, and none where none fits."""

import time
from itertools import permutations

import pytest
import torch

import mxref
from mxref.layouts import LAYOUTS
from mxref.testing.diagnosis import FAMILIES, diagnose, explained
from mxref.testing.diagnosis.arithmetic import encoded, scaled, to_float64
from mxref.testing.diagnosis.evidence import Evidence
from mxref.testing.diagnosis.window import window
from tests.meta.test_house import listed_files
from tests.mutants.more_faults import raw

BLOCKS = [(1, 32), (32, 1), (32, 32)]


def noise(*shape: int, dtype: torch.dtype = torch.bfloat16, seed: int = 0) -> torch.Tensor:
    """Normal numbers whose size changes from block to block."""
    generator = torch.Generator().manual_seed(seed)
    size = torch.exp2(torch.randint(-6, 7, shape, generator=generator).float())
    return (torch.randn(shape, generator=generator) * size).to(dtype)


def first(payload, scale, x, **keywords) -> str:
    return diagnose(payload, scale, x, **{"recipe": "rceil", **keywords})[0].cause


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", [(64, 96), (3, 40, 70), (1, 1), (33, 5)])
def test_nothing_is_said_of_right_bytes_and_something_of_wrong_ones(block, layout, shape):
    x = noise(*shape)
    keywords = {"block": block, "contract": -2 if block == (32, 32) else None}
    payload, scale = raw(x, block=block)
    stored = mxref.layouts.encode(scale, layout, shape=shape, **keywords)
    keywords |= {"scale_layout": layout, "recipe": "rceil"}
    assert diagnose(payload, stored, x, **keywords) == []
    generator = torch.Generator().manual_seed(1)
    for spoiled in (payload, stored):
        flips = torch.randint(0, 256, spoiled.shape, generator=generator, dtype=torch.uint8)
        keep = spoiled.clone()
        spoiled ^= flips | 1
        found = diagnose(payload, stored, x, **keywords)
        assert found
        assert all("\n" not in each.cause for each in found)
        spoiled.copy_(keep)


@pytest.mark.parametrize("shape", [(0, 32), (4, 0), (32,), (70,), (2, 2, 2, 40)])
def test_shapes_at_the_edge_are_no_error(shape):
    x = noise(*shape)
    payload, scale = raw(x)
    assert diagnose(payload, scale, x, recipe="rceil") == []
    if x.numel():
        assert first(payload ^ 0x80, scale, x) == "the sign is inverted"


@pytest.mark.parametrize(
    ("claimed", "spoken"), list(permutations(("floor", "rceil", "ceil", "even"), 2))
)
def test_another_rule_is_named(claimed, spoken):
    x = noise(64, 256)
    cause = first(*raw(x, spoken), x, recipe=claimed)
    assert cause == f"the bytes are those of recipe {spoken!r}, not {claimed!r}"


def test_a_dialect_that_is_not_verified_says_so(monkeypatch):
    twin = mxref.Recipe(name="twin", round="floor", known_by="src")
    monkeypatch.setattr("mxref.testing.diagnosis.dialects.RECIPES", {"twin": twin})
    x = noise(64, 64)
    assert (
        first(*raw(x, "floor"), x)
        == "the bytes are those of recipe 'twin' (unverified), not 'rceil'"
    )


@pytest.mark.parametrize("block", BLOCKS)
def test_element_faults_are_named_under_every_block(block):
    x = noise(64, 96)
    payload, scale = raw(x, "floor", block=block)
    truncated = payload.clone()
    wide = scale.repeat_interleave(block[0], 0).repeat_interleave(block[1], 1).reshape(-1)
    values = scaled(to_float64(x).reshape(-1, 1), wide)
    truncated = encoded(values, mxref.formats.E4M3, rounding=torch.floor).reshape(x.shape)
    keywords = {"block": block, "recipe": "floor"}
    assert "truncated" in first(truncated, scale, x, **keywords)
    overflow = values.abs().reshape(x.shape) > 464
    assert bool(overflow.any())
    cause = first(payload.masked_fill(overflow, 0x7F), scale, x, **keywords)
    assert "saturation is missing" in cause


def test_two_faults_at_once_are_both_named():
    x = noise(64, 256, dtype=torch.float32)
    scale = raw(x)[1]
    codes = mxref.quantize(x, scale=scale + 1).payload.view(torch.uint8)
    cause = first(codes & 0x7F, scale + 1, x)
    assert cause.startswith("two causes: the scale is off by +1 everywhere; and the sign is lost")


def test_what_no_hypothesis_explains_is_said_with_the_nearest_and_its_share():
    x = noise(64, 256)
    payload, scale = raw(x)
    spoiled = payload & 0x7F
    spoiled[3, :40] = 0x21
    found = diagnose(spoiled, scale, x, recipe="rceil")
    assert found[0].cause.startswith("no single cause found; nearest: the sign is lost")
    assert "explains 99 % of 512 blocks" in found[0].cause
    assert 0.9 < found[0].share < 1
    assert "the scales are right, the payload is wrong" in found[1].cause


def test_a_scale_rule_that_is_unknown_leaves_the_payload_acquitted():
    x = noise(64, 256)
    generator = torch.Generator().manual_seed(2)
    scale = raw(x)[1] + torch.randint(-1, 4, (64, 8), generator=generator).to(torch.uint8)
    cause = first(*raw(x, scale=scale), x)
    assert "the payload is right under its own scales, so only the scale rule is wrong" in cause


def test_given_scale_asks_about_the_payload_alone():
    x = noise(64, 256)
    payload, scale = raw(x, "floor")
    assert diagnose(payload, scale, x, recipe="rceil", given="scale") == []
    found = first(payload & 0x7F, scale, x, given="scale")
    assert found == "the sign is lost: every element is positive"


def test_offsets_that_overflow_int32_are_recognized_by_where_they_start():
    x = noise(64, 256)
    payload, scale = raw(x)
    spoiled, stored = payload.clone(), scale.clone()
    spoiled[40:], stored[40:] = 0, 0
    start = (1 << 31) - 40 * 256
    cause = first(spoiled, stored, x, first_element=start)
    assert cause == "int32 overflow of an offset: the differences start at 2^31 elements"
    assert "int32" not in first(spoiled, stored, x)
    assert "int32" not in first(spoiled, stored, x, first_element=start + 256 * 8)


@pytest.mark.parametrize("fill", [0x00, 0xCD])
def test_memory_that_was_never_written_is_named(fill):
    x = noise(96, 256)
    payload, scale = raw(x)
    payload[32:40], scale[32:40] = fill, fill
    assert f"never written (stale): wrong payload bytes are all 0x{fill:02X}" in first(
        payload, scale, x
    )


@pytest.mark.parametrize("n", [1, -1, 2, 32, 100])
def test_shifts_are_named_with_their_distance(n):
    x = noise(256, 2048 if abs(n) < 32 else 8192)
    payload, scale = raw(x)
    assert first(payload, scale.roll(n, 0), x) == f"scale rows are shifted by {n}"
    assert f"shifted by {n}" in first(payload, scale.roll(n, 1), x)
    assert first(payload.roll(n, 1), scale, x) == f"payload columns are shifted by {n}"


def test_sizes_that_cannot_be_are_named_before_any_hypothesis():
    x = noise(64, 96)
    payload, scale = raw(x)
    assert "payload is transposed" in first(payload.mT, scale, x)
    assert "scale has 191 bytes, expected 192" in first(payload, scale.reshape(-1)[1:], x)
    swizzled = mxref.layouts.encode(scale, "swizzle_32_4_4")
    assert "as many as layout 'swizzle_32_4_4' has" in first(payload, swizzled, x)


def test_only_nan_codes_differ():
    x = torch.full((2, 64), float("nan"))
    payload, scale = raw(x)
    assert "NaN is written as 0xFF" in first(payload | 0x80, scale, x)


def test_a_scale_that_multiplies_wrongly_at_the_end_of_the_range():
    x = torch.full((1, 32), 2.0**127)
    scale = torch.full((1, 1), 254, dtype=torch.uint8)
    payload = raw(x, scale=scale)[0]
    assert int(payload[0, 0]) == 0x38
    cause = first(payload * 0, scale, x, given="scale")
    assert "multiplier of scale byte 254 is wrong: 0" in cause


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("block", BLOCKS)
def test_of_a_large_tensor_the_rows_around_the_first_wrong_block_are_looked_at(
    block, layout, monkeypatch
):
    x = noise(2, 1024, 64)
    keywords = {"block": block, "contract": -1 if block == (32, 32) else None}
    payload, scale = raw(x, block=block)
    payload[1, 512:] &= 0x7F
    stored = mxref.layouts.encode(scale, layout, shape=tuple(x.shape), **keywords)
    evidence = Evidence(
        source=x, recipe=mxref.RECIPES["rceil"], layout=layout, payload=payload,
        stored=stored.reshape(-1), **keywords,
    )  # fmt: skip
    part = window(evidence, 128 * 64)
    assert (part.shape, part.first_element) == ((128, 64), 1024 * 64 + 512 * 64)
    assert explained(part)[0].cause == "the sign is lost: every element is positive"
    assert torch.equal(part.x, x[1, 512:640])
    assert torch.equal(part.payload, payload[1, 512:640])
    assert window(evidence) is evidence


def test_it_is_quick():
    x = noise(64, 256, dtype=torch.float32)
    payload, scale = raw(x)
    generator = torch.Generator().manual_seed(3)
    spoiled = payload ^ torch.randint(0, 2, payload.shape, generator=generator).to(torch.uint8)
    diagnose(spoiled, scale, x, recipe="rceil")
    times = []
    for _ in range(5):
        start = time.process_time()
        diagnose(spoiled, scale + 1, x, recipe="rceil")
        times.append(time.process_time() - start)
    assert min(times) < 1.0


def test_the_float64_cast_is_the_reference_where_nothing_is_replaced():
    for dtype in (torch.bfloat16, torch.float16):
        bits = torch.arange(-(1 << 15), 1 << 15).to(torch.int16)
        x = bits.view(dtype).reshape(-1, 32)
        for recipe in ("floor", mxref.Recipe(round="rceil", element="e5m2")):
            payload, scale = raw(x, recipe)
            element = mxref.formats.ELEMENTS[mxref.recipes.resolve(recipe).element]
            codes = encoded(scaled(to_float64(x), scale.reshape(-1)), element)
            finite = (scale != 255).expand(payload.shape)
            assert torch.equal(codes[finite], payload[finite])


@pytest.mark.parametrize("flush", [False, True])
def test_float64_holds_every_subnormal_also_under_flush_to_zero(flush):
    torch.set_flush_denormal(flush)
    try:
        values = to_float64(torch.arange(5, dtype=torch.int32).view(torch.float32))
        small = to_float64(torch.arange(5, dtype=torch.int16).view(torch.bfloat16))
    finally:
        torch.set_flush_denormal(False)
    assert values.tolist() == [n * 2.0**-149 for n in range(5)]
    assert small.tolist() == [n * 2.0**-133 for n in range(5)]


def test_every_family_is_listed():
    names = {family.__name__.rpartition(".")[2] for family in FAMILIES}
    assert names == listed_files("mxref/testing/diagnosis", "arithmetic", "evidence", "window")


@pytest.mark.parametrize(
    ("keywords", "text"),
    [
        ({"recipe": "x"}, "recipe='x'"),
        ({"block": (2, 2)}, "block="),
        ({"scale_layout": "x"}, "scale_layout='x'"),
        ({"given": "x"}, "given='x'"),
    ],
)
def test_a_wrong_argument_is_named(keywords, text):
    x = noise(4, 32)
    with pytest.raises(ValueError, match=text):
        diagnose(*raw(x), x, **{"recipe": "rceil", **keywords})
