"""`python -m mxkernels.bench.linear --json F --csv F`: MX layers and matmuls beside bf16's.

Layers: M = K = N, forward and backward, in eager mode and under torch.compile. Roofline gemm is
6 M N K over the datasheet's dense peak; roofline cast is what the bytes of the three casts, both
ways, take at the bandwidth of the limit `dual` (cast both ways without scales), in turns with them
and apart from the products. Matmuls: what `auto` takes at 8192, and the
in-kernel decode for 1 to 64 tokens beside dequantize-then-matmul.

No GPU before sm_100 has MX tensor cores: there the products are emulated, bf16 products of
dequantized operands, and MX cannot be faster than bf16. The rows say so.
"""

import argparse
import csv
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

from mxkernels.bench import choices
from mxkernels.bench.linear_rows import layer_rows, matmul_rows, token_rows
from mxkernels.bench.report import Journal
from mxkernels.linear import CastConfig
from mxref.cli.errors import WrongCallError

SIZES = (1024, 2048, 4096, 8192, 16384)
QUICK_SIZES = (1024, 8192)
TOKENS = (1, 4, 16, 32, 64)
DEPTH = 8192
COLUMNS = (
    "family", "size", "layer", "compiled", "matmul", "roofline_gemm_us", "roofline_cast_us",
    "measured_gemm_us", "measured_cast_us", "cast_times_limit", "end_to_end_us", "bf16_us",
    "speed_up", "spread", "backend", "config", "us", "ratio", "target", "reached", "verified",
    "remark", "note",
)  # fmt: skip


def write_csv(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """All rows, one column each of COLUMNS."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, extrasaction="ignore", restval="")
        writer.writeheader()
        writer.writerows(rows)


def _words(row: dict[str, Any]) -> str:
    shown = {key: row.get(key) for key in COLUMNS if row.get(key) not in (None, "")}
    return ", ".join(f"{key} {value}" for key, value in shown.items())


def parser() -> argparse.ArgumentParser:
    """All options."""
    found = argparse.ArgumentParser(prog="python -m mxkernels.bench.linear", description=__doc__)
    add = found.add_argument
    add("--json", type=Path, metavar="FILE", help="rows and environment, written after each group")
    add("--csv", type=Path, metavar="FILE", help="the rows, written after each group")
    add("--sizes", default="", help=f"of the layers; default {','.join(map(str, SIZES))}")
    add("--families", default="linear,matmul,tokens", help="some of linear,matmul,tokens")
    add("--recipe", default="rceil", help="default rceil")
    add("--rounds", type=int, default=0, help="times each call is timed; default 30, quick 10")
    add("--quick", action="store_true", help="two sizes, fewer rounds, no configurations")
    add("--no-compile", action="store_true", help="eager layers only")
    add("--device", default="cuda", choices=("cuda", "cpu"), help="cpu: for tests, no figures")
    add("--budget", type=float, default=210.0, help="seconds after which no group is begun")
    return found


def groups(options: argparse.Namespace) -> list[tuple[str, Any]]:
    """Each group's name and the function that gives its rows; ValueError for a wrong option."""
    names = options.families.split(",")
    if options.rounds < 0 or not options.budget >= 0:
        raise ValueError(
            f"--rounds {options.rounds}, --budget {options.budget}: expected numbers of at least 0"
        )
    unknown = [name for name in names if name not in ("linear", "matmul", "tokens")]
    if unknown:
        raise ValueError(f"--families {unknown[0]!r}: expected some of linear, matmul, tokens")
    usual = QUICK_SIZES if options.quick else SIZES
    try:
        sizes = tuple(map(int, options.sizes.split(","))) if options.sizes else usual
    except ValueError:
        raise ValueError(f"--sizes {options.sizes!r}: expected numbers such as 1024") from None
    if min(sizes) < 1:
        raise ValueError(f"--sizes {options.sizes!r}: expected positive numbers")
    config = CastConfig(recipe=options.recipe).resolve(options.device)
    device = torch.device(options.device)
    rounds = options.rounds or (10 if options.quick else 30)
    compiled = not options.no_compile
    depth = max(sizes) if options.device == "cpu" else DEPTH
    found: list[tuple[str, Any]] = []
    if "matmul" in names:
        found.append((f"matmul {depth}", partial(matmul_rows, depth, device, rounds)))
    if "tokens" in names:
        found += [
            (f"tokens {n}", partial(token_rows, n, device, rounds, depth, not options.quick))
            for n in TOKENS
        ]
    if "linear" in names:
        found += [
            (f"linear {n}", partial(layer_rows, n, device, rounds, config, compiled=compiled))
            for n in sizes
        ]
    return found


def main(arguments: list[str] | None = None) -> int:
    """Run; 1 if any row was wrong or failed, 2 for a wrong call or without a CUDA device."""
    options = parser().parse_args(arguments)
    try:
        if options.device == "cuda" and not torch.cuda.is_available():
            raise ValueError(f"no CUDA device: torch {torch.__version__} sees none")
        planned = groups(options)
        choices.results("--json", options.json)
        choices.output("--csv", options.csv)
    except (ValueError, TypeError, RuntimeError, WrongCallError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    told = {key: value for key, value in vars(options).items() if key not in ("json", "csv")}
    plan = {key: str(value) for key, value in told.items()}
    journal = Journal(options.json, plan)
    for name, rows in planned:
        if time.monotonic() - journal.started > options.budget:
            journal.add([{"family": name, "note": f"skipped: over {options.budget:.0f} s"}])
            continue
        try:
            found = rows()
        except Exception as error:  # one group's failure must not cost the others
            found = [{"family": name, "note": f"error: {type(error).__name__}: {str(error)[:300]}"}]
        journal.add(found)
        if options.csv:
            write_csv(journal.rows, options.csv)
        for row in found:
            sys.stdout.write(f"{_words(row)}\n")
        if options.device == "cuda":
            torch.cuda.empty_cache()
    journal.finish()
    return int(any(row.get("note", "").startswith(("WRONG", "error")) for row in journal.rows))


if __name__ == "__main__":
    raise SystemExit(main())
