"""What changed between two results files beyond the noise of both."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from rich.table import Table

from mxkernels.bench import records
from mxkernels.bench.records import Row
from mxkernels.bench.resume import SAME
from mxkernels.bench.site import shape_text
from mxref.cli import screen

LEAST = 0.02
"""POLICY: a change below 2 % is noise: two runs of one kernel on one GPU may differ as much."""

SPREADS = 3.0
"""How many of the two runs' combined spreads a change has to exceed."""


@dataclass(frozen=True)
class Change:
    """One thing timed in both runs, or in one of them; `ratio` is new time over old."""

    verdict: str
    row: Row
    before_us: float | None = None
    after_us: float | None = None
    noise: float = 0.0

    @property
    def ratio(self) -> float | None:
        """The new time over the old."""
        if self.before_us is None or self.after_us is None:
            return None
        return self.after_us / self.before_us


def noise(before: Row, after: Row) -> float:
    """The relative change that two rows' spreads explain; one that is not known counts as 0.

    >>> quiet = {"median_us": 100.0, "p20_us": 100.0, "p80_us": 100.0}
    >>> noise(quiet, quiet), noise(quiet, quiet | {"p20_us": 96.0, "p80_us": 104.0})
    (0.02, 0.12)
    """
    both = sum((records.spread(row) or 0.0) ** 2 for row in (before, after)) ** 0.5
    return round(max(LEAST, SPREADS * both), 6)


def _identity(row: Row) -> tuple[Any, ...]:
    """What is timed: an implementation's fastest configuration; a wrong one is a row of its own."""
    who = row.get("implementation") or row.get("kernel", "")
    bad = row["note"].startswith(records.BAD)
    return (*records.key(row), who, row.get("config", "") if bad else None)


def _timed(rows: Iterable[Row]) -> dict[tuple[Any, ...], Row]:
    found: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        if row.get("remark") == "candidate" or not ("median_us" in row or row["note"]):
            continue
        place = _identity(row)
        if place in found and _time(found[place]) <= _time(row):
            continue
        found[place] = row
    return found


def _time(row: Row) -> float:
    return float(row.get("median_us", float("inf")))


def changes(old: Iterable[Row], new: Iterable[Row]) -> list[Change]:
    """Slower, faster and wrong rows first, then those in one run only; the unchanged last."""
    before, after = _timed(old), _timed(new)
    found = []
    for place, row in after.items():
        past = before.get(place)
        if row["note"].startswith(records.BAD):
            known = past is not None and past["note"] == row["note"]
            found.append(Change("still wrong" if known else "wrong", row))
        elif "median_us" not in row:
            continue
        elif past is None or "median_us" not in past:
            found.append(Change("new", row, None, row["median_us"]))
        else:
            found.append(_judged(past, row))
    found += [
        Change("gone", row, row["median_us"])
        for place, row in before.items()
        if "median_us" in row and place not in after
    ]
    order = ("wrong", "slower", "faster", "still wrong", "new", "gone", "same")
    return sorted(found, key=lambda change: order.index(change.verdict))


def _judged(before: Row, after: Row) -> Change:
    ratio, least = after["median_us"] / before["median_us"], noise(before, after)
    # a ratio and its inverse count alike: twice as slow is as far from 1 as twice as fast
    beyond = max(ratio, 1 / ratio) - 1 > least
    verdict = ("slower" if ratio > 1 else "faster") if beyond else "same"
    return Change(verdict, after, before["median_us"], after["median_us"], least)


def regressions(found: Iterable[Change], percent: float) -> list[Change]:
    """Our own rows that became wrong, or slower beyond the noise by more than `percent`."""
    return [
        change
        for change in found
        if change.row.get("implementation") not in records.PEERS
        and change.row["family"] != "limits"
        and (
            change.verdict == "wrong"
            or (change.verdict == "slower" and (change.ratio or 0) > 1 + percent / 100)
        )
    ]


def table(found: Iterable[Change]) -> Table:
    """What became slower, faster or wrong; what is new or gone is counted by `summary`."""
    heads = ("change", "family", "shape", "data", "variant", "rule", "kernel", "by")
    made = screen.table(*heads, "before us", "after us", "ratio", "noise")
    for change in found:
        if change.verdict in ("same", "new", "gone"):
            continue
        row, ratio = change.row, change.ratio
        made.add_row(
            change.verdict,
            row["family"],
            shape_text(row.get("shape", ())),
            row.get("data", ""),
            row.get("name") or row.get("variant", ""),
            row.get("recipe", ""),
            row.get("kernel", ""),
            row.get("method", ""),
            "" if change.before_us is None else f"{change.before_us:.1f}",
            "" if change.after_us is None else f"{change.after_us:.1f}",
            row["note"].split(":")[0] if ratio is None else f"{ratio:.3f}",
            f"±{100 * change.noise:.1f}%" if ratio is not None else "",
            style={"wrong": "red", "slower": "red", "faster": "green"}.get(change.verdict),
        )
    return made


def machines(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """What differs between two environments and bears on time, a line each."""
    pairs = {
        name: (old.get("environment", {}).get(name, ""), new.get("environment", {}).get(name, ""))
        for name in SAME
    }
    return [f"{name}: {a or 'none'} -> {b or 'none'}" for name, (a, b) in pairs.items() if a != b]


def summary(found: list[Change]) -> str:
    """How many of each kind, in a line."""
    count = {kind: sum(change.verdict == kind for change in found) for kind in
             ("slower", "faster", "same", "wrong", "still wrong", "new", "gone")}  # fmt: skip
    return ", ".join(f"{number} {kind}" for kind, number in count.items() if number) or "no rows"
