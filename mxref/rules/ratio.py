"""The axis `ratio`: fp32 patterns of amax (Inf allowed) -> int32 `t` that a rule can round.

t >> 23 is a scale byte, the low part says how far amax lies above that power of two: a difference
of two patterns, exact at powers of two, or the pattern of a rounded ratio, exponent unbounded.
"""

from torch import Tensor

from mxref import bits
from mxref.formats import ELEMENTS, FP32, InputFormat
from mxref.recipes import Recipe

RCP_APPROX_448 = 0x3B124925  # what rcp.approx.ftz.f32 gives for 448, measured on an H200


def exponent(amax: Tensor, recipe: Recipe, fmt: InputFormat) -> Tensor:
    """amax / 2^emax, exact. Source: OCP MX v1.0 section 6.3."""
    t = amax - (ELEMENTS[recipe.element].emax << FP32.mantissa_bits)
    return t.masked_fill(t < bits.SMALLEST_NORMAL, bits.ZERO) if recipe.tiny == "flush" else t


def mul_rcp_f32(amax: Tensor, recipe: Recipe, fmt: InputFormat) -> Tensor:
    """amax * fp32(1 / maximum), one rounded multiply. Source: cuBLAS 1D block scaling, PTX cvt."""
    factor = bits.reciprocal(*ELEMENTS[recipe.element].maximum)
    return _kept(bits.product(amax, factor), amax, recipe, FP32)


def rcp_approx_ftz(amax: Tensor, recipe: Recipe, fmt: InputFormat) -> Tensor:
    """amax * rcp.approx.ftz(448); a flushed product is the axis `flush`. Source: FlashInfer."""
    return _kept(bits.product(amax, RCP_APPROX_448), amax, recipe, FP32)


def div_in_input_dtype(amax: Tensor, recipe: Recipe, fmt: InputFormat) -> Tensor:
    """amax / maximum, rounded to the format of the input. Source: JAX scaled_dot_general."""
    ratio = bits.quotient(amax, *ELEMENTS[recipe.element].maximum, fmt)
    return _kept(ratio, amax, recipe, fmt)


def div_f32(amax: Tensor, recipe: Recipe, fmt: InputFormat) -> Tensor:
    """amax / maximum, rounded to fp32. Source: DeepGEMM, quack."""
    return div_in_input_dtype(amax, recipe, FP32)


def log2_f32(amax: Tensor, recipe: Recipe, fmt: InputFormat) -> Tensor:
    """The rounded fp32 log2 of amax / maximum (rceil) or of amax. Source: FBGEMM; microxcaling."""
    if recipe.round == "rceil":
        return bits.rounded_log2(div_f32(amax, recipe, FP32))
    t = exponent(bits.rounded_log2(bits.extended(amax)), recipe, fmt)
    t = t.masked_fill(exponent(amax, recipe, fmt) == bits.ZERO, bits.ZERO)
    return t.masked_fill(amax >= bits.INFINITY, bits.INFINITY)


def _kept(ratio: Tensor, amax: Tensor, recipe: Recipe, fmt: InputFormat) -> Tensor:
    """The ratio, exponent unbounded: 0 where it is flushed, Inf where amax is."""
    least = 1 - fmt.bias + FP32.bias if recipe.flush in ("ratio", "both") else 0
    least = max(least, int(recipe.tiny == "flush")) << FP32.mantissa_bits
    kept = bits.extended(ratio.masked_fill(ratio < least, 0))
    return kept.masked_fill(amax >= bits.INFINITY, bits.INFINITY)
