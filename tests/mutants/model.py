"""A quantizer in float64, written apart from mxref, with a seam at every place a fault can sit."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

CODES = {
    "e4m3": torch.tensor(
        [m * 2.0**-9 if e == 0 else (8 + m) * 2.0 ** (e - 10) for e in range(16) for m in range(8)][
            :127
        ],
        dtype=torch.float64,
    ),
    "e5m2": torch.tensor(
        [
            m * 2.0**-16 if e == 0 else (4 + m) * 2.0 ** (e - 17)
            for e in range(32)
            for m in range(4)
        ][:124],
        dtype=torch.float64,
    ),
}
EMAX = {"e4m3": 8, "e5m2": 15}
MANTISSA = {"e4m3": 3, "e5m2": 2}
FLOAT8 = {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}


def floor_log2(v: Tensor) -> Tensor:
    return torch.frexp(v).exponent - 1


def byte_of(amax: Tensor, rule: str, element: str) -> Tensor:
    """The scale byte of a finite amax (float64), in floats."""
    if rule == "floor":
        exponent = floor_log2(amax) - EMAX[element]
    elif rule == "rceil":
        largest = float(CODES[element][-1])
        reciprocal = (torch.tensor(1.0, dtype=torch.float32) / largest).to(torch.float32)
        d = (amax.to(torch.float32) * reciprocal).to(torch.float64)
        amax = d  # nothing is left of the smallest subnormals
        mantissa, exponent = torch.frexp(d)
        exponent = exponent - (mantissa == 0.5).to(exponent.dtype)
    else:
        raise AssertionError(rule)
    return torch.where(amax > 0, exponent + 127, 0).clamp(0, 254)


def rne(units: Tensor) -> Tensor:
    return torch.round(units)


def amax_of(tiles: Tensor) -> Tensor:
    """NaN and Inf both come out as Inf."""
    return tiles.abs().nan_to_num(nan=torch.inf, posinf=torch.inf).amax((2, 4), keepdim=True)


def saturate(magnitude: Tensor, element: str) -> Tensor:
    return magnitude.clamp_max(float(CODES[element][-1]))


@dataclass(frozen=True)
class Model:
    """x -> (payload, scale), right unless a part is replaced: `fault(byte=...)`."""

    rule: str = "rceil"
    element: str = "e4m3"
    block: tuple[int, int] = (1, 32)
    prepare: Callable[[Tensor], Tensor] = lambda x: x
    amax: Callable[[Tensor], Tensor] = amax_of
    byte: Callable[[Tensor, str, str], Tensor] = byte_of
    multiplier: Callable[[Tensor], Tensor] = lambda byte: torch.ldexp(
        torch.ones_like(byte, dtype=torch.float64), 127 - byte
    )
    narrow: Callable[[Tensor], Tensor] = lambda scaled: scaled
    rounding: Callable[[Tensor], Tensor] = rne
    overflow: Callable[[Tensor, str], Tensor] = saturate
    finish: Callable[[Tensor, Tensor, Tensor], object] | None = None

    def __call__(self, x: Tensor) -> object:
        values = self.prepare(x).to(torch.float64)
        tiles, shape = self.tiled(values), x.shape
        amax = self.amax(tiles)
        bad = ~amax.isfinite()
        byte = self.byte(amax.masked_fill(bad, 0), self.rule, self.element).to(torch.int64)
        codes = self.encode(tiles * self.multiplier(byte)).masked_fill(bad, 0x7F)
        byte = byte.masked_fill(bad, 0xFF).to(torch.uint8)
        rows = tiles.shape[1] * tiles.shape[2]
        payload = codes.reshape(tiles.shape[0], rows, -1)
        payload = payload[:, : (shape[-2] if len(shape) > 1 else 1), : shape[-1]].reshape(shape)
        lead = shape[:-2] if len(shape) > 1 else ()
        grid = (byte.shape[1], byte.shape[3]) if len(shape) > 1 else (byte.shape[3],)
        scale = byte.reshape(*lead, *grid)
        if self.finish is not None:
            return self.finish(x, payload, scale)
        return payload.view(FLOAT8[self.element]), scale.view(torch.float8_e8m0fnu)

    def tiled(self, x: Tensor) -> Tensor:
        rows, columns = (x.shape[-2] if x.dim() > 1 else 1), x.shape[-1]
        lead = x.shape[:-2].numel() if x.dim() > 1 else 1
        padded = [-(-n // b) * b for n, b in zip((rows, columns), self.block, strict=True)]
        whole = x.new_zeros(lead, *padded)
        whole[:, :rows, :columns] = x.reshape(lead, rows, columns)
        return whole.reshape(
            lead,
            padded[0] // self.block[0],
            self.block[0],
            padded[1] // self.block[1],
            self.block[1],
        )

    def encode(self, scaled: Tensor) -> Tensor:
        sign = torch.signbit(scaled).to(torch.uint8) << 7
        magnitude = self.narrow(scaled.abs())
        lowest = {"e4m3": -6, "e5m2": -14}[self.element]
        unit = floor_log2(magnitude.nan_to_num(posinf=0)).clamp_min(lowest) - MANTISSA[self.element]
        power = torch.ldexp(torch.ones_like(magnitude), unit)
        rounded = self.overflow(self.rounding(magnitude / power) * power, self.element)
        codes = torch.searchsorted(CODES[self.element], rounded.contiguous()).to(torch.uint8)
        return codes.masked_fill(magnitude.isnan(), 0x7F) | sign


def fault(**parts: object) -> Model:
    return replace(Model(), **parts)
