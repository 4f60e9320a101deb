"""The reference on a CPU: time against torchao's eager `to_mx`, and memory beyond the outputs.

`python -m mxkernels.bench.oracle OUT.json` runs everything and writes the figures with their
environment. One thread; each time is the median of interleaved runs with its spread; each memory
figure is a fresh process's peak. torchao is a column where it is installed.
"""

import json
import platform
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import mxref
from mxref.formats import BLOCKS

RUNS = 9
SIDE = 4096
DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}

MEMORY = """
import re, sys, torch, mxref
torch.set_num_threads(1)
side, dtype = int(sys.argv[1]), getattr(torch, sys.argv[2])
mxref.quantize(torch.ones(64, 64, dtype=dtype))
x = torch.empty(side, side, dtype=dtype).normal_()  # in place: nothing is left on the heap
def status(field):
    return int(re.search(field + r":\\s+(\\d+)", open("/proc/self/status").read())[1]) * 1024
open("/proc/self/clear_refs", "w").write("5")  # the peak starts from here
before = status("VmRSS")
payload, scale = mxref.quantize(x)
print(status("VmHWM") - before - payload.nbytes - scale.nbytes, status("VmHWM"))
"""


def interleaved(calls: dict[str, Callable[[], Any]]) -> dict[str, dict[str, float]]:
    """Milliseconds of each call: median, least and most of RUNS runs, taken in turns."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        call()
    for _ in range(RUNS):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            times[name].append((time.perf_counter() - start) * 1e3)
    return {
        name: {
            "median_ms": round(statistics.median(each), 2),
            "min_ms": round(min(each), 2),
            "max_ms": round(max(each), 2),
        }
        for name, each in times.items()
    }


def torchao_call(x: torch.Tensor) -> dict[str, Callable[[], Any]]:
    """torchao's eager to_mx with RCEIL scales, or nothing where it is not installed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from torchao.prototype.mx_formats.config import ScaleCalculationMode
            from torchao.prototype.mx_formats.mx_tensor import to_mx
    except ImportError:
        return {}
    return {"torchao": lambda: to_mx(x, torch.float8_e4m3fn, 32, ScaleCalculationMode.RCEIL)}


def memory(side: int, dtype: str) -> dict[str, int]:
    """Bytes beyond the outputs, and the whole process's peak, for a square of this side."""
    command = [sys.executable, "-c", MEMORY, str(side), dtype]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    extra, peak = map(int, done.stdout.split())
    return {"side": side, "extra_bytes": extra, "peak_bytes": peak}


def figures() -> dict[str, Any]:
    """All figures of one machine."""
    torch.set_num_threads(1)
    source = torch.randn(SIDE, SIDE)
    calls: dict[str, Callable[[], Any]] = {}
    for name, dtype in DTYPES.items():
        x = source.to(dtype)
        for block in BLOCKS:
            calls[f"{name} {block[0]}x{block[1]}"] = lambda x=x, block=block: mxref.quantize(
                x, "rceil", block=block
            )
    main = source.to(torch.bfloat16)
    calls |= torchao_call(main)
    quantized = mxref.quantize(main)
    calls["dequantize"] = lambda: mxref.dequantize(*quantized)
    return {
        "environment": {
            "date": time.strftime("%Y-%m-%d"),
            "machine": platform.machine(),
            "python": platform.python_version(),
            "torch": torch.__version__,
            "mxref": mxref.__version__,
            "threads": 1,
        },
        "runs": RUNS,
        "shape": [SIDE, SIDE],
        "recipe": "rceil",
        "times": interleaved(calls),
        "memory": [memory(SIDE, "bfloat16"), memory(4 * SIDE, "bfloat16")],
    }


def main() -> int:
    """Write the figures to the file named on the command line."""
    if len(sys.argv) != 2:
        sys.stderr.write("usage: python -m mxkernels.bench.oracle OUT.json\n")
        return 2
    found = figures()
    Path(sys.argv[1]).write_text(json.dumps(found, indent=2) + "\n")
    sys.stdout.write(json.dumps(found["times"], indent=2) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
