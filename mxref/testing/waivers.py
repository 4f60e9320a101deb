"""Waivers: failures that an adopter knows of, in a TOML file of the adopter's own repository.

A waived failure does not fail the run until the waiver expires; a waived check that passes fails,
and so does a waiver for an id that does not exist. So the file cannot go stale unnoticed.

```toml
[[waiver]]
id = "bfloat16-ties"                       # as in test_mine[bfloat16-ties]
issue = "https://example.org/kernels/issues/7"
expires = 2027-03-31                       # the last day on which it holds
reason = "rounds half away until the new cast lands"   # may be left out
```
"""

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date, datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from mxref.testing.report import FAILED, PASSED, WAIVED, CheckResult, Failure, Report

_KEYS = {"id": str, "issue": str, "expires": date, "reason": str}
_OPTIONAL = ("reason",)
_SHAPE = "expected [[waiver]] tables with id, issue, expires (a date) and, if wanted, reason"


@dataclass(frozen=True)
class Waiver:
    """One known failure: the check's id, where it is tracked, the last day on which it holds."""

    id: str
    issue: str
    expires: date
    reason: str = ""

    def __str__(self) -> str:
        reason = f", {self.reason}" if self.reason else ""
        return f"waived until {self.expires}: {self.issue}{reason}"

    def expired(self, today: date | None = None) -> bool:
        """Whether its last day is over."""
        return (today or date.today()) > self.expires


@dataclass(frozen=True)
class Waivers:
    """The waivers of one file, by id."""

    path: str
    waivers: tuple[Waiver, ...] = ()

    @classmethod
    def load(cls, path: str | Path) -> "Waivers":
        """Read the file; ValueError names the file, the key and what is allowed."""
        if not isinstance(path, (str, Path)):
            raise TypeError(f"waivers={path!r}: expected the name of a TOML file")
        try:
            content = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise ValueError(f"waivers={str(path)!r}: {reason}; {_SHAPE}") from None
        for key, value in content.items():
            tables = isinstance(value, list) and all(isinstance(each, dict) for each in value)
            if key != "waiver" or not tables:
                raise ValueError(f"{path}: key {key!r}: {_SHAPE}")
        found = tuple(_waiver(path, each) for each in content.get("waiver", []))
        ids = [each.id for each in found]
        for each in ids:
            if ids.count(each) > 1:
                raise ValueError(f"{path}: id={each!r}: there twice, expected once")
        return cls(str(path), found)

    def of(self, name: str) -> Waiver | None:
        """The waiver of this id, if there is one."""
        return next((each for each in self.waivers if each.id == name), None)

    def unknown(self, known: Iterable[str]) -> list[str]:
        """A line for each waiver whose id is none of the known ones, with those that are near."""
        ids, lines = list(known), []
        for each in self.waivers:
            if each.id not in ids:
                near = get_close_matches(each.id, ids, n=3, cutoff=0.5) or ids[:3]
                nearest = ", ".join(map(repr, near))
                lines.append(f"{self.path}: id={each.id!r}: no such check, nearest are {nearest}")
        return lines

    def applied(self, report: Report, known: Iterable[str], today: date | None = None) -> Report:
        """The report with waived failures set apart, and with what is wrong with the waivers."""
        failures = {f"{each.dtype}-{each.check}": each for each in report.failures}
        results: list[CheckResult] = []
        failed: list[Failure] = []
        waived: list[Failure] = []
        for result in report.results:
            name = f"{result.dtype}-{result.check}"
            judged = judge(self.of(name), result, failures.get(name), today)
            results.append(judged[0])
            if judged[1] is not None:
                (waived if judged[0].verdict == WAIVED else failed).append(judged[1])
        for line in self.unknown(known):
            results.append(CheckResult("waivers", FAILED, detail=line))
            failed.append(Failure("waivers", line))
        return replace(report, results=tuple(results), failures=tuple(failed), waived=tuple(waived))


def judge(
    waiver: Waiver | None, result: CheckResult, failure: Failure | None, today: date | None = None
) -> tuple[CheckResult, Failure | None]:
    """A result and its failure under a waiver: waived, expired, or not needed any more."""
    if waiver is None:
        return result, failure
    if result.verdict == PASSED:
        line = f"passes, so the waiver has to go ({waiver.issue})"
        return replace(result, verdict=FAILED, detail=line), Failure(
            result.check, line, result.dtype
        )
    if failure is None:
        return result, None
    if waiver.expired(today):
        line = f"{failure.message} (waiver expired on {waiver.expires}: {waiver.issue})"
        return replace(result, detail=line), replace(failure, message=line)
    return replace(result, verdict=WAIVED, detail=f"{waiver}; {failure.message}"), failure


def _waiver(path: object, table: dict[str, Any]) -> Waiver:
    name = f"id={table['id']!r}" if "id" in table else "a waiver without id"
    for key, value in table.items():
        if key not in _KEYS:
            allowed = ", ".join(_KEYS)
            raise ValueError(f"{path}: {name}: key {key!r}: expected one of {allowed}")
        kind = _KEYS[key]
        if not isinstance(value, kind) or isinstance(value, datetime) or value == "":
            wanted = "a date such as 2027-03-31" if kind is date else "a text"
            raise ValueError(f"{path}: {name}: {key}={value!r}: expected {wanted}")
    for key in _KEYS:
        if key not in table and key not in _OPTIONAL:
            raise ValueError(f"{path}: {name}: {key} is missing; {_SHAPE}")
    return Waiver(**table)
