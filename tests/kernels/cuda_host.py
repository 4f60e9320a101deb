"""CUDA kernels run on the CPU: compiled by g++ through cuda_on_cpu.h, launched as on a GPU.

The plan (kernel, macros, grid, arguments) is the one made for a GPU, so what runs is the indexing
of the kernels and of their launch. What differs is written `asm` in the sources.
"""

import ctypes
import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest

from mxkernels import cubins
from mxkernels.quantize import cuda

ADDRESSES = {"quantize_flat": 3, "quantize_tile": 3, "quantize_both": 5}
LENGTHS = {"quantize_flat": 5, "quantize_tile": 11, "quantize_both": 14}

SOURCE = """
#include "cuda_on_cpu.h"
#include "{file}"
static long long given[{length}];
static void body() {{ {name}({arguments}); }}
extern "C" void start(const long long* grid, int block, const long long* values) {{
    std::memcpy(given, values, sizeof given);
    shim::launch(grid, block, body);
}}
"""


class HostKernel:
    """A kernel with its macros as a shared library."""

    HERE = Path(__file__).parent

    def __init__(self, folder, file, name, macros):
        arguments = [f"given[{at}]" for at in range(LENGTHS[name])]
        for at in range(ADDRESSES[name]):
            arguments[at] = f"(mx_u8*){arguments[at]}"
        source = SOURCE.format(
            file=file, name=name, length=LENGTHS[name], arguments=", ".join(arguments)
        )
        flags = [f"-D{macro}={value}" for macro, value in macros]
        stem = hashlib.sha256(repr((source, flags)).encode()).hexdigest()[:16]
        library = folder / f"{stem}.so"
        if not library.exists():
            includes = [f"-I{each}" for each in (self.HERE, *cubins.INCLUDES)]
            command = ["g++", "-std=c++17", "-O0", "-fPIC", "-shared", "-ffp-contract=off"]
            command += [*flags, *includes, "-x", "c++", "-", "-o", str(library)]
            subprocess.run(command, input=source, text=True, check=True)
        self.start = ctypes.CDLL(str(library)).start


class HostLaunch:
    """Stands for cuda.core.LaunchConfig."""

    def __init__(self, grid, block):
        self.grid = (*grid, 1, 1)[:3]
        self.block = block[0]


@pytest.fixture
def on_cpu(tmp_path_factory, monkeypatch):
    """`mxkernels.quantize.cuda`, whose launches take CPU tensors and run on the CPU."""
    if not shutil.which("g++"):
        pytest.skip("no g++ on PATH")
    folder = tmp_path_factory.getbasetemp()

    def kernel(file, name, macros, device):
        return HostKernel(folder, file, name, macros)

    def run(plan, *addresses):
        values = [*addresses, *plan.arguments]
        grid = (ctypes.c_longlong * 3)(*plan.launch.grid)
        plan.kernel.start(grid, plan.launch.block, (ctypes.c_longlong * len(values))(*values))

    monkeypatch.setattr(cubins, "kernel", kernel)
    monkeypatch.setattr(cuda, "launch_config", HostLaunch)
    monkeypatch.setattr(cuda, "index_of", lambda device: 0)
    monkeypatch.setattr(cuda.Plan, "run", run)
    monkeypatch.setattr(cuda, "_PLANS", {})
    return cuda
