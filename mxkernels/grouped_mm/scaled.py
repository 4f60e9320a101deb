"""Back end "scaled_mm": MX tensor cores of sm_100 and up, through torch._scaled_grouped_mm.

Scales of a matrix are swizzled group by group (M groups of rows, K groups of columns), those of
the weights one expert at a time, as the quantizer wrote them. No GPU with it was at hand: shapes
and layouts are checked by fake tensors, results were not seen.
"""

import torch

from mxkernels.grouped_mm.backend import Backend
from mxkernels.matmul.scaled_mm import missing
from mxkernels.swizzle.op import swizzle_groups


def refuses(n: int, k: int) -> str | None:
    """A line for sizes that torch refuses, or None; either may be summed over."""
    if n % 32 or k % 32:
        return f"K={k}, N={n}: both must be multiples of 32"
    return None


def rows(
    a: torch.Tensor,
    a_scale: torch.Tensor,
    b: torch.Tensor,
    b_scale: torch.Tensor,
    offs: torch.Tensor,
) -> torch.Tensor:
    """The product of groups of rows."""
    scale = swizzle_groups(a_scale, offs, "triton", "M")
    return torch._scaled_grouped_mm(a, b.mT, scale, b_scale, offs=offs, out_dtype=torch.bfloat16)


def depth(
    a: torch.Tensor,
    a_scale: torch.Tensor,
    b: torch.Tensor,
    b_scale: torch.Tensor,
    ends: torch.Tensor,
) -> torch.Tensor:
    """The product over groups of columns."""
    blocks = ends // 32
    left, right = (swizzle_groups(scale, blocks, "triton", "K") for scale in (a_scale, b_scale))
    return torch._scaled_grouped_mm(a, b.mT, left, right, offs=ends, out_dtype=torch.bfloat16)


BACKEND = Backend("scaled_mm", missing, refuses, rows, depth)
