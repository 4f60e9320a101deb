"""Scale layouts: logical scales to stored ones and back. README.md beside this file says how."""

import torch

from mxkernels.swizzle import calls
from mxkernels.swizzle.shapes import SWIZZLE

__all__ = ["swizzle", "unswizzle"]


def swizzle(
    scale: torch.Tensor,
    layout: str = SWIZZLE,
    *,
    block: tuple[int, int] = (1, 32),
    shape: tuple[int, ...] | None = None,
    contract: int | None = None,
    offs: torch.Tensor | None = None,
    axis: str | None = None,
    backend: str = "auto",
) -> torch.Tensor:
    """Logical scales in a layout, or one scale matrix cut into groups: `mxref.layouts` at speed.

    Without `offs` this is `mxref.layouts.encode`: `scale` (..., rows, columns) of any strides holds
    one byte a block of an x of shape `shape`; "plain", "plain_t" (the last two dimensions swapped)
    or "swizzle_32_4_4" (*lead, Rp * Cp), each leading index on its own, with Rp = 128 ceil(R/128),
    Cp = 4 ceil(C/4) and
    offset(r, c) = ((r//128) * (Cp//4) + c//4) * 512 + (r%32) * 16 + (r%128//32) * 4 + c%4.
    With `offs` it is `mxref.layouts.encode_groups`: `scale` is S[R, C], `offs` its exclusive ends
    on the same device, along rows (`axis` "M", result (R + 128 G, Cp)) or columns ("K", result
    (Rp, C + 4 G)); block, shape and contract keep their defaults.

    Every byte is carried over as it is, padding is zero. float8_e8m0fnu or uint8; the result is
    new, contiguous, of scale's dtype. No synchronisation: "triton" does not look at the values of
    `offs` on the host. Ends that decrease or leave the matrix give unspecified bytes, never an
    access outside; "reference" raises ValueError for them.

    Args:
        scale: the scales.
        layout: "plain", "plain_t" or "swizzle_32_4_4".
        block: the blocks of the scales.
        shape: the shape of x; needed only for a swizzled (32, 32).
        contract: -1 or -2, the dimension of x a GEMM sums over; needed only there as well.
        offs: int32 (G,), non-decreasing ends of groups, which may be empty; G >= 1.
        axis: "M" or "K" with offs, else None.
        backend: "triton", "reference" or "auto": "triton" for a CUDA tensor, else "reference".

    Raises TypeError or ValueError for a bad argument, NotImplementedError for a back end that is
    not built, RuntimeError naming what a back end lacks here. Source: cuBLAS "1D block scaling
    factors layout"; POLICY: padding and what no group covers is zero.

    >>> swizzle(torch.tensor([[1, 2, 3], [4, 5, 6]], dtype=torch.uint8))[:20].tolist()
    [1, 2, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 5, 6, 0]
    """
    return calls.swizzle(scale, layout, block, shape, contract, offs, axis, backend)


def unswizzle(
    stored: torch.Tensor,
    layout: str = SWIZZLE,
    *,
    block: tuple[int, int] = (1, 32),
    shape: tuple[int, ...],
    contract: int | None = None,
    offs: torch.Tensor | None = None,
    axis: str | None = None,
    backend: str = "auto",
) -> torch.Tensor:
    """The inverse of `swizzle`: logical scales, new and contiguous, of the dtype of `stored`.

    `stored` has any shape with the layout's number of bytes. `shape` is the shape of x, with `offs`
    that of S, (R, C). Of the 32 copies of a swizzled (32, 32) the first is taken; what no group
    covers is 0. Other arguments, errors and sources as in `swizzle`.

    >>> scale = torch.arange(6, dtype=torch.uint8).view(2, 3)
    >>> unswizzle(swizzle(scale), shape=(2, 96)).tolist()
    [[0, 1, 2], [3, 4, 5]]
    """
    return calls.unswizzle(stored, layout, block, shape, contract, offs, axis, backend)
