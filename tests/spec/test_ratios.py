"""The fp32 ratios in integers, against the machine's own fp32 multiply and divide."""

import pytest
import torch

from mxref import bits
from mxref.formats import BF16, ELEMENTS, FP16, FP32

FINITE = 0x7F800000
CHUNK = 1 << 20


def assert_ieee(patterns: torch.Tensor, element: str) -> None:
    """The machine keeps subnormals here: flush-to-zero is off by default."""
    row = ELEMENTS[element]
    amax = patterns.view(torch.float32)
    maximum = torch.tensor(float(row.max_significand * 2.0 ** row.maximum[1]))
    reciprocal = torch.tensor(bits.reciprocal(*row.maximum), dtype=torch.int32).view(torch.float32)
    assert reciprocal == 1 / maximum
    product = bits.product(patterns, bits.reciprocal(*row.maximum))
    assert torch.equal(product, (amax * reciprocal).view(torch.int32))
    quotient = bits.quotient(patterns, *row.maximum, FP32)
    assert torch.equal(quotient, (amax / maximum).view(torch.int32))


@pytest.mark.parametrize("element", list(ELEMENTS))
def test_product_and_quotient_round_as_the_machine_does(element):
    assert_ieee(torch.arange(0, FINITE, 4099, dtype=torch.int64).to(torch.int32), element)
    # around the powers of two and the maximum, and every small subnormal
    points = (torch.arange(0, 255).reshape(-1, 1, 1) << 23) + torch.tensor([[0], [0x600000]])
    near = (points + torch.arange(-40, 41)).clamp(0, FINITE - 1).flatten().to(torch.int32)
    assert_ieee(near, element)
    assert_ieee(torch.arange(1 << 16, dtype=torch.int32), element)


@pytest.mark.exhaustive
@pytest.mark.parametrize("element", list(ELEMENTS))
def test_every_fp32_amax(element):
    count = 0
    for start in range(0, FINITE, CHUNK):
        stop = min(start + CHUNK, FINITE)
        assert_ieee(torch.arange(start, stop, dtype=torch.int64).to(torch.int32), element)
        count += stop - start
    assert count == FINITE


@pytest.mark.parametrize("fmt", [BF16, FP16])
def test_a_quotient_in_another_dtype(fmt):
    """float64 holds the quotient of two 16-bit numbers closely enough to round it once."""
    dtype = getattr(torch, fmt.torch_dtype)
    values = torch.arange(fmt.exponent_mask).to(torch.int16).view(dtype)
    quotient = bits.quotient(values.float().view(torch.int32), 14, 5, fmt).view(torch.float32)
    double = (values.double() / 448).to(dtype)
    assert torch.equal(quotient, double.float())


def test_a_truncated_quotient_would_be_seen():
    patterns = torch.arange(0x3F800000, 0x3F800400, dtype=torch.int32)
    exact = bits.quotient(patterns, 14, 5, FP32)
    assert not torch.equal(exact, bits.quotient(patterns & ~3, 14, 5, FP32))
