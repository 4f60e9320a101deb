"""Operators of `torch.ops.mxkernels`: a schema read off a function, its fake, its gradient.

Through torch.library.Library, not custom_op: that one loads dynamo and inductor at the first call,
three seconds and more, and costs a call twice as much.
"""

from collections.abc import Callable
from typing import Any

import torch

LIBRARY = torch.library.Library("mxkernels", "FRAGMENT")

Function = Callable[..., Any]


def once(name: str) -> Function:
    """The backward of a backward: a RuntimeError, where torch would give zeros without a word.

    torch does not ask for it where the incoming gradient is not recorded: zeros all the same.
    """

    def backward(ctx: Any, *grads: torch.Tensor) -> None:
        raise RuntimeError(f"{name} is differentiable once: a gradient of its gradient was asked")

    return backward


def operator(
    name: str, fake: Function, *, backward: Function | None = None, setup: Function | None = None
) -> Callable[[Function], Any]:
    """Define `torch.ops.mxkernels.<name>` by the decorated function, which changes no argument.

    `fake` gives empty outputs of the right shapes and strides; `backward` and `setup` are those of
    torch.library.register_autograd. The name then stands for the operator.
    """

    def define(function: Function) -> Any:
        LIBRARY.define(name + torch.library.infer_schema(function, mutates_args=()))
        LIBRARY.impl(name, function, "CompositeExplicitAutograd")
        qualified = f"mxkernels::{name}"
        torch.library.register_fake(qualified, fake, lib=LIBRARY)
        if backward is not None:
            torch.library.register_autograd(qualified, backward, setup_context=setup, lib=LIBRARY)
        return getattr(torch.ops.mxkernels, name).default

    return define
