"""The runner: what passes, what fails, what is declined, and that no target crashes it."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor

import mxref
import mxref.testing.checks
from mxref.testing import verify

E5M2 = mxref.Recipe(round="rceil", element="e5m2")
BF16 = (torch.bfloat16,)


def label(value: Any) -> str:
    return value.label if isinstance(value, mxref.Recipe) else str(value)


def stored(
    x: Tensor, recipe: Any, block: tuple[int, int], layout: str, contract: int | None
) -> tuple[Tensor, Tensor]:
    payload, scale = mxref.quantize(x, recipe, block=block)
    return payload, mxref.layouts.encode(
        scale, layout, block=block, shape=tuple(x.shape), contract=contract
    )


LAYOUTS = [
    *[((1, 32), layout, None) for layout in mxref.layouts.LAYOUTS],
    *[((32, 1), layout, None) for layout in mxref.layouts.LAYOUTS],
    ((32, 32), "plain", None),
    ((32, 32), "plain_t", None),
    ((32, 32), "swizzle_32_4_4", -1),
    ((32, 32), "swizzle_32_4_4", -2),
]


@pytest.mark.parametrize(("block", "layout", "contract"), LAYOUTS)
@pytest.mark.parametrize("recipe", ["floor", "rceil", "ceil", "even", E5M2], ids=label)
def test_smoke_passes_the_reference(
    recipe: Any, block: tuple[int, int], layout: str, contract: int | None
) -> None:
    fn = partial(stored, recipe=recipe, block=block, layout=layout, contract=contract)
    dtypes = (torch.bfloat16,) if recipe in ("ceil", "even") else (torch.float16, torch.float32)
    report = verify(
        fn,
        recipe=recipe,
        block=block,
        scale_layout=layout,
        contract=contract,
        dtypes=dtypes,
        level="smoke",
    )
    assert report.passed, str(report)
    assert {result.check for result in report.declined} == {"payload_order"}


@pytest.mark.parametrize("recipe", ["floor", "rceil", "ceil", "even", E5M2], ids=label)
def test_full_passes_the_reference(recipe: Any) -> None:
    report = verify(partial(mxref.quantize, recipe=recipe), recipe=recipe, dtypes=BF16)
    assert report.passed, str(report)
    assert report.seconds < 60
    table = next(result for result in report.results if result.check == "payload_table")
    assert table.elements > 8_000_000


def test_full_passes_the_reference_in_fp32_and_in_column_blocks() -> None:
    fn = partial(mxref.quantize, recipe="floor", block=(32, 1))
    report = verify(fn, recipe="floor", block=(32, 1), dtypes=(torch.float32, torch.float16))
    assert report.passed, str(report)


@pytest.mark.parametrize("multiple_of", [1, 48, 128])
def test_shapes_obey_multiple_of(multiple_of: int) -> None:
    seen = []

    def fn(x: Tensor) -> Any:
        if x.dim() == 2 and not all(size % multiple_of == 0 for size in x.shape):
            raise ValueError("no such shape")
        seen.append(x.shape)
        return mxref.quantize(x)

    report = verify(fn, recipe="rceil", multiple_of=multiple_of, level="smoke", dtypes=BF16)
    assert report.passed
    assert seen


def answers_only(allowed: Callable[[Tensor], bool]) -> Callable[[Tensor], Any]:
    def fn(x: Tensor) -> Any:
        if not allowed(x):
            raise NotImplementedError("not this one")
        return mxref.quantize(x)

    return fn


def verdicts(report: Any) -> dict[str, str]:
    return {result.check: result.verdict for result in report.results}


def test_raising_in_an_optional_check_is_declined() -> None:
    fn = answers_only(lambda x: x.dim() == 2 and x.is_contiguous() and x.shape[-1] % 32 == 0)
    report = verify(fn, recipe="rceil", level="smoke", dtypes=BF16)
    assert report.passed
    found = verdicts(report)
    assert found["ranks"] == found["strides"] == found["ragged"] == "declined"
    assert found["rows"] == found["offsets"] == "passed"
    assert "NotImplementedError: not this one" in str(report)


def test_a_dtype_is_declined_as_a_whole() -> None:
    fn = answers_only(lambda x: x.dtype == torch.float32)
    report = verify(fn, recipe="rceil", level="smoke")
    assert report.passed
    declined = [result for result in report.declined if result.check == "matrices"]
    assert [(r.check, r.dtype) for r in declined] == [
        ("matrices", "bfloat16"),
        ("matrices", "float16"),
    ]


def test_answering_nothing_is_not_passing() -> None:
    report = verify(answers_only(lambda x: False), recipe="rceil", level="smoke")
    assert not report.passed
    assert not report.answered
    assert not report.failures
    assert "no contiguous matrix" in str(report)


def test_raising_in_a_mandatory_check_fails() -> None:
    fn = answers_only(lambda x: x.numel() < 100_000 and not x.isnan().any())
    report = verify(fn, recipe="rceil", level="smoke", dtypes=BF16)
    assert not report.passed
    assert report.failures[0].check == "edge_blocks"
    assert "raised NotImplementedError: not this one" in report.failures[0].message


def test_wrong_bytes_in_an_optional_check_fail() -> None:
    fn = answers_only(lambda x: x.dim() == 2)

    def wrong(x: Tensor) -> Any:
        payload, scale = fn(x)
        if x.shape[-1] % 32:
            payload.view(torch.uint8)[-1, -1] ^= 1
        return payload, scale

    report = verify(wrong, recipe="rceil", level="smoke", dtypes=BF16)
    assert [failure.check for failure in report.failures] == ["ragged"]


def test_nan_codes_are_alike_unless_strict() -> None:
    def fn(x: Tensor) -> Any:
        payload, scale = mxref.quantize(x)
        return payload.view(torch.uint8).masked_fill(payload.isnan(), 0xFF), scale

    keywords: dict[str, Any] = {"recipe": "rceil", "level": "smoke", "dtypes": BF16}
    assert verify(fn, **keywords).passed
    strict = verify(fn, **keywords, nan="strict")
    assert "0xFF, expected 0x7F" in strict.failures[0].message


def test_every_e5m2_nan_code_is_nan_and_inf_is_not() -> None:
    for code, conforms in ((0x7D, True), (0xFE, True), (0x7C, False)):

        def fn(x: Tensor, code: int = code) -> Any:
            payload, scale = (each.view(torch.uint8) for each in mxref.quantize(x, E5M2))
            return payload.masked_fill(payload == 0x7F, code), scale

        report = verify(fn, recipe=E5M2, level="smoke", dtypes=BF16, checks=["nonfinite"])
        assert report.passed == conforms


def test_progress_counts_to_the_total() -> None:
    calls: list[tuple[str, int, int]] = []
    verify(
        mxref.quantize,
        recipe="rceil",
        level="smoke",
        checks=["empty"],
        progress=lambda *args: calls.append(args),
    )
    assert [done for _, done, _ in calls] == [0, 1, 2, 3, 4, 5, 6]
    assert {total for _, _, total in calls} == {6}


def test_the_report_is_text_and_json() -> None:
    report = verify(mxref.quantize, recipe="floor", level="smoke", dtypes=BF16, name="mine")
    loaded = json.loads(report.to_json())
    assert loaded["passed"] is False
    assert loaded["claims"]["recipe"] == "floor"
    assert loaded["claims"]["dtypes"] == ["bfloat16"]
    assert loaded["spec"] == mxref.SPEC
    first = loaded["failures"][0]
    assert first["expected"]["scale"] != first["actual"]["scale"]
    assert len(first["input_bits"]) == len(first["expected"]["payload"]) == 32
    text = str(report)
    assert text.startswith("mine  recipe=floor")
    assert "does not conform" in text
