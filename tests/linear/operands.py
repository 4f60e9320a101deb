"""MX operands and plain tensors by the name of what they hold and a seed."""

import torch
from hypothesis import settings
from hypothesis import strategies as st

import mxref
from mxref import Quantized

FILLS = ("usual", "bytes 0 to 4", "large bytes", "any byte", "nan codes", "quantized")
VALUES = ("randn", "wide", "nonfinite", "zeros", "tiny")
SIZES = st.integers(0, 80)
EXAMPLES = settings.default.max_examples * 2 // 5
"""Fewer than the profile asks for: each example is judged several times."""


def operand(rows, depth, fill, seed, device="cpu"):
    """Codes and scales of blocks (1, 32); only "quantized" is what a quantizer would give."""
    generator = torch.Generator().manual_seed(seed)
    if fill == "quantized":
        x = tensor((rows, depth), "nonfinite", seed)
        pair = mxref.quantize(x)
        return Quantized(*(part.to(device) for part in pair))
    codes = torch.randint(0, 256, (rows, depth), dtype=torch.uint8, generator=generator)
    if fill != "nan codes":
        codes = torch.where(codes & 0x7F == 0x7F, codes - 1, codes)
    ends = {"bytes 0 to 4": (0, 5), "large bytes": (225, 247), "any byte": (0, 256)}
    low, high = ends.get(fill, (118, 137))
    shape = rows, -(-depth // 32)
    scale = torch.randint(low, high, shape, dtype=torch.uint8, generator=generator)
    return Quantized(
        codes.to(device).view(torch.float8_e4m3fn), scale.to(device).view(torch.float8_e8m0fnu)
    )


def tensor(shape, values, seed, dtype=torch.bfloat16, device="cpu"):
    """Numbers, or numbers with a few NaN and Inf among them."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(shape, generator=generator)
    if values == "wide":
        x = x * torch.randint(-20, 21, shape, generator=generator).to(torch.float32).exp2()
    if values == "tiny":
        x = x * 2.0**-130
    if values == "zeros":
        x = x * 0.0
    if values == "nonfinite":
        rare = torch.rand(shape, generator=generator)
        x = x.masked_fill(rare < 0.01, torch.nan).masked_fill(rare > 0.99, -torch.inf)
    return x.to(dtype).to(device)


def turned(pair):
    """(rows, depth) in blocks (1, 32) as (depth, rows) in blocks (32, 1), or the reverse."""
    return Quantized(pair.payload.mT, pair.scale.mT)
