"""The element formats and E8M0, as frozen data: one row is one format.

No torch here: `exact.py` and the kernels read the same rows without importing anything else.
"""

from dataclasses import dataclass

SCALE_BIAS = 127
"""E8M0 byte b means 2^(b - 127) (OCP MX v1.0 section 5.4.1)."""

SCALE_NAN = 0xFF
"""The one E8M0 byte that is no power of two."""

BLOCK_SIZE = 32
"""Elements that share a scale along one dimension (OCP MX v1.0 section 5.2)."""

BLOCKS = ((1, BLOCK_SIZE), (BLOCK_SIZE, 1), (BLOCK_SIZE, BLOCK_SIZE))
"""The block geometries: elements along (second to last, last) dimension that share one scale."""


@dataclass(frozen=True)
class ElementFormat:
    """One element format of OCP MX v1.0 section 5.3. Codes are stored bytes without the sign bit.

    `emax` is the exponent of the largest normal number, `emin` that of the smallest one;
    `inf_code` is None for a format without infinities.
    """

    name: str
    mantissa_bits: int
    bias: int
    emax: int
    max_code: int
    inf_code: int | None
    nan_code: int
    torch_dtype: str

    @property
    def emin(self) -> int:
        """The exponent of the smallest normal number."""
        return 1 - self.bias

    @property
    def max_significand(self) -> int:
        """The significand of the largest finite value, an integer of mantissa_bits + 1 bits."""
        return (1 << self.mantissa_bits) | (self.max_code & ((1 << self.mantissa_bits) - 1))

    @property
    def maximum(self) -> tuple[int, int]:
        """The largest finite value as significand and exponent: significand * 2^exponent."""
        return self.max_significand, self.emax - self.mantissa_bits


E4M3 = ElementFormat("e4m3", 3, 7, 8, 0x7E, None, 0x7F, "float8_e4m3fn")
E5M2 = ElementFormat("e5m2", 2, 15, 15, 0x7B, 0x7C, 0x7F, "float8_e5m2")

ELEMENTS: dict[str, ElementFormat] = {row.name: row for row in (E4M3, E5M2)}


@dataclass(frozen=True)
class InputFormat:
    """A binary floating point format that can be quantized."""

    name: str
    bits: int
    mantissa_bits: int
    bias: int
    torch_dtype: str

    @property
    def exponent_mask(self) -> int:
        """The exponent field, all ones: also the pattern of +Inf."""
        return (1 << (self.bits - 1)) - (1 << self.mantissa_bits)

    @property
    def magnitude_mask(self) -> int:
        """Every bit but the sign."""
        return (1 << (self.bits - 1)) - 1


BF16 = InputFormat("bf16", 16, 7, 127, "bfloat16")
FP16 = InputFormat("fp16", 16, 10, 15, "float16")
FP32 = InputFormat("fp32", 32, 23, 127, "float32")

INPUTS: dict[str, InputFormat] = {row.name: row for row in (BF16, FP16, FP32)}
