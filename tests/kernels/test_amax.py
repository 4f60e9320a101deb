"""Every fp32 amax through the kernels: all scale bytes, and the code of the amax itself.

What is expected comes from thresholds, the least amax of each byte, which mxref finds by bisection;
the code from an exact product and torch's own cast below saturation. Windows that overlap and rows
that repeat hold 32 elements for the memory of one.
"""

import pytest
import torch

import mxref
from mxkernels.registry import KERNELS, find
from tests.kernels.guarded import Way

SPEC = find("quantize", "triton")
SPECS = [spec for spec in KERNELS if spec.op == "quantize" and spec.configs]
INFINITY = 0x7F800000
CHUNK = 1 << 25
BLOCKS = [(1, 32), (32, 1), (32, 32)]


def scale_of(bits, recipe):
    """The scale byte, by mxref, of blocks of one fp32 pattern each."""
    x = bits.to(torch.int32).view(torch.float32)[:, None].expand(-1, 32)
    return mxref.quantize(x, recipe).scale.view(torch.uint8).flatten().long()


def thresholds(recipe):
    """The least fp32 pattern of every byte above 0 that a finite amax reaches."""
    top = int(scale_of(torch.tensor([INFINITY - 1]), recipe))
    byte = torch.arange(1, top + 1)
    low, high = torch.zeros(top, dtype=torch.int64), torch.full((top,), INFINITY - 1)
    while bool((low < high).any()):
        middle = (low + high) // 2
        reached = scale_of(middle, recipe) >= byte
        low, high = torch.where(reached, low, middle + 1), torch.where(reached, middle, high)
    return low


def wanted(bits, edges):
    """Scale byte and code of the amax whose patterns these are (int32, signs off)."""
    byte = torch.bucketize(bits, edges.to(bits), right=True, out_int32=True)
    poisoned = bits >= INFINITY
    byte = torch.where(poisoned, 255, byte)
    factor = ((254 - byte).clamp(min=1) << 23).view(torch.float32)
    value = (bits.view(torch.float32) * factor).clamp(max=448).nan_to_num(0)
    codes = value.to(torch.float8_e4m3fn).view(torch.uint8)
    return byte.to(torch.uint8), torch.where(poisoned, 0x7F, codes)


def signed(bits):
    """Every second pattern negative."""
    return (bits | (bits << 31)).view(torch.float32)


def quantized(bits, block, recipe):
    """Scale byte of each pattern as amax, and the code of its magnitude, by the kernel."""
    count = len(bits)
    if block == (1, 32):
        # Window i ends with pattern i, which is its largest: patterns ascend.
        before = (bits[0] - 31 + torch.arange(31, device=bits.device)).clamp(min=0).to(bits)
        x = signed(torch.cat([before, bits])).as_strided((count, 32), (1, 1))
        payload, scale = SPEC.call(x, recipe, *Way(block))
        code = payload.view(torch.uint8)[:, -1]
    else:
        repeat = 32 if block == (32, 32) else 1
        x = signed(bits).repeat_interleave(repeat).expand(32, -1)
        way = Way(block, "row" if repeat == 1 else "col", "plain")
        payload, scale = SPEC.call(x, recipe, *way)
        code = payload.view(torch.uint8)[17, ::repeat]
    return scale.view(torch.uint8).flatten(), code & 0x7F


def check(first, count, block, recipe, edges, device):
    bits = torch.arange(first, first + count, dtype=torch.int32, device=device)
    byte, code = quantized(bits, block, recipe)
    byte_wanted, code_wanted = wanted(bits, edges)
    for name, left, right in (("scale", byte, byte_wanted), ("code", code, code_wanted)):
        wrong = left != right
        at = first + int(wrong.byte().argmax())
        assert not bool(wrong.any()), f"{name}: {int(wrong.sum())} differ, the first for {at:#x}"


def edges_for(recipe, device):
    return thresholds(recipe).to(torch.int32).to(device)


@pytest.fixture(autouse=True, params=SPECS, ids=lambda spec: spec.name)
def runs(request, device, monkeypatch):
    """Each test once for every spec that takes all blocks, which is SPEC."""
    if request.param.missing(device):
        pytest.skip(request.param.missing(device))
    monkeypatch.setitem(globals(), "SPEC", request.param)


def test_the_thresholds_are_those_of_the_rules():
    assert len(thresholds("floor")) == 246
    rceil = thresholds("rceil")
    assert len(rceil) == 247
    assert int(rceil[120]) == 0x40600001, "3.5 and one ulp: byte 121"


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_amax_around_every_threshold(device, recipe, block):
    """64 patterns on each side, so the mantissas 0 and 0.75 of every binade too.

    A tile of 32 x 32 costs the interpreter 1024 elements: one pattern on each side there.
    """
    edges = edges_for(recipe, device)
    reach = 64 if device == "cuda" or block != (32, 32) else 1
    near = torch.arange(-reach, reach, device=device)
    starts = torch.cat([edges.long(), torch.arange(1, 256, device=device) << 23])
    bits = (starts[:, None] + near).clamp(0, 2**31 - 1).flatten().to(torch.int32)
    if block == (1, 32):
        for part in torch.unique(bits).split(1 << 14):
            ends = part[:, None] - torch.arange(31, -1, -1, device=device)
            x = signed(ends.clamp(min=0).to(torch.int32).contiguous())
            scale = SPEC.call(x, recipe, *Way(block)).scale.view(torch.uint8).flatten()
            assert torch.equal(scale, wanted(part, edges)[0])
    else:
        for part in torch.unique(bits).split(1 << 14):
            byte, code = quantized(part, block, recipe)
            byte_wanted, code_wanted = wanted(part, edges)
            assert torch.equal(byte, byte_wanted)
            assert torch.equal(code, code_wanted)


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_amax_in_a_row(device, recipe, block):
    edges = edges_for(recipe, device)
    for first in (0, 0x04600001 - 100, int(edges[130]) - 100, INFINITY - 100):
        check(first, 200, block, recipe, edges, device)


@pytest.mark.gpu
@pytest.mark.exhaustive
@pytest.mark.parametrize("block", BLOCKS[:2], ids=str)
def test_every_amax(recipe, block):
    edges = edges_for(recipe, "cuda")
    for first in range(0, 1 << 31, CHUNK):
        check(first, CHUNK, block, recipe, edges, "cuda")


@pytest.mark.gpu
@pytest.mark.exhaustive
@pytest.mark.parametrize("exponent", [0, 1, 7, 8, 9, 127, 253, 254])
def test_every_mantissa_of_tiles(recipe, exponent):
    """Binades with both clamps and, at 0, all subnormals."""
    edges = edges_for(recipe, "cuda")
    for first in range(exponent << 23, (exponent + 1) << 23, 1 << 21):
        check(first, 1 << 21, (32, 32), recipe, edges, "cuda")
