"""Results while they are made: rows and environment as JSON, rewritten after every case."""

import json
import os
import platform
import subprocess
import time
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

import mxref
from mxkernels.arch import installed
from mxref.testing import ptxas

QUERY = (
    "name,driver_version,clocks.sm,clocks.mem,clocks.max.sm,clocks.max.mem,power.draw,"
    "temperature.gpu"
)


def clocks() -> dict[str, str]:
    """What nvidia-smi reads now, by the names it was asked for; empty where there is none."""
    command = ["nvidia-smi", f"--query-gpu={QUERY}", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=20)
    except (OSError, subprocess.SubprocessError):
        return {}
    values = done.stdout.splitlines()[0].split(", ") if done.stdout else []
    return dict(zip(QUERY.split(","), values, strict=False))


def environment() -> dict[str, Any]:
    """Date, machine and versions."""
    found: dict[str, Any] = {
        "date": time.strftime("%Y-%m-%d %H:%M:%S"),
        "machine": platform.machine(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "triton": "",
        "ptxas": "",
        "mxref": mxref.__version__,
        "spec": mxref.SPEC,
        "smi_at_start": clocks(),
    }
    if installed("triton"):
        import triton

        found["triton"] = triton.__version__
        found["ptxas"] = ptxas.described()
    for name in ("cuda-core", "torchao"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = ""
    if torch.cuda.is_available():
        device = torch.cuda.get_device_properties(0)
        found |= {
            "gpu": device.name,
            "driver": found["smi_at_start"].get("driver_version", ""),
            "l2_bytes": device.L2_cache_size,
            "multiprocessors": device.multi_processor_count,
        }
    return found


class Journal:
    """The rows so far; every `add` replaces the file at once, so that a killed run keeps them.

    `past` is the content of a run that is gone on with; "resumed" holds its environments. One ptxas
    serves all rows, though a peer that is torch.compile'd names another.
    """

    def __init__(self, path: Path | None, plan: dict[str, Any], past: dict[str, Any] | None = None):
        ptxas.pin()
        self.path = path and path.resolve()  # a link stays one
        self.started = time.monotonic()
        past = past or {}
        self.content: dict[str, Any] = {
            "environment": environment(),
            "resumed": [*past.get("resumed", []), *filter(None, [past.get("environment")])],
            "plan": plan,
            "complete": False,
            "rows": list(past.get("rows", [])),
        }
        self._before = past.get("seconds", 0.0)
        self.write()

    @property
    def rows(self) -> list[dict[str, Any]]:
        """All rows so far."""
        return self.content["rows"]

    def add(self, rows: list[dict[str, Any]]) -> None:
        """Append rows and write the file."""
        self.rows.extend(rows)
        self.write()

    def finish(self) -> None:
        """Say that the run came to its end."""
        self.content["environment"]["smi_at_end"] = clocks()
        self.content["complete"] = True
        self.write()

    def write(self) -> None:
        """Write a new file beside the old one and replace it."""
        self.content["seconds"] = round(self._before + time.monotonic() - self.started, 1)
        if self.path is None:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        fresh = self.path.with_name(self.path.name + ".part")
        fresh.write_text(self.text())
        os.replace(fresh, self.path)

    def text(self) -> str:
        """The content as JSON, a line a row: a later run differs line by line."""
        head = json.dumps({**self.content, "rows": []}, indent=1)
        start, end = head.split('"rows": []')
        rows = ",\n  ".join(json.dumps(row) for row in self.rows)
        return f'{start}"rows": [\n  {rows}\n ]{end}\n'
