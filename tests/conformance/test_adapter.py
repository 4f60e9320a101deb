"""Adapter: claims are checked when the object is made, obeyed, and what is not claimed is said."""

import json
from typing import Any

import pytest
import torch
from torch import Tensor

import mxref
from mxref.testing import Adapter, verify
from mxref.testing.check import Setting
from mxref.testing.checks import edge_blocks, nonfinite, subnormals, thresholds
from mxref.testing.claims import Claims
from mxref.testing.reference import reference, verdicts

BF16 = (torch.bfloat16,)


class Right(Adapter):
    recipe, dtypes = "rceil", BF16

    def quantize(self, x: Tensor) -> Any:
        return mxref.quantize(x, self.recipe, block=self.block)


def smoke(adapter: Adapter, *checks: str) -> Any:
    return adapter.verify(level="smoke", checks=checks or None)


def test_a_subclass_and_its_objects_carry_claims() -> None:
    assert smoke(Right()).passed
    assert smoke(Right(recipe="floor", block=(32, 1))).passed
    report = smoke(Right(recipe="floor"), "matrices")
    assert report.claims["recipe"] == "floor"
    assert report.target == f"{__name__}:Right()"


def test_verify_is_the_same_run() -> None:
    fn = Right().quantize
    ours = smoke(Right())
    theirs = verify(fn, recipe="rceil", dtypes=BF16, level="smoke")
    assert ours.claims == theirs.claims
    key = [(each.check, each.verdict, each.elements) for each in ours.results]
    assert key == [(each.check, each.verdict, each.elements) for each in theirs.results]
    assert ours.not_run == theirs.not_run


WRONG: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"blok": (1, 32)}, TypeError, r"Typo.blok=\(1, 32\): no claim.*did you mean 'block'"),
    ({"scale_layouts": "plain"}, TypeError, "did you mean 'scale_layout'"),
    ({"zzz": 1}, TypeError, "Claims are recipe, block"),
    ({"recipe": "RCEIL"}, ValueError, "recipe='RCEIL'"),
    ({"recipe": ""}, ValueError, "Typo.recipe='': has to be set"),
    ({"block": (2, 32)}, ValueError, r"block=\(2, 32\)"),
    ({"nan": "none"}, ValueError, "nan='none'.*'any', 'strict'"),
    ({"payload_order": "rows"}, ValueError, "payload_order='rows'.*'any', 'row', 'col'"),
    ({"flushes_subnormals": 1}, TypeError, "flushes_subnormals=1: expected True or False"),
    ({"deterministic": "yes"}, TypeError, "deterministic='yes'"),
    ({"exact_scales": None}, TypeError, "exact_scales=None"),
    ({"device": "gpu"}, ValueError, "device='gpu'"),
    ({"device": 0}, TypeError, "device=0"),
    ({"multiple_of": 0}, ValueError, "multiple_of=0"),
]


@pytest.mark.parametrize(("bad", "error", "message"), WRONG)
def test_a_wrong_name_or_value_is_found_when_the_object_is_made(
    bad: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        type("Typo", (Right,), dict(bad))()
    if next(iter(bad)) != "zzz":
        with pytest.raises(error):
            Right(**bad)


def test_quantize_has_to_be_there_under_this_name() -> None:
    methods = {"recipe": "rceil", "quantise": lambda self, x: x}
    with pytest.raises(TypeError, match=r"has to define quantize.*it has 'quantise'"):
        type("Typo", (Adapter,), methods)()


def test_names_of_ones_own_begin_with_an_underscore() -> None:
    assert type("Mine", (Right,), {"_workspace": 3, "helper": lambda self: 1})()


def test_a_device_that_is_absent_is_found_when_it_is_run() -> None:
    adapter = Right(device="cuda:77")
    with pytest.raises(ValueError, match="cuda:77"):
        smoke(adapter)


class Flushing(Right):
    flushes_subnormals = True

    def quantize(self, x: Tensor) -> Any:
        zero = (x.float().abs() < 2.0**-126) & x.isfinite()
        return mxref.quantize(torch.where(zero, x * 0, x))


def test_a_flush_to_zero_target_is_judged_as_one() -> None:
    report = smoke(Flushing(dtypes=(torch.bfloat16, torch.float16, torch.float32)))
    assert report.passed, str(report)
    assert "judged as zeros of their sign" in str(report)
    unclaimed = smoke(Flushing(flushes_subnormals=False))
    assert {"edge_blocks", "subnormals"} <= {each.check for each in unclaimed.failures}
    # and one that keeps subnormals is no flush-to-zero target
    assert not smoke(Right(flushes_subnormals=True)).passed


def test_a_recipe_that_flushes_is_what_the_claim_means() -> None:
    x = torch.tensor([[2.0**-130] * 31 + [2.0**-120]], dtype=torch.bfloat16)
    claims = Claims.of(recipe="floor", flushes_subnormals=True)
    payload = reference(x, claims).payload
    assert payload[0, :31].tolist() == [0] * 31
    assert payload[0, 31] != 0


class OffByOne(Right):
    """Every finite scale of some blocks is one step up, and the payload follows it."""

    exact_scales = False
    _steps = 1
    _payload_follows = True

    def quantize(self, x: Tensor) -> Any:
        payload, scale = (each.view(torch.uint8) for each in mxref.quantize(x))
        other = scale.clone()
        chosen = (scale[..., :1] >= 100) & (scale[..., :1] < 200)
        other[..., :1] = torch.where(chosen, scale[..., :1] + self._steps, scale[..., :1])
        if self._payload_follows:
            payload = mxref.quantize(x, scale=other).payload
        return payload, other


class Alternating(OffByOne):
    """A scale that changes from call to call, with a payload that follows it."""

    deterministic = False
    _calls = 0

    def quantize(self, x: Tensor) -> Any:
        self._calls += 1
        return super().quantize(x) if self._calls % 2 else mxref.quantize(x)


def test_determinism_is_judged_only_where_it_is_claimed() -> None:
    report = smoke(Alternating())
    assert report.passed, str(report)
    (found,) = [each for each in report.results if each.check == "repeatable"]
    assert (found.verdict, found.elements) == ("declined", 0)
    assert "deterministic=False" in found.detail
    assert "deterministic=False" in str(report)
    judged = smoke(Alternating(deterministic=True))
    assert [each.check for each in judged.failures] == ["repeatable"]


def test_without_exact_scales_the_payload_is_judged_under_the_targets_own() -> None:
    report = smoke(OffByOne())
    assert report.passed, str(report)
    assert "scale bytes one step off" in str(report)
    assert "exact_scales=False" in str(report)
    assert not smoke(OffByOne(exact_scales=True)).passed


def test_without_exact_scales_wrong_bytes_still_fail() -> None:
    stale = type("Stale", (OffByOne,), {"_payload_follows": False})()
    assert not smoke(stale).passed
    far = type("Far", (OffByOne,), {"_steps": 2})()
    assert smoke(far).failures[0].message.startswith("scale 0x")

    class Drops(Right):
        exact_scales = False

        def quantize(self, x: Tensor) -> Any:
            return mxref.quantize(x.nan_to_num())

    assert not smoke(Drops(), "nonfinite").passed


def test_padding_is_as_strict_without_exact_scales() -> None:
    class Dirty(Right):
        scale_layout, exact_scales = "swizzle_32_4_4", False

        def quantize(self, x: Tensor) -> Any:
            payload, scale = mxref.quantize(x)
            stored = mxref.layouts.encode(scale.view(torch.uint8), "swizzle_32_4_4")
            used = mxref.layouts.encode(torch.ones_like(scale.view(torch.uint8)), "swizzle_32_4_4")
            return payload, torch.where(used == 1, stored, 1)

    assert "padding" in smoke(Dirty(), "shapes").failures[-1].message


def test_two_verdicts_tell_a_wrong_scale_from_wrong_elements() -> None:
    """An off-by-one scale does not hide element errors, nor the reverse."""
    scale_only = smoke(OffByOne(exact_scales=True), "thresholds").failures[0]
    assert scale_only.own_scales == "conforms"
    assert "scale bytes and" in scale_only.from_input

    class Elements(OffByOne):
        def quantize(self, x: Tensor) -> Any:
            payload, scale = super().quantize(x)
            return payload.view(torch.uint8) ^ (payload.view(torch.uint8) == 0x38), scale

    both = smoke(Elements(exact_scales=True), "thresholds").failures[0]
    assert "payload bytes differ" in both.own_scales
    text = str(both)
    assert "from the input: " in text
    assert "under the target's own scales: " in text

    class Payload(Right):
        def quantize(self, x: Tensor) -> Any:
            payload, scale = mxref.quantize(x)
            return payload.view(torch.uint8) ^ 1, scale

    only = smoke(Payload(), "thresholds").failures[0]
    assert only.from_input.startswith("0 of ")
    assert only.own_scales != "conforms"


@pytest.mark.parametrize("block", [(1, 32), (32, 1), (32, 32)])
@pytest.mark.parametrize("recipe", ["floor", "rceil", "ceil", "even"])
def test_both_verdicts_agree_on_right_bytes(recipe: str, block: tuple[int, int]) -> None:
    """Else the second verdict could blame a payload for nothing."""
    for flushes in (False, True):
        claims = Claims.of(
            recipe=recipe, block=block, level="smoke", nan="strict", flushes_subnormals=flushes
        )
        for check in (edge_blocks, nonfinite, subnormals, thresholds):
            for x in check.inputs(Setting(claims, torch.float32)):
                found = verdicts(x, reference(x, claims), claims)
                assert (found.from_input, found.own_scales) == ("conforms", "conforms")


@pytest.mark.parametrize(("order", "claimed"), [("row", "col"), ("col", "row")])
def test_a_claimed_payload_order_is_judged(order: str, claimed: str) -> None:
    class Ordered(Right):
        def quantize(self, x: Tensor) -> Any:
            payload, scale = mxref.quantize(x)
            return payload.mT.contiguous().mT if order == "col" else payload, scale

    assert smoke(Ordered(payload_order=order)).passed
    wrong = smoke(Ordered(payload_order=claimed))
    assert [each.check for each in wrong.failures] == ["payload_order"]
    assert "has strides" in wrong.failures[0].message
    assert "payload_order" in {each.check for each in smoke(Ordered()).declined}


def test_nothing_that_is_not_judged_counts_as_passed() -> None:
    report = smoke(Right(multiple_of=128))
    content = json.loads(report.to_json())
    said = "\n".join(content["not_claimed"])
    for part in ("float16: not among dtypes", "float32", "multiples of 128", "payload order"):
        assert part in said
        assert part in str(report)
    left = {each["check"]: each["reason"] for each in content["not_run"]}
    assert left["payload_table"] == "of level full and exhaustive"
    assert left["fuzz"] == "of level fuzz"
    assert content["counts"]["not run"] == len(left)
    assert content["counts"]["declined"] == len(content["declined"]) == 1
    assert content["counts"]["passed"] == len(report.results) - 1
    assert content["waived"] == []


def test_the_reproducer_makes_the_adapter_again() -> None:
    found = smoke(Wrong(), "thresholds").failures[0]
    assert f"from {__name__} import Wrong\n\ntarget = Wrong().quantize" in found.reproducer


class Wrong(Right):
    def quantize(self, x: Tensor) -> Any:
        return mxref.quantize(x, "floor")
