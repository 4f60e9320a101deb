"""Products of MX operands. README.md beside this file says how."""

import torch

from mxkernels.arguments import one_of
from mxkernels.matmul import op, table
from mxkernels.matmul.backend import layout_of
from mxkernels.swizzle import arguments
from mxkernels.swizzle.shapes import stored_shape
from mxref import Quantized
from mxref.shown import shown

__all__ = ["matmul"]


def matmul(a: Quantized, b: Quantized, *, backend: str = "auto") -> torch.Tensor:
    """a @ b.mT of two operands quantized along K, in bf16, summed in fp32, as F.linear lies.

    value[m, n] = sum over k of a[m, k] * b[n, k], within the bound of `mxref.matmul`. A factor that
    is NaN (byte 255, code 0x7F or 0xFF) makes its row or column NaN. Byte 0 is 2^-127. Where a
    factor reaches 2^128 or a sum passes fp32's end the result may be Inf or NaN.

    Args:
        a: payload (M, K) float8_e4m3fn, scale float8_e8m0fnu of blocks (1, 32), plain, (M,
            ceil(K / 32)), or in layout "swizzle_32_4_4", one dimension.
        b: payload (N, K), its scale in the same layout. A (32, 1) payload in order "col" is
            `payload.mT`, its scale in layout "plain_t" or "swizzle_32_4_4" is what is asked for.
        backend: "scaled_mm" (MX tensor cores, sm_100 and up, swizzled scales), "triton" (decodes in
            the kernel; a CPU tensor runs in the interpreter), "dequantize", or "auto":
            `table.choose`, among those that read the layout of the scales given.

    Raises TypeError or ValueError for a bad argument, RuntimeError naming what a back end lacks.
    Source: OCP MX v1.0 section 6.2.

    >>> import mxkernels
    >>> a, b = (mxkernels.quantize(torch.full((rows, 64), 3.0)) for rows in (2, 3))
    >>> matmul(a, b).tolist()
    [[576.0, 576.0, 576.0], [576.0, 576.0, 576.0]]
    """
    one_of("backend", backend, table.NAMES)
    sides = (*_side("a", a), *_side("b", b))
    m, k, n = sides[0].shape[0], sides[0].shape[1], sides[2].shape[0]
    if sides[2].shape[1] != k:
        raise ValueError(f"b has shape {tuple(sides[2].shape)}: expected (N, {k}), as a has K={k}")
    if sides[2].device != sides[0].device:
        raise ValueError(f"b is on {sides[2].device}: expected {sides[0].device}, where a is")
    layout = layout_of(sides[1])
    chosen = table.resolve(backend, sides[0].device, m, n, k, layout)
    read = table.find(chosen).scale_layouts
    if layout not in read:
        raise ValueError(
            f"a.scale has shape {tuple(sides[1].shape)}, layout {layout!r}: expected "
            f"{' or '.join(map(repr, read))}, what backend={chosen!r} reads"
        )
    for name, (payload, scale) in (("a", sides[:2]), ("b", sides[2:])):
        expected = stored_shape(tuple(payload.shape), layout, (1, 32), -1)
        if tuple(scale.shape) != expected:
            raise ValueError(
                f"{name}.scale has shape {tuple(scale.shape)}: expected {expected}, the layout "
                f"{layout!r}" + (" of a.scale" if name == "b" else "")
            )
    return op.matmul(*sides, chosen)


def _side(name: str, pair: Quantized) -> tuple[torch.Tensor, torch.Tensor]:
    if not isinstance(pair, tuple) or len(pair) != 2:
        raise TypeError(
            f"{name}={shown(pair)}: expected a (payload, scale) pair, got {type(pair).__name__}"
        )
    payload = arguments.tensor(f"{name}.payload", pair[0], (torch.float8_e4m3fn,))
    scale = arguments.tensor(f"{name}.scale", pair[1], (torch.float8_e8m0fnu,))
    if payload.dim() != 2:
        raise ValueError(f"{name} has shape {tuple(payload.shape)}: expected two dimensions")
    if scale.device != payload.device:
        raise ValueError(f"{name}.scale is on {scale.device}: expected {payload.device}")
    return payload, scale
