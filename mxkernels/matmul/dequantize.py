"""Back end "dequantize": both operands to values, then torch's matmul. Runs everywhere.

On a GPU the values are bf16, which a tensor core multiplies exactly and adds in fp32. They are
exact for scale bytes 3 to 246: e4m3 has 4 significant bits, bf16 8, so only the ends of the range
matter. From byte 10 on every value is a normal number. Bytes 3 to 9 give subnormals (2^(byte - 136)
is the smallest value) and bytes 0 to 2 round the smallest of them, at most 2^-134 off; the bound of
`mxref.matmul` leaves room for the loss of every operand below 2^-126. Bytes 247 and up overflow to
Inf where |value| >= 2^128, which no fp32 kernel can hold; there the bound makes no claim.

Elsewhere the values are fp32, since a CPU's bf16 units flush subnormals: exact for bytes 0 to 246.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from mxkernels.dequantize import dequantize
from mxkernels.matmul.backend import LAYOUTS, Backend, any_shape
from mxkernels.swizzle.op import missing as triton_missing
from mxkernels.swizzle.shapes import SWIZZLE


@contextmanager
def fp32_sums() -> Iterator[None]:
    """No partial sums in bf16, and no autocast, while a matmul is launched.

    cuBLAS may add the parts of a long contraction in bf16 unless torch forbids it, process-wide.
    """
    flags = torch.backends.cuda.matmul
    kept: bool | tuple[bool, bool] = flags.allow_bf16_reduced_precision_reduction
    split = getattr(flags, "allow_bf16_reduced_precision_reduction_split_k", None)
    if split is not None:  # later versions of torch keep two settings behind one name
        kept = kept, split
    flags.allow_bf16_reduced_precision_reduction = False
    try:
        with torch.autocast("cuda", enabled=False), torch.autocast("cpu", enabled=False):
            yield
    finally:
        flags.allow_bf16_reduced_precision_reduction = kept


def values(payload: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """What a payload means, in the dtype that this device multiplies.

    Swizzled scales have one dimension less than their payload.
    """
    dtype = torch.bfloat16 if payload.is_cuda else torch.float32
    layout = "plain" if scale.dim() == payload.dim() else SWIZZLE
    return dequantize(payload, scale, scale_layout=layout, dtype=dtype)


def call(
    a: torch.Tensor, a_scale: torch.Tensor, b: torch.Tensor, b_scale: torch.Tensor, config: int
) -> torch.Tensor:
    """a @ b.mT in bf16."""
    with fp32_sums():
        product = values(a, a_scale) @ values(b, b_scale).mT
    return product.to(torch.bfloat16)


def missing(device: torch.device) -> str | None:
    """What dequantizing lacks on `device`; a CPU needs nothing."""
    return triton_missing(device) if device.type != "cpu" else None


BACKEND = Backend("dequantize", LAYOUTS, missing, any_shape, call)
