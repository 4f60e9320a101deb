"""The two products in groups, by the back end that was chosen: what is empty, what is past."""

import torch

from mxkernels.grouped_mm.backend import Backend
from mxkernels.grouped_mm.table import find
from mxref import Quantized


def _ready(backend: str, device: torch.device, n: int, k: int) -> Backend:
    chosen = find(backend)
    lacking = chosen.missing(device)
    if lacking:
        raise RuntimeError(f"backend={backend!r} cannot run here: {lacking}")
    refused = chosen.refuses(n, k)
    if refused:
        raise ValueError(f"backend={backend!r}: {refused}")
    return chosen


def rows(a: Quantized, b: Quantized, offs: torch.Tensor, backend: str) -> torch.Tensor:
    """a (T, K) by b (E, N, K) in groups of rows, bf16 (T, N); rows past the last end are 0."""
    tokens, (_, n, k) = a.payload.shape[0], b.payload.shape
    device = a.payload.device
    chosen = _ready(backend, device, n, k)
    if not a.payload.numel() or not b.payload.numel():
        return torch.zeros(tokens, n, dtype=torch.bfloat16, device=device)
    out = chosen.rows(*(part.contiguous() for part in (*a, *b, offs)))
    past = torch.arange(tokens, device=device) >= offs[-1]
    return out.masked_fill_(past[:, None], 0)


def depth(a: Quantized, b: Quantized, ends: torch.Tensor, backend: str) -> torch.Tensor:
    """a (N, P) by b (K, P) over groups of columns, bf16 (E, N, K)."""
    n, k = a.payload.shape[0], b.payload.shape[0]
    device = a.payload.device
    chosen = _ready(backend, device, n, k)
    if not a.payload.numel() or not b.payload.numel():
        return torch.zeros(ends.shape[0], n, k, dtype=torch.bfloat16, device=device)
    return chosen.depth(*(part.contiguous() for part in (*a, *b, ends)))
