"""mxkernels: MX quantization kernels, each proved byte for byte against mxref.

The functions here pick a back end; `registry.KERNELS` lists what is built. Importing this package
loads neither Triton nor numpy.
"""

import torch

from mxkernels import arguments, reference, registry
from mxkernels.dequantize import dequantize
from mxkernels.grouped_mm import grouped_mm
from mxkernels.linear import CastConfig, MXLinear, convert, mx_linear
from mxkernels.matmul import matmul
from mxkernels.quantize import again, op
from mxkernels.quantize.variants import variant
from mxkernels.registry import chosen_backend
from mxkernels.swizzle import swizzle, unswizzle
from mxref import Quantized, Recipe

__all__ = [
    "CastConfig",
    "MXLinear",
    "chosen_backend",
    "convert",
    "dequantize",
    "grouped_mm",
    "matmul",
    "mx_linear",
    "quantize",
    "quantize_both",
    "swizzle",
    "unswizzle",
    "variant",
]


def quantize(
    x: torch.Tensor,
    recipe: str | Recipe = "rceil",
    *,
    block: tuple[int, int] = (1, 32),
    payload_order: str = "row",
    scale_layout: str = "plain",
    backend: str = "auto",
) -> Quantized:
    """Quantize `x` to MX: e4m3 payload and one E8M0 scale for each block of 32.

    byte = rule(max|x| of the block); payload = e4m3(x * 2^(127 - byte)), to nearest even,
    saturating at 448. x: bfloat16, float16 or float32, any strides, rank >= 1 for block (1, 32),
    >= 2 for (32, 1) and (32, 32). Returns Quantized(payload, scale), new and detached:
    float8_e4m3fn of x's shape, contiguous ("row") or with its last two dimensions swapped in memory
    ("col"); float8_e8m0fnu, contiguous, as `mxref.layouts.encode` stores it: "plain", "plain_t" or
    "swizzle_32_4_4", whose padding is zero bytes; a swizzled (32, 32) contracts -1 for "row" and -2
    for "col". x is never changed. A partial block counts its missing elements as zeros. Contiguous
    tensors and transposed views are read in place; other strides may cost a copy of x.

    ==================  ======================  ==========================================
    block holds         scale byte              payload
    ==================  ======================  ==========================================
    only +0 / -0        0x00                    0x00 / 0x80
    tiny, subnormal     0x00                    of x * 2^127; subnormals are not flushed
    the largest finite  0xF6 floor, else 0xF7   0x7E floor (saturated), else 0x78
    NaN or +-Inf        0xFF                    0x7F in the whole block (POLICY)
    ==================  ======================  ==========================================

    Back ends: "triton" (a CPU tensor runs in Triton's interpreter), "cuda" (CUDA C++, compiled at
    first use; CUDA tensors only), "compile" (torch.compile of the plain formula), "reference"
    (mxref). "auto" is `chosen_backend`: the fastest one measured for a CUDA tensor and "reference"
    for any other; it hides no failure. "triton_ue8m0", "cuda_ue8m0": for "rceil" on sm_100, sm_103,
    sm_120: scales by the instruction cvt.rp.ue8m0x2.f32 (unverified on hardware).

    Raises TypeError or ValueError for a bad argument, NotImplementedError naming what is not built,
    RuntimeError naming what a back end lacks on this machine. Source: OCP MX v1.0 section 6.3
    (floor), PTX cvt.rp.satfinite.ue8m0x2 and cuBLAS (rceil), torchao (ceil, even).

    >>> payload, scale = quantize(torch.full((2, 32), 448.0))
    >>> scale.view(torch.uint8).tolist(), hex(payload.view(torch.uint8)[0, 0].item())
    ([[127], [127]], '0x7e')
    """
    request = (recipe, block, payload_order, scale_layout, None)
    outputs = again.served(x, (backend, *request))
    if outputs is not None:
        return Quantized(*outputs)
    asked = arguments.one_of("backend", backend, registry.BACKENDS)
    if backend in ("auto", "reference"):
        pair = arguments.block_pair(block)
        arguments.orders(payload_order, scale_layout)
        x = arguments.source(x, pair)
        if backend == "auto" and not torch.compiler.is_compiling():
            backend = chosen_backend("quantize", (pair, payload_order, scale_layout), x.device)
    if backend not in ("auto", "reference"):
        spec = registry.find("quantize", backend)
        result = spec.call(x, recipe, block, payload_order, scale_layout)
        if asked == "auto":
            again.remember_as(x, (asked, *request), (backend, *request))
        return result
    if not torch.compiler.is_compiling():
        return reference.quantize(x, recipe, pair, payload_order, scale_layout)
    # One opaque node: inductor's C++ cannot view float8_e8m0fnu, and auto is decided when it runs.
    name = arguments.recipe_name(recipe)
    return Quantized(*op.quantize(x.detach(), backend, name, pair, payload_order, scale_layout))


def quantize_both(
    x: torch.Tensor,
    recipe: str | Recipe = "rceil",
    *,
    scale_layout: str | tuple[str, str] = "plain",
    backend: str = "auto",
) -> tuple[Quantized, Quantized]:
    """Quantize `x` in blocks of (1, 32) and of (32, 1) from one read: what a training step needs.

    The same bytes, shapes and strides as these two calls, in this order:
    `quantize(x, recipe, block=(1, 32), payload_order="row", scale_layout=first)` and
    `quantize(x, recipe, block=(32, 1), payload_order="col", scale_layout=second)`.
    `scale_layout` is one name for both or the pair (first, second): ("plain", "plain_t") is dim0
    and dim1 of `variant`. x: rank >= 2, otherwise as in `quantize`. Both payloads together are
    two bytes an element.

    Raises as `quantize`. The special values are those of `quantize`.

    >>> rows, columns = quantize_both(torch.full((32, 64), 448.0), scale_layout="swizzle_32_4_4")
    >>> rows.payload.stride(), columns.payload.stride(), columns.scale.shape
    ((64, 1), (1, 32), torch.Size([512]))
    """
    request = (recipe, scale_layout, None)
    outputs = again.served(x, (backend, *request))
    if outputs is not None:
        return Quantized(*outputs[:2]), Quantized(*outputs[2:])
    asked = arguments.one_of("backend", backend, registry.BACKENDS)
    layouts = arguments.layout_pair(scale_layout)
    x = arguments.source(x, (32, 1))
    if backend == "auto" and not torch.compiler.is_compiling():
        backend = chosen_backend("quantize_both", layouts, x.device)
    if backend not in ("auto", "reference"):
        result = registry.find("quantize_both", backend).call(x, recipe, scale_layout)
        if asked == "auto":
            again.remember_as(x, (asked, *request), (backend, *request))
        return result
    if not torch.compiler.is_compiling():
        return reference.quantize_both(x, recipe, layouts)
    name = arguments.recipe_name(recipe)
    a, b, c, d = op.quantize_both(x.detach(), backend, name, *layouts)
    return Quantized(a, b), Quantized(c, d)
