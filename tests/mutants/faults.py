"""The parts that wrong quantizers are made of: what each gets wrong, and nothing else."""

import itertools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

import mxref
from tests.mutants.model import amax_of, byte_of, fault, floor_log2

FP32 = torch.float32


def on_bytes(change: Callable[[Tensor, Tensor, Tensor], Any], **parts: Any) -> Any:
    """A right quantizer whose bytes are changed at the end: change(x, payload, scale)."""
    return fault(finish=change, **parts)


def flush(v: Tensor) -> Tensor:
    return torch.where(v.abs() < 2.0**-126, v * 0, v)


def flushed_ratio(amax: Tensor, rule: str, element: str) -> Tensor:
    return byte_of(torch.where(amax / 448 < 2.0**-126, 0, amax), rule, element)


def log2_in_fp32(amax: Tensor, rule: str, element: str) -> Tensor:
    exponent = torch.ceil(torch.log2(amax.to(FP32) / 448))
    return torch.where(amax > 0, exponent + 127, 0).clamp(0, 254)


def at_least(amax: Tensor, rule: str, element: str) -> Tensor:
    """448 itself doubles the scale: >= where > is meant."""
    return torch.where(amax > 0, floor_log2(amax / 448) + 1 + 127, 0).clamp(0, 254)


def one_ulp_high(amax: Tensor, rule: str, element: str) -> Tensor:
    ulp = torch.ldexp(torch.ones_like(amax), floor_log2(amax) - 23)
    return byte_of(torch.where(amax > 2.0**-100, amax - ulp, amax), rule, element)


def exact_ratio(amax: Tensor, rule: str, element: str) -> Tensor:
    mantissa, exponent = torch.frexp(amax / 448)
    byte = exponent - (mantissa == 0.5).to(exponent.dtype) + 127
    return torch.where(amax > 0, byte, 0).clamp(0, 254)


def byte_zero(multiplier: float) -> Callable[[Tensor], Tensor]:
    def of(byte: Tensor) -> Tensor:
        power = torch.ldexp(torch.ones_like(byte, dtype=torch.float64), 127 - byte)
        return torch.where(byte == 0, multiplier, power)

    return of


def nan_above_464(magnitude: Tensor, element: str) -> Tensor:
    return torch.where(magnitude > 448, torch.inf, magnitude)


def e5m2_inf(magnitude: Tensor, element: str) -> Tensor:
    return magnitude  # searchsorted gives the code after the last number: Inf


def half_away(units: Tensor) -> Tensor:
    return torch.floor(units + 0.5)


def nan_dropped(tiles: Tensor) -> Tensor:
    return amax_of(tiles.nan_to_num(nan=0.0, posinf=torch.inf, neginf=-torch.inf))


def inf_saturated(tiles: Tensor) -> Tensor:
    poisoned = tiles.isnan().any(4, keepdim=True).any(2, keepdim=True)
    largest = 255 * 2.0**120
    finite = tiles.nan_to_num(nan=0.0, posinf=largest, neginf=-largest)
    return amax_of(finite).masked_fill(poisoned, torch.inf)


def first_half(tiles: Tensor) -> Tensor:
    return amax_of(tiles[..., :16])


def element_only(x: Tensor, payload: Tensor, scale: Tensor) -> Any:
    return payload.masked_fill(x.isfinite() & (payload == 0x7F), 0), scale


def last_block_ignored(x: Tensor, payload: Tensor, scale: Tensor) -> Any:
    payload[..., -32:] = 0
    return payload, scale


def transposed(x: Tensor, payload: Tensor, scale: Tensor) -> Any:
    return payload, scale.mT.reshape(scale.shape)


def shifted_rows(x: Tensor, payload: Tensor, scale: Tensor) -> Any:
    scale[..., 128:, :] = scale[..., : max(scale.shape[-2] - 128, 0), :].clone()
    return payload, scale


def shifted_columns(x: Tensor, payload: Tensor, scale: Tensor) -> Any:
    scale[..., 128:] = scale[..., : max(scale.shape[-1] - 128, 0)].clone()
    return payload, scale


def payload_shifted(x: Tensor, payload: Tensor, scale: Tensor) -> Any:
    payload[..., 128:, :] = payload[..., : max(payload.shape[-2] - 128, 0), :].clone()
    return payload, scale


def swapped_axis(x: Tensor) -> Any:
    payload, scale = mxref.quantize(x.mT, "rceil")
    return payload.mT, scale.reshape(*x.shape[:-1], -1)


def swizzle(scale: Tensor, **keywords: Any) -> Tensor:
    return mxref.layouts.encode(scale, "swizzle_32_4_4", **keywords)


def unswizzled(x: Tensor, payload: Tensor, scale: Tensor) -> Any:
    out = swizzle(scale).zero_()
    out[: scale.numel()] = scale.reshape(-1)
    return payload, out


def wrong_swizzle(x: Tensor, payload: Tensor, scale: Tensor) -> Any:
    """Quarters of 128 rows and rows of a quarter change places."""
    out = swizzle(scale).reshape(-1, 32, 4, 4)
    return payload, out.permute(0, 2, 1, 3).reshape(-1)


def dirty_padding(x: Tensor, payload: Tensor, scale: Tensor) -> Any:
    used = swizzle(torch.ones_like(scale)) == 1
    return payload, torch.where(used, swizzle(scale), 0xFF)


def square_rows_repeated(x: Tensor, payload: Tensor, scale: Tensor) -> Any:
    """The rows beyond the matrix get the last tile's byte too."""
    rows = scale.repeat_interleave(32, 0)
    more = -rows.shape[0] % 128
    return payload, swizzle(torch.cat([rows, rows[-1:].expand(more, -1)]))


def flattened_lead(x: Tensor, payload: Tensor, scale: Tensor) -> Any:
    stored = swizzle(scale.reshape(-1, scale.shape[-1]))
    wanted = swizzle(scale)
    return payload, stored if stored.numel() == wanted.numel() else torch.cat(
        [stored, stored.new_zeros(wanted.numel() - stored.numel())]
    )


def tail_dropped(x: Tensor) -> Any:
    """The amax of a partial block at the end is taken as 0."""
    payload, scale = (each.view(torch.uint8) for each in mxref.quantize(x, "rceil"))
    if x.shape[-1] % 32 and x.numel():
        scale[..., -1] = 0
    return payload, scale


def storage_order(x: Tensor) -> Any:
    """Reads memory as if it were contiguous."""
    return mxref.quantize(torch.as_strided(x, x.shape, x.new_empty(x.shape).stride()), "rceil")


def offset_ignored(x: Tensor) -> Any:
    return mxref.quantize(torch.as_strided(x, x.shape, x.stride(), 0), "rceil")


def writes_outside(x: Tensor) -> Any:
    result = mxref.quantize(x, "rceil")
    if not x.is_contiguous() and x.dim() == 2 and x.stride(0) > x.shape[1] > 1 == x.stride(1):
        torch.as_strided(x, (x.shape[0] - 1, 1), x.stride(), x.shape[1]).zero_()
    return result


def cleans_input(x: Tensor) -> Any:
    result = mxref.quantize(x, "rceil")
    x.nan_to_num_()
    return result


class ReusedBuffer:
    """Outputs are views of buffers that live as long as the shape does not change."""

    def __init__(self, turns: int = 1) -> None:
        self.buffers: dict[Any, Any] = {}
        self.turns = itertools.cycle(range(turns))

    def __call__(self, x: Tensor) -> Any:
        result = mxref.quantize(x, "rceil")
        key = (x.shape, x.dtype, next(self.turns))
        kept = self.buffers.setdefault(key, [each.clone() for each in result])
        for buffer, new in zip(kept, result, strict=True):
            buffer.view(torch.uint8).copy_(new.view(torch.uint8))
        return tuple(kept)


class Kept:
    """The last answer is given again as long as the key of the input is the same."""

    def __init__(self, key: Callable[[Tensor], Any]) -> None:
        self.key, self.last = key, (None, None, None)

    def __call__(self, x: Tensor) -> Any:
        # x is held, so that no other tensor gets its id
        if self.last[0] != self.key(x):
            self.last = (self.key(x), x, mxref.quantize(x, "rceil"))
        return self.last[2]


class Racy:
    """Now and then a byte is another."""

    def __init__(self) -> None:
        self.calls = itertools.count()

    def __call__(self, x: Tensor) -> Any:
        payload, scale = (each.view(torch.uint8) for each in mxref.quantize(x, "rceil"))
        if x.numel() and x.shape[-1] == x.shape[-2] == 256 and next(self.calls) % 3 == 1:
            payload[-1, -1] ^= 1
        return payload, scale


def refuses_nan(x: Tensor) -> Any:
    if x.isnan().any():
        raise ValueError("NaN in input")
    return mxref.quantize(x, "rceil")


def fp16_as_bf16(x: Tensor) -> Any:
    return mxref.quantize(x.to(torch.bfloat16) if x.dtype == torch.float16 else x, "rceil")


def ceil_after_clamp(amax: Tensor, rule: str, element: str) -> Tensor:
    mantissa, exponent = torch.frexp(amax)
    inexact = ((mantissa != 0.5) & (amax > 0)).to(exponent.dtype)
    clamped = torch.where(amax > 0, exponent - 1 - 8 + 127, 0).clamp_min(0)
    return clamped + inexact
