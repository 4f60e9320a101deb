"""Backend: what a way to multiply MX operands has to say of itself."""

from collections.abc import Callable
from dataclasses import dataclass

import torch

from mxkernels.swizzle.shapes import SWIZZLE

LAYOUTS = ("plain", SWIZZLE)
"""Of the scales of a matrix, as stored: two dimensions, or one."""

Call = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, int], torch.Tensor]


@dataclass(frozen=True)
class Backend:
    """One way to compute a @ b.mT in bf16 from payloads (M, K), (N, K) and their scales.

    `scale_layouts` is how both scales may lie: "plain", (rows, ceil(K / 32)), or "swizzle_32_4_4",
    one dimension; `layout_of` tells them apart.
    `missing(device)` is a line that says why it cannot run there, or None; `refuses(m, n, k)` the
    same of a shape. `call(a, a_scale, b, b_scale, config)` gets contiguous float8 payloads and
    float8_e8m0fnu scales, nothing empty; config counts into `configs`, -1 for its default.
    """

    name: str
    scale_layouts: tuple[str, ...]
    missing: Callable[[torch.device], str | None]
    refuses: Callable[[int, int, int], str | None]
    call: Call
    configs: tuple[object, ...] = ()


def layout_of(scale: torch.Tensor) -> str:
    """How the scales of a matrix lie.

    >>> layout_of(torch.empty(512))
    'swizzle_32_4_4'
    """
    return SWIZZLE if scale.dim() == 1 else "plain"


def any_shape(m: int, n: int, k: int) -> str | None:
    """Nothing is refused."""
    return None
