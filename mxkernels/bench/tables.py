"""Tables of results: on a terminal by rich, as CSV, and the headline as Markdown."""

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rich.table import Table

from mxkernels.bench import records
from mxkernels.bench.records import KEYS, Row
from mxkernels.bench.site import shape_text
from mxref.cli import screen

SHORT = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}
WORDS = {
    "triton": "Triton",
    "cuda": "CUDA",
    "compile": "compile",
    "torch_compile": "torch.compile",
    "two_stage": "two stages",
    "torchao": "torchao",
}


def columns(rows: list[Row]) -> list[str]:
    """The columns of the CSV: what names a row, then each implementation's, then the verdict."""
    parts = ("us", "gbps", "spread", "share", "config", "verified", "note")
    each = [f"{who}_{part}" for who in records.present(rows) for part in parts]
    limit = ["bytes", "limit", "limit_us", "limit_gbps"]
    return [*KEYS, "name", *limit, *each, "best", "speedup", "speedup_over"]


def write_csv(path: Path, rows: list[Row]) -> None:
    """One line a comparison."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns(rows), restval="", extrasaction="ignore")
        writer.writeheader()
        for row in rows:
            writer.writerow(row | {"shape": shape_text(row["shape"])})


CELLS = "In a column: microseconds, GB/s, share of the limit, spread."


def comparisons(rows: list[Row]) -> list[Table]:
    """The pivot as tables, one for each family, shape, dtype and kind of input."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        dtype = SHORT.get(row["dtype"], row["dtype"])
        title = f"{row['family']} {shape_text(row['shape'])} {dtype} {row['data']}"
        groups.setdefault(title, []).append(row)
    return [_comparison(title, group) for title, group in groups.items()]


def _comparison(title: str, rows: list[Row]) -> Table:
    found = [who for who in records.present(rows) if any(_cell(row, who) for row in rows)]
    heads = ("variant", "rule", "by", "limit GB/s", *(WORDS[who] for who in found))
    made = screen.table(*heads, "speed-up", "verdict")
    made.title, made.title_justify, made.title_style = title, "left", "bold"
    for row in rows:
        limit = f"{row['limit_gbps']:.0f} {row['limit']}" if "limit_gbps" in row else ""
        verdict = _verdict(row)
        speedup = f"{row['speedup']:.2f} x {WORDS[row['speedup_over']]}" if "speedup" in row else ""
        made.add_row(
            row["name"] or row["variant"],
            row["recipe"],
            row["method"],
            limit,
            *(_cell(row, who) for who in found),
            speedup,
            verdict,
            style="red" if "WRONG" in verdict or "error" in verdict else None,
        )
    return made


def _cell(row: Row, who: str) -> str:
    if f"{who}_us" not in row:
        note = row.get(f"{who}_note", "")
        return note.split(":")[0] if note.startswith(records.BAD) else "-" if note else ""
    share = f" {row[f'{who}_share']:.3f}" if f"{who}_share" in row else ""
    deviation = _deviation(row.get(f"{who}_spread"))
    return f"{row[f'{who}_us']:.1f} {row[f'{who}_gbps']:.0f}{share} {deviation}".rstrip()


def _deviation(spread: float | None) -> str:
    return "" if spread is None else f"±{100 * spread:.1f}%"


def _verdict(row: Row) -> str:
    """What failed of ours, else whether the fastest of ours reached its target."""
    for who in records.OURS:
        if row.get(f"{who}_note", "").startswith(records.BAD):
            return f"{WORDS[who]}: {row[f'{who}_note'].split(':')[0]}"
    reached = row.get(f"{row.get('best')}_reached")
    return "" if reached is None else "reached" if reached else "missed"


def single(rows: Iterable[Row]) -> Table:
    """Host overhead, cold starts and the like: a row each."""
    made = screen.table(
        "family", "kernel", "variant", "time", "spread", "target", "verdict", "note"
    )
    for row in rows:
        time, deviation = "", ""
        if "median_us" in row:
            time, deviation = f"{row['median_us']:.1f} us", _deviation(records.spread(row))
        elif "seconds" in row:
            time = f"{row['seconds']:.2f} s"
        reached = row.get("reached")
        made.add_row(
            row["family"],
            row.get("kernel", ""),
            row.get("variant", ""),
            time,
            deviation,
            row.get("target_text", "") if reached is not None else "",
            "" if reached is None else "reached" if reached else "missed",
            row.get("note") or row.get("remark", ""),
        )
    return made


LAYERS = (
    "family", "size", "layer", "compiled", "matmul", "backend", "config", "end_to_end_us", "us",
    "bf16_us", "speed_up", "ratio", "cast_times_limit", "reached", "verified", "note",
)  # fmt: skip
"""Columns of the family linear, those that its rows have."""


def layers(rows: list[Row]) -> Table:
    """Layers and matmuls beside those of bf16."""
    used = [name for name in LAYERS if any(row.get(name) not in (None, "") for row in rows)]
    made = screen.table(*used)
    for row in rows:
        made.add_row(*("" if row.get(name) is None else str(row[name]) for name in used))
    return made


def limits(rows: Iterable[Row]) -> Table:
    """The best candidate of each limit, by shape."""
    best: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        if row["family"] != "limits" or "median_us" not in row or row.get("method") != "events":
            continue
        place = (tuple(row["shape"]), row.get("data", ""), row["kernel"])
        if place not in best or row["median_us"] < best[place]["median_us"]:
            best[place] = row
    made = screen.table("shape", "data", "limit", "us", "GB/s", "by", numbers=("us", "GB/s"))
    for (shape, data, name), row in best.items():
        figures = f"{row['median_us']:.1f}", f"{row['gbps']:.0f}"
        made.add_row(shape_text(shape), data, name, *figures, row.get("config", ""))
    return made


def notes(rows: Iterable[Row]) -> list[str]:
    """Each note once, with the rows it stands in counted; those of a few rows name them."""
    found: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        if row.get("note") and row["family"] not in ("host", "cold", *records.LINEAR):
            who = row.get("implementation") or row.get("kernel") or row["family"]
            if row["family"] == "limits":
                who = f"limit {who}, {row['config']}"
            place = f"{shape_text(row.get('shape', ()))} {row.get('variant', '')}".strip()
            found.setdefault((who, row["note"]), []).append(place)
    return [
        f"{who}: {note} ({', '.join(places) if len(places) < 4 else f'{len(places)} rows'})"
        for (who, note), places in found.items()
    ]


def show(content: dict[str, Any]) -> None:
    """All tables of a results file on standard output."""
    rows = content["rows"]
    console = screen.results()
    wide = records.pivot(rows)
    others = [row for row in rows if row["family"] in ("host", "cold")]
    products = [row for row in rows if row["family"] in records.LINEAR]
    if wide:
        console.print(CELLS)
    for table in (*comparisons(wide), limits(rows), single(others), layers(products)):
        if table.row_count:
            console.print(table)
            console.print()
    for line in notes(rows):
        console.print(line)
