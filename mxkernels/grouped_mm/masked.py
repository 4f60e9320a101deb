"""Back end "masked": one dense product an expert, of which each row keeps its own group's.

No end is read back, at the price of E times the arithmetic: for sizes and GPUs that
torch._grouped_mm does not serve.
"""

import torch

from mxkernels.grouped_mm.backend import Backend
from mxkernels.matmul.dequantize import fp32_sums, missing, values


def refuses(n: int, k: int) -> str | None:
    """Nothing is refused."""
    return None


def members(ends: torch.Tensor, size: int) -> torch.Tensor:
    """Which of `size` positions each group holds: bool (E, size).

    >>> members(torch.tensor([1, 1, 3], dtype=torch.int32), 4).int().tolist()
    [[1, 0, 0, 0], [0, 0, 0, 0], [0, 1, 1, 0]]
    """
    place = torch.arange(size, device=ends.device)
    starts = torch.cat([ends.new_zeros(1), ends[:-1]])
    return (place >= starts[:, None]) & (place < ends[:, None])


def rows(
    a: torch.Tensor,
    a_scale: torch.Tensor,
    b: torch.Tensor,
    b_scale: torch.Tensor,
    offs: torch.Tensor,
) -> torch.Tensor:
    """The product of groups of rows."""
    left, right = values(a, a_scale), values(b, b_scale)
    out = torch.zeros(a.shape[0], b.shape[1], dtype=torch.bfloat16, device=a.device)
    with fp32_sums():
        for member, weight in zip(members(offs, len(a)), right, strict=True):
            out = torch.where(member[:, None], (left @ weight.mT).to(torch.bfloat16), out)
    return out


def depth(
    a: torch.Tensor,
    a_scale: torch.Tensor,
    b: torch.Tensor,
    b_scale: torch.Tensor,
    ends: torch.Tensor,
) -> torch.Tensor:
    """The product over groups of columns."""
    left, right = values(a, a_scale), values(b, b_scale)
    parts = []
    with fp32_sums():
        for member in members(ends, a.shape[1]):
            # Both, because a NaN of another group times zero would be NaN.
            one, two = torch.where(member, left, 0), torch.where(member, right, 0)
            parts.append((one @ two.mT).to(torch.bfloat16))
    return torch.stack(parts)


BACKEND = Backend("masked", missing, refuses, rows, depth)
