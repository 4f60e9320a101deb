"""Failures say where, in bits, and come with a snippet that shows them again."""

import contextlib
import io
from typing import Any

import pytest
import torch
from torch import Tensor

import mxref
from mxref.testing import BlockBytes, verify


def one_up(x: Tensor) -> Any:
    """The scale byte of every block with amax 1.0 is one too high."""
    payload, scale = (each.view(torch.uint8) for each in mxref.quantize(x))
    return payload, torch.where(scale == 119, 120, scale)


def third_code(x: Tensor) -> Any:
    payload, scale = (each.view(torch.uint8) for each in mxref.quantize(x))
    payload[..., 3::32] ^= 1
    return payload, scale


def upper_rows(x: Tensor) -> Any:
    payload, scale = (each.view(torch.uint8) for each in mxref.quantize(x))
    scale[..., 128:, :] = 1
    return payload, scale


def not_swizzled(x: Tensor) -> Any:
    payload, scale = mxref.quantize(x)
    out = mxref.layouts.encode(scale, "swizzle_32_4_4").view(torch.uint8)
    return payload, out.flip(0)


def dirty(x: Tensor) -> Any:
    payload, scale = mxref.quantize(x)
    out = mxref.layouts.encode(scale.view(torch.uint8), "swizzle_32_4_4")
    out[3::16] |= 1  # the fourth column: padding where there are three
    return payload, out


def run(snippet: str, **names: Any) -> str:
    """What the snippet prints; it must end in an AssertionError."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), pytest.raises(AssertionError):
        exec(compile(snippet, "reproducer", "exec"), dict(names))
    return printed.getvalue()


def failure_of(fn: Any, check: str, **claims: Any) -> Any:
    keywords = {"recipe": "rceil", "level": "smoke", "dtypes": (torch.bfloat16,), **claims}
    report = verify(fn, checks=[check], **keywords)
    return next(failure for failure in report.failures if failure.check == check)


def test_a_wrong_scale_is_named_in_bits() -> None:
    found = failure_of(one_up, "edge_blocks")
    assert found.message.startswith("scale 0x78, expected 0x77")
    assert found.input_bits == (0x3F80,) * 32
    assert len(str(found).splitlines()) == 8
    assert "diagnosis" in str(found)
    assert found.expected == BlockBytes(119, (0x78,) * 32)
    assert found.actual == BlockBytes(120, (0x78,) * 32)
    assert found.dtype == "bfloat16"


def test_a_wrong_element_is_named_with_its_place() -> None:
    found = failure_of(third_code, "edge_blocks")
    assert found.message.startswith("payload[3] 0x01, expected 0x00")
    assert found.block_index == (0, 0)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32], ids=str)
def test_the_reproducer_shows_one_block(dtype: torch.dtype) -> None:
    found = failure_of(one_up, "edge_blocks", dtypes=(dtype,))
    assert "bits = [" in found.reproducer
    assert "import torch\nimport mxref\n" in found.reproducer
    assert "120 expected 119" in run(found.reproducer, target=one_up)


@pytest.mark.parametrize("block", [(32, 1), (32, 32)])
def test_the_reproducer_of_other_blocks_runs(block: tuple[int, int]) -> None:
    def fn(x: Tensor) -> Any:
        payload, scale = mxref.quantize(x, block=block)
        return payload.view(torch.uint8) ^ 1, scale

    found = failure_of(fn, "edge_blocks", block=block, multiple_of=64)
    assert "bits = [" in found.reproducer
    run(found.reproducer, target=fn)


def test_the_reproducer_imports_a_target_named_module_and_function() -> None:
    def fn(x: Tensor) -> Any:
        return mxref.quantize(x, "floor")

    found = failure_of(fn, "thresholds", name="mxref:quantize")
    assert "from mxref import quantize as target" in found.reproducer


def test_the_reproducer_says_when_there_is_no_target() -> None:
    snippet = failure_of(lambda x: one_up(x), "edge_blocks").reproducer
    with pytest.raises(SystemExit, match="set target"):
        exec(compile(snippet, "reproducer", "exec"), {})


def test_where_one_block_shows_nothing_the_check_runs_again() -> None:
    found = failure_of(upper_rows, "positions", recipe=mxref.Recipe())
    assert found.block_index[0] == 128
    assert "bits = [" not in found.reproducer
    assert "positions" in run(found.reproducer, target=upper_rows)


def test_the_reproducer_decodes_a_stored_layout() -> None:
    found = failure_of(not_swizzled, "matrices", scale_layout="swizzle_32_4_4")
    assert found.message.startswith("scale 0x")
    run(found.reproducer, target=not_swizzled)


def test_wrong_padding_names_the_stored_byte() -> None:
    found = failure_of(dirty, "edge_blocks", scale_layout="swizzle_32_4_4")
    assert "expected" in found.message
    padding = failure_of(dirty, "shapes", scale_layout="swizzle_32_4_4")
    assert padding.message.startswith("stored scale byte 3 0x01, expected 0x00: padding")
    assert padding.block_index == ()
    run(padding.reproducer, target=dirty)


def test_a_strict_nan_is_reproduced() -> None:
    def fn(x: Tensor) -> Any:
        payload, scale = (each.view(torch.uint8) for each in mxref.quantize(x))
        return payload.masked_fill(payload == 0x7F, 0xFF), scale

    found = failure_of(fn, "edge_blocks", nan="strict")
    run(found.reproducer, target=fn)
