"""What a conformance run found: Report, its check results and its failures. Data and text only."""

import json
from dataclasses import asdict, dataclass, field
from typing import Any

PASSED, FAILED, DECLINED, WAIVED = "passed", "failed", "declined", "waived"
VERDICTS = (PASSED, FAILED, DECLINED, WAIVED)


@dataclass(frozen=True)
class BlockBytes:
    """The stored bytes of one block: its scale byte and its payload bytes, row by row."""

    scale: int
    payload: tuple[int, ...]

    def __str__(self) -> str:
        return f"scale {self.scale:02X}  payload {' '.join(f'{code:02X}' for code in self.payload)}"


@dataclass(frozen=True)
class Failure:
    """The first wrong block of one check, or what the target did instead of answering.

    `block_index` indexes the logical scale; `input_bits` are the bits of the block's elements, row
    by row. Where no block can be named (a wrong shape, a changed input), the index is empty and
    `expected` and `actual` are None; `message` says what happened either way. `from_input` and
    `own_scales` are the two verdicts on the whole input: against the bytes that follow from it, and
    of the payload under the scales that the target itself gave. `diagnosis` is the probable cause.
    """

    check: str
    message: str
    dtype: str = ""
    block_index: tuple[int, ...] = ()
    input_bits: tuple[int, ...] = ()
    expected: BlockBytes | None = None
    actual: BlockBytes | None = None
    reproducer: str = ""
    from_input: str = ""
    own_scales: str = ""
    diagnosis: str = ""

    def __str__(self) -> str:
        lines = [f"{self.check} [{self.dtype}]: {self.message}"]
        if self.expected is not None:
            lines += self._block_lines(self.expected, self.actual or self.expected)
        return "\n".join([*lines, *(f"  {line}" for line in self.verdict_lines())])

    def verdict_lines(self) -> list[str]:
        """The two verdicts and the diagnosis, those that there are."""
        lines = []
        if self.from_input:
            lines.append(f"from the input: {self.from_input}")
        if self.own_scales:
            lines.append(f"payload under the target's own scales: {self.own_scales}")
        if self.diagnosis:
            lines.append(f"diagnosis: {self.diagnosis}")
        return lines

    def _block_lines(self, expected: BlockBytes, actual: BlockBytes) -> list[str]:
        """The block in hex; of a large one only 32 elements, the first wrong one among them."""
        pairs = zip(expected.payload, actual.payload, strict=True)
        at = next((i for i, (wanted, found) in enumerate(pairs) if wanted != found), 0)
        shown = (
            slice(0, 64) if len(self.input_bits) <= 64 else slice(at - at % 32, at - at % 32 + 32)
        )
        digits = 8 if self.dtype == "float32" else 4
        bits = " ".join(f"{each:0{digits}X}" for each in self.input_bits[shown])
        part = "" if len(self.input_bits) <= 64 else f", elements from {shown.start} on"
        return [
            f"  block     {self.block_index} of the scale{part}",
            f"  input     {bits}",
            f"  expected  {BlockBytes(expected.scale, expected.payload[shown])}",
            f"  actual    {BlockBytes(actual.scale, actual.payload[shown])}",
        ]


@dataclass(frozen=True)
class CheckResult:
    """One check's verdict with what was compared; `detail` is the reason where it did not pass."""

    check: str
    verdict: str
    blocks: int = 0
    elements: int = 0
    seconds: float = 0.0
    detail: str = ""
    dtype: str = ""


@dataclass(frozen=True)
class NotRun:
    """A check that was not run; `dtype` is empty where it was run for none."""

    check: str
    dtype: str
    reason: str

    def __str__(self) -> str:
        return f"{self.check} [{self.dtype}]" if self.dtype else self.check


@dataclass(frozen=True)
class Report:
    """What `mxref.testing.verify` found: str() is a table for people, to_json() for machines.

    `not_claimed` are the claims that the target does not make, a line each; `not_run` the checks
    that were not run. Neither counts as passed.
    """

    target: str
    spec: str
    claims: dict[str, Any]
    results: tuple[CheckResult, ...]
    failures: tuple[Failure, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    answered: bool = True
    not_run: tuple[NotRun, ...] = ()
    not_claimed: tuple[str, ...] = ()
    waived: tuple[Failure, ...] = ()

    @property
    def passed(self) -> bool:
        """No wrong byte, and contiguous matrices of at least one dtype were answered."""
        return self.answered and not self.failures

    @property
    def verdict(self) -> str:
        """One line for people."""
        if self.failures:
            return f"does not conform: {len(self.failures)} of {len(self.results)} checks failed"
        if not self.answered:
            reason = self.results[0].detail if self.results else ""
            return f"no verdict: no contiguous matrix of any dtype was answered ({reason})"
        declined, waived = self.counts[DECLINED], self.counts[WAIVED]
        said = f", {waived} failed and {'is' if waived == 1 else 'are'} waived" if waived else ""
        return f"conforms{said}" + (f", {declined} checks declined" if declined else "")

    @property
    def counts(self) -> dict[str, int]:
        """How many checks had each verdict, and how many were not run."""
        found = {word: sum(each.verdict == word for each in self.results) for word in VERDICTS}
        return {**found, "not run": len(self.not_run)}

    @property
    def declined(self) -> tuple[CheckResult, ...]:
        """The checks that the target declined, with its reason, or whose claim it does not make."""
        return tuple(each for each in self.results if each.verdict == DECLINED)

    @property
    def seconds(self) -> float:
        """Time over all checks."""
        return sum(result.seconds for result in self.results)

    def to_json(self) -> str:
        """The report as JSON text."""
        summary = {
            "passed": self.passed,
            "verdict": self.verdict,
            "counts": self.counts,
            "blocks": sum(each.blocks for each in self.results),
            "elements": sum(each.elements for each in self.results),
            "declined": [asdict(each) for each in self.declined],
        }
        return json.dumps({**summary, **asdict(self)}, indent=2)

    def __str__(self) -> str:
        claims = " ".join(f"{key}={value}" for key, value in self.claims.items())
        lines = [f"{self.target}  {claims}", "", *_table(self.results), ""]
        if notes := self.notes():
            lines += [*notes, ""]
        for failure in self.failures:
            lines += [str(failure), ""]
        if self.failures and self.failures[0].reproducer:
            lines += ["To reproduce the first failure:", "", self.failures[0].reproducer]
        lines.append(f"{self.verdict} ({self.seconds:.1f} s)")
        return "\n".join(lines)

    def notes(self) -> list[str]:
        """What the verdict does not speak of: claims not made, and checks not run, by reason."""
        reasons: dict[str, list[str]] = {}
        for each in self.not_run:
            reasons.setdefault(each.reason, []).append(str(each))
        lines = [f"declined: {each}" for each in self.not_claimed]
        return lines + [f"not run: {', '.join(found)}: {why}" for why, found in reasons.items()]


def _table(results: tuple[CheckResult, ...]) -> list[str]:
    rows = [("check", "dtype", "blocks", "elements", "verdict", "")]
    for each in results:
        counts = (f"{each.blocks:,}", f"{each.elements:,}")
        rows.append((each.check, each.dtype, *counts, each.verdict, each.detail))
    widths = [max(len(row[i]) for row in rows) for i in range(5)]
    lines = []
    for row in rows:
        cells = [
            text.rjust(width) if i in (2, 3) else text.ljust(width)
            for i, (text, width) in enumerate(zip(row, widths, strict=False))
        ]
        lines.append("  ".join([*cells, row[5]]).rstrip())
    return lines
