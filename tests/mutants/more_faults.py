"""Further parts of wrong quantizers: scale rules of other projects, outputs in wrong places."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

import mxref
from tests.mutants.faults import swizzle
from tests.mutants.model import amax_of, byte_of, floor_log2, rne


def raw(x: Tensor, recipe: Any = "rceil", **keywords: Any) -> list[Tensor]:
    """The right bytes, to be spoiled."""
    return [each.view(torch.uint8) for each in mxref.quantize(x, recipe, **keywords)]


def bump(amax: Tensor, rule: str, element: str) -> Tensor:
    """quack, triton_kernels: any amax that is not zero gets byte 1 at least."""
    return torch.where(amax > 0, byte_of(amax, rule, element).clamp_min(1), 0)


def at_least_epsilon(epsilon: float) -> Callable[..., Tensor]:
    """DeepGEMM (1e-4), SGLang (1e-10): amax is raised before the rule."""
    least = float(torch.tensor(epsilon, dtype=torch.float32))
    return lambda amax, rule, element: byte_of(amax.clamp_min(least), rule, element)


def moved(n: int) -> Callable[..., Tensor]:
    return lambda amax, rule, element: (byte_of(amax, rule, element) + n).clamp(0, 254)


def maximum_240(amax: Tensor, rule: str, element: str) -> Tensor:
    """The maximum of e4m3fnuz in the ratio."""
    mantissa, exponent = torch.frexp(amax / 240)
    byte = exponent - (mantissa == 0.5).to(exponent.dtype) + 127
    return torch.where(amax > 0, byte, 0).clamp(0, 254)


def log2_rounded(amax: Tensor, rule: str, element: str) -> Tensor:
    """round(log2) where floor(log2) is meant."""
    exponent = torch.round(torch.log2(amax)) - 8
    return torch.where(amax > 0, exponent + 127, 0).clamp(0, 254)


def spread(amax: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    return lambda tiles: amax(tiles).expand(amax_of(tiles).shape)


whole_tensor = spread(lambda tiles: amax_of(tiles).amax())
whole_row = spread(lambda tiles: amax_of(tiles).amax(3, keepdim=True))
first_row = spread(lambda tiles: amax_of(tiles[:, :, :1]))


def signed(tiles: Tensor) -> Tensor:
    return torch.where(amax_of(tiles).isinf(), torch.inf, amax_of(tiles.clamp_min(0)))


def pairs(tiles: Tensor) -> Tensor:
    """64 elements share an amax."""
    amax = amax_of(tiles)
    columns = amax.shape[3]
    if columns % 2 == 0:
        merged = amax.reshape(*amax.shape[:3], columns // 2, 2).amax(-1)
        amax = merged.repeat_interleave(2, 3)[..., None]
    return amax


def all_but_last(tiles: Tensor) -> Tensor:
    return amax_of(tiles[..., :-1])


def carry_lost(units: Tensor) -> Tensor:
    """Triton's interpreter: 15.6 rounds to 16, whose carry does not reach the exponent."""
    rounded = rne(units)
    return torch.where(rounded == 16, 8, rounded)


def stochastic(units: Tensor) -> Tensor:
    noise = torch.rand(units.shape, generator=torch.Generator().manual_seed(0))
    return torch.floor(units + noise.clamp(0.01, 0.99))


def overflow_to_zero(magnitude: Tensor, element: str) -> Tensor:
    return torch.where(magnitude > 448, 0, magnitude)


def clamped_at_240(magnitude: Tensor, element: str) -> Tensor:
    return magnitude.clamp_max(240)


def truncated_to_bf16(x: Tensor) -> Tensor:
    return (x.view(torch.int32) & -65536).view(torch.float32)


def nan_at(code: int, byte: int) -> Callable[..., Any]:
    """A block with a NaN gets this scale byte and these payloads."""

    def change(x: Tensor) -> Any:
        payload, scale = raw(x)
        blocks = _blocks(x).isnan().any(-1)
        scale[blocks] = byte
        spoiled = blocks.repeat_interleave(32, -1)[..., : x.shape[-1]]
        return payload.masked_fill(spoiled, code), scale

    return change


def _blocks(x: Tensor) -> Tensor:
    more = -x.shape[-1] % 32
    padded = torch.cat([x, x.new_zeros(*x.shape[:-1], more)], -1)
    return padded.reshape(*x.shape[:-1], -1, 32)


def inf_is_254(x: Tensor) -> Any:
    """cvt.satfinite: Inf gives 0xFE, its own payload the maximum, the others zero."""
    payload, scale = raw(x)
    blocks = _blocks(x)
    only = blocks.isinf().any(-1) & ~blocks.isnan().any(-1)
    scale[only] = 254
    spread_ = only.repeat_interleave(32, -1)[..., : x.shape[-1]]
    sign = torch.signbit(x).to(torch.uint8) << 7
    code = torch.where(x.isinf(), 0x7E, 0).to(torch.uint8) | sign
    return torch.where(spread_, code, payload), scale


def nan_dropped_to_maximum(x: Tensor) -> Any:
    """FlashInfer's CuTe kernel: fmax drops NaN, satfinite makes its payload 0x7E."""
    clean = x.nan_to_num(nan=0.0, posinf=torch.inf, neginf=-torch.inf)
    payload, scale = raw(clean)
    return payload.masked_fill(x.isnan() & (payload != 0x7F), 0x7E), scale


def underflow_loses_sign(x: Tensor, payload: Tensor, scale: Tensor) -> Any:
    return payload.masked_fill((payload == 0x80) & (x != 0), 0), scale


def sign_lost(x: Tensor, payload: Tensor, scale: Tensor) -> Any:
    return payload & 0x7F, scale


def pairs_swapped(x: Tensor, payload: Tensor, scale: Tensor) -> Any:
    if x.shape[-1] % 2:
        return payload, scale
    return payload.reshape(*x.shape[:-1], -1, 2).flip(-1).reshape(x.shape), scale


def nibbles_swapped(x: Tensor, payload: Tensor, scale: Tensor) -> Any:
    return ((payload & 0xF) << 4) | (payload >> 4), scale


def column_major(x: Tensor, payload: Tensor, scale: Tensor) -> Any:
    return payload.mT.reshape(payload.shape) if x.dim() > 1 else payload, scale


def next_block(x: Tensor, payload: Tensor, scale: Tensor) -> Any:
    """The scale of each block is stored one place too far."""
    return payload, scale.roll(1, -1)


def unbiased(x: Tensor, payload: Tensor, scale: Tensor) -> Any:
    return payload, torch.where(scale == 255, scale, scale - 127)


def reciprocal_stored(x: Tensor, payload: Tensor, scale: Tensor) -> Any:
    return payload, torch.where(scale == 255, scale, 254 - scale)


def first_expert(x: Tensor, payload: Tensor, scale: Tensor) -> Any:
    """Every matrix of a batch gets the scales of the first."""
    return payload, scale[:1].expand(scale.shape).contiguous() if x.dim() > 2 else scale


def last_rows_stale(x: Tensor, payload: Tensor, scale: Tensor) -> Any:
    """The last tile of 32 rows is never written."""
    if x.dim() > 1 and x.shape[-2] > 32:
        payload[..., -32:, :] = 0xCD
        scale[..., -32:, :] = 0xCD
    return payload, scale


def tiles_by_columns(x: Tensor, payload: Tensor, scale: Tensor) -> Any:
    """The 512-byte tiles follow each other down the columns."""
    stored = swizzle(scale)
    rows, columns = -(-scale.shape[-2] // 128), -(-scale.shape[-1] // 4)
    tiles = stored.reshape(-1, rows, columns, 512).transpose(1, 2)
    return payload, tiles.reshape(stored.shape)


def stale_padding(x: Tensor, payload: Tensor, scale: Tensor) -> Any:
    """What an empty buffer happened to hold."""
    used = swizzle(torch.ones_like(scale)) == 1
    stale = (torch.arange(used.numel()) * 37 % 251).to(torch.uint8).reshape(used.shape)
    return payload, torch.where(used, swizzle(scale), stale)


def encoded(layout: str, block: tuple[int, int], contract: int | None = None) -> Callable[..., Any]:
    """The right bytes of a block geometry, stored in a layout."""

    def quantizer(x: Tensor) -> Any:
        payload, scale = raw(x, block=block)
        keywords = {"block": block, "shape": tuple(x.shape), "contract": contract}
        return payload, mxref.layouts.encode(scale, layout, **keywords)

    return quantizer


def column_swizzle_untransposed(x: Tensor) -> Any:
    """32x1: the logical matrix is swizzled as it is, not transposed."""
    payload, scale = raw(x, block=(32, 1))
    wanted = mxref.layouts.stored_shape(tuple(x.shape), "swizzle_32_4_4", block=(32, 1))
    stored = swizzle(scale).reshape(-1)[: torch.Size(wanted).numel()]
    out = stored.new_zeros(torch.Size(wanted).numel())
    out[: stored.numel()] = stored
    return payload, out.reshape(wanted)


def square_transposed(x: Tensor) -> Any:
    payload, scale = raw(x, block=(32, 32))
    return payload, scale.mT.reshape(scale.shape)


def tail_reads_on(x: Tensor) -> Any:
    """No mask at the end of a row: amax counts what lies behind it in memory."""
    payload, scale = raw(x)
    rest = x.shape[-1] % 32
    if not rest or x.dim() != 2 or x.shape[0] < 2:
        return payload, scale
    flat = torch.cat([x.reshape(-1), x.new_zeros(32)])
    start = torch.arange(x.shape[0]) * x.shape[1] + x.shape[1] - rest
    windows = flat[start[:, None] + torch.arange(32)]
    scale[:, -1] = raw(windows)[1][:, 0]
    return raw(x, scale=scale)[0], scale


def other_dtype(x: Tensor) -> Any:
    payload, scale = mxref.quantize(x, "rceil")
    return payload.view(torch.float8_e5m2), scale


def scale_of_transposed_shape(x: Tensor) -> Any:
    payload, scale = mxref.quantize(x, "rceil")
    return payload, scale.mT.contiguous() if x.dim() > 1 else scale


def emax_of_e4m3(amax: Tensor, rule: str, element: str) -> Tensor:
    return torch.where(amax > 0, floor_log2(amax) - 8 + 127, 0).clamp(0, 254)
