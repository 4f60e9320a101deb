"""What a user would otherwise write: the plain formula in PyTorch, under torch.compile.

A fresh function for each case: dynamo counts recompilations by code object and past its limit
silently runs eager code. Sizes are static, which is the best the compiler can be given.
"""

from collections.abc import Callable
from types import FunctionType
from typing import Any

import torch

from mxref import Quantized

RULES = ("floor", "rceil")


def blocks_of_32(x: torch.Tensor, recipe: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Payload and scale bytes of blocks along the last dimension, in floats where that is exact."""
    blocks = x.unflatten(-1, (-1, 32)).to(torch.float32)
    amax = blocks.abs().amax(-1, keepdim=True)
    poisoned = amax.view(torch.int32) >= 0x7F800000
    if recipe == "rceil":
        byte = ((amax * (1 / 448)).view(torch.int32) + 0x7FFFFF) >> 23
    else:
        byte = (amax.view(torch.int32) >> 23) - 8
    byte = byte.clamp_min(0)
    factor = torch.where(poisoned, 0x7FC00000, (254 - byte) << 23).view(torch.float32)
    payload = (blocks * factor).clamp(-448, 448).to(torch.float8_e4m3fn)
    byte = torch.where(poisoned, 255, byte).to(torch.uint8)
    return payload.flatten(-2), byte.squeeze(-1)


def plain(recipe: str, block: tuple[int, int], case: str) -> Callable[[torch.Tensor], Any]:
    """A compiled quantizer for (1, 32) written row, or (32, 1) written col with plain_t scales.

    `case` names the function, so that no other case shares its code object.
    """
    code = blocks_of_32.__code__.replace(co_name=f"plain_{case}")
    fresh = FunctionType(code, blocks_of_32.__globals__, f"plain_{case}")

    def along(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return fresh(x if block == (1, 32) else x.transpose(-1, -2).contiguous(), recipe)

    named = along.__code__.replace(co_name=f"along_{case}")
    outer = FunctionType(named, along.__globals__, f"along_{case}", None, along.__closure__)
    compiled = torch.compile(outer, fullgraph=True, dynamic=False)

    def call(x: torch.Tensor) -> Quantized:
        payload, scale = compiled(x)
        if block == (32, 1):
            payload = payload.transpose(-1, -2)
        return Quantized(payload, scale.view(torch.float8_e8m0fnu))

    return call
