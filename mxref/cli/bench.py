"""`mxref bench`: what the reference costs here, beside torchao's eager code and gfloat."""

from typing import Annotated, Any

import torch
import typer
from rich.table import Table

from mxref.cli import oracle, screen
from mxref.cli.errors import WrongCallError, unknown
from mxref.cli.options import JsonFile
from mxref.cli.progress import bar
from mxref.recipes import RECIPES

Option = typer.Option


def bench(
    device: Annotated[str, Option(help="cpu or cuda")] = "cpu",
    size: Annotated[int, Option(min=32, help="the side of the square that is quantized")] = 4096,
    runs: Annotated[int, Option(min=1, help="times each call is timed")] = 9,
    threads: Annotated[int, Option(min=1, help="of torch, on a CPU")] = 1,
    recipe: Annotated[str, Option(help="the scale rule")] = "rceil",
    json: Annotated[
        str | None, Option(metavar="FILE", help="write the figures; replaces only a results file")
    ] = None,
) -> None:
    """Measure the reference: MB/s and peak extra memory, medians of interleaved runs."""
    if recipe not in RECIPES:
        raise unknown("--recipe", recipe, RECIPES)
    if device not in ("cpu", "cuda"):
        raise unknown("--device", device, ("cpu", "cuda"))
    if device == "cuda" and not torch.cuda.is_available():
        raise WrongCallError(f"--device='cuda': torch {torch.__version__} sees no CUDA device")
    out = JsonFile(json)
    content = measure(device, size, runs, threads, recipe)
    show(content)
    out.write(content)


def measure(device: str, size: int, runs: int, threads: int, recipe: str) -> dict[str, Any]:
    """All figures of one machine, torch's threads restored afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        with bar(2) as shown:
            shown.begin("times", total=runs + 1)
            found, missing = oracle.subjects(size, device, recipe)
            rows = oracle.timed(found, runs, device, lambda label: shown.advance(label, 1))
            shown.end()
            wanted = [("mxref", size), ("mxref", 4 * size)]
            wanted += [("torchao", size)] if "torchao" not in missing else []
            shown.begin("memory", total=len(wanted))
            held = []
            for name, side in wanted:
                held.append(oracle.memory(name, side, recipe, device))
                shown.advance(f"memory of {name}", 1)
            shown.end()
        return {
            "environment": oracle.environment(device),
            "runs": runs,
            "shape": [size, size],
            "recipe": recipe,
            "rows": rows,
            "missing": missing,
            "memory": held,
        }
    finally:
        torch.set_num_threads(before)


def show(content: dict[str, Any]) -> None:
    """The tables on standard output."""
    console = screen.results()
    console.print(times(content["rows"]))
    console.print()
    console.print(memory(content["memory"]))
    failed = [row for row in content["memory"] if "note" in row]
    notes = {f"memory of {row['implementation']}": row["note"] for row in failed}
    for name, why in (content["missing"] | notes).items():
        console.print(f"{name}: {why}")
    found = content["environment"]
    console.print(
        f"MB/s of input read; {found['device']}, {found['threads']} thread(s), torch "
        f"{found['torch']}, {content['recipe']}, median of {content['runs']} interleaved runs"
    )


def times(rows: list[dict[str, Any]]) -> Table:
    """A line for each subject; against torchao by elements, of which fp32 has half in a byte."""
    numbers = ("elements", "ms", "MB/s", "x torchao")
    table = screen.table("", "operation", "dtype", "block", *numbers, numbers=numbers)
    speeds = [row["elements"] / row["median_ms"] for row in rows]
    names = [row["implementation"] for row in rows]
    theirs = speeds[names.index("torchao")] if "torchao" in names else None
    for row, speed in zip(rows, speeds, strict=True):
        compared = theirs is not None and row["operation"] == "quantize"
        table.add_row(
            row["implementation"],
            row["operation"],
            row["dtype"],
            "x".join(map(str, row["block"])),
            f"{row['elements']:,}",
            f"{row['median_ms']:.2f}"
            + ("" if row["spread"] is None else f" ±{100 * row['spread']:.0f}%"),
            f"{row['mb_per_s']:,.2f}",
            f"{speed / theirs:.3g}" if compared and theirs else "",
        )
    return table


def memory(rows: list[dict[str, Any]]) -> Table:
    """A line for each process."""
    table = screen.table("", "side", "beyond the outputs", "peak", numbers=("side",))
    for row in rows:
        cells = ("extra_bytes", "peak_bytes")
        sizes = [f"{row[cell] / 2**20:,.1f} MiB" if cell in row else "" for cell in cells]
        table.add_row(row["implementation"], str(row["side"]), *sizes)
    return table
