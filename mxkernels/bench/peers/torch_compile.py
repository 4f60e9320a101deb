"""The plain formula in PyTorch, under torch.compile: floats where that is exact, torch's own cast.

A fresh function for each case: dynamo counts recompilations by code object and past its limit runs
eager code. The first call also reads dynamo's counters: a case that was not compiled is an error
and no figure. Sizes are static, which is the best the compiler can be given.
"""

import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any

import torch

from mxkernels.bench.plan import Case
from mxkernels.quantize.shapes import SWIZZLE, contracted
from mxkernels.quantize.variants import Variant
from mxref import Quantized

NAME = "torch_compile"
RULES = ("floor", "rceil")

Pair = tuple[torch.Tensor, torch.Tensor]


def scale_bytes(amax: torch.Tensor, recipe: str) -> torch.Tensor:
    """The scale of each amax as int32, 255 where it is a NaN or Inf."""
    if recipe == "rceil":
        ratio = (amax * (1 / 448)).view(torch.int32)
        byte = torch.where(ratio <= 0x400000, 0, (ratio + 0x7FFFFF) >> 23)
    else:
        byte = ((amax.view(torch.int32) >> 23) - 8).clamp_min(0)
    return torch.where(amax.isfinite(), byte, 255)


def swizzled(matrix: torch.Tensor) -> torch.Tensor:
    """A scale matrix (..., R, C) as (..., Rp * Cp): tiles of 128 x 4, padding zero."""
    rows, columns = matrix.shape[-2:]
    padded = torch.nn.functional.pad(matrix, (0, -columns % 4, 0, -rows % 128))
    tiles = padded.unflatten(-1, (-1, 4)).unflatten(-3, (-1, 4, 32))
    # (r // 128, r % 128 // 32, r % 32, c // 4, c % 4) in the order in which they are stored
    at = tiles.dim() - 5
    lead = tuple(range(at))
    return tiles.permute(*lead, at, at + 3, at + 2, at + 1, at + 4).flatten(-5)


def formula(x: torch.Tensor, recipe: str, variant: Variant) -> Pair:
    """Payload and stored scale bytes; a "col" payload is returned as its transpose."""
    block, order, layout, _ = variant
    turned = order == "col"
    y = x.mT.contiguous() if turned else x
    tall, wide = reversed(block) if turned else block
    tiles = y.to(torch.float32).unflatten(-1, (-1, wide)).unflatten(-3, (-1, tall))
    amax = tiles.abs().amax((-3, -1), keepdim=True)
    byte = scale_bytes(amax, recipe)
    factor = ((254 - byte.clamp_max(254)) << 23).view(torch.float32)
    scaled = torch.where(byte == 255, torch.nan, (tiles * factor).clamp(-448, 448))
    payload = scaled.to(torch.float8_e4m3fn).flatten(-2).flatten(-3, -2)
    scale = byte.to(torch.uint8).squeeze(-1).squeeze(-2)  # as y lies
    if layout == SWIZZLE:
        along = contracted(block, order) == -1
        matrix = scale if along != turned else scale.mT
        if block == (32, 32):
            matrix = matrix.repeat_interleave(32, -2)
        return payload, swizzled(matrix)
    return payload, scale if (layout == "plain_t") == turned else scale.mT.contiguous()


def fresh(function: FunctionType, name: str) -> FunctionType:
    """The function once more with a code object of its own."""
    code = function.__code__.replace(co_name=name)
    return FunctionType(code, function.__globals__, name, None, function.__closure__)


def compiled(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """A fresh copy of `function` compiled for its first arguments; RuntimeError if it was not."""
    from torch._dynamo.utils import counters

    ready = torch.compile(fresh(function, name), fullgraph=True, dynamic=False)
    seen: list[bool] = []

    def call(*arguments: Any) -> Any:
        if seen:
            return ready(*arguments)
        before = counters["stats"]["unique_graphs"]
        result = ready(*arguments)
        graphs = counters["stats"]["unique_graphs"] - before
        if graphs != 1:
            raise RuntimeError(f"torch.compile made {graphs} graphs of {name}: it would run eager")
        seen.append(True)
        return result

    return call


@functools.lru_cache(maxsize=256)
def quantizer(case: tuple[Any, ...], variant: Variant, recipe: str) -> Callable[..., Quantized]:
    """The compiled quantizer of a variant; `case` is what its code is made for."""

    def plain(x: torch.Tensor) -> Pair:
        return formula(x, recipe, variant)

    words = "_".join(map(str, (recipe, *variant.block, *variant[1:], *case))).replace(" ", "")
    run = compiled(plain, f"plain_{words}")

    def call(x: torch.Tensor) -> Quantized:
        payload, scale = run(x)
        payload = payload.mT if variant.payload_order == "col" else payload
        return Quantized(payload, scale.view(torch.float8_e8m0fnu))

    return call


def prepare(case: Case, variant: Variant) -> Callable[[torch.Tensor], Any] | str:
    """The compiled formula for this case."""
    if case.recipe not in RULES:
        return f"the plain formula is written for {', '.join(RULES)}"
    across = [size for size, of in zip(case.shape[-2:], variant.block, strict=True) if size % of]
    if across:
        return f"the plain formula takes whole blocks, {across[0]} is no multiple of 32"
    return quantizer((case.shape, case.dtype), variant, case.recipe)
