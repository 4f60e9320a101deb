"""Results files: read, checked, and turned into one row a comparison.

A file holds a row for each thing timed. `pivot` puts what was timed in turns side by side: one row
for each family, shape, dtype, input, variant, scale rule and method, with the columns
`<implementation>_us`, `_gbps`, `_spread` and `_share` for each implementation in it.
"""

import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mxkernels.bench.plan import NAMES
from mxkernels.bench.timing import LEAST_SAMPLES

Row = dict[str, Any]

OURS = ("triton", "cuda", "compile")
PEERS = ("torch_compile", "two_stage", "torchao")
IMPLEMENTATIONS = (*OURS, *PEERS)

LINEAR = ("linear", "matmul", "tokens")
"""The families of `mxkernels.bench.linear`, whose rows have columns of their own."""

KEYS = ("family", "shape", "dtype", "data", "variant", "recipe", "method")
BAD = ("WRONG", "error")


def load(path: Path) -> dict[str, Any]:
    """The content of a results file, its rows as `today`; ValueError, one line, if it is none."""
    try:
        content = json.loads(path.read_text())
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no JSON"
        raise ValueError(f"results={str(path)!r}: {reason}") from error
    rows = content.get("rows") if isinstance(content, dict) else None
    if not isinstance(rows, list) or not all(
        isinstance(row, dict) and "family" in row for row in rows
    ):
        raise ValueError(f"results={str(path)!r}: expected a file that `mxkernels bench` wrote")
    return content | {"rows": [today(row) for row in rows]}


def today(row: Row) -> Row:
    """A row in today's words: "quantize" of older files is "cast" or "cast3d", all have a name."""
    family = row["family"]
    if family == "quantize":
        family = "cast3d" if len(row.get("shape", ())) > 2 else "cast"
    kernel = row.get("kernel", "")
    known = "torch_compile" if kernel == "torch.compile" else row.get("backend", "")
    if not known and "_triton" in kernel:
        known = "triton"
    if kernel in ("dequantize", "swizzle", "quantize_both"):  # the default of their public names
        known = "triton"
    defaults = {"implementation": known, "data": "randn", "note": "", "recipe": ""}
    return defaults | row | {"family": family, "name": NAMES.get(row.get("variant", ""), "")}


def spread(row: Row) -> float | None:
    """Half of what lies between the 20 % and the 80 % quantile, as a share of the median.

    0 where a row has no quantiles, None of fewer than three samples.

    >>> spread({"median_us": 10.0, "p20_us": 9.9, "p80_us": 10.1})
    0.01
    """
    if row.get("samples", LEAST_SAMPLES) < LEAST_SAMPLES:
        return None
    middle = row["median_us"]
    width = (row.get("p80_us", middle) - row.get("p20_us", middle)) / 2
    return round(width / max(middle, 1e-9), 6)


def key(row: Row) -> tuple[Any, ...]:
    """What rows have in common that answer the same question."""
    return tuple(
        tuple(row.get(name, ())) if name == "shape" else row.get(name, "") for name in KEYS
    )


def compared(rows: Iterable[Row]) -> list[Row]:
    """The rows that stand in a comparison: those of some implementation, no limit's candidate."""
    return [
        row
        for row in rows
        if row.get("implementation") and row["family"] not in ("limits", "host", "cold", *LINEAR)
    ]


def pivot(rows: Iterable[Row]) -> list[Row]:
    """One row a comparison; of several configurations of a kernel the fastest stands for it."""
    groups: dict[tuple[Any, ...], Row] = {}
    rows = compared(rows)
    # a row without a method is one that could not be timed: it belongs to its case's first method
    methods: dict[tuple[Any, ...], str] = {}
    for row in rows:
        if row.get("method"):
            methods.setdefault(key(row)[:-1], row["method"])
    for row in rows:
        place = key(row)
        if not row.get("method"):
            place = (*place[:-1], methods.get(place[:-1], ""))
        names = dict(zip(KEYS, place, strict=True)) | {"name": row["name"]}
        names["shape"] = list(place[1])
        _enter(groups.setdefault(place, names | {"bytes": row.get("bytes", 0)}), row)
    return [_judged(each) for each in groups.values()]


def _enter(entry: Row, row: Row) -> None:
    who = row["implementation"]
    if "median_us" not in row:
        entry.setdefault(f"{who}_note", row["note"])
        return
    if entry.get(f"{who}_us", float("inf")) <= row["median_us"]:
        return
    entry[f"{who}_us"] = row["median_us"]
    entry[f"{who}_gbps"] = row["gbps"]
    found = spread(row)
    if found is not None:
        entry[f"{who}_spread"] = found
    if row.get("config"):
        entry[f"{who}_config"] = row["config"]
    if "share" in row:
        entry[f"{who}_share"] = row["share"]
        entry |= {name: row[name] for name in ("limit", "limit_us", "limit_gbps")}
    for name in ("target", "target_text", "reached", "verified"):
        if name in row and who in OURS:
            entry[f"{who}_{name}"] = row[name]
    # what failed in any of a kernel's forms stays visible beside its figure
    if row["note"]:
        entry[f"{who}_note"] = row["note"]


def _judged(entry: Row) -> Row:
    """Add the fastest of ours, and how many times faster it is than the fastest peer."""
    ours = {who: entry[f"{who}_us"] for who in OURS if f"{who}_us" in entry and sound(entry, who)}
    peers = {who: entry[f"{who}_us"] for who in PEERS if f"{who}_us" in entry and sound(entry, who)}
    if ours:
        entry["best"] = min(ours, key=ours.__getitem__)
    if ours and peers:
        peer = min(peers, key=peers.__getitem__)
        entry["speedup"] = round(peers[peer] / ours[entry["best"]], 3)
        entry["speedup_over"] = peer
    return entry


def sound(entry: Row, who: str) -> bool:
    """Whether an implementation's figure in this row is that of right bytes."""
    return not entry.get(f"{who}_note", "").startswith(BAD)


def failures(rows: Iterable[Row]) -> list[Row]:
    """The rows of our own that were wrong or raised; those of peers and limits do not count."""
    return [
        row
        for row in rows
        if row.get("note", "").startswith(BAD)
        and row["family"] != "limits"
        and row.get("implementation") not in PEERS
    ]


def present(rows: Iterable[Row]) -> list[str]:
    """The implementations that a pivot has a column for."""
    found = {name for row in rows for name in row}
    return [who for who in IMPLEMENTATIONS if f"{who}_us" in found or f"{who}_note" in found]


def winners(rows: Iterable[Row]) -> list[Row]:
    """For each family and variant the fastest of ours over all its shapes and rules.

    By the geometric mean of times, over the rows in which each of ours was timed that appears in
    the variant; inputs randn, single calls. `over_next`: how many times longer the next one takes.
    """
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if (row["data"], row["method"]) == ("randn", "events"):
            groups.setdefault((row["family"], row["variant"]), []).append(row)
    found = []
    for (family, variant), members in groups.items():
        times: dict[str, float] = {}
        who = [w for w in OURS if any(f"{w}_us" in row for row in members)]
        full = [row for row in members if all(f"{w}_us" in row and sound(row, w) for w in who)]
        for name in who if full else ():
            logs = [math.log(row[f"{name}_us"]) for row in full]
            times[name] = math.exp(sum(logs) / len(logs))
        order = sorted(times, key=times.__getitem__)
        if order:
            entry = {"family": family, "variant": variant, "best": order[0], "rows": len(full)}
            if len(order) > 1:
                entry |= {"next": order[1]}
                entry |= {"over_next": round(times[order[1]] / times[order[0]], 4)}
            found.append(entry)
    return found
