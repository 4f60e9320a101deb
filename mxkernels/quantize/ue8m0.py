"""rceil by the instruction cvt.rp.ue8m0x2.f32: back ends of their own, never taken by `auto`.

The same kernels with another rule for the scale byte, and the same bytes as "rceil".
"""

from collections.abc import Callable
from typing import Any

import torch

from mxkernels.quantize.cuda import UE8M0
from mxkernels.quantize.plans import Buffers

NAMED = {"triton_ue8m0": "triton", "cuda_ue8m0": "cuda"}
"""The family whose kernels a back end takes."""


def in_hardware(plan: Callable[..., Any]) -> Callable[..., Any]:
    """A plan that takes the instruction; recipe "rceil" only."""

    def planned(x: torch.Tensor, buffers: Buffers, recipe: str, *rest: object) -> Any:
        if recipe != "rceil":
            raise NotImplementedError(f"recipe={recipe!r} is not built for {UE8M0}: 'rceil' is")
        return plan(x, buffers, UE8M0, *rest)

    return planned
