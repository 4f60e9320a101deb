"""Back end "loop": one product a group, for a CPU, where the ends can be read for nothing."""

from itertools import pairwise

import torch

from mxkernels.grouped_mm.backend import Backend
from mxkernels.grouped_mm.masked import refuses
from mxkernels.matmul.dequantize import fp32_sums, values


def missing(device: torch.device) -> str | None:
    """Why the ends must not be read on `device`, or None."""
    return None if device.type == "cpu" else f"device {str(device)!r}: 'loop' reads ends on the CPU"


def spans(ends: torch.Tensor, size: int) -> list[tuple[int, int]]:
    """The half-open span of each group; ValueError for ends that decrease or leave the matrix.

    >>> spans(torch.tensor([1, 1, 3], dtype=torch.int32), 4)
    [(0, 1), (1, 1), (1, 3)]
    """
    found = [0, *ends.tolist()]
    if found != sorted(found) or found[-1] > size:
        raise ValueError(f"offs={found[1:]}: expected non-decreasing ends from 0 to {size}")
    return list(pairwise(found))


def rows(
    a: torch.Tensor,
    a_scale: torch.Tensor,
    b: torch.Tensor,
    b_scale: torch.Tensor,
    offs: torch.Tensor,
) -> torch.Tensor:
    """The product of groups of rows."""
    left, right = values(a, a_scale), values(b, b_scale)
    out = torch.zeros(a.shape[0], b.shape[1], dtype=torch.bfloat16)
    with fp32_sums():
        for (first, last), weight in zip(spans(offs, len(a)), right, strict=True):
            out[first:last] = (left[first:last] @ weight.mT).to(torch.bfloat16)
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
    with fp32_sums():
        found = [
            (left[:, first:last] @ right[:, first:last].mT).to(torch.bfloat16)
            for first, last in spans(ends, a.shape[1])
        ]
    return torch.stack(found)


BACKEND = Backend("loop", missing, refuses, rows, depth)
