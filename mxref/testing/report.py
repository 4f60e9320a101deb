"""What a conformance run found: Report, its check results and its failures. Data and text only."""

import json
from dataclasses import asdict, dataclass, field
from typing import Any

PASSED, FAILED, DECLINED = "passed", "failed", "declined"


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
    `expected` and `actual` are None; `message` says what happened either way.
    """

    check: str
    message: str
    dtype: str = ""
    block_index: tuple[int, ...] = ()
    input_bits: tuple[int, ...] = ()
    expected: BlockBytes | None = None
    actual: BlockBytes | None = None
    reproducer: str = ""

    def __str__(self) -> str:
        lines = [f"{self.check} [{self.dtype}]: {self.message}"]
        if self.expected is not None:
            lines += self._block_lines(self.expected, self.actual or self.expected)
        return "\n".join(lines)

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
class Report:
    """What `mxref.testing.verify` found: str() is a table for people, to_json() for machines."""

    target: str
    spec: str
    claims: dict[str, Any]
    results: tuple[CheckResult, ...]
    failures: tuple[Failure, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    answered: bool = True

    @property
    def passed(self) -> bool:
        """No wrong byte, and contiguous matrices of at least one dtype were answered."""
        return self.answered and not self.failures

    @property
    def verdict(self) -> str:
        """One line for people."""
        if not self.answered:
            reason = self.results[0].detail if self.results else ""
            return f"no verdict: no contiguous matrix of any dtype was answered ({reason})"
        if self.failures:
            return f"does not conform: {len(self.failures)} of {len(self.results)} checks failed"
        declined = sum(result.verdict == DECLINED for result in self.results)
        return "conforms" + (f", {declined} checks declined" if declined else "")

    @property
    def seconds(self) -> float:
        """Time over all checks."""
        return sum(result.seconds for result in self.results)

    def to_json(self) -> str:
        """The report as JSON text."""
        verdicts = {"passed": self.passed, "verdict": self.verdict}
        return json.dumps({**verdicts, **asdict(self)}, indent=2)

    def __str__(self) -> str:
        claims = " ".join(f"{key}={value}" for key, value in self.claims.items())
        rows = [("check", "dtype", "blocks", "elements", "verdict", "")]
        for each in self.results:
            counts = (f"{each.blocks:,}", f"{each.elements:,}")
            rows.append((each.check, each.dtype, *counts, each.verdict, each.detail))
        widths = [max(len(row[i]) for row in rows) for i in range(5)]
        lines = [f"{self.target}  {claims}", ""]
        for row in rows:
            cells = [
                text.rjust(width) if i in (2, 3) else text.ljust(width)
                for i, (text, width) in enumerate(zip(row, widths, strict=False))
            ]
            lines.append("  ".join([*cells, row[5]]).rstrip())
        lines.append("")
        for failure in self.failures:
            lines += [str(failure), ""]
        if self.failures and self.failures[0].reproducer:
            lines += ["To reproduce the first failure:", "", self.failures[0].reproducer]
        lines.append(f"{self.verdict} ({self.seconds:.1f} s)")
        return "\n".join(lines)
