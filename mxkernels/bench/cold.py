"""Cold start: from a fresh process with empty caches to the first result of each kernel."""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from mxkernels.registry import KERNELS, KernelSpec

TARGET = 5.0
"""Seconds that the import of mxkernels and the first call add to a process that has torch."""

LONGEST = 120
SHAPE = (256, 256)

CHILD = """
import json, sys, time
start = time.perf_counter()
import torch
loaded = time.perf_counter()
from mxkernels.registry import KERNELS
name, device, shape, arguments = json.loads(sys.argv[1])
spec = next(spec for spec in KERNELS if spec.name == name)
arguments = [tuple(a) if isinstance(a, list) else a for a in arguments]
imported = time.perf_counter()
x = torch.ones(shape, dtype=torch.bfloat16, device=device)
settle = torch.cuda.synchronize if x.is_cuda else lambda: None
settle()
ready = time.perf_counter()
if spec.op.endswith("swizzle"):
    spec.call(x.view(torch.uint8), *arguments)
elif spec.op == "dequantize":
    codes = x.to(torch.float8_e4m3fn)
    scale = torch.ones(shape[0], shape[1] // 32, dtype=torch.uint8, device=device)
    spec.call(codes, scale.view(torch.float8_e8m0fnu), *arguments, torch.float32)
else:
    spec.call(x, *arguments)
settle()
done = time.perf_counter()
parts = {"torch_s": loaded - start, "import_s": imported - loaded, "device_s": ready - imported}
print(json.dumps(parts | {"first_call_s": done - ready}), flush=True)
"""

CASES: dict[str, dict[str, list[Any]]] = {
    "quantize": {
        "1x32 row plain": ["rceil", [1, 32], "row", "plain"],
        "32x1 col swizzle_32_4_4": ["rceil", [32, 1], "col", "swizzle_32_4_4"],
    },
    "quantize_both": {"both col plain": ["rceil", "plain"]},
    "dequantize": {"1x32 plain": [[1, 32], "row", "plain"]},
    "swizzle": {"whole": ["swizzle_32_4_4"]},
}
"""By operation: the arguments of one first call for each kernel behind it."""


def rows(
    device: str, kernels: tuple[KernelSpec, ...] | None = None, shape: tuple[int, ...] = SHAPE
) -> list[dict[str, Any]]:
    """One row a kernel: `seconds` of import and first call, and those of the whole process."""
    # what inductor takes to start is no matter of ours
    ours = tuple(spec for spec in KERNELS if spec.backend != "compile")
    return [
        _row(spec, device, shape, variant, arguments)
        for spec in (ours if kernels is None else kernels)
        for variant, arguments in CASES.get(spec.op, {}).items()
        if _claims(spec, arguments) and not spec.missing(device)
    ]


def _claims(spec: KernelSpec, arguments: list[Any]) -> bool:
    """Whether the spec's blocks and layouts cover a call."""
    blocks = [tuple(each) for each in arguments if isinstance(each, list)]
    return all(block in spec.blocks for block in blocks) and arguments[-1] in spec.scale_layouts


def _row(
    spec: KernelSpec, device: str, shape: tuple[int, ...], variant: str, arguments: list[Any]
) -> dict[str, Any]:
    base: dict[str, Any] = {
        "family": "cold",
        "shape": list(shape),
        "dtype": "bfloat16",
        "kernel": spec.name,
        "implementation": spec.backend,
        "variant": variant,
        "method": "process",
        "note": "",
    }
    call = json.dumps([spec.name, device, shape, arguments])
    with tempfile.TemporaryDirectory() as caches:
        start = time.perf_counter()
        try:
            done = subprocess.run(
                [sys.executable, "-c", CHILD, call],
                capture_output=True,
                text=True,
                timeout=LONGEST,
                env=os.environ | environment(caches),
            )
        except subprocess.TimeoutExpired:
            return base | {"note": f"error: no result in {LONGEST} s"}
        seconds = time.perf_counter() - start
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        return base | {"note": f"error: {last[:200]}"}
    parts = json.loads(done.stdout.splitlines()[-1])
    found = base | {name: round(value, 3) for name, value in parts.items()}
    own = parts["import_s"] + parts["first_call_s"]
    remark = f"the whole process {seconds:.1f} s: torch, the device and the exit included"
    found |= {"seconds": round(own, 3), "process_s": round(seconds, 3), "remark": remark}
    return found | {"target": TARGET, "target_text": "<= 5 s", "reached": own <= TARGET}


def environment(caches: str) -> dict[str, str]:
    """Variables that move every cache of compiled kernels to an empty folder."""
    names = (
        "TRITON_CACHE_DIR",
        "TORCHINDUCTOR_CACHE_DIR",
        "CUDA_CACHE_PATH",
        "MXKERNELS_CACHE",
        "XDG_CACHE_HOME",
    )
    root = str(Path(__file__).parents[2])
    path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH", ""))))
    return {name: str(Path(caches, name.lower())) for name in names} | {"PYTHONPATH": path}
