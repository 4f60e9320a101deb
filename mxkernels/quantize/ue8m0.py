"""rceil by the instruction cvt.rp.ue8m0x2.f32: back ends of their own, never taken by `auto`.

The same kernels with another rule for the scale byte, and the same bytes as "rceil".
"""

from collections.abc import Callable

import torch

from mxkernels.quantize.cuda import UE8M0

NAMED = {"triton_ue8m0": "triton", "cuda_ue8m0": "cuda"}
"""The family whose kernels a back end takes."""


def in_hardware(launch: Callable[..., None]) -> Callable[..., None]:
    """A launch that takes the instruction; recipe "rceil" only."""

    def launched(
        x: torch.Tensor, payload: torch.Tensor, scale: torch.Tensor, recipe: str, *rest: object
    ) -> None:
        if recipe != "rceil":
            raise NotImplementedError(f"recipe={recipe!r} is not built for {UE8M0}: 'rceil' is")
        launch(x, payload, scale, UE8M0, *rest)

    return launched
