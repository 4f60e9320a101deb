"""Backend: what a way to multiply MX operands has to say of itself."""

from collections.abc import Callable
from dataclasses import dataclass

import torch

Call = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, int], torch.Tensor]


@dataclass(frozen=True)
class Backend:
    """One way to compute a @ b.mT in bf16 from payloads (M, K), (N, K) and their scales.

    `scale_layout` is how both scales lie: "plain", (rows, ceil(K / 32)), or "swizzle_32_4_4".
    `missing(device)` is a line that says why it cannot run there, or None; `refuses(m, n, k)` the
    same of a shape. `call(a, a_scale, b, b_scale, config)` gets contiguous float8 payloads and
    float8_e8m0fnu scales, nothing empty; config counts into `configs`, -1 for its default.
    """

    name: str
    scale_layout: str
    missing: Callable[[torch.device], str | None]
    refuses: Callable[[int, int, int], str | None]
    call: Call
    configs: tuple[object, ...] = ()


def any_shape(m: int, n: int, k: int) -> str | None:
    """Nothing is refused."""
    return None
