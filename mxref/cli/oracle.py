"""What the reference costs: megabytes a second and memory beyond the outputs, beside two peers.

Times are medians of runs taken in turns, so that a slow moment of the machine hits all alike.
Memory on a CPU is the peak of a fresh process, on a GPU what the allocator handed out.
"""

import platform
import re
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import mxref
from mxref.blocks import dequantize, quantize
from mxref.formats import BLOCKS, INPUTS
from mxref.tiles import Block

GFLOAT_BLOCKS = 64
"""gfloat takes some 35 us an element: it is timed on this many blocks of 32."""

Call = Callable[[], Any]
Report = Callable[[str], None]


@dataclass(frozen=True)
class Subject:
    """One thing timed: `call` reads `elements` of `dtype` (of "quantize", what it reads)."""

    implementation: str
    operation: str
    dtype: str
    block: Block
    elements: int
    read_bytes: int
    call: Call

    def labels(self) -> dict[str, Any]:
        """The columns that name its row."""
        return {
            "implementation": self.implementation,
            "operation": self.operation,
            "dtype": self.dtype,
            "block": list(self.block),
            "elements": self.elements,
        }


def subjects(side: int, device: str, recipe: str) -> tuple[list[Subject], dict[str, str]]:
    """All that is timed on a square of this side, and why a peer is not."""
    source = torch.randn(side, side, device=device)
    found = []
    for name, row in INPUTS.items():
        x = source.to(getattr(torch, row.torch_dtype))
        for block in BLOCKS:

            def run(x: Tensor = x, block: Block = block) -> Any:
                return quantize(x, recipe, block=block)

            found.append(Subject("mxref", "quantize", name, block, x.numel(), x.nbytes, run))
    x = source.to(torch.bfloat16)
    payload, scale = quantize(x, recipe)
    found.append(
        Subject(
            "mxref", "dequantize", "e4m3", (1, 32), x.numel(), payload.nbytes + scale.nbytes,
            lambda: dequantize(payload, scale),
        )
    )  # fmt: skip
    missing = {}
    for peer, make in PEERS.items():
        made = make(x, recipe)
        if isinstance(made, str):
            missing[peer] = made
        else:
            found.append(made)
    return found, missing


def torchao(x: Tensor, recipe: str) -> Subject | str:
    """torchao's eager `to_mx`, blocks of 1x32."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            modes = import_module("torchao.prototype.mx_formats.config").ScaleCalculationMode
            to_mx = import_module("torchao.prototype.mx_formats.mx_tensor").to_mx
    except (ImportError, AttributeError) as error:
        return f"not timed: {error}"
    if recipe.upper() not in modes.__members__:
        return f"not timed: it has no rule {recipe}"

    def run() -> Any:
        return to_mx(x, torch.float8_e4m3fn, 32, modes[recipe.upper()])

    return Subject("torchao", "quantize", "bf16", (1, 32), x.numel(), x.nbytes, run)


def gfloat(x: Tensor, recipe: str) -> Subject | str:
    """gfloat's block encoding of a slice, on the CPU; its only scale rule is the floor rule."""
    try:
        peer = import_module("gfloat")
        form = import_module("gfloat.formats").format_info_mxfp8_e4m3
    except ImportError as error:
        return f"not timed: {error}"
    values = x.flatten()[: 32 * GFLOAT_BLOCKS].double().cpu().numpy()
    blocks = values.reshape(-1, 32)

    def encoded(block: Any) -> list[int]:
        scale = peer.compute_scale_amax(8, block)
        return list(peer.encode_block(form, scale, block / scale))

    def run() -> Any:
        return [encoded(block) for block in blocks]

    return Subject("gfloat", "quantize", "bf16", (1, 32), values.size, 2 * values.size, run)


PEERS: dict[str, Callable[[Tensor, str], Subject | str]] = {"torchao": torchao, "gfloat": gfloat}


def timed(found: list[Subject], runs: int, device: str, report: Report) -> list[dict[str, Any]]:
    """Milliseconds of each subject in turns; one row each."""
    settle = torch.cuda.synchronize if device.startswith("cuda") else _nothing
    samples: list[list[float]] = [[] for _ in found]
    for turn in range(runs + 1):
        report(f"run {turn} of {runs}" if turn else "first calls")
        for index, subject in enumerate(found):
            start = time.perf_counter()
            subject.call()
            settle()
            if turn:  # the first call loads and allocates
                samples[index].append((time.perf_counter() - start) * 1e3)
    return [_row(subject, taken) for subject, taken in zip(found, samples, strict=True)]


def _row(subject: Subject, samples: list[float]) -> dict[str, Any]:
    middle = statistics.median(samples)
    ordered = sorted(samples)
    last = len(ordered) - 1
    width = (ordered[round(0.8 * last)] - ordered[round(0.2 * last)]) / 2
    return subject.labels() | {
        "median_ms": round(middle, 4),
        "min_ms": round(ordered[0], 4),
        "max_ms": round(ordered[-1], 4),
        # of one or two figures there is none
        "spread": round(width / middle, 4) if len(ordered) > 2 else None,
        "mb_per_s": round(subject.read_bytes / middle / 1e3, 3),
    }


def _nothing() -> None:
    """A CPU has nothing pending."""


CHILD = """
import re, sys, torch
from mxref.cli import oracle
implementation, side, recipe, threads = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
torch.set_num_threads(int(threads))
def call(x):
    if implementation == "mxref":
        return oracle.quantize(x, recipe)
    subject = oracle.PEERS[implementation](x, recipe)
    return subject.call()
call(torch.ones(64, 64, dtype=torch.bfloat16))
x = torch.empty(side, side, dtype=torch.bfloat16).normal_()  # in place: the heap stays empty
def status(field):
    return int(re.search(field + r":\\s+(\\d+)", open("/proc/self/status").read())[1]) * 1024
open("/proc/self/clear_refs", "w").write("5")  # the peak starts from here
before = status("VmRSS")
kept = call(x)
print(status("VmHWM") - before - sum(each.nbytes for each in kept), status("VmHWM"))
"""


def memory(implementation: str, side: int, recipe: str, device: str) -> dict[str, Any]:
    """Bytes beyond the outputs, and the peak in all, for a square of bf16 of this side."""
    row = {"implementation": implementation, "side": side}
    try:
        if device.startswith("cuda"):
            return row | _allocated(implementation, side, recipe, device)
        arguments = [implementation, str(side), recipe, str(torch.get_num_threads())]
        place = f"import sys; sys.path.insert(0, {str(Path(mxref.__file__).parents[1])!r})"
        done = subprocess.run(
            [
                sys.executable,
                "-c",
                f"{place}\n{CHILD}",
                *arguments,
            ],
            capture_output=True,
            text=True,
        )
    except RuntimeError as error:  # a GPU that is too small for the larger square
        return row | {"note": " ".join(str(error).split())[:200]}
    if done.returncode:
        return row | {"note": (done.stderr.strip().splitlines() or ["no output"])[-1][:200]}
    extra, peak = map(int, done.stdout.split()[-2:])
    return row | {"extra_bytes": extra, "peak_bytes": peak}


def _allocated(implementation: str, side: int, recipe: str, device: str) -> dict[str, Any]:
    x = torch.randn(side, side, dtype=torch.bfloat16, device=device)
    made = PEERS[implementation](x, recipe) if implementation in PEERS else None
    if isinstance(made, str):
        return {"note": made}
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    kept = made.call() if made is not None else quantize(x, recipe)
    torch.cuda.synchronize()
    peak = torch.cuda.max_memory_allocated()
    outputs = sum(each.nbytes for each in kept)
    return {"extra_bytes": peak - before - outputs, "peak_bytes": peak}


def environment(device: str) -> dict[str, Any]:
    """Date, machine and versions."""
    found = {
        "date": time.strftime("%Y-%m-%d %H:%M:%S"),
        "machine": platform.machine(),
        "processor": _processor(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "mxref": mxref.__version__,
        "spec": mxref.SPEC,
        "device": device,
        "threads": torch.get_num_threads(),
    }
    if device.startswith("cuda"):
        found["gpu"] = torch.cuda.get_device_name(device)
    for name in PEERS:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = ""
    return found


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor()
    named = re.search(r"model name\s*: (.+)", text)
    return named[1] if named else platform.processor()
