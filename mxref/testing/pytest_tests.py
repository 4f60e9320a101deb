"""Conformance tests for pytest: each check on each dtype is a test of its own.

The only file of `mxref` that imports pytest. It works without the plugin `_mxref_pytest` too, whose
options then have their defaults.
"""

import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import torch

from mxref import SPEC
from mxref.testing.adapter import Adapter
from mxref.testing.check import Check, Setting
from mxref.testing.checks import CHECKS
from mxref.testing.claims import Claims
from mxref.testing.conformance import known_ids, require_level, select
from mxref.testing.report import DECLINED, FAILED, WAIVED, CheckResult, Failure
from mxref.testing.run import DTYPE_DECLINED, Outcome, Run, dtype_name
from mxref.testing.timelimit import OutOfTimeError, time_limit
from mxref.testing.waivers import Waivers, judge

TIMEOUT = 300
"""Seconds for one test, unless --mx-timeout says otherwise."""

Record = Callable[[str, object], None]


def conformance_tests(
    adapter: Adapter, waivers: str | Path | None = None, level: str | None = None
) -> Callable[..., None]:
    """Tests of an adapter: `test_mine = conformance_tests(Mine())` gives `test_mine[dtype-check]`.

    A test passes where no byte differs, fails with the first wrong block in bits, the two verdicts
    on the payload, the diagnosis and a reproducer, and is skipped where the target declines, or
    does not claim, what the check judges. A target that answers no dtype at all fails.

    Args:
        adapter: an object of a subclass of `Adapter`.
        waivers: a TOML file (see `mxref.testing.waivers`), relative to the file of the caller.
            A waived failure is an xfail; an expired waiver, one that is not needed any more and
            one of an unknown id fail.
        level: "smoke" (the default), "full", "exhaustive" or "fuzz"; --mx-level goes before it.

    Returns:
        A parametrized test function, to be assigned to a name that pytest collects.

    Raises:
        TypeError, ValueError: a wrong argument, an unknown level, a malformed file of waivers.

    >>> import mxref
    >>> class Mine(Adapter):
    ...     recipe, dtypes = "rceil", (torch.bfloat16,)
    ...
    ...     def quantize(self, x):
    ...         return mxref.quantize(x, "rceil")
    >>> test_mine = conformance_tests(Mine())
    >>> [case.id for case in test_mine.pytestmark[0].args[1]][:2]
    ['bfloat16-matrices', 'bfloat16-edge_blocks']
    """
    if not isinstance(adapter, Adapter):
        wanted = "an object of a subclass of mxref.testing.Adapter"
        hint = " (call the class)" if isinstance(adapter, type) else ""
        raise TypeError(f"adapter={adapter!r}: expected {wanted}{hint}")
    options = _options()
    claims, absent = _claims(adapter, options, level)
    kept = Waivers("") if waivers is None else Waivers.load(_beside(waivers, sys._getframe(1)))
    limit = options.get("timeout", _timeout(claims))
    suite = Suite(adapter, claims, kept, limit, absent)
    cases = [pytest.param(case, id=case.id) for case in suite.cases()]
    if kept.waivers:
        cases.append(pytest.param(WaiversCase(kept, known_ids(claims)), id="waivers"))

    @pytest.mark.parametrize("mx_case", cases)
    def test(mx_case: Case | WaiversCase, record_property: Record) -> None:
        mx_case.run(record_property)

    return test


def _options() -> dict[str, Any]:
    """The options of this session; none where the plugin is not loaded."""
    plugin = sys.modules.get("_mxref_pytest")
    return dict(plugin.OPTIONS) if plugin is not None else {}


def _claims(adapter: Adapter, options: dict[str, Any], level: str | None) -> tuple[Claims, str]:
    """The claims with what the session asks for, and why they cannot be tried here, if so."""
    run: dict[str, Any] = {"level": options.get("level") or level or "smoke"}
    run["seed"] = options.get("seed", time.time_ns() % (1 << 32) if run["level"] == "fuzz" else 0)
    if "fuzz_seconds" in options:
        run["fuzz_seconds"] = options["fuzz_seconds"]
    if "device" in options:
        # named on the command line: an absent one is an error
        return adapter.claims(device=options["device"], **run), ""
    claims = adapter.claims(device="cpu", **run)
    try:
        return adapter.claims(**run), ""
    except ValueError as error:
        return claims, str(error)


def _timeout(claims: Claims) -> int:
    budget = claims.fuzz_seconds if claims.level == "fuzz" else 0
    return 0 if claims.level == "exhaustive" else TIMEOUT + budget


def _beside(path: str | Path, frame: Any) -> Path:
    """The path, relative to the file whose code runs in the frame."""
    if not isinstance(path, (str, Path)):
        raise TypeError(f"waivers={path!r}: expected the name of a TOML file")
    return Path(frame.f_globals.get("__file__", ".")).parent / path


@dataclass
class Suite:
    """The tests of one adapter: what they share, which is little, so that each runs alone."""

    adapter: Adapter
    claims: Claims
    waivers: Waivers
    limit: float
    absent: str
    declines: dict[torch.dtype, Outcome] = field(default_factory=dict)

    def cases(self) -> "list[Case]":
        """One for each dtype and check; level fuzz has one for each worker of pytest-xdist."""
        parts = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
        return [
            Case(self, dtype, check, part)
            for dtype in self.claims.dtypes
            for check in select(self.claims.level)
            for part in range(parts if check.name == "fuzz" else 1)
        ]

    def outcome(self, dtype: torch.dtype, check: Check, part: int) -> Outcome:
        """Run one check under the time limit; the first check of a dtype is run once only."""
        first = check is CHECKS[0]
        if first and dtype in self.declines:
            return self.declines[dtype]
        claims = replace(self.claims, seed=self.claims.seed + part)
        run = Run(self.adapter, claims, self.adapter.target, (check,))
        with time_limit(self.limit):
            found = run.outcome(check, Setting(claims, dtype))
        if first:
            self.declines[dtype] = found
        return found

    def declined(self, dtype: torch.dtype) -> bool:
        """Whether the target declines contiguous matrices of this dtype."""
        return self.outcome(dtype, CHECKS[0], 0).verdict == DECLINED


@dataclass
class Case:
    """One test: a check on a dtype."""

    suite: Suite
    dtype: torch.dtype
    check: Check
    part: int = 0

    @property
    def name(self) -> str:
        """The id that waivers know."""
        return f"{dtype_name(self.dtype)}-{self.check.name}"

    @property
    def id(self) -> str:
        """The id in brackets."""
        return f"{self.name}-{self.part}" if self.part else self.name

    def run(self, record: Record) -> None:
        """Pass, fail, skip or xfail."""
        suite = self.suite
        record("mx_spec", SPEC)
        for key, value in suite.claims.as_dict().items():
            record(f"mx_{key}", value)
        if suite.absent:
            pytest.skip(f"not run: {suite.absent}")
        try:
            outcome = self._outcome()
        except (OutOfTimeError, ModuleNotFoundError) as error:
            pytest.fail(f"{self.name}: {error}", pytrace=False)
        if outcome.not_run is not None or outcome.result is None:
            record("mx_verdict", "not run")
            pytest.skip(f"not run: {outcome.not_run.reason if outcome.not_run else ''}")
        waiver = suite.waivers.of(self.name)
        result, failure = judge(waiver, outcome.result, outcome.failure)
        self._record(record, result, failure)
        self._end(result, failure)

    def _outcome(self) -> Outcome:
        require_level(self.suite.claims.level)
        if self.check is not CHECKS[0] and self.suite.declined(self.dtype):
            pytest.skip(f"not run: {DTYPE_DECLINED}")
        return self.suite.outcome(self.dtype, self.check, self.part)

    def _record(self, record: Record, result: CheckResult, failure: Failure | None) -> None:
        """The properties of the test, which JUnit files hold."""
        for key in ("verdict", "blocks", "elements", "detail"):
            record(f"mx_{key}", getattr(result, key))
        if failure is not None:
            for key in ("from_input", "own_scales", "diagnosis"):
                record(f"mx_{key}", getattr(failure, key))

    def _end(self, result: CheckResult, failure: Failure | None) -> None:
        if result.verdict == WAIVED:
            pytest.xfail(result.detail)
        if result.verdict == FAILED:
            pytest.fail(self._text(result, failure), pytrace=False)
        if result.verdict == DECLINED:
            if self.check is CHECKS[0] and all(map(self.suite.declined, self.suite.claims.dtypes)):
                line = "no contiguous matrix of any dtype was answered"
                pytest.fail(f"{line}: {result.detail}", pytrace=False)
            pytest.skip(f"declined: {result.detail}")

    def _text(self, result: CheckResult, failure: Failure | None) -> str:
        if failure is None:
            return result.detail
        seed = self.suite.claims.seed + self.part
        lines = [f"{self.suite.adapter.target} does not conform, level "
                 f"{self.suite.claims.level}, seed {seed}", str(failure)]  # fmt: skip
        if failure.reproducer:
            lines += ["", "To reproduce:", "", failure.reproducer]
        return "\n".join(lines)


@dataclass
class WaiversCase:
    """The test of the file of waivers: every id is one of a check."""

    waivers: Waivers
    known: tuple[str, ...]

    def run(self, record: Record) -> None:
        """Fail with a line for each unknown id."""
        lines = self.waivers.unknown(self.known)
        if lines:
            pytest.fail("\n".join(lines), pytrace=False)
