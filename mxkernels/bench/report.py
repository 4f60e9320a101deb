"""Results: rows and environment as JSON, rewritten after every group, and a table at the end."""

import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import torch

import mxref
from mxkernels.arch import installed

QUERY = (
    "name,driver_version,clocks.sm,clocks.mem,clocks.max.sm,clocks.max.mem,power.draw,"
    "temperature.gpu"
)
COLUMNS = (
    "shape", "dtype", "kernel", "variant", "recipe", "config", "method", "us", "spread", "GB/s",
    "share", "target", "reached", "note",
)  # fmt: skip


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
        "mxref": mxref.__version__,
        "spec": mxref.SPEC,
        "smi_at_start": clocks(),
    }
    if installed("triton"):
        import triton

        found["triton"] = triton.__version__
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
    """The rows so far; every `add` replaces the file at once, so that a killed run keeps them."""

    def __init__(self, path: Path | None, plan: dict[str, Any]):
        self.path = path
        self.started = time.monotonic()
        self.content: dict[str, Any] = {
            "environment": environment(),
            "plan": plan,
            "complete": False,
            "rows": [],
        }
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
        self.content["seconds"] = round(time.monotonic() - self.started, 1)
        if self.path is None:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        fresh = self.path.with_name(self.path.name + ".part")
        fresh.write_text(json.dumps(self.content, indent=1) + "\n")
        os.replace(fresh, self.path)


def cells(row: dict[str, Any]) -> tuple[str, ...]:
    """One row as texts, in the order of COLUMNS.

    >>> cells({"shape": [2, 32], "kernel": "k", "note": "not built"})[-1]
    'not built'
    """
    share, target, reached = row.get("share"), row.get("target"), row.get("reached")
    deviation = ""
    if "p20_us" in row:
        wide = 50 * (row["p80_us"] - row["p20_us"]) / max(row["median_us"], 1e-9)
        deviation = f"±{wide:.1f}%"
    return (
        "x".join(map(str, row.get("shape", ()))),
        {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}.get(
            row.get("dtype", ""), row.get("dtype", "")
        ),
        row.get("kernel", ""),
        row.get("variant", ""),
        row.get("recipe", ""),
        row.get("config", ""),
        row.get("method", ""),
        f"{row['median_us']:.1f}" if "median_us" in row else "",
        deviation,
        f"{row['gbps']:.0f}" if "gbps" in row else "",
        f"{share:.3f} {row.get('limit', '')}" if share is not None else "",
        row.get("target_text", "" if target is None else f">= {target}"),
        "" if reached is None else "yes" if reached else "NO",
        row.get("note", "") or row.get("remark", ""),
    )


def show(rows: list[dict[str, Any]]) -> None:
    """The table on stdout: by rich where it is installed, else plain and aligned."""
    lines = [cells(row) for row in rows]
    if not installed("rich"):
        sys.stdout.write(aligned([COLUMNS, *lines]))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(*COLUMNS, box=None, pad_edge=False)
    for line in lines:
        table.add_row(*line, style="red" if line[-2] == "NO" or "WRONG" in line[-1] else None)
    width = None if sys.stdout.isatty() else 240
    Console(width=width, markup=False, highlight=False).print(table)


def aligned(lines: list[tuple[str, ...]]) -> str:
    """Columns padded to their widest cell.

    >>> aligned([("a", "b"), ("long", "c")])
    'a     b\\nlong  c\\n'
    """
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        + "\n"
        for line in lines
    )
