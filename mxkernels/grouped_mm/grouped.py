"""Back end "grouped": operands to bf16, then torch._grouped_mm, which reads the ends on the GPU.

Which scale bytes are exact in bf16: `../matmul/dequantize.py`.
"""

import torch

from mxkernels import arch
from mxkernels.grouped_mm.backend import Backend
from mxkernels.matmul.dequantize import fp32_sums, values

MIN_ARCH = 90
"""torch's kernel is built for Hopper and later; elsewhere torch loops and reads the ends back."""


def missing(device: torch.device) -> str | None:
    """What torch._grouped_mm lacks on `device`, or None."""
    if device.type != "cuda":
        return f"device {str(device)!r}: torch._grouped_mm is taken on CUDA only"
    if not hasattr(torch, "_grouped_mm"):
        return f"torch {torch.__version__} has no _grouped_mm"
    return arch.device_missing(device, MIN_ARCH)


def refuses(n: int, k: int) -> str | None:
    """A line for strides that are not multiples of 16 bytes, or None."""
    return f"K={k}, N={n}: both must be multiples of 8" if n % 8 or k % 8 else None


def product(
    a: torch.Tensor,
    a_scale: torch.Tensor,
    b: torch.Tensor,
    b_scale: torch.Tensor,
    offs: torch.Tensor,
) -> torch.Tensor:
    """The product of groups of rows or over groups of columns: torch tells them by b's rank."""
    with fp32_sums():
        return torch._grouped_mm(values(a, a_scale), values(b, b_scale).mT, offs=offs)


BACKEND = Backend("grouped", missing, refuses, product, product)
