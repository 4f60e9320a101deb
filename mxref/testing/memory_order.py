"""The orders in which a tensor's elements can lie in memory, and bringing a tensor into one."""

import torch
from torch import Tensor

MEMORY = ("contiguous", "offset", "transposed", "padded", "every other", "repeated")


def in_memory(x: Tensor, order: str) -> Tensor:
    """The same elements in another memory order; "repeated" repeats the first row instead.

    Elements of the storage that are not in the view are NaN, so that reading them is noticed.
    """
    if order not in MEMORY:
        raise ValueError(f"order={order!r}: expected one of {', '.join(map(repr, MEMORY))}")
    if order == "offset":
        storage = x.new_full((x.numel() + 3,), float("nan"))
        view = storage[3:].view(x.shape)
    elif order == "transposed" and x.dim() > 1:
        view = torch.empty_like(x.mT, memory_format=torch.contiguous_format).mT
    elif order == "padded":
        view = x.new_full((*x.shape[:-1], x.shape[-1] + 5), float("nan"))[..., : x.shape[-1]]
    elif order == "every other":
        view = x.new_full((*x.shape[:-1], 2 * x.shape[-1]), float("nan"))[..., ::2]
    elif order == "repeated" and x.dim() > 1 and x.shape[-2] > 0:
        return x[..., :1, :].expand(x.shape)
    else:
        return x.contiguous()
    # a copy of integers: numbers could lose a NaN's payload
    integer = torch.int32 if x.dtype == torch.float32 else torch.int16
    view.view(integer).copy_(x.view(integer))
    return view
