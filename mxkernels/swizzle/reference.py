"""backend="reference": mxref.layouts behind the signatures of the ops. Never judged as a kernel."""

import torch

import mxref


def swizzle(
    scale: torch.Tensor, layout: str, block: tuple[int, int], shape: tuple[int, ...], contract: int
) -> torch.Tensor:
    """`mxref.layouts.encode`; contract 0 is None."""
    return mxref.layouts.encode(scale, layout, block=block, shape=shape, contract=contract or None)


def unswizzle(
    stored: torch.Tensor, layout: str, block: tuple[int, int], shape: tuple[int, ...], contract: int
) -> torch.Tensor:
    """`mxref.layouts.decode`; contract 0 is None."""
    return mxref.layouts.decode(stored, layout, block=block, shape=shape, contract=contract or None)


def swizzle_groups(scale: torch.Tensor, offs: torch.Tensor, axis: str) -> torch.Tensor:
    """`mxref.layouts.encode_groups`, which reads and checks the ends on the host."""
    return mxref.layouts.encode_groups(scale, offs, axis=axis)


def unswizzle_groups(
    stored: torch.Tensor, offs: torch.Tensor, axis: str, shape: tuple[int, int]
) -> torch.Tensor:
    """`mxref.layouts.decode_groups`, which reads and checks the ends on the host."""
    return mxref.layouts.decode_groups(stored, offs, axis=axis, shape=shape)
