"""The grouped product as a function with gradients.

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

from mxkernels.grouped_mm import op
from mxkernels.grouped_mm.pad import pad_groups
from mxkernels.grouped_mm.table import find, resolve
from mxkernels.linear import cast
from mxkernels.linear.config import CastConfig


class _Grouped(torch.autograd.Function):
    """x (T, K), w (E, N, K), offs (E,) -> (T, N)."""

    @staticmethod
    def forward(
        ctx: Any,
        x: torch.Tensor,
        w: torch.Tensor,
        offs: torch.Tensor,
        names: tuple[str, str, str, str],
    ) -> torch.Tensor:
        config = CastConfig(*names)
        backend = resolve(config.matmul, x.device, w.shape[1], w.shape[2])
        layout = find(backend).weight_layout
        cast.require(config, x.device.type, ("plain", "plain"))
        cast.require(config, x.device.type, (layout, layout))
        need_x, need_w = ctx.needs_input_grad[:2]
        x, w = x.detach(), w.detach()
        saved: list[torch.Tensor] = []
        if need_x:
            rows, kept = cast.both(w, config, (layout, layout))
            saved += kept
        else:
            rows = cast.along(w, config, layout)
        if need_w:
            padded, ends = pad_groups(x, offs)
            saved += [*cast.across(padded, config, "plain"), ends]
        ctx.save_for_backward(offs, *saved)
        ctx.names, ctx.backend, ctx.dtypes = names, backend, (x.dtype, w.dtype)
        a = cast.along(x, config, "plain")
        return op.grouped_rows(*a, *rows, offs, backend).to(x.dtype)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        config = CastConfig(*ctx.names)
        offs, *saved = ctx.saved_tensors
        dx = dw = None
        if ctx.needs_input_grad[0]:
            a = cast.along(grad, config, "plain")
            dx = op.grouped_rows(*a, saved[0], saved[1], offs, ctx.backend).to(ctx.dtypes[0])
            saved = saved[2:]
        if ctx.needs_input_grad[1]:
            payload, scale, ends = saved
            padded, _ = pad_groups(grad, offs)
            a = cast.across(padded, config, "plain")
            product = op.grouped_depth(*a, payload, scale, ends, ctx.backend)
            dw = product.to(ctx.dtypes[1])
        return dx, dw, None, None


def apply(x: torch.Tensor, w: torch.Tensor, offs: torch.Tensor, config: CastConfig) -> torch.Tensor:
    """The product of checked arguments."""
    return _Grouped.apply(x, w, offs, (config.dim0, config.dim1, config.recipe, config.matmul))
