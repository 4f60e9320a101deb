"""Mutants that the diagnosis was not made for: written after it, and no hypothesis added since."""

from typing import Any

import torch
from torch import Tensor

from tests.mutants.faults import on_bytes
from tests.mutants.model import amax_of, fault
from tests.mutants.mutant import Mutant


def ties_toward_plus_infinity(x: Tensor, payload: Tensor, scale: Tensor) -> Any:
    """floor(v + 0.5) on signed values: negative ties go the other way."""
    up = fault(rounding=lambda units: torch.floor(units + 0.5))(x)[0].view(torch.uint8)
    down = fault(rounding=lambda units: torch.ceil(units - 0.5))(x)[0].view(torch.uint8)
    return torch.where(torch.signbit(x), down, up), scale


def mean(tiles: Tensor) -> Tensor:
    amax = amax_of(tiles)
    return torch.where(amax.isinf(), amax, 2 * tiles.abs().mean((2, 4), keepdim=True))


def row_above(tiles: Tensor) -> Tensor:
    """The row index of the amax is one too small."""
    amax = amax_of(tiles)
    return torch.where(amax.isinf() | amax.roll(1, 1).isinf(), amax, amax.roll(1, 1))


def fp16_multiplier(byte: Tensor) -> Tensor:
    power = torch.ldexp(torch.ones_like(byte, dtype=torch.float64), 127 - byte)
    return power.to(torch.float16).double().clamp_max(65504)


def tail_payload_zero(x: Tensor, payload: Tensor, scale: Tensor) -> Any:
    rest = x.shape[-1] % 32
    if rest:
        payload[..., -rest:] = 0
    return payload, scale


def one_lane_lost(tiles: Tensor) -> Tensor:
    """Four elements of a block, one lane's share, do not reach the reduction."""
    return amax_of(torch.cat([tiles[..., :16], tiles[..., 20:]], 4))


def every_eighth_row(x: Tensor, payload: Tensor, scale: Tensor) -> Any:
    """One warp of eight truncates."""
    if x.dim() > 1:
        wrong = fault(rounding=torch.floor)(x)[0].view(torch.uint8)
        payload[..., ::8, :] = wrong[..., ::8, :]
    return payload, scale


def dropped_and_half_away(x: Tensor) -> Any:
    """Two faults at once."""
    clean = x.nan_to_num(nan=0.0, posinf=torch.inf, neginf=-torch.inf)
    return fault(rounding=lambda units: torch.floor(units + 0.5))(clean)


HELD_OUT = (
    Mutant("ties toward plus infinity", "ties", "plus infinity",
           on_bytes(ties_toward_plus_infinity)),
    Mutant("mean for maximum", "every_amax", "mean", fault(amax=mean)),
    Mutant("amax of the row above", "every_amax", "shifted by 1", fault(amax=row_above)),
    Mutant("multiplier in fp16", "every_amax", "fp16", fault(multiplier=fp16_multiplier)),
    Mutant("tail payload zero", "ragged", "tail block", on_bytes(tail_payload_zero)),
    Mutant("one lane lost", "every_amax", "elements", fault(amax=one_lane_lost)),
    Mutant("one warp truncates", "ties", "truncated", on_bytes(every_eighth_row)),
    Mutant("NaN dropped and half away", "ties", "half away", dropped_and_half_away),
)  # fmt: skip
