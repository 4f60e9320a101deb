"""Host time of one eager call on a tensor so small that its kernel hides behind the call.

Three roads to the same bytes, by what they cost the host: the public function (checks, custom op),
`KernelSpec.call` (the custom op), `KernelSpec.launch` into buffers that the caller made and keeps.
"""

import statistics
import time
from collections.abc import Callable
from typing import Any

import torch

import mxkernels
from mxkernels.bench.timing import summary
from mxkernels.quantize.shapes import scale_shape
from mxkernels.registry import KERNELS

ELEMENTS = 4096
BATCHES = 30
CALLS = 100
SHAPE = (ELEMENTS // 256, 256)

OP_TARGET = 12.0
"""Microseconds that the custom op may take beyond the raw launch, both allocating outputs."""


def calls(x: torch.Tensor) -> dict[str, Callable[[], Any]]:
    """Each way to call; all but "buffers given" allocate their outputs."""
    op = torch.ops.mxkernels.quantize
    found: dict[str, Callable[[], Any]] = {"mxkernels.quantize": lambda: mxkernels.quantize(x)}
    for spec in KERNELS:
        if spec.op != "quantize" or spec.missing(x.device):
            continue
        found[f"{spec.name} call"] = lambda spec=spec: spec.call(
            x, "rceil", (1, 32), "row", "plain"
        )
        found[f"{spec.name} op"] = lambda spec=spec: op(
            x, spec.backend, "rceil", [1, 32], "row", "plain"
        )
        if spec.launch is not None:
            kept = _buffers(x)
            found[f"{spec.name} launch"] = lambda spec=spec: spec.launch(x, *_buffers(x), "rceil")
            found[f"{spec.name} launch, buffers given"] = lambda spec=spec, kept=kept: spec.launch(
                x, *kept, "rceil"
            )
    found["x.to(float8_e4m3fn)"] = lambda: x.to(torch.float8_e4m3fn)
    return found


def _buffers(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    payload = torch.empty(x.shape, dtype=torch.uint8, device=x.device)
    return payload, torch.empty(scale_shape(x.shape, (1, 32)), dtype=torch.uint8, device=x.device)


def rows(device: str, batches: int = BATCHES, count: int = CALLS) -> list[dict[str, Any]]:
    """One row a way to call: microseconds a call, in batches taken in turns."""
    x = torch.randn(SHAPE, dtype=torch.bfloat16, device=device)
    settle = torch.cuda.synchronize if x.is_cuda else _nothing
    base = {"family": "host", "shape": list(SHAPE), "dtype": "bfloat16", "method": "host"}
    found, notes, samples = calls(x), {}, {}
    for name, call in found.items():
        try:
            for _ in range(min(count, 10)):
                call()
            settle()
            samples[name] = []
        except Exception as error:  # the row says so
            notes[name] = f"not measured: {type(error).__name__}: {str(error)[:200]}"
    for _ in range(batches):
        for name, taken in samples.items():
            start = time.perf_counter()
            for _ in range(count):
                found[name]()
            taken.append((time.perf_counter() - start) / count * 1e6)
            settle()
    return [
        base
        | {"kernel": name, "variant": "eager call", "note": notes.get(name, "")}
        | (summary(samples[name]) if samples.get(name) else {})
        | _beyond_launch(name, samples)
        for name in found
    ]


def _beyond_launch(name: str, samples: dict[str, list[float]]) -> dict[str, Any]:
    """What an op costs beyond its raw launch, which its row is judged by."""
    launch = samples.get(name.removesuffix(" op") + " launch")
    if not name.endswith(" op") or not launch or not samples.get(name):
        return {}
    # of batches taken in turns: a slow moment of the host is in both
    beyond = statistics.median(a - b for a, b in zip(samples[name], launch, strict=True))
    return {
        "beyond_launch_us": round(beyond, 3),
        "target": OP_TARGET,
        "target_text": f"<= {OP_TARGET:.0f} us over launch",
        "reached": beyond <= OP_TARGET,
        "remark": f"{beyond:.1f} us beyond its launch",
    }


def _nothing() -> None:
    """A CPU has nothing pending."""
