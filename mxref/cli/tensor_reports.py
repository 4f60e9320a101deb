"""What `mxref verify --tensors` shows and writes: a line for each tensor, totals, and targets."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from mxref.cli import screen, tensors
from mxref.cli.figures import Figures
from mxref.cli.options import dtype_name
from mxref.cli.subjects import NotRun
from mxref.cli.tensors import RULES, Row

_FIGURES = ("SQNR dB", "saturated", "flushed")
_VERDICTS = ("equal", "different", "declined", "not asked")


def show(
    rows: Sequence[Row],
    labels: Sequence[str],
    skipped: Mapping[str, int],
    not_run: Sequence[NotRun],
) -> None:
    """Print both tables, what was skipped, and the verdict in the last line."""
    _show_tensors(rows)
    screen.plain("")
    table = screen.table("target", *_VERDICTS, "verdict", numbers=_VERDICTS)
    for label in labels:
        found = [row.tallies[label].verdict for row in rows]
        good = tensors.passed(rows, [label])
        counts = [str(found.count(verdict)) for verdict in _VERDICTS]
        table.add_row(label, *counts, "conforms" if good else "does not conform")
    for each in not_run:
        table.add_row(each.name, *[""] * len(_VERDICTS), f"not run: {each.reason}")
    screen.results().print(table)
    for label in labels:
        _show_reason(rows, label)
    left_out = ", ".join(f"{count} of {why}" for why, count in sorted(skipped.items()))
    count = sum(skipped.values())
    elements = tensors.totals(rows)[RULES[0]].elements
    good = tensors.passed(rows, labels)
    screen.plain(
        f"\n{len(rows)} tensors, {elements:,} elements; {count} skipped"
        + (f" ({left_out})" if count else "")
        + f"; the targets {'conform' if good else 'do not conform'}"
    )


def as_json(rows: Sequence[Row], skipped: Mapping[str, int]) -> dict[str, Any]:
    """The same for a JSON file."""
    summed = tensors.totals(rows)
    return {
        "tensors": [row.as_json() for row in rows],
        "totals": {rule: figures.as_json() for rule, figures in summed.items()},
        "skipped": dict(skipped),
    }


def _show_tensors(rows: Sequence[Row]) -> None:
    numbers = [f"{what} {rule}" for what in _FIGURES for rule in RULES]
    table = screen.table(
        "tensor", "dtype", "shape", "bytes equal", *numbers, numbers=tuple(numbers)
    )
    for row in rows:
        shape = "x".join(map(str, row.entry.shape))
        dtype = dtype_name(row.entry.dtype)
        table.add_row(
            screen.printable(row.entry.name), dtype, shape, _equal(row), *_cells(row.figures)
        )
    table.add_section()
    table.add_row(f"all {len(rows)}", "", "", "", *_cells(tensors.totals(rows)))
    screen.results().print(table)


def _equal(row: Row) -> str:
    """yes, no, or how many of several targets; a target that was not asked does not count."""
    verdicts = [tally.verdict for tally in row.tallies.values() if tally.verdict != "not asked"]
    if not verdicts:
        return "not asked"
    if "different" in verdicts:
        return "no" if len(verdicts) == 1 else f"no: {verdicts.count('different')} differ"
    declined = verdicts.count("declined")
    if declined == len(verdicts):
        return "declined"
    return f"yes, {declined} declined" if declined else "yes"


def _cells(figures: Mapping[str, Figures]) -> list[str]:
    pair = [figures[rule] for rule in RULES]
    return [
        *(_decibels(each.sqnr) for each in pair),
        *(_share(each.saturated, each.saturated_share) for each in pair),
        *(_share(each.flushed, each.flushed_share) for each in pair),
    ]


def _decibels(sqnr: float | None) -> str:
    if sqnr is None:
        return "-"
    return f"{sqnr:.2f}" if math.isfinite(sqnr) else str(sqnr)


def _share(count: int, share: float) -> str:
    return f"{100 * share:.4f} %" if count else "0"


def _show_reason(rows: Sequence[Row], label: str) -> None:
    """The first tensor that this target did not answer with equal bytes, and why."""
    for row in rows:
        tally = row.tallies[label]
        if tally.verdict in ("different", "declined"):
            name = screen.printable(row.entry.name)
            screen.plain(f"{label}: {name}: {tally.verdict}: {tally.detail}")
            return
