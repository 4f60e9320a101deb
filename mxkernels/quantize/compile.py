"""The plain formula in torch operations, compiled by torch.compile: no kernel of our own.

A baseline that a kernel has to beat, and a path for devices that inductor knows. The compiled
region sees int32, uint8 and float tensors only: inductor's C++ has no float8_e8m0fnu.
"""

import functools
import math
from collections.abc import Callable

import torch

from mxkernels.quantize import shapes

RULES = {
    # bits of 2^0 minus bits of the divisor, addend before the shift, 1 for rceil's one exception
    "floor": (0x3F800000 - 0x43800000, 0, 0),
    "ceil": (0x3F800000 - 0x43800000, 0x7FFFFF, 0),
    "even": (0x3F800000 - 0x43800000, 0x80000, 0),
    "rceil": (0x3F800000 - 0x43E00000, 0x7FFFFF, 1),
}


def formula(x: torch.Tensor, rule: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Codes (n, 32) and scale bytes (n,) of blocks (n, 32); `rule` is a row of RULES, int32.

    The rule is data, so that one compilation a dtype serves every rule. No step takes or leaves a
    subnormal that matters: inductor's CPU threads may flush them.
    """
    bits = x.to(torch.float32).view(torch.int32)
    size = bits & 0x7FFFFFFF
    amax = size.amax(dim=-1, keepdim=True)
    t = amax + rule[0]
    t = t - (t == 1).to(torch.int32) * rule[2]
    byte = ((t + rule[1]) >> 23).clamp_min(0)
    poisoned = amax >= 0x7F800000
    byte = torch.where(poisoned, 255, byte)
    return _codes(bits, size, byte, poisoned), byte.squeeze(-1).to(torch.uint8)


def _codes(
    bits: torch.Tensor, size: torch.Tensor, byte: torch.Tensor, poisoned: torch.Tensor
) -> torch.Tensor:
    """The e4m3 codes of |x| = `size` (as bits) times 2^(127 - byte), nearest even, saturating."""
    factor = ((254 - byte).clamp_min(1) << 23).view(torch.float32)
    # |x| of a subnormal is size * 2^-149; together with 2^(127 - byte) that is 2^-(22 + byte).
    # Above byte 100 the product is below 2^-32 and rounds to zero: the limit keeps it normal.
    small = ((105 - byte).clamp_min(1) << 23).view(torch.float32)
    normal = size.view(torch.float32) * factor
    scaled = torch.where(size < 0x00800000, size.to(torch.float32) * small, normal)
    size = scaled.view(torch.int32).clamp_max(0x43E00000)
    code = ((size + 0x7FFFF + ((size >> 20) & 1)) >> 20) - (120 << 3)
    tiny = (scaled + 16384.0).view(torch.int32) - 0x46800000
    code = torch.where(scaled < 2.0**-6, tiny, code) | ((bits >> 24) & 0x80)
    return torch.where(poisoned, 0x7F, code).to(torch.uint8)


@functools.cache
def compiled(dtype: torch.dtype, kind: str) -> Callable[..., tuple[torch.Tensor, torch.Tensor]]:
    """The compiled formula for one dtype and kind of device.

    Dynamo counts recompilations by code object and falls back to eager past its limit: each pair
    gets a code object of its own, sizes are dynamic, and fullgraph makes the limit an error.
    """
    name = f"formula_{str(dtype).removeprefix('torch.')}_{kind}"
    code = formula.__code__.replace(co_name=name)
    fresh = type(formula)(code, formula.__globals__, name)
    return torch.compile(fresh, dynamic=True, fullgraph=True)


@functools.cache
def _rule(recipe: str, device: torch.device) -> torch.Tensor:
    return torch.tensor(RULES[recipe], dtype=torch.int32, device=device)


def swizzled(byte: torch.Tensor) -> torch.Tensor:
    """Scales (..., R, C) in tiles of 128 x 4, padded with zeros, a matrix a row of bytes."""
    matrix = byte.reshape(1, -1) if byte.dim() < 2 else byte
    *lead, rows, columns = matrix.shape
    down, across = -(-rows // 128), -(-columns // 4)
    padded = matrix.new_zeros(*lead, down * 128, across * 4)
    padded[..., :rows, :columns] = matrix
    tiles = padded.view(math.prod(lead), down, 4, 32, across, 4)
    return tiles.permute(0, 1, 4, 3, 2, 5).reshape(*lead, down * across * 512)


def quantize(
    x: torch.Tensor, recipe: str, scale_layout: str = "plain"
) -> tuple[torch.Tensor, torch.Tensor]:
    """Payload and stored scales of `x`, blocks along the last dimension; a ragged x is copied.

    The formula writes plain scales; torch's own operations swizzle them.
    """
    payload, byte = _plain(x, recipe)
    if scale_layout == shapes.SWIZZLE:
        byte = swizzled(byte)
    return payload.view(torch.float8_e4m3fn), byte.view(torch.float8_e8m0fnu)


def _plain(x: torch.Tensor, recipe: str) -> tuple[torch.Tensor, torch.Tensor]:
    rows = shapes.as_rows(x)
    stored = shapes.scale_shape(x.shape, (1, 32))
    pad = -rows.shape[1] % 32
    padded = torch.nn.functional.pad(rows, (0, pad)) if pad else rows
    blocks = padded.reshape(-1, 32)
    count = len(blocks)
    if not count:
        codes = torch.empty(x.shape, dtype=torch.uint8, device=x.device)
        return codes, codes.new_empty(stored)
    if count == 1:
        # A size of 1 is never dynamic; two blocks need no compilation of their own.
        blocks = blocks.expand(2, 32).contiguous()
    # .data is no view of anything: dynamo would guard on the base of a view and recompile.
    with torch.no_grad():
        codes, byte = compiled(x.dtype, x.device.type)(blocks.data, _rule(recipe, x.device))
    codes = codes[:count].view(len(rows), -1)[:, : rows.shape[1]]
    return codes.reshape(x.shape).contiguous(), byte[:count].view(stored)
