"""`assert_matmul_within_bound`: a product of MX operands against float64 and a proved bound."""

import torch
from torch import Tensor

from mxref.blocks import Quantized
from mxref.matmul import matmul
from mxref.shown import shown
from mxref.tiles import Block


def assert_matmul_within_bound(
    found: Tensor,
    a: Quantized,
    b: Quantized,
    *,
    blocks: tuple[Block, Block] = ((1, 32), (32, 1)),
) -> None:
    """AssertionError unless `found` is the product of a and b within `mxref.matmul`'s bound.

    found: (..., M, N), bfloat16, float16 or float32, whose dtype decides the last rounding. NaN
    is asked for where a factor is NaN, and nowhere else where the bound makes a claim; where fp32
    or the dtype may overflow no number is judged. Arguments otherwise as `mxref.matmul`.

    Raises AssertionError naming the worst element, its value, what it should be and the bound;
    TypeError or ValueError for a bad argument.

    >>> import mxref
    >>> q = mxref.quantize(torch.full((1, 64), 3.0))
    >>> b = Quantized(q.payload.mT, q.scale.mT)
    >>> assert_matmul_within_bound(torch.tensor([[576.0]]), q, b)
    >>> assert_matmul_within_bound(torch.tensor([[288.0]]), q, b)
    Traceback (most recent call last):
    AssertionError: 1 of 1 elements; at (0, 0): 288.0, expected 576.0 within 0.00896
    """
    if not isinstance(found, Tensor):
        raise TypeError(f"found={shown(found)}: expected a tensor, got {type(found).__name__}")
    value, bound = matmul(a, b, blocks=blocks, dtype=found.dtype)
    if found.shape != value.shape:
        raise AssertionError(f"shape {tuple(found.shape)}, expected {tuple(value.shape)}")
    number = found.detach().to(torch.float64)
    off = (number - value).abs()
    wrong = torch.where(value.isnan(), ~number.isnan(), ~(off <= bound) & bound.isfinite())
    if not bool(wrong.any()):
        return
    excess = torch.where(wrong, (off / bound).nan_to_num(torch.inf, torch.inf), -1)
    where = tuple(int(i) for i in torch.unravel_index(excess.argmax(), excess.shape))
    raise AssertionError(
        f"{int(wrong.sum())} of {wrong.numel()} elements; at {where}: {number[where].item():.6}, "
        f"expected {value[where].item():.6} within {bound[where].item():.3}"
    )
