"""`torch.ops.mxkernels.grouped_rows` and `grouped_depth`: schemas, fakes, the back ends."""

import torch

from mxkernels.grouped_mm.backend import Backend
from mxkernels.grouped_mm.table import find


def _ready(backend: str, device: torch.device, n: int, k: int) -> Backend:
    chosen = find(backend)
    lacking = chosen.missing(device)
    if lacking:
        raise RuntimeError(f"backend={backend!r} cannot run here: {lacking}")
    refused = chosen.refuses(n, k)
    if refused:
        raise ValueError(f"backend={backend!r}: {refused}")
    return chosen


@torch.library.custom_op("mxkernels::grouped_rows", mutates_args=())
def grouped_rows(
    a: torch.Tensor,
    a_scale: torch.Tensor,
    b: torch.Tensor,
    b_scale: torch.Tensor,
    offs: torch.Tensor,
    backend: str,
) -> torch.Tensor:
    """a (T, K) by b (E, N, K) in groups of rows, bf16 (T, N); rows past the last end are 0."""
    chosen = _ready(backend, a.device, b.shape[1], b.shape[2])
    if not a.numel() or not b.numel():
        return torch.zeros(a.shape[0], b.shape[1], dtype=torch.bfloat16, device=a.device)
    operands = (part.contiguous() for part in (a, a_scale, b, b_scale, offs))
    out = chosen.rows(*operands)
    past = torch.arange(len(a), device=a.device) >= offs[-1]
    return out.masked_fill_(past[:, None], 0)


@grouped_rows.register_fake
def _rows(
    a: torch.Tensor,
    a_scale: torch.Tensor,
    b: torch.Tensor,
    b_scale: torch.Tensor,
    offs: torch.Tensor,
    backend: str,
) -> torch.Tensor:
    return torch.empty(a.shape[0], b.shape[1], dtype=torch.bfloat16, device=a.device)


@torch.library.custom_op("mxkernels::grouped_depth", mutates_args=())
def grouped_depth(
    a: torch.Tensor,
    a_scale: torch.Tensor,
    b: torch.Tensor,
    b_scale: torch.Tensor,
    ends: torch.Tensor,
    backend: str,
) -> torch.Tensor:
    """a (N, P) by b (K, P) over groups of columns, bf16 (E, N, K)."""
    chosen = _ready(backend, a.device, a.shape[0], b.shape[0])
    if not a.numel() or not b.numel():
        shape = ends.shape[0], a.shape[0], b.shape[0]
        return torch.zeros(shape, dtype=torch.bfloat16, device=a.device)
    operands = (part.contiguous() for part in (a, a_scale, b, b_scale, ends))
    return chosen.depth(*operands)


@grouped_depth.register_fake
def _depth(
    a: torch.Tensor,
    a_scale: torch.Tensor,
    b: torch.Tensor,
    b_scale: torch.Tensor,
    ends: torch.Tensor,
    backend: str,
) -> torch.Tensor:
    shape = ends.shape[0], a.shape[0], b.shape[0]
    return torch.empty(shape, dtype=torch.bfloat16, device=a.device)
