"""`torch.ops.mxkernels.matmul`: the schema, its fake kernel, and the way to each back end."""

import torch

from mxkernels.library import operator
from mxkernels.matmul.table import find


def _fake(
    a: torch.Tensor,
    a_scale: torch.Tensor,
    b: torch.Tensor,
    b_scale: torch.Tensor,
    backend: str,
    config: int = -1,
) -> torch.Tensor:
    """An empty product."""
    return torch.empty(a.shape[0], b.shape[0], dtype=torch.bfloat16, device=a.device)


@operator("matmul", _fake)
def matmul(
    a: torch.Tensor,
    a_scale: torch.Tensor,
    b: torch.Tensor,
    b_scale: torch.Tensor,
    backend: str,
    config: int = -1,
) -> torch.Tensor:
    """a @ b.mT in bf16; arguments are checked by `mxkernels.matmul`."""
    chosen = find(backend)
    lacking = chosen.missing(a.device)
    if lacking:
        raise RuntimeError(f"backend={backend!r} cannot run here: {lacking}")
    refused = chosen.refuses(a.shape[0], b.shape[0], a.shape[1])
    if refused:
        raise ValueError(f"backend={backend!r}: {refused}")
    if not a.numel() or not b.numel():
        return torch.zeros(a.shape[0], b.shape[0], dtype=torch.bfloat16, device=a.device)
    operands = (part.contiguous() for part in (a, a_scale, b, b_scale))
    return chosen.call(*operands, config)
