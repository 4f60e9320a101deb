"""The assertions: bytes decide, and the message says which bits differ and why."""

import pytest
import torch

import mxref
from mxref.testing import assert_bits_equal, assert_mx_equal
from mxref.testing.fields import LAYOUTS, fields

E4M3, E8M0 = torch.float8_e4m3fn, torch.float8_e8m0fnu


def u8(*codes: int, dtype: torch.dtype = torch.uint8) -> torch.Tensor:
    return torch.tensor(codes, dtype=torch.uint8).view(dtype)


def noise(*shape: int, dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0)).to(dtype)


def message(*arguments, **keywords) -> str:
    with pytest.raises(AssertionError) as caught:
        assert_mx_equal(*arguments, **keywords)
    return str(caught.value)


ALL = [torch.float64, torch.float32, torch.bfloat16, torch.float16, E4M3, torch.float8_e5m2, E8M0,
       torch.int64, torch.int16, torch.uint8, torch.bool, torch.complex64]  # fmt: skip


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_one_bit_is_seen_in_every_dtype(dtype):
    stored = torch.ones(12 * dtype.itemsize, dtype=torch.uint8)
    first = stored.view(dtype).reshape(3, 4)
    assert_bits_equal(first, first.clone())
    assert_bits_equal(first, first.mT.contiguous().mT)
    stored = stored.clone()
    stored[5 * dtype.itemsize] = 0
    with pytest.raises(AssertionError, match=r"1 / 12 \(8\.3 %\), first at index \(1, 1\)"):
        assert_bits_equal(first, stored.view(dtype).reshape(3, 4))


def test_values_that_are_equal_and_bytes_that_are_not():
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        with pytest.raises(AssertionError, match="first at index"):
            assert_bits_equal(torch.zeros(4, dtype=dtype), -torch.zeros(4, dtype=dtype))
    with pytest.raises(AssertionError):
        assert_bits_equal(u8(0x00, dtype=E4M3), u8(0x80, dtype=E4M3))


def test_nan_equals_its_own_bits_and_any_nan_of_float8():
    nan = torch.tensor([float("nan")])
    assert_bits_equal(nan, nan.clone())
    with pytest.raises(AssertionError):
        assert_bits_equal(nan, -nan)
    assert_bits_equal(u8(0x7F, dtype=E4M3), u8(0xFF, dtype=E4M3))
    assert_bits_equal(u8(0x7D, dtype=torch.float8_e5m2), u8(0xFF, dtype=torch.float8_e5m2))
    for first, second in ((0x7F, 0xFF), (0x7E, 0x7F)):
        with pytest.raises(AssertionError):
            assert_bits_equal(u8(first, dtype=E4M3), u8(second, dtype=E4M3), nan="strict")
    with pytest.raises(AssertionError):
        assert_bits_equal(u8(0x7E, dtype=E4M3), u8(0x7F, dtype=E4M3))
    with pytest.raises(AssertionError):
        assert_bits_equal(u8(0x7C, dtype=torch.float8_e5m2), u8(0x7D, dtype=torch.float8_e5m2))


def test_the_message_has_the_fields():
    with pytest.raises(AssertionError) as caught:
        assert_bits_equal(u8(0, 0x7E, dtype=E4M3), u8(0, 0x38, dtype=E4M3))
    assert str(caught.value) == (
        "Tensor bits are not equal! Mismatched elements: 1 / 2 (50.0 %), first at index (1,)\n"
        "  actual    0x7E 0 1111 110  448.0\n"
        "  expected  0x38 0 0111 000  1.0"
    )


@pytest.mark.parametrize(
    ("other", "text"),
    [
        (torch.zeros(3), r"shape: actual \(2,\), expected \(3,\)"),
        (torch.zeros(2, dtype=torch.float16), "dtype: actual torch.float32"),
        (torch.zeros(2, 1), "shape"),
    ],
)
def test_shape_and_dtype_are_named(other, text):
    with pytest.raises(AssertionError, match=text):
        assert_bits_equal(torch.zeros(2), other)


def test_scalars_and_empty_tensors_compare():
    assert_bits_equal(torch.tensor(1.0), torch.tensor(1.0))
    assert_bits_equal(torch.zeros(0, 3), torch.zeros(0, 3))
    with pytest.raises(AssertionError, match=r"index \(\)"):
        assert_bits_equal(torch.tensor(1.0), torch.tensor(2.0))


def test_every_float_dtype_has_fields_of_its_size():
    for dtype, layout in LAYOUTS.items():
        assert layout.bits == dtype.itemsize * 8
        assert fields((1 << layout.bits) - 1, dtype).count("1") >= layout.bits


@pytest.mark.parametrize("layout", mxref.layouts.LAYOUTS)
@pytest.mark.parametrize("block", [(1, 32), (32, 1), (32, 32)])
def test_the_reference_equals_itself_in_every_layout(layout, block):
    x = noise(96, 70)
    contract = -1 if block == (32, 32) else None
    payload, scale = mxref.quantize(x, "floor", block=block)
    keywords = {"block": block, "contract": contract}
    stored = mxref.layouts.encode(scale, layout, shape=tuple(x.shape), **keywords)
    keywords |= {"scale_layout": layout, "recipe": "floor"}
    assert_mx_equal((payload, stored), source=x, **keywords)
    assert_mx_equal((payload, stored), (payload, stored), **keywords)
    codes = stored.view(torch.uint8).clone()
    codes.reshape(-1)[0] ^= 1
    text = message((payload, codes), source=x, **keywords)
    assert "scales: 1 /" in text
    assert "<- differs" in text


def test_the_first_block_is_shown_in_bits_with_inputs_and_values():
    x = torch.zeros(2, 64)
    x[1, 40] = 480.0
    payload, scale = mxref.quantize(x, "floor")
    text = message((payload, scale), source=x, recipe="rceil")
    lines = text.splitlines()
    assert lines[0] == (
        "MX tensors are not equal! Mismatched blocks: 1 / 4 (25.0 %), first at block (1, 1)"
    )
    assert lines[1] == "scales: 1 / 4 (25.0 %), payload elements: 1 / 128 (0.8 %)"
    assert lines[2].split() == ["scale", "actual", "0x7F", "01111111", "=", "2^0"]
    assert lines[3].split()[2:6] == ["0x80", "10000000", "=", "2^1"]
    assert "0x43F00000 0 10000111 11100000000000000000000 = 480.0" in lines[4]
    assert lines[5].split()[1:] == [
        "0x7E",
        "0",
        "1111",
        "110",
        "=",
        "448.0",
        "*",
        "2^0",
        "=",
        "448.0",
    ]
    assert lines[6].split()[1:] == [
        "0x77",
        "0",
        "1110",
        "111",
        "=",
        "240.0",
        "*",
        "2^1",
        "=",
        "480.0",
    ]
    assert lines[-1].startswith("diagnosis: ")


def test_given_scale_judges_the_payload_alone():
    x = noise(64, 64)
    payload, scale = mxref.quantize(x, "floor")
    assert_mx_equal((payload, scale), source=x, recipe="rceil", given="scale")
    codes = payload.view(torch.uint8).clone()
    codes[3, 5] ^= 1
    text = message((codes, scale), source=x, recipe="rceil", given="scale")
    assert "Mismatched blocks: 1 / 128" in text
    assert "scales: 0 / 128" in text


def test_nan_strict_is_for_mx_too():
    x = torch.full((1, 32), float("nan"))
    payload, scale = (each.view(torch.uint8) for each in mxref.quantize(x))
    assert_mx_equal((payload | 0x80, scale), source=x)
    text = message((payload | 0x80, scale), source=x, nan="strict")
    assert "diagnosis: NaN is written as 0xFF" in text


def test_an_expected_that_is_wrong_itself_is_said_so():
    x = noise(2, 64)
    text = message(mxref.quantize(x, "rceil"), mxref.quantize(x * 2, "rceil"), source=x)
    assert "look at expected" in text
    assert "needs source" in message(mxref.quantize(x, "rceil"), mxref.quantize(x * 2, "rceil"))


def test_a_malformed_answer_is_an_assertion():
    x = noise(4, 64)
    payload, scale = mxref.quantize(x)
    for actual, part in (
        ((payload[:2], scale), "payload has shape (2, 64), expected (4, 64)"),
        ((payload, scale[:, :1]), "scale has shape (4, 1), expected (4, 2)"),
        ((payload.float(), scale), "payload has dtype torch.float32"),
        ((payload, scale.view(torch.uint8).int()), "scale has dtype torch.int32"),
    ):
        assert part in message(actual, source=x)


@pytest.mark.parametrize(
    ("keywords", "kind", "text"),
    [
        ({}, ValueError, "expected or source=None"),
        ({"given": "scale"}, ValueError, "source=None"),
        ({"source": 3}, TypeError, "source=3"),
        ({"source": torch.zeros(1, 32, dtype=torch.int32)}, TypeError, "source has dtype"),
        ({"source": torch.zeros(1, 32), "recipe": "RCEIL"}, ValueError, "recipe='RCEIL'"),
        ({"source": torch.zeros(1, 32), "block": (16, 2)}, ValueError, "block="),
        ({"source": torch.zeros(1, 32), "scale_layout": "x"}, ValueError, "scale_layout='x'"),
        ({"source": torch.zeros(1, 32), "given": "x"}, ValueError, "given='x'"),
        ({"source": torch.zeros(1, 32), "nan": "none"}, ValueError, "nan='none'"),
        ({"source": torch.zeros(1, 32), "nan": 1}, TypeError, "nan=1"),
    ],
)
def test_a_wrong_argument_is_named(keywords, kind, text):
    with pytest.raises(kind, match=text):
        assert_mx_equal(mxref.quantize(torch.zeros(1, 32)), **keywords)


def test_what_is_no_tensor_is_named():
    with pytest.raises(TypeError, match="actual=1"):
        assert_bits_equal(1, torch.zeros(1))
    with pytest.raises(ValueError, match="nan='x'"):
        assert_bits_equal(torch.zeros(1), torch.zeros(1), nan="x")
    with pytest.raises(TypeError, match="expected a strided tensor"):
        assert_bits_equal(torch.zeros(1, device="meta"), torch.zeros(1))
    with pytest.raises(TypeError, match=r"actual: expected \(payload, scale\), got Tensor"):
        assert_mx_equal(torch.zeros(1), source=torch.zeros(1, 32))
