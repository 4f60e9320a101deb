"""`mxref env`: versions, devices, and which registered kernels can run here."""

import os
import platform
from importlib import metadata
from typing import Any

import torch

import mxref
from mxref.cli import screen
from mxref.cli.errors import WrongCallError
from mxref.cli.subjects import registered
from mxref.testing import ptxas

_PACKAGES = ("torch", "triton", "numpy", "cuda-core", "hypothesis", "safetensors", "typer", "rich")


def env() -> None:
    """Print versions, devices and what can run."""
    grid = screen.steps()
    for label, text in (*versions(), *devices(), *kernels()):
        grid.add_row(label, text)
    screen.results().print(grid)


def versions() -> list[tuple[str, str]]:
    """This package, Python and the packages that matter, with their versions."""
    rows = [("mxref", f"{mxref.__version__} (SPEC {mxref.SPEC})")]
    rows.append(("python", f"{platform.python_version()} ({platform.platform()})"))
    for name in _PACKAGES:
        try:
            # torch knows its build (+cpu, +cu130), the metadata not always
            found = torch.__version__ if name == "torch" else metadata.version(name)
        except metadata.PackageNotFoundError:
            found = "not installed"
        rows.append((name, found))
        if name == "triton":
            rows.append(("ptxas", ptxas.described() or "not installed"))
    return rows


def devices() -> list[tuple[str, str]]:
    """The CPU and every CUDA device."""
    rows = [("cpu", f"{os.cpu_count()} CPUs, torch uses {torch.get_num_threads()} threads")]
    if not torch.cuda.is_available():
        build = torch.version.cuda or torch.version.hip
        rows.append(("cuda", "no device" + ("" if build else ": torch is built without CUDA")))
        return rows
    rows.append(("cuda", f"runtime {torch.version.cuda}, driver {_driver()}"))
    for index in range(torch.cuda.device_count()):
        found = torch.cuda.get_device_properties(index)
        memory = found.total_memory / 2**30
        text = f"{found.name}, sm_{found.major}{found.minor}, {memory:.1f} GiB"
        rows.append((f"cuda:{index}", text))
    return rows


def _driver() -> str:
    """The newest CUDA that the driver serves, as 13.0."""
    read = getattr(torch._C, "_cuda_getDriverVersion", None)
    if read is None:
        return "unknown"
    number = int(read())
    return f"CUDA {number // 1000}.{number % 1000 // 10}"


def kernels() -> list[tuple[str, str]]:
    """Each registered kernel, on each kind of device here: runs, or what it lacks."""
    try:
        found = registered()
    except WrongCallError as error:
        return [("kernels", str(error))]
    if not found:
        return [("kernels", "none is registered: no entry point in the group mxref.targets")]
    kinds = ("cpu", "cuda") if torch.cuda.is_available() else ("cpu",)
    return [
        (f"{spec.name} on {kind}", spec.missing(kind) or _can_run(spec, kind))
        for spec in found
        for kind in kinds
    ]


def _can_run(spec: Any, kind: str) -> str:
    """That it can run, and for how many variants it is what backend="auto" takes."""
    automatic = getattr(spec, "automatic", None)
    count = len(automatic(kind)) if automatic and kind == "cuda" else 0
    return f"can run; auto takes it for {count} variants" if count else "can run"
