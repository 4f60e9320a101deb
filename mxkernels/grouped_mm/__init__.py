"""Products of groups of tokens with experts' weights. README.md of ../linear says how."""

import torch

from mxkernels.grouped_mm import op
from mxkernels.linear.config import CastConfig
from mxkernels.linear.function import autocast_to, needs, require_dtypes

__all__ = ["grouped_mm"]


def grouped_mm(
    x: torch.Tensor,
    w: torch.Tensor,
    offs: torch.Tensor,
    *,
    config: CastConfig = CastConfig(),  # noqa: B008 - frozen
) -> torch.Tensor:
    """Each group of tokens times its own expert's weights, every operand MX: y[t] = x[t] @ w[e].mT.

    Group e holds the tokens from offs[e - 1] (0 for the first) to offs[e]; groups may be empty and
    have any size; y is 0 for tokens past the last end. Forward, dgrad and wgrad each cast both
    operands in blocks of 32 along what they sum over; for wgrad those are a group's own tokens, so
    its blocks begin at the group's first token and the last one is filled with zeros. Sums are fp32
    and rounded once to bf16. An expert without tokens has a gradient of exactly 0.

    Args:
        x: (T, K), bfloat16 or float32; under autocast cast to its dtype.
        w: (E, N, K), x's dtype; quantized by one launch in each direction.
        offs: int32 (E,), non-decreasing exclusive ends on x's device, at most T.
        config: the cast kernels, the recipe and the matmul: "auto" by `table.choose`, "scaled_mm"
            (sm_100 and up), "dequantize" (torch._grouped_mm where it runs, dense products with a
            mask on other GPUs, a loop on the CPU).

    Returns (T, N) in x's dtype. Nothing is read back from a GPU, where ends that decrease or pass T
    give unspecified numbers; the CPU raises ValueError for them. Runs under
    torch.compile(fullgraph=True); differentiable once, in x and w.

    Raises TypeError or ValueError for a bad argument; NotImplementedError or RuntimeError for a
    choice that is not built or cannot run. POLICY: tokens in no group give 0; a partial block of a
    group counts its missing tokens as zeros.

    >>> x, w = torch.ones(5, 64), torch.stack([torch.ones(2, 64), torch.full((2, 64), 2.0)])
    >>> grouped_mm(x, w, torch.tensor([1, 4], dtype=torch.int32)).tolist()
    [[64.0, 64.0], [128.0, 128.0], [128.0, 128.0], [128.0, 128.0], [0.0, 0.0]]
    """
    _require(x, w, offs, config)
    x, w = autocast_to(x.device.type, x, w)
    require_dtypes({"x": x, "w": w})
    return op.grouped_mm(x, w, offs, *config.names, *needs(x, w))[0]


def _require(x: object, w: object, offs: object, config: object) -> None:
    if not isinstance(config, CastConfig):
        raise TypeError(f"config={config!r}: expected a CastConfig, got {type(config).__name__}")
    for name, value in (("x", x), ("w", w), ("offs", offs)):
        if not isinstance(value, torch.Tensor):
            raise TypeError(f"{name}={value!r}: expected a tensor, got {type(value).__name__}")
    if w.dim() != 3 or not w.shape[0]:
        raise ValueError(f"w has shape {tuple(w.shape)}: expected (E, N, K) with E >= 1")
    if x.dim() != 2 or x.shape[1] != w.shape[2]:
        raise ValueError(
            f"x has shape {tuple(x.shape)}: expected (T, {w.shape[2]}) for w {tuple(w.shape)}"
        )
    if offs.dtype != torch.int32:
        raise TypeError(f"offs has dtype {offs.dtype}: expected torch.int32")
    if tuple(offs.shape) != (w.shape[0],):
        raise ValueError(
            f"offs has shape {tuple(offs.shape)}: expected ({w.shape[0]},), one end an expert"
        )
    for name, value in (("w", w), ("offs", offs)):
        if value.device != x.device:
            raise ValueError(f"{name} is on {value.device}: expected {x.device}, where x is")
