"""The linear layer as a function: three products, each of operands cast along what they sum over.

============  ================  ====================  =======================
product       sums over         left operand          right operand
============  ================  ====================  =======================
forward       in_features, K    x, cast along K       weight, cast along K
dgrad         out_features, N   grad, cast along N    weight, cast along N
wgrad         tokens, M         grad, cast along M    x, cast along M
============  ================  ====================  =======================
"""

from typing import Any

import torch

from mxkernels.linear import cast
from mxkernels.linear.config import CastConfig, products
from mxkernels.matmul import op, table
from mxref import Quantized

DTYPES = (torch.bfloat16, torch.float32)


def backends(
    config: CastConfig, device: torch.device, m: int, n: int, k: int
) -> tuple[str, str, str]:
    """The back ends of forward, dgrad and wgrad."""
    forward, dgrad, wgrad = (
        table.resolve(config.matmul, device, *sizes) for sizes in products(m, n, k).values()
    )
    return forward, dgrad, wgrad


def product(a: Quantized, b: Quantized, backend: str, dtype: torch.dtype) -> torch.Tensor:
    """a @ b.mT in bf16, then in `dtype`."""
    return op.matmul(*a, *b, backend).to(dtype)


class _Linear(torch.autograd.Function):
    """x (M, K), weight (N, K) -> x @ weight.mT; both are saved as they were cast, one byte each."""

    @staticmethod
    def forward(
        ctx: Any, x: torch.Tensor, weight: torch.Tensor, names: tuple[str, str, str, str]
    ) -> torch.Tensor:
        config = CastConfig(*names)
        (m, k), n = x.shape, weight.shape[0]
        chosen = backends(config, x.device, m, n, k)
        forward, dgrad, wgrad = (cast.layout_for(name) for name in chosen)
        need_x, need_weight = ctx.needs_input_grad[:2]
        for layouts in ((forward, dgrad), (dgrad, wgrad)):
            cast.require(config, x.device.type, layouts)
        x, weight = x.detach(), weight.detach()
        saved: list[torch.Tensor] = []
        if need_x:
            weight_rows, kept = cast.both(weight, config, (forward, dgrad))
            saved += kept
        else:
            weight_rows = cast.along(weight, config, forward)
        if need_weight:
            x_rows, kept = cast.both(x, config, (forward, wgrad))
            saved += kept
        else:
            x_rows = cast.along(x, config, forward)
        ctx.save_for_backward(*saved)
        ctx.names, ctx.chosen = names, chosen
        ctx.dtypes = x.dtype, weight.dtype
        return product(x_rows, weight_rows, chosen[0], x.dtype)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        config, (_, dgrad, wgrad) = CastConfig(*ctx.names), ctx.chosen
        need_x, need_weight = ctx.needs_input_grad[:2]
        layouts = cast.layout_for(dgrad), cast.layout_for(wgrad)
        saved = list(ctx.saved_tensors)
        dx = dweight = None
        if need_x and need_weight:
            grad_rows, grad_columns = cast.both(grad, config, layouts)
        elif need_x:
            grad_rows = cast.along(grad, config, layouts[0])
        elif need_weight:
            grad_columns = cast.across(grad, config, layouts[1])
        if need_x:
            weight_columns, saved = Quantized(*saved[:2]), saved[2:]
            dx = product(grad_rows, weight_columns, dgrad, ctx.dtypes[0])
        if need_weight:
            dweight = product(grad_columns, Quantized(*saved), wgrad, ctx.dtypes[1])
        return dx, dweight, None


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
        bias: (out_features,) or None.
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
    x, weight = autocast_to(x.device.type, x, weight)
    require_dtypes({"x": x, "weight": weight})
    if bias is not None:
        bias = bias.to(x.dtype)
    rows = x.reshape(-1, x.shape[-1]) if x.dim() != 2 else x
    names = (config.dim0, config.dim1, config.recipe, config.matmul)
    y = _Linear.apply(rows, weight, names)
    y = y.view(*x.shape[:-1], weight.shape[0]) if x.dim() != 2 else y
    return y if bias is None else y + bias


def autocast_to(device_type: str, *tensors: torch.Tensor) -> list[torch.Tensor]:
    """The tensors in autocast's dtype where it is on, else as they are."""
    if not torch.is_autocast_enabled(device_type):
        return list(tensors)
    dtype = torch.get_autocast_dtype(device_type)
    return [tensor.to(dtype) for tensor in tensors]


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
