"""What this machine can run: Triton, cuda.core, a C++ compiler, the capability of a GPU."""

import functools
import importlib.util
import os
import shutil

import torch


@functools.cache
def installed(module: str) -> bool:
    """Whether `import module` would find something, without importing it."""
    return importlib.util.find_spec(module) is not None


@functools.cache
def capability(index: int) -> int:
    """The compute capability of CUDA device `index` as one number: 90 for sm_90."""
    major, minor = torch.cuda.get_device_capability(index)
    return 10 * major + minor


def cuda_index(device: torch.device) -> int:
    """The index of a CUDA device; the current one where it names none."""
    return torch.cuda.current_device() if device.index is None else device.index


def hardware_e4m3(device: torch.device) -> bool:
    """Whether fp32 -> e4m3 may be the hardware's cast: a GPU from sm_90 on.

    sm_89 has the instruction, but Triton 3.6 goes through fp16 there and rounds twice. AMD's was
    not compared: its GPUs, which torch calls cuda as well, round in integers.
    """
    if torch.version.hip:
        return False
    return device.type == "cuda" and capability(cuda_index(device)) >= 90


@functools.cache
def triton_missing(*, interpret: bool) -> str | None:
    """One line that names what Triton lacks here, or None."""
    if not installed("triton"):
        return "triton is not installed: pip install 'mxref[kernels]' (Linux)"
    if interpret and not installed("numpy"):
        return "numpy is not installed, Triton's interpreter needs it: pip install 'mxref[kernels]'"
    import triton

    if not hasattr(triton, "knobs"):
        return f"triton {triton.__version__} is too old: 3.6 or newer is needed (mxref[kernels])"
    return None


@functools.cache
def cuda_missing(kind: str) -> str | None:
    """One line that names what the CUDA kernels lack for a device of this kind, or None."""
    if kind != "cuda":
        return f"device {kind!r}: the CUDA kernels take tensors on a CUDA device only"
    if torch.version.hip:
        return "this torch is built for AMD GPUs: the CUDA kernels need NVIDIA's"
    if not installed("cuda") or not installed("cuda.core"):
        return "cuda.core is not installed: pip install 'mxref[cuda]'"
    from cuda.bindings import nvrtc

    try:
        nvrtc.nvrtcVersion()
    except Exception as error:  # a library that is not found: each version has its own error
        line = str(error).splitlines()[0] if str(error) else type(error).__name__
        return f"NVRTC cannot be loaded ({line[:120]}): pip install 'mxref[cuda]'"
    return None


@functools.cache
def compiler_missing(kind: str) -> str | None:
    """One line that names what torch.compile lacks on a device of this kind, or None."""
    if kind != "cpu":
        return triton_missing(interpret=False)
    named = os.environ.get("CXX", "")
    if any(shutil.which(each) for each in (named, "g++", "clang++", "c++") if each):
        return None
    return "torch.compile on the CPU needs a C++ compiler: no g++, clang++ or c++ on PATH, no CXX"


UE8M0 = (100, 103, 120)
"""Capabilities whose own target (sm_100a) has cvt.rp.ue8m0x2.f32."""


def ue8m0_missing(device: torch.device) -> str | None:
    """One line that says which GPUs have cvt.rp.ue8m0x2.f32 where `device` is none, or None."""
    needed = "cvt.rp.ue8m0x2.f32 needs a CUDA GPU of " + ", ".join(f"sm_{n}" for n in UE8M0)
    if device.type != "cuda" or torch.version.hip or not torch.cuda.is_available():
        return f"device {str(device)!r}: {needed}"
    found = capability(cuda_index(device))
    return None if found in UE8M0 else f"sm_{found} GPU: {needed}"


def device_missing(device: torch.device, min_arch: int) -> str | None:
    """One line that says why a kernel for sm_`min_arch` and up cannot use `device`, or None."""
    if device.type == "cpu":
        return None
    if device.type != "cuda":
        return f"device {str(device)!r}: only cpu and cuda are served"
    if not torch.cuda.is_available():
        return f"device {str(device)!r}: torch {torch.__version__} sees no CUDA device"
    found = capability(cuda_index(device))
    return None if found >= min_arch else f"sm_{found} GPU: sm_{min_arch} or newer is needed"
