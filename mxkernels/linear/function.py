"""The linear layer as a function, its dtypes and the checks of its arguments."""

import torch

from mxkernels.linear import op
from mxkernels.linear.config import CastConfig

DTYPES = (torch.bfloat16, torch.float32)
AUTOCAST = (*DTYPES, torch.float16)


def mx_linear(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    config: CastConfig = CastConfig(),  # noqa: B008 - frozen
) -> torch.Tensor:
    """F.linear with every product of MX operands: y = cast(x) @ cast(weight).mT + bias.

    Forward, dgrad and wgrad each cast both operands in blocks of 32 along the dimension they sum
    over, sum in fp32 and round once to bf16; then the bias is added and x's dtype taken. The
    gradient of the cast is that of the identity (straight through); bias' gradient is the plain
    sum. A NaN or Inf makes NaN of all it is multiplied with, as its block has scale 255.

    Args:
        x: (..., in_features), bfloat16 or float32, any strides; under autocast cast to its dtype.
        weight: (out_features, in_features), x's dtype after autocast.
        bias: (out_features,), x's dtype after autocast, or None.
        config: the cast kernels, recipe and matmul; `config.describe` prints what runs.

    Returns (..., out_features) in x's dtype. Runs under torch.compile(fullgraph=True), autocast,
    activation checkpointing and CUDA graphs; differentiable once.

    Raises TypeError or ValueError for a bad argument; NotImplementedError or RuntimeError for a
    choice of `config` that is not built or cannot run. Source: OCP MX v1.0 section 6.2. POLICY:
    straight-through gradient.

    >>> mx_linear(torch.ones(2, 64), torch.full((3, 64), 0.5), torch.ones(3)).tolist()
    [[33.0, 33.0, 33.0], [33.0, 33.0, 33.0]]
    """
    _require(x, weight, bias, config)
    named = {"x": x, "weight": weight} | ({} if bias is None else {"bias": bias})
    named = dict(zip(named, autocast_to(x.device.type, *named.values()), strict=True))
    require_dtypes(named)
    x, weight, bias = named["x"], named["weight"], named.get("bias")
    rows = x[None] if x.dim() == 1 else x.flatten(0, -2)
    needed = needs(rows, weight)
    y = op.linear(rows, weight, *config.names, *needed)[0]
    y = y.view(*x.shape[:-1], weight.shape[0]) if x.dim() != 2 else y
    return y if bias is None else y + bias


def needs(*tensors: torch.Tensor) -> tuple[bool, ...]:
    """Which tensors take part in a gradient that is recorded now."""
    recorded = torch.is_grad_enabled()
    return tuple(recorded and tensor.requires_grad for tensor in tensors)


def autocast_to(device_type: str, *tensors: torch.Tensor) -> list[torch.Tensor]:
    """The tensors in autocast's dtype where it is on, else as they are; it casts no other than the
    three of AUTOCAST."""
    if device_type == "meta" or not torch.is_autocast_enabled(device_type):
        return list(tensors)
    dtype = torch.get_autocast_dtype(device_type)
    return [tensor.to(dtype) if tensor.dtype in AUTOCAST else tensor for tensor in tensors]


def require_dtypes(tensors: dict[str, torch.Tensor]) -> None:
    """TypeError unless all have one dtype, out of DTYPES."""
    (first, x), *_ = tensors.items()
    for name, tensor in tensors.items():
        if tensor.dtype not in DTYPES:
            allowed = ", ".join(map(str, DTYPES))
            raise TypeError(f"{name} has dtype {tensor.dtype}: expected one of {allowed}")
        if tensor.dtype != x.dtype:
            raise TypeError(f"{name} has dtype {tensor.dtype}: expected {x.dtype}, that of {first}")


def _require(x: object, weight: object, bias: object, config: object) -> None:
    if not isinstance(config, CastConfig):
        raise TypeError(f"config={config!r}: expected a CastConfig, got {type(config).__name__}")
    for name, value in (("x", x), ("weight", weight), ("bias", bias)):
        if not isinstance(value, torch.Tensor) and not (name == "bias" and value is None):
            raise TypeError(f"{name}={value!r}: expected a tensor, got {type(value).__name__}")
    if weight.dim() != 2:
        raise ValueError(f"weight has shape {tuple(weight.shape)}: expected two dimensions")
    if x.dim() < 1 or x.shape[-1] != weight.shape[1]:
        raise ValueError(
            f"x has shape {tuple(x.shape)}: expected (..., {weight.shape[1]}) for a weight of "
            f"shape {tuple(weight.shape)}"
        )
    if weight.device != x.device:
        raise ValueError(f"weight is on {weight.device}: expected {x.device}, where x is")
    if bias is not None and tuple(bias.shape) != (weight.shape[0],):
        raise ValueError(f"bias has shape {tuple(bias.shape)}: expected ({weight.shape[0]},)")
