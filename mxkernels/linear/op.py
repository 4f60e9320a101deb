"""`torch.ops.mxkernels.linear` and its gradient: three products, each cast along what it sums over.

============  ================  ====================  =======================
product       sums over         left operand          right operand
============  ================  ====================  =======================
forward       in_features, K    x, cast along K       weight, cast along K
dgrad         out_features, N   grad, cast along N    weight, cast along N
wgrad         tokens, M         grad, cast along M    x, cast along M
============  ================  ====================  =======================

One opaque op each way: a graph that torch.compile captures holds no float8 tensor, which inductor
serves in some versions and on some devices only, and what has to be known of the machine is asked
outside of the graph. What the backward needs is kept as it was cast, one byte an element, as bytes.
"""

from typing import Any

import torch

from mxkernels.library import once, operator
from mxkernels.linear import cast
from mxkernels.linear.config import CastConfig, products
from mxkernels.matmul import op, table
from mxkernels.swizzle.shapes import stored_shape
from mxref import Quantized

Two = tuple[torch.Tensor, torch.Tensor]
Five = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]


def backends(matmul: str, device: torch.device, m: int, n: int, k: int) -> tuple[str, str, str]:
    """The back ends of forward, dgrad and wgrad."""
    forward, dgrad, wgrad = (
        table.resolve(matmul, device, *sizes) for sizes in products(m, n, k).values()
    )
    return forward, dgrad, wgrad


def product(a: Quantized, b: Quantized, backend: str, dtype: torch.dtype) -> torch.Tensor:
    """a @ b.mT in bf16, then in `dtype`."""
    return op.matmul(*a, *b, backend).to(dtype)


def as_bytes(pair: Quantized | None, x: torch.Tensor) -> Two:
    """Payload and scale as bytes; two empty tensors, on the device of x, for None."""
    if pair is None:
        return x.new_empty(0, dtype=torch.uint8), x.new_empty(0, dtype=torch.uint8)
    return pair.payload.view(torch.uint8), pair.scale.view(torch.uint8)


def as_pair(payload: torch.Tensor, scale: torch.Tensor) -> Quantized:
    """The reverse of `as_bytes`."""
    return Quantized(payload.view(torch.float8_e4m3fn), scale.view(torch.float8_e8m0fnu))


def cast_for(
    x: torch.Tensor, config: CastConfig, *, turned: bool
) -> tuple[Quantized, Quantized | None]:
    """x cast along its last dimension, and where `turned` along the one before."""
    if turned:
        return cast.both(x, config)
    return cast.along(x, config), None


def _linear_backward(
    grad: torch.Tensor,
    weight: torch.Tensor,
    weight_scale: torch.Tensor,
    x: torch.Tensor,
    x_scale: torch.Tensor,
    in_features: int,
    dim0: str,
    dim1: str,
    recipe: str,
    matmul: str,
    need_x: bool,
    need_weight: bool,
) -> Two:
    m, n = grad.shape
    return (
        grad.new_empty(m, in_features) if need_x else grad.new_empty(0),
        grad.new_empty(n, in_features) if need_weight else grad.new_empty(0),
    )


@operator("linear_backward", _linear_backward, backward=once("mx_linear"))
def linear_backward(
    grad: torch.Tensor,
    weight: torch.Tensor,
    weight_scale: torch.Tensor,
    x: torch.Tensor,
    x_scale: torch.Tensor,
    in_features: int,
    dim0: str,
    dim1: str,
    recipe: str,
    matmul: str,
    need_x: bool,
    need_weight: bool,
) -> Two:
    """dx (M, K) and dweight (N, K) from grad (M, N) and what was kept; empty if unneeded."""
    config = CastConfig(dim0, dim1, recipe, matmul)
    (m, n), k = grad.shape, in_features
    _, dgrad, wgrad = backends(matmul, grad.device, m, n, k)
    dx = dweight = None
    if need_x and need_weight:
        rows, columns = cast.both(grad, config)
    elif need_x:
        rows = cast.along(grad, config)
    elif need_weight:
        columns = cast.across(grad, config)
    if need_x:
        dx = product(rows, as_pair(weight, weight_scale), dgrad, grad.dtype)
    if need_weight:
        dweight = product(columns, as_pair(x, x_scale), wgrad, grad.dtype)
    return (grad.new_empty(0) if dx is None else dx), (
        grad.new_empty(0) if dweight is None else dweight
    )


def _kept(x: torch.Tensor, kept: bool) -> Two:
    """Empty bytes of an x (R, C) cast along R, as `cast.across` gives them."""
    if not kept:
        return as_bytes(None, x)
    shape = x.shape[1], x.shape[0]
    scale = stored_shape(shape, cast.LAYOUT, (1, 32), -1)
    return x.new_empty(shape, dtype=torch.uint8), x.new_empty(scale, dtype=torch.uint8)


def _linear(
    x: torch.Tensor,
    weight: torch.Tensor,
    dim0: str,
    dim1: str,
    recipe: str,
    matmul: str,
    need_x: bool,
    need_weight: bool,
) -> Five:
    y = x.new_empty(x.shape[0], weight.shape[0])
    return (y, *_kept(weight, need_x), *_kept(x, need_weight))


def _setup(ctx: Any, inputs: tuple[Any, ...], output: Five) -> None:
    ctx.save_for_backward(*output[1:])
    ctx.in_features, ctx.rest = inputs[0].shape[1], inputs[2:]


def _backward(ctx: Any, grad: torch.Tensor, *_: Any) -> tuple[torch.Tensor | None, ...]:
    need_x, need_weight = ctx.rest[-2:]
    dx, dweight = linear_backward(grad, *ctx.saved_tensors, ctx.in_features, *ctx.rest)
    return dx if need_x else None, dweight if need_weight else None, *[None] * len(ctx.rest)


@operator("linear", _linear, backward=_backward, setup=_setup)
def linear(
    x: torch.Tensor,
    weight: torch.Tensor,
    dim0: str,
    dim1: str,
    recipe: str,
    matmul: str,
    need_x: bool,
    need_weight: bool,
) -> Five:
    """x (M, K), weight (N, K) -> x @ weight.mT, the weight cast along N, x cast along M."""
    config = CastConfig(dim0, dim1, recipe, matmul)
    forward = backends(matmul, x.device, x.shape[0], *weight.shape)[0]
    cast.require(config, x.device)
    weight_rows, weight_kept = cast_for(weight, config, turned=need_x)
    x_rows, x_kept = cast_for(x, config, turned=need_weight)
    y = product(x_rows, weight_rows, forward, x.dtype)
    return (y, *as_bytes(weight_kept, x), *as_bytes(x_kept, x))
