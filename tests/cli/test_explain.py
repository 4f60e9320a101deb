"""`mxref explain`: the steps, the bytes of NUMERICS' rows, every way to write a number."""

import re
from fractions import Fraction

import pytest

from mxref.cli import element_steps, values
from mxref.formats import BF16, ELEMENTS, FP16, FP32, INPUTS
from tests.cli.cli_call import call

ROWS = [
    ("0.0", "floor", "bf16", 0, 0x00),
    ("-0.0", "rceil", "fp32", 0, 0x80),
    ("0x1p-126", "floor", "fp32", 0, 0x40),
    ("0x1p-133", "rceil", "bf16", 0, 0x08),
    ("0x1p-149", "floor", "fp32", 0, 0x00),
    ("-0x1p-149", "rceil", "fp32", 0, 0x80),
    ("448", "floor", "bf16", 127, 0x7E),
    ("448", "rceil", "bf16", 127, 0x7E),
    ("480", "floor", "bf16", 127, 0x7E),
    ("480", "rceil", "bf16", 128, 0x77),
    ("0x7F7F", "floor", "bf16", 246, 0x7E),
    ("0x7F7F", "rceil", "bf16", 247, 0x78),
    ("65504", "floor", "fp16", 134, 0x7E),
    ("65504", "rceil", "fp16", 135, 0x78),
    ("0x40600001", "floor", "fp32", 120, 0x7E),
    ("0x40600001", "rceil", "fp32", 121, 0x76),
    ("0x43FFFFFF", "floor", "fp32", 127, 0x7E),
    ("0x43FFFFFF", "rceil", "fp32", 128, 0x78),
    ("0x04600001", "rceil", "fp32", 0, 0x7E),
    ("nan", "floor", "bf16", 255, 0x7F),
    ("-inf", "rceil", "fp16", 255, 0x7F),
    ("957", "floor", "bf16", 128, 0x7E),
]


@pytest.mark.parametrize(("text", "recipe", "dtype", "byte", "code"), ROWS)
def test_a_row_of_special_values_shows_its_bytes(text, recipe, dtype, byte, code):
    out = call("explain", text, "--recipe", recipe, "--dtype", dtype).ok
    assert f"byte {byte} = 0x{byte:02X}" in out
    assert re.search(rf"^payload +0x{code:02X} = ", out, re.MULTILINE)


def test_957_in_bf16_under_floor_shows_every_step():
    lines = [line.rstrip() for line in call("explain", "957", "--recipe", "floor").ok.splitlines()]
    assert lines == [
        "recipe       floor, element e4m3, bf16 input",
        "amax         956; as fp32 0x446F0000 = 0 10001000 11011110000000000000000, "
        "biased exponent 136",
        "rule         floor: max(biased exponent - emax, 0) = max(136 - 8, 0) = 128",
        "scale        byte 128 = 0x80 = 2^1",
        "value        957, rounded to bf16: 956",
        "bits         0x446F = 0 10001000 1101111",
        "scaled       value * 2^-1 = 478",
        "neighbours   0x7E (448), the largest; nothing finite above it in e4m3",
        "taken        0x7E: saturated, above the maximum 448",
        "payload      0x7E = 0 1111 110",
        "dequantized  896, error -60 (-6.27615 % of the value)",
    ]


def test_a_tie_takes_the_even_code():
    out = call("explain", "17", "--block-amax", "448").ok
    assert "neighbours   0x58 (16) and 0x59 (18)" in out
    assert "taken        0x58: a tie, so the even code" in out


@pytest.mark.parametrize("recipe", ["floor", "rceil", "ceil", "even"])
@pytest.mark.parametrize("element", sorted(ELEMENTS))
@pytest.mark.parametrize("dtype", sorted(INPUTS))
def test_the_words_lead_to_the_bytes_of_the_reference(recipe, element, dtype):
    # explain asserts its own integers against both implementations
    fmt = INPUTS[dtype]
    top = fmt.exponent_mask
    patterns = {0, 1, 2, 3, top - 1, top // 2, top // 2 + 1, top // 3, 0x3F80 % top, 0x43FF % top}
    texts = [f"0x{pattern:X}" for pattern in sorted(patterns)]
    for text in texts:
        call("explain", text, "--recipe", recipe, "--element", element, "--dtype", dtype).ok  # noqa: B018
    call("explain", *texts, "--recipe", recipe, "--element", element, "--dtype", dtype).ok  # noqa: B018


def test_several_values_form_one_block():
    out = call("explain", "1", "-3.5", "0.1").ok
    assert "byte 120 = 0x78 = 2^-7" in out
    assert [f"value {n} of 3" in out for n in (1, 2, 3)] == [True] * 3
    assert (
        "0.1, rounded to bf16: 205 * 2^-11 (about 0.100098)" in out
        or "0.1, rounded to bf16: 0.10009765625" in out
    )


def test_a_negative_number_needs_no_dashes_before_it():
    assert call("explain", "-3.5").ok == call("explain", "--", "-3.5").ok


def test_a_number_above_the_format_becomes_inf():
    assert "1e39, rounded to bf16: Inf" in call("explain", "1e39").ok


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["12x"], ["VALUE='12x'", "expected a decimal"]),
        (["0x10000"], ["VALUE='0x10000'", "16 bits"]),
        (["-0x7F80"], ["VALUE='-0x7F80'"]),
        (["1e99999"], ["VALUE='1e99999'"]),
        (["9" * 5000], ["VALUE='999"]),
        ([], ["VALUE"]),
        (["1", "--dtype", "fp8"], ["--dtype='fp8'", "bf16, fp16, fp32"]),
        (["1", "--recipe", "RCEIL"], ["--recipe='RCEIL'", "floor, rceil, ceil, even"]),
        (["1", "--element", "e2m1"], ["--element='e2m1'", "e4m3, e5m2"]),
        (["1", "--block-amax", "x"], ["--block-amax='x'"]),
        (["3", "--block-amax", "2"], ["--block-amax='2'", "VALUE 3 is larger"]),
        (["1", "--recipee", "floor"], ["no such option: --recipee"]),
        (["1"] * 33, ["33 numbers", "32"]),
        (["1"] * 32 + ["--block-amax", "2"], ["33 numbers"]),
    ],
)
def test_a_wrong_call_is_one_line_and_exit_2(arguments, parts):
    line = call("explain", *arguments).wrong
    assert all(part in line for part in parts)


@pytest.mark.parametrize("fmt", [BF16, FP16, FP32], ids=lambda fmt: fmt.name)
def test_parsing_a_values_own_decimals_gives_its_pattern_back(fmt):
    step = 1 if fmt.bits == 16 else 65_537 * 13
    for bits in range(0, fmt.exponent_mask, step * 7):
        number = values.value(bits, fmt)
        assert values.nearest(number, fmt) == bits
        above = values.value(bits + 1, fmt)
        if above is not None:
            # a tie goes to the even pattern, a hair beyond it to the nearer one
            assert values.nearest((number + above) / 2, fmt) == bits + bits % 2
            assert values.nearest((number + above) / 2 + Fraction(1, 2**400), fmt) == bits + 1


def test_numbers_are_shown_exactly():
    assert values.show(Fraction(-7, 2)) == "-3.5"
    assert values.show(Fraction(1, 1024)) == "0.0009765625"
    assert values.show(Fraction(3, 2**150)) == "3 * 2^-150 (about 2.10195e-45)"
    assert values.show(Fraction(0)) == "0"


def test_a_step_that_does_not_lead_to_the_code_is_an_error():
    with pytest.raises(AssertionError, match="do not lead"):
        element_steps.steps(0x3F80, BF16, 127, 0x39, ELEMENTS["e4m3"])
