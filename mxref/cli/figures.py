"""What quantizing does to a tensor: SQNR, saturated and flushed shares, added up piece by piece."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from mxref.blocks import Quantized, dequantize
from mxref.formats import E4M3, SCALE_BIAS, SCALE_NAN
from mxref.tiles import Block

_MAXIMUM = float(E4M3.max_significand * 2.0 ** (E4M3.emax - E4M3.mantissa_bits))


@dataclass
class Figures:
    """Sums over the pieces of one tensor, or of many, under one recipe.

    Elements of blocks with a NaN or Inf count in `elements` and `poisoned` and nowhere else.
    """

    elements: int = 0
    poisoned: int = 0
    saturated: int = 0
    flushed: int = 0
    signal: float = 0.0
    noise: float = 0.0

    def add(self, other: "Figures") -> None:
        """Count the other's elements too."""
        for name in self.__dataclass_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    @property
    def sqnr(self) -> float | None:
        """10 log10(signal / noise) in dB; inf without noise, None without a signal.

        -inf where a dequantized value overflows fp32, which only amax >= 1.9375 * 2^127 can bring.
        """
        if not self.signal:
            return None
        if not self.noise or math.isinf(self.noise):
            return -math.inf if self.noise else math.inf
        return 10 * math.log10(self.signal / self.noise)

    @property
    def saturated_share(self) -> float:
        """The share of the elements whose size exceeds the largest value under their scale."""
        return self.saturated / self.elements if self.elements else 0.0

    @property
    def flushed_share(self) -> float:
        """The share of the elements that are not zero and whose payload is."""
        return self.flushed / self.elements if self.elements else 0.0

    def as_json(self) -> dict[str, float | int | str | None]:
        """The figures for a JSON file, which has no infinity: that is the string "inf"."""
        sqnr = self.sqnr
        return {
            "elements": self.elements,
            "poisoned": self.poisoned,
            "saturated": self.saturated,
            "flushed": self.flushed,
            "saturated_share": self.saturated_share,
            "flushed_share": self.flushed_share,
            "sqnr_db": str(sqnr) if sqnr is not None and math.isinf(sqnr) else sqnr,
        }


def measure(x: Tensor, quantized: Quantized, block: Block) -> Figures:
    """The figures of one piece and its reference bytes (e4m3), in fp64."""
    byte = spread(quantized.scale.view(torch.uint8), x.shape, block)
    finite = byte != SCALE_NAN
    exact = torch.where(finite, x.to(torch.float64), 0.0)
    back = dequantize(quantized.payload, quantized.scale, block=block).to(torch.float64)
    noise = torch.where(finite, back, 0.0) - exact
    magnitude = quantized.payload.view(torch.uint8) & 0x7F
    # 2^(byte - 127) from bits: fp64 holds every power of two of E8M0 as a normal number
    power = ((byte.to(torch.int64) + (1023 - SCALE_BIAS)) << 52).view(torch.float64)
    return Figures(
        elements=x.numel(),
        poisoned=int((~finite).sum()),
        saturated=int((exact.abs() > _MAXIMUM * power).sum()),
        flushed=int(((exact != 0) & (magnitude == 0)).sum()),
        signal=float(exact.square().sum()),
        noise=float(noise.square().sum()),
    )


def spread(scale: Tensor, shape: torch.Size, block: Block) -> Tensor:
    """Each element's scale byte: the logical scale repeated over its blocks."""
    wide = scale.repeat_interleave(block[1], dim=-1)[..., : shape[-1]]
    if len(shape) == 1 or block[0] == 1:
        return wide
    return wide.repeat_interleave(block[0], dim=-2)[..., : shape[-2], :]
