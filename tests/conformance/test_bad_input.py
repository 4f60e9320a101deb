"""Wrong calls name the argument; a misbehaving target gets a verdict and one clear line."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import mxref
import mxref.testing.checks
from mxref.testing import verify

BF16 = (torch.bfloat16,)


def payload_of(x: Tensor) -> Tensor:
    return mxref.quantize(x).payload


def scale_of(x: Tensor) -> Tensor:
    return mxref.quantize(x).scale


def recurse(x: Tensor) -> Any:
    return recurse(x)


def resizes(x: Tensor) -> Any:
    result = mxref.quantize(x)
    x.resize_(1)
    return result


def leaves(x: Tensor) -> Any:
    raise SystemExit(3)


MALFORMED: dict[str, tuple[Callable[[Tensor], Any], str]] = {
    "nothing": (lambda x: None, "returned None, expected (payload, scale)"),
    "one tensor": (payload_of, "returned a Tensor"),
    "three": (lambda x: (x, x, x), "returned 3 values, expected 2"),
    "no tensor": (lambda x: (payload_of(x), [1]), "scale is a list, expected a tensor"),
    "dtype": (lambda x: (x, scale_of(x)), "payload has dtype torch.bfloat16"),
    "scale dtype": (lambda x: (payload_of(x), scale_of(x).view(torch.int8)), "scale has dtype"),
    "shape": (lambda x: (payload_of(x).flatten(), scale_of(x)), "payload has shape"),
    "scale shape": (lambda x: (payload_of(x), scale_of(x).mT), "scale has shape"),
    "device": (lambda x: (payload_of(x).to("meta"), scale_of(x)), "payload is on meta"),
    "sparse": (
        lambda x: (payload_of(x).view(torch.uint8).to_sparse(), scale_of(x)),
        "payload has layout torch.sparse_coo",
    ),
    "resized input": (resizes, "changed the shape of its input"),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_a_malformed_answer_is_one_clear_line_and_the_other_checks_run(case: str) -> None:
    fn, message = MALFORMED[case]
    names = ["edge_blocks", "shapes", "repeatable", "input_unchanged"]
    report = verify(fn, recipe="rceil", level="smoke", dtypes=BF16, checks=names)
    assert not report.passed
    assert len(report.results) == 5
    assert any(message in failure.message for failure in report.failures), str(report)
    assert all("\n" not in failure.message for failure in report.failures)


@pytest.mark.parametrize("fn", [recurse, leaves, lambda: None, lambda x: 1 / 0, int, "x".join])
def test_a_target_that_raises_gives_a_report(fn: Any) -> None:
    report = verify(fn, recipe="rceil", level="smoke", dtypes=BF16)
    assert not report.passed
    assert str(report)


def test_keyboard_interrupt_is_not_swallowed() -> None:
    def fn(x: Tensor) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        verify(fn, recipe="rceil")


BAD: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"recipe": "RCEIL"}, ValueError, "recipe='RCEIL'"),
    ({"recipe": 3}, TypeError, "recipe=3"),
    ({"block": (2, 32)}, ValueError, r"block=\(2, 32\)"),
    ({"block": 32}, TypeError, "block=32"),
    ({"scale_layout": "swizzled"}, ValueError, "scale_layout='swizzled'.*'plain'"),
    ({"scale_layout": None}, TypeError, "scale_layout=None"),
    ({"dtypes": ()}, ValueError, r"dtypes=\(\)"),
    ({"dtypes": (torch.float64,)}, ValueError, "torch.float64"),
    ({"dtypes": ("bf16",)}, TypeError, "bf16"),
    ({"dtypes": torch.float32}, TypeError, "dtypes=torch.float32"),
    ({"device": "gpu"}, ValueError, "device='gpu'"),
    ({"device": 0}, TypeError, "device=0"),
    ({"device": "meta"}, ValueError, "device='meta'"),
    ({"level": "fast"}, ValueError, "level='fast'.*'smoke', 'full'"),
    ({"multiple_of": 0}, ValueError, "multiple_of=0"),
    ({"multiple_of": 33}, ValueError, "multiples of 1056"),
    ({"multiple_of": 32.0}, TypeError, "multiple_of=32.0"),
    ({"multiple_of": True}, TypeError, "multiple_of=True"),
    ({"contract": -3}, ValueError, "contract=-3"),
    ({"contract": "-1"}, TypeError, "contract='-1'"),
    ({"contract": -2}, ValueError, r"contract=-2.*\(1, 32\)"),
    ({"block": (32, 32), "scale_layout": "swizzle_32_4_4"}, ValueError, "contract=None"),
    ({"nan": "some"}, ValueError, "nan='some'.*'any', 'strict'"),
    ({"seed": -1}, ValueError, "seed=-1"),
    ({"seed": "x"}, TypeError, "seed='x'"),
    ({"progress": 1}, TypeError, "progress=1"),
    ({"name": 1}, TypeError, "name=1"),
    ({"checks": ["tie"]}, ValueError, "'tie' is not one of level 'full'"),
    ({"checks": "ties"}, TypeError, "checks='ties'"),
]


@pytest.mark.parametrize(("bad", "error", "message"), BAD)
def test_a_wrong_call_names_the_argument(
    bad: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        verify(mxref.quantize, **{"recipe": "rceil", **bad})


def test_fn_has_to_be_callable() -> None:
    with pytest.raises(TypeError, match="fn='mine:f'"):
        verify("mine:f", recipe="rceil")  # type: ignore[arg-type]
