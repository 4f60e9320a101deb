"""Back end "scaled_mm": the MX tensor cores of sm_100 and up, through torch._scaled_mm.

torch takes a (M, K) row-major, b (K, N) column-major, both e4m3, and E8M0 scales in cuBLAS's 128x4
layout: "swizzle_32_4_4" of S (M, K/32) and of S (N, K/32). Sizes: K a multiple of 32, N of 16.
No GPU with it was at hand: shapes and layouts are checked by fake tensors, results were not seen.
"""

import torch

from mxkernels import arch
from mxkernels.matmul.backend import Backend
from mxkernels.swizzle.shapes import SWIZZLE

MIN_ARCH = 100


def missing(device: torch.device) -> str | None:
    """Why `device` has no MX tensor cores, or None."""
    if device.type != "cuda":
        return f"device {str(device)!r}: MX tensor cores are in GPUs from sm_{MIN_ARCH} on"
    return arch.device_missing(device, MIN_ARCH)


def refuses(m: int, n: int, k: int) -> str | None:
    """A line for sizes that torch refuses, or None."""
    if k % 32 or n % 16:
        return f"K={k}, N={n}: K must be a multiple of 32 and N of 16"
    return None


def call(
    a: torch.Tensor, a_scale: torch.Tensor, b: torch.Tensor, b_scale: torch.Tensor, config: int = -1
) -> torch.Tensor:
    """a @ b.mT in bf16; scales are swizzled."""
    return torch._scaled_mm(a, b.mT, a_scale, b_scale, out_dtype=torch.bfloat16)


BACKEND = Backend("scaled_mm", (SWIZZLE,), missing, refuses, call)
