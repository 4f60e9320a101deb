"""`torch.ops.mxkernels.grouped_mm` and its gradient, one opaque op each way (as ../linear/op.py).

=========  ==================  ==================================  =============================
product    sums over           left operand                        right operand
=========  ==================  ==================================  =============================
forward    K                   x, cast along K                     w (E, N, K), cast along K
dgrad      N                   grad, cast along N                  w, cast along N
wgrad      a group's tokens    grad, groups padded, along tokens   x, alike
=========  ==================  ==================================  =============================
"""

from typing import Any

import torch

from mxkernels.grouped_mm import products
from mxkernels.grouped_mm.pad import pad_groups, padded_rows
from mxkernels.grouped_mm.table import resolve
from mxkernels.library import once, operator
from mxkernels.linear import cast
from mxkernels.linear.config import CastConfig
from mxkernels.linear.op import as_bytes, as_pair, cast_for
from mxkernels.swizzle.shapes import stored_shape

Two = tuple[torch.Tensor, torch.Tensor]
Six = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]


def _grouped_mm_backward(
    grad: torch.Tensor,
    offs: torch.Tensor,
    w: torch.Tensor,
    w_scale: torch.Tensor,
    x: torch.Tensor,
    x_scale: torch.Tensor,
    ends: torch.Tensor,
    in_features: int,
    dim0: str,
    dim1: str,
    recipe: str,
    matmul: str,
    need_x: bool,
    need_w: bool,
) -> Two:
    (tokens, n), experts = grad.shape, offs.shape[0]
    return (
        grad.new_empty(tokens, in_features) if need_x else grad.new_empty(0),
        grad.new_empty(experts, n, in_features) if need_w else grad.new_empty(0),
    )


@operator("grouped_mm_backward", _grouped_mm_backward, backward=once("grouped_mm"))
def grouped_mm_backward(
    grad: torch.Tensor,
    offs: torch.Tensor,
    w: torch.Tensor,
    w_scale: torch.Tensor,
    x: torch.Tensor,
    x_scale: torch.Tensor,
    ends: torch.Tensor,
    in_features: int,
    dim0: str,
    dim1: str,
    recipe: str,
    matmul: str,
    need_x: bool,
    need_w: bool,
) -> Two:
    """dx (T, K) and dw (E, N, K) from grad (T, N) and what was kept; empty if unneeded."""
    config = CastConfig(dim0, dim1, recipe, matmul)
    backend = resolve(matmul, grad.device, grad.shape[1], in_features)
    dx, dw = grad.new_empty(0), grad.new_empty(0)
    if need_x:
        lines = cast.along(grad, config, "plain")
        dx = products.rows(lines, as_pair(w, w_scale), offs, backend).to(grad.dtype)
    if need_w:
        padded, _ = pad_groups(grad, offs)
        columns = cast.across(padded, config, "plain")
        dw = products.depth(columns, as_pair(x, x_scale), ends, backend).to(grad.dtype)
    return dx, dw


def _grouped_mm(
    x: torch.Tensor,
    w: torch.Tensor,
    offs: torch.Tensor,
    dim0: str,
    dim1: str,
    recipe: str,
    matmul: str,
    need_x: bool,
    need_w: bool,
) -> Six:
    (tokens, k), (experts, n, _) = x.shape, w.shape
    w_kept = x_kept = as_bytes(None, x)
    ends = offs.new_empty(experts if need_w else 0)
    if need_x:
        shape = experts, k, n
        scale = stored_shape(shape, cast.LAYOUT, (1, 32), -1)
        w_kept = x.new_empty(shape, dtype=torch.uint8), x.new_empty(scale, dtype=torch.uint8)
    if need_w:
        shape = k, padded_rows(tokens, experts)
        scale = stored_shape(shape, "plain", (1, 32), -1)
        x_kept = x.new_empty(shape, dtype=torch.uint8), x.new_empty(scale, dtype=torch.uint8)
    return (x.new_empty(tokens, n), *w_kept, *x_kept, ends)


def _setup(ctx: Any, inputs: tuple[Any, ...], output: Six) -> None:
    ctx.save_for_backward(inputs[2], *output[1:])
    ctx.in_features, ctx.rest = inputs[0].shape[1], inputs[3:]


def _backward(ctx: Any, grad: torch.Tensor, *_: Any) -> tuple[torch.Tensor | None, ...]:
    need_x, need_w = ctx.rest[-2:]
    dx, dw = grouped_mm_backward(grad, *ctx.saved_tensors, ctx.in_features, *ctx.rest)
    return dx if need_x else None, dw if need_w else None, None, *[None] * len(ctx.rest)


@operator("grouped_mm", _grouped_mm, backward=_backward, setup=_setup)
def grouped_mm(
    x: torch.Tensor,
    w: torch.Tensor,
    offs: torch.Tensor,
    dim0: str,
    dim1: str,
    recipe: str,
    matmul: str,
    need_x: bool,
    need_w: bool,
) -> Six:
    """The product (T, N), w cast along N, x padded and cast along tokens, the padded ends."""
    config = CastConfig(dim0, dim1, recipe, matmul)
    backend = resolve(matmul, x.device, w.shape[1], w.shape[2])
    for layout in ("plain", cast.LAYOUT):
        cast.require(config, x.device, layout)
    rows, w_kept = cast_for(w, config, turned=need_x)
    x_kept, ends = None, offs.new_empty(0)
    if need_w:
        padded, ends = pad_groups(x, offs)
        x_kept = cast.across(padded, config, "plain")
    y = products.rows(cast.along(x, config, "plain"), rows, offs, backend).to(x.dtype)
    return (y, *as_bytes(w_kept, x), *as_bytes(x_kept, x), ends)
