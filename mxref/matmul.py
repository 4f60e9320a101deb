"""matmul: what two MX operands multiply to, in float64, and how far off a kernel may be."""

from typing import NamedTuple

import torch
from torch import Tensor

from mxref.blocks import Quantized, dequantize, scale_bytes_of
from mxref.formats import SCALE_BIAS, SCALE_NAN
from mxref.shown import shown
from mxref.tiles import Block, logical_shape, require_block, require_rank

_UNIT = 2.0**-23
"""Relative error of one fp32 addition, whichever way it rounds; truncation included."""

_TINY = 2.0**-126
"""The smallest normal number of fp32 and bf16: less may be flushed to zero."""

_HUGE = 2.0**128
"""No fp32 or bf16 number is as large."""

_OUTPUT_UNITS = {torch.bfloat16: 2.0**-8, torch.float16: 2.0**-11, torch.float32: 2.0**-24}
_OUTPUT_ENDS = {
    torch.bfloat16: (_TINY, (2.0 - 2.0**-7) * 2.0**127),
    torch.float16: (2.0**-14, 65504.0),
    torch.float32: (_TINY, (2.0 - 2.0**-23) * 2.0**127),
}


class Product(NamedTuple):
    """`value` (float64), NaN where a factor is; `bound` (float64): how far a kernel may be off.

    A bound of Inf means that fp32, or the output's dtype, may overflow on the way: no claim.
    """

    value: Tensor
    bound: Tensor


def matmul(
    a: Quantized,
    b: Quantized,
    *,
    blocks: tuple[Block, Block] = ((1, 32), (32, 1)),
    dtype: torch.dtype = torch.bfloat16,
) -> Product:
    """The product of two MX matrices, and a bound on the error of any fp32-accumulating kernel.

    value = A @ B with A = a.payload * 2^(a.scale - 127), B likewise. The bound holds for a kernel
    that multiplies exact operands, adds in fp32 in any order and rounding direction, in steps of
    any length, and rounds once to `dtype`. With K terms, n = 2 K + 2, u = 2^-23,
    g = n u / (1 - n u), S = sum |a_k| |b_k|, L = the part of S with a factor below 2^-126:

        E = g S + L + 3 K 2^-126 (1 + g);  bound = E + r (|value| + E) + tiny,

    r and tiny being the unit roundoff and the smallest normal number of `dtype`.

    Proof. Products of two such operands have 8 significant bits and are exact unless they
    underflow: each is lost to at most 2^-126, or wholly where a subnormal factor is flushed (L).
    One addition of two fp32 numbers gives (x + y)(1 + d), |d| <= u for every rounding direction,
    or flushes (2^-126). Any tree has K - 1 of them, so a term carries at most K factors (1 + d)
    and |error| <= g S (Higham, Accuracy and Stability, lemma 3.1). An adder that takes k >= 2
    products and the sum so far at once, aligns them to the largest and cuts at its 24th bit, loses
    at most u max|.| for each non-zero addend and u for the result, and max|.| <= the sum of what
    it adds: at most K + 2 ceil(K / 2) <= 2 K + 1 units of S (1 + g) in all, and the step of a
    single product is the tree's. Either way g with n = 2 K + 2 covers it; splitting K into parts
    that are added in fp32 is another tree. The output rounds |sum| <= |value| + E by r, or
    flushes. float64 itself errs by less than K 2^-52 S, which is added.

    Args:
        a: payload (..., M, K) and logical ("plain") scale, e4m3 or e5m2; any strides.
        b: payload (..., K, N); leading dimensions broadcast. A weight (N, K) quantized in (1, 32)
            is Quantized(payload.mT, scale.mT) with block (32, 1).
        blocks: the blocks of a and of b; any of (1, 32), (32, 1), (32, 32) each.
        dtype: bfloat16, float16 or float32, what the kernel returns.

    ====================================  ============  ====================
    row of a or column of b holds         value         bound
    ====================================  ============  ====================
    byte 255 or a NaN code                NaN           Inf (a NaN is asked)
    an Inf (e5m2)                         Inf or NaN    Inf
    a factor >= 2^128, S past dtype       the number    Inf: no claim
    K = 0                                 0             tiny
    ====================================  ============  ====================

    Raises TypeError or ValueError for a bad argument. Source: OCP MX v1.0 section 6.2 (dot
    product). POLICY: flushing and overflow are not judged.

    >>> import mxref
    >>> q = mxref.quantize(torch.full((1, 64), 3.0))
    >>> found = matmul(q, Quantized(q.payload.mT, q.scale.mT))
    >>> found.value.item(), round(found.bound.item(), 3)
    (576.0, 2.259)
    """
    if dtype not in _OUTPUT_UNITS:
        allowed = ", ".join(map(str, _OUTPUT_UNITS))
        raise TypeError(f"dtype={dtype!r}: expected one of {allowed}")
    left = _operand("a", a, blocks, 0)
    right = _operand("b", b, blocks, 1)
    if left.shape[-1] != right.shape[-2]:
        raise ValueError(
            f"b has shape {tuple(right.shape)}: expected (..., {left.shape[-1]}, N), "
            f"for a of shape {tuple(left.shape)}"
        )
    return Product(left @ right, _bound(left, right, dtype))


def _operand(name: str, pair: Quantized, blocks: tuple[Block, Block], which: int) -> Tensor:
    """The values of a pair in float64, where all of them are numbers."""
    if not isinstance(pair, tuple) or len(pair) != 2:
        raise TypeError(
            f"{name}={shown(pair)}: expected a (payload, scale) pair, got {type(pair).__name__}"
        )
    if not isinstance(blocks, (tuple, list)) or len(blocks) != 2:
        raise ValueError(f"blocks={blocks!r}: expected a pair, the block of a and that of b")
    block = require_block(blocks[which])
    payload, scale = pair
    if not isinstance(payload, Tensor):
        raise TypeError(f"{name}.payload={shown(payload)}: expected a tensor")
    codes = scale_bytes_of(scale, f"{name}.scale")
    one = torch.full_like(codes, SCALE_BIAS)
    require_rank(tuple(payload.shape), (32, 1), name)
    if tuple(scale.shape) != (wanted := logical_shape(tuple(payload.shape), block)):
        raise ValueError(
            f"{name}.scale has shape {tuple(scale.shape)}: expected {wanted} for block={block}"
        )
    # 2^(byte - 127), built from the bits of float64; NaN for 255
    bits = (codes.to(torch.int64) - SCALE_BIAS + 1023) << 52
    factor = bits.view(torch.float64).masked_fill(codes == SCALE_NAN, torch.nan)
    for dim, size in zip((-2, -1), block, strict=True):
        factor = factor.repeat_interleave(size, dim).narrow(dim, 0, payload.shape[dim])
    return dequantize(payload, one, block=block).to(torch.float64) * factor


def _bound(a: Tensor, b: Tensor, dtype: torch.dtype) -> Tensor:
    count = a.shape[-1]
    terms = 2 * count + 2
    # from 2^22 terms on nothing is proved: every bound is Inf
    growth = terms * _UNIT / (1 - terms * _UNIT) if terms * _UNIT < 1 else torch.inf
    left, right = a.abs(), b.abs()
    size = left @ right
    small = torch.zeros_like(left).where(left >= _TINY, left)
    little = torch.zeros_like(right).where(right >= _TINY, right)
    lost = small @ right + left @ little
    error = growth * size + lost + 3 * count * _TINY * (1 + growth) + count * 2.0**-52 * size
    unit, (tiny, end) = _OUTPUT_UNITS[dtype], _OUTPUT_ENDS[dtype]
    largest = (a @ b).abs() + error
    bound = error + unit * largest + tiny
    outside = (left >= _HUGE).any(-1)[..., :, None] | (right >= _HUGE).any(-2)[..., None, :]
    claimed = (size + error < _OUTPUT_ENDS[torch.float32][1]) & (largest < end) & ~outside
    return bound.masked_fill(~claimed, torch.inf)
