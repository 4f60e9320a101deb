"""One input of a fuzz run with its place in memory: on another device, and as a snippet."""

import torch
from torch import Tensor

from mxref.recipes import RECIPES
from mxref.testing.claims import Claims
from mxref.testing.reproducer import _head


def on_device(x: Tensor, device: torch.device) -> Tensor:
    """x on a device in the same place of the same storage: strides, offset and what lies between.

    >>> on_device(torch.arange(12.0)[1::3], torch.device("cpu")).stride()
    (3,)
    """
    whole = x.new_empty(0).set_(x.untyped_storage()) if x.is_cpu else x
    return whole.to(device).as_strided(x.shape, x.stride(), x.storage_offset())


def reproducer(name: str, claims: Claims, x: Tensor) -> str:
    """A snippet that asks the target about x, its memory order included, and compares bytes."""
    integer = "int32" if x.dtype == torch.float32 else "int16"
    storage = x.new_empty(0).set_(x.untyped_storage()).view(getattr(torch, integer)).tolist()
    known = RECIPES.get(claims.recipe.name) == claims.recipe
    recipe = repr(claims.recipe.name) if known else f"mxref.{claims.recipe!r}"
    last = claims.element.inf_code or claims.element.nan_code - 1
    place = f"{tuple(x.shape)}, {x.stride()}, {x.storage_offset()}"
    own = f"block={claims.block}, shape=tuple(x.shape), contract={claims.contract}"
    return (
        f"{_head(name)}storage = torch.tensor({storage}, dtype=torch.{integer}).view({x.dtype})\n"
        f"x = storage.to({str(claims.device)!r}).as_strided({place})\n"
        f"expected, scales = mxref.quantize(x, {recipe}, block={claims.block})\n"
        f"scales = mxref.layouts.encode(scales, {claims.scale_layout!r}, {own})\n"
        "payload, scale = target(x)\n"
        "codes, wanted = payload.view(torch.uint8), expected.view(torch.uint8)\n"
        + (
            f"codes = codes.masked_fill((codes & 0x7F) > {last}, 0x7F)  # any NaN code\n"
            if claims.nan == "any"
            else ""
        )
        + "print('scale  ', scale.view(torch.uint8).flatten().tolist())\n"
        "print('expected', scales.view(torch.uint8).flatten().tolist())\n"
        "print('payload', codes.tolist())\nprint('expected', wanted.tolist())\n"
        "same = scale.view(torch.uint8).flatten().equal(scales.view(torch.uint8).flatten())\n"
        "assert same and codes.equal(wanted), 'bytes differ'\n"
    )
