"""Reports as tables: one target check by check, or many kernels one line each."""

import json
from collections.abc import Sequence
from typing import Any

from rich.table import Table

from mxref.cli import failures, screen
from mxref.cli.errors import one_line
from mxref.cli.options import block_name
from mxref.cli.subjects import NotRun
from mxref.formats import ELEMENTS, ElementFormat
from mxref.recipes import RECIPES
from mxref.testing.report import DECLINED, FAILED, PASSED, WAIVED, CheckResult, Report

_COLUMNS = ("check", "dtype", "blocks", "elements", "seconds", "verdict", "detail")
_NUMBERS = ("blocks", "elements", "seconds", "passed", "declined", "failed")


def show_one(report: Report) -> None:
    """The checks of one target, its failures, and the verdict in the last line."""
    table = screen.table(*_COLUMNS, numbers=_NUMBERS)
    for result in report.results:
        _add_check(table, result)
    table.add_section()
    blocks, elements, seconds = _sums(report)
    table.add_row("all", "", f"{blocks:,}", f"{elements:,}", f"{seconds:.1f}", "", "")
    screen.results().print(table)
    for line in report.notes():
        screen.plain(line)
    _show_failures(report)
    screen.plain("")
    screen.plain(verdict(report))


def show_all(reports: Sequence[Report], not_run: Sequence[NotRun]) -> None:
    """One line for each kernel and combination, the failed checks, and the verdict."""
    columns = ("kernel", "passed", "declined", "failed", "blocks", "elements", "seconds", "verdict")
    table = screen.table(*columns, numbers=_NUMBERS)
    for report in reports:
        counts = [_count(report, kind) for kind in (PASSED, DECLINED, FAILED)]
        blocks, elements, seconds = _sums(report)
        verdict_word = "conforms" if report.passed else "does not conform"
        numbers = (*map(str, counts), f"{blocks:,}", f"{elements:,}", f"{seconds:.1f}")
        table.add_row(report.target, *numbers, verdict_word)
    for each in not_run:
        table.add_row(each.name, *[""] * 6, f"not run: {each.reason}")
    screen.results().print(table)
    for report in reports:
        if not report.passed:
            screen.plain(f"\n{verdict(report)}")
            _show_failures(report)
    good = sum(report.passed for report in reports)
    total = sum(_sums(report)[1] for report in reports)
    screen.plain(
        f"\n{good} of {len(reports)} kernel combinations conform, {total:,} elements compared"
        + (f"; {len(not_run)} not run" if not_run else "")
    )


def verdict(report: Report) -> str:
    """The verdict in one line, with the claims it holds for or the reason why it fails."""
    claims = report.claims
    if not report.answered and not report.failures:
        return (
            f"{report.target} does not conform: no contiguous 2-D matrix of any dtype was answered"
            f"{_last_detail(report)}"
        )
    if not report.passed:
        names = dict.fromkeys(failure.check for failure in report.failures)
        return f"{report.target} does not conform: {', '.join(names)}"
    recipe, block = _shown(claims["recipe"]), block_name(claims["block"])
    said = f"{recipe}, block {block}, {claims['scale_layout']} scales"
    waived = f", {report.counts[WAIVED]} failed and waived" if report.counts[WAIVED] else ""
    return f"{report.target} conforms: {said}, level {claims['level']}, {report.spec}{waived}"


def _shown(label: str) -> str:
    """The recipe's label, with a word of warning for a dialect whose source was never run."""
    name, _, _ = label.partition("/")
    known = RECIPES.get(name)
    return known.shown.replace(name, label, 1) if known else label


def as_json(report: Report) -> dict[str, Any]:
    """The report as JSON data."""
    data: dict[str, Any] = json.loads(report.to_json())
    return data


def _add_check(table: Table, result: CheckResult) -> None:
    table.add_row(
        result.check,
        result.dtype,
        f"{result.blocks:,}",
        f"{result.elements:,}",
        f"{result.seconds:.1f}",
        result.verdict,
        one_line(result.detail),
    )


def _show_failures(report: Report) -> None:
    if not report.failures:
        return
    first, *others = report.failures
    failures.show(first, element_of(report))
    if others:
        screen.plain("\nmore failures (in full with --json):")
    for failure in others:
        dtype = f", {failure.dtype}" if failure.dtype else ""
        screen.plain(f"  {failure.check}{dtype}: {one_line(failure.message)}")


def element_of(report: Report) -> ElementFormat:
    """The element format that the claims name: `rceil/e5m2` is e5m2."""
    name = str(report.claims.get("recipe", "")).partition("/")[2]
    return ELEMENTS.get(name, ELEMENTS["e4m3"])


def _last_detail(report: Report) -> str:
    """The text of the last exception, or nothing."""
    details = [
        result.detail for result in report.results if result.verdict == DECLINED and result.detail
    ]
    details += [failure.message for failure in report.failures]
    return f"; its last answer: {one_line(details[-1])}" if details else ""


def _count(report: Report, kind: str) -> int:
    return sum(result.verdict == kind for result in report.results)


def _sums(report: Report) -> tuple[int, int, float]:
    results = report.results
    return (
        sum(each.blocks for each in results),
        sum(each.elements for each in results),
        sum(each.seconds for each in results),
    )
