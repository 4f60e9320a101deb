"""What `auto` takes: a table of architectures and sizes, and the way to look it up."""

import torch

from mxkernels import arch
from mxkernels.arguments import one_of
from mxkernels.matmul import decode, dequantize, scaled_mm
from mxkernels.matmul.backend import Backend
from mxkernels.swizzle.shapes import SWIZZLE

BACKENDS: tuple[Backend, ...] = (scaled_mm.BACKEND, decode.BACKEND, dequantize.BACKEND)
"""Every way to multiply, in the order in which `auto` asks."""

NAMES = ("auto", *(backend.name for backend in BACKENDS))

FEW_TOKENS = ((100, 16), (90, 32))
"""The least compute capability, and the most rows of a for which "triton" is taken from there on.

The first entry that fits counts; without one, never. The decode is bound by reading b, dequantize-
then-matmul reads it once, writes it in bf16 and reads that; `python -m mxkernels.bench.linear`
measures both. POLICY: taken only where it is at least 1.5 times as fast.
"""


def find(name: str) -> Backend:
    """The back end of this name; ValueError or TypeError for any other."""
    one_of("backend", name, NAMES[1:])
    return next(backend for backend in BACKENDS if backend.name == name)


def architecture(device_type: str, index: int | None) -> int:
    """The compute capability of a CUDA device as one number, 0 for any other device.

    >>> architecture("cpu", None)
    0
    """
    if device_type != "cuda":
        return 0
    return arch.capability(arch.cuda_index(torch.device(device_type, index)))


# What torch.compiler.assume_constant_result sets, whose call would import dynamo and Triton: a
# traced graph calls the function and keeps the number.
architecture._dynamo_marked_constant = True  # type: ignore[attr-defined]


def choose(capability: int, m: int, n: int, k: int, layout: str = SWIZZLE) -> str:
    """The name of the back end for a product (m, k) x (k, n); `capability` is 90 for sm_90.

    ======================  ================  ============  ============
    architecture            sizes             scales        back end
    ======================  ================  ============  ============
    sm_100 and up           K % 32, N % 16    swizzled      scaled_mm
    sm_100 and up           M <= 16           any           triton
    sm_90                   M <= 32           any           triton
    every other, the CPU    any               any           dequantize
    ======================  ================  ============  ============

    >>> choose(90, 16, 8192, 8192), choose(90, 8192, 8192, 8192), choose(0, 0, 64, 64)
    ('triton', 'dequantize', 'dequantize')
    """
    fits = k % 32 == 0 and n % 16 == 0 and layout in scaled_mm.BACKEND.scale_layouts
    if capability >= scaled_mm.MIN_ARCH and fits:
        return "scaled_mm"
    most = next((most for least, most in FEW_TOKENS if capability >= least), -1)
    return "triton" if m <= most else "dequantize"


def resolve(
    backend: str, device: torch.device, m: int, n: int, k: int, layout: str = SWIZZLE
) -> str:
    """`backend`, or what "auto" means on this device for this shape."""
    one_of("backend", backend, NAMES)
    if backend != "auto":
        return backend
    return choose(architecture(device.type, device.index), m, n, k, layout)
