"""Which back end multiplies groups: the tuple of them, and what `auto` and "dequantize" take."""

import torch

from mxkernels.grouped_mm import grouped, loop, masked, scaled
from mxkernels.grouped_mm.backend import Backend
from mxkernels.matmul.table import architecture

BACKENDS: tuple[Backend, ...] = (scaled.BACKEND, grouped.BACKEND, masked.BACKEND, loop.BACKEND)
"""Every way to multiply groups."""


def find(name: str) -> Backend:
    """The back end of this name; ValueError for any other."""
    for backend in BACKENDS:
        if backend.name == name:
            return backend
    expected = ", ".join(repr(backend.name) for backend in BACKENDS)
    raise ValueError(f"backend={name!r}: expected one of {expected}")


def choose(found: int, on_cpu: bool, n: int, k: int, *, scaled_mm: bool = True) -> str:
    """The name of the back end on this architecture, for weights (E, n, k).

    ======================  ==================  ============================
    where                   sizes               back end
    ======================  ==================  ============================
    sm_100 and up           N, K % 32           scaled_mm
    sm_90 and up            N, K % 8            grouped (torch._grouped_mm)
    any other CUDA device   any                 masked
    the CPU                 any                 loop
    ======================  ==================  ============================

    `scaled_mm` False leaves the first row out.

    >>> choose(90, False, 64, 64), choose(90, False, 63, 64), choose(0, True, 64, 64)
    ('grouped', 'masked', 'loop')
    """
    if on_cpu:
        return "loop"
    if scaled_mm and found >= 100 and n % 32 == 0 and k % 32 == 0:
        return "scaled_mm"
    if found >= grouped.MIN_ARCH and hasattr(torch, "_grouped_mm") and n % 8 == 0 and k % 8 == 0:
        return "grouped"
    return "masked"


def resolve(matmul: str, device: torch.device, n: int, k: int) -> str:
    """The back end for `CastConfig.matmul` on this device; NotImplementedError for "triton"."""
    if matmul == "triton":
        raise NotImplementedError(
            "matmul='triton' is not built for grouped_mm: 'auto', 'scaled_mm', 'dequantize' are"
        )
    if matmul == "scaled_mm":
        return matmul
    found = architecture(device.type, device.index)
    return choose(found, device.type == "cpu", n, k, scaled_mm=matmul == "auto")
