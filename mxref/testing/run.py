"""Running checks: one check on one dtype gives an outcome, all of them a report."""

import platform
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

from mxref import SPEC, __version__
from mxref.testing import ptxas
from mxref.testing.answer import Answer, encoded_shape
from mxref.testing.check import Check, Setting
from mxref.testing.claims import Claims
from mxref.testing.judge import Judge, NotHere, Refused, Wrong, describe
from mxref.testing.reference import verdicts
from mxref.testing.report import DECLINED, FAILED, PASSED, CheckResult, Failure, NotRun, Report
from mxref.testing.reproducer import reproducer
from mxref.testing.timelimit import OutOfTimeError

Progress = Callable[[str, int, int], None]

_DIAGNOSIS = "mxref.testing.diagnosis"


@dataclass(frozen=True)
class Outcome:
    """What one check on one dtype came to: a result, with its failure, or why it was not run."""

    result: CheckResult | None = None
    failure: Failure | None = None
    not_run: NotRun | None = None

    @property
    def verdict(self) -> str:
        """The result's verdict, "" where the check was not run."""
        return "" if self.result is None else self.result.verdict


@dataclass
class Run:
    """One target under its claims, through some checks; `stop` ends at the first failure."""

    fn: Callable[[Tensor], Any]
    claims: Claims
    name: str
    checks: tuple[Check, ...]
    stop: bool = False
    asking: Callable[[], None] | None = None
    results: list[CheckResult] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    not_run: list[NotRun] = field(default_factory=list)

    def report(self, progress: Progress | None = None, left_out: tuple[NotRun, ...] = ()) -> Report:
        """Run all checks on all dtypes."""
        total = len(self.checks) * len(self.claims.dtypes)
        answered = False
        for number, dtype in enumerate(self.claims.dtypes):
            reason = ""
            for at, check in enumerate(self.checks):
                if self.stop and self.failures:
                    reason = "stopped at the first failure"
                if reason:
                    self.not_run.append(NotRun(check.name, dtype_name(dtype), reason))
                    continue
                if progress is not None:
                    progress(check.name, number * len(self.checks) + at, total)
                verdict = self.run(check, Setting(self.claims, dtype)).verdict
                if at == 0 and verdict == DECLINED:
                    reason = DTYPE_DECLINED
                answered |= not reason
        if progress is not None:
            progress("done", total, total)
        return self.finished(answered, left_out)

    def finished(self, answered: bool, left_out: tuple[NotRun, ...]) -> Report:
        """The report on what has been run so far."""
        return Report(
            target=self.name,
            spec=SPEC,
            claims=self.claims.as_dict(),
            results=tuple(self.results),
            failures=tuple(self.failures),
            environment=environment(self.claims.device),
            answered=answered,
            not_run=(*self.not_run, *left_out),
            not_claimed=self.claims.not_claimed(),
        )

    def run(self, check: Check, setting: Setting) -> Outcome:
        """Run one check on one dtype, and keep what it came to."""
        outcome = self.outcome(check, setting)
        self.keep(outcome)
        return outcome

    def keep(self, outcome: Outcome) -> None:
        """Count an outcome towards the report."""
        if outcome.result is not None:
            self.results.append(outcome.result)
        if outcome.failure is not None:
            self.failures.append(outcome.failure)
        if outcome.not_run is not None:
            self.not_run.append(outcome.not_run)

    def outcome(self, check: Check, setting: Setting) -> Outcome:
        """Run one check on one dtype; whatever the target does becomes a verdict."""
        dtype, start = dtype_name(setting.dtype), time.perf_counter()
        unclaimed = check.not_claimed(self.claims)
        if unclaimed:
            return Outcome(CheckResult(check.name, DECLINED, detail=unclaimed, dtype=dtype))
        judge = Judge(self.fn, self.claims, self.asking)
        inputs, refusals, failure = 0, [], None
        try:
            for x in check.inputs(setting):
                inputs += 1
                try:
                    check.judge(judge, x)
                except Refused as refused:
                    if not check.optional:
                        raise Wrong(f"raised {refused} after answering matrices") from None
                    refusals.append(str(refused))
        except Wrong as wrong:
            failure = self._failure(check, setting, wrong)
        except NotHere as reason:
            return Outcome(not_run=NotRun(check.name, dtype, str(reason)))
        except OutOfTimeError as error:
            failure = self._failure(check, setting, Wrong(str(error)))
        except Exception as error:  # a target that broke its device or this process's state
            failure = self._failure(check, setting, Wrong(f"broke off: {describe(error)}"))
        if not inputs and failure is None:
            return Outcome(not_run=NotRun(check.name, dtype, "no such inputs under these claims"))
        verdict, detail = PASSED, ""
        if judge.scales_off:
            detail = f"{judge.scales_off} scale bytes one step off"
        if failure is not None:
            verdict, detail = FAILED, failure.message
        elif refusals:
            detail = f"{len(refusals)} of {inputs} inputs: {refusals[0]}"
            verdict = DECLINED
        counts = (judge.blocks, judge.elements, round(time.perf_counter() - start, 4))
        return Outcome(CheckResult(check.name, verdict, *counts, detail, dtype), failure)

    def _failure(self, check: Check, setting: Setting, wrong: Wrong) -> Failure:
        found = wrong.difference
        try:
            explained = self._explained(wrong)
            snippet = reproducer(self.fn, self.name, setting, check.name, found)
        except Exception as error:  # a device that broke, a target that fails in another way now
            explained, snippet = {}, f"# no reproducer: {describe(error)}\n"
        return Failure(
            check=check.name,
            message=str(wrong),
            dtype=dtype_name(setting.dtype),
            block_index=found.block_index if found else (),
            input_bits=found.input_bits if found else (),
            expected=found.expected if found else None,
            actual=found.actual if found else None,
            reproducer=snippet,
            **explained,
        )

    def _explained(self, wrong: Wrong) -> dict[str, str]:
        """The two verdicts and the diagnosis, where an answer was compared with the reference."""
        if wrong.evidence is None:
            return {}
        x, actual = wrong.evidence
        both = verdicts(x, actual, self.claims)
        return {
            "from_input": both.from_input,
            "own_scales": both.own_scales,
            "diagnosis": diagnosis(x, actual, self.claims),
        }


DTYPE_DECLINED = "the dtype was declined in matrices"


def diagnosis(x: Tensor, actual: Answer, claims: Claims) -> str:
    """The most probable cause of a wrong answer in one line, "" where none is known."""
    if find_spec(_DIAGNOSIS) is None:
        return ""
    stored = actual.scale.reshape(encoded_shape(tuple(x.shape), claims))
    try:
        causes = import_module(_DIAGNOSIS).diagnose(
            actual.payload,
            stored,
            x,
            recipe=claims.recipe,
            block=claims.block,
            scale_layout=claims.scale_layout,
            contract=claims.contract,
        )
        return str(causes[0].cause) if causes else ""
    except Exception as error:
        # a failure is shown in any case: the search for its cause must not hide it
        return f"none, the search broke off: {describe(error)}"


def dtype_name(dtype: torch.dtype) -> str:
    """`bfloat16`: the dtype as reports and ids name it."""
    return str(dtype).removeprefix("torch.")


def environment(device: torch.device) -> dict[str, str]:
    """Versions and the device, as the report records them."""
    found = {
        "mxref": __version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
        "device": str(device),
    }
    if device.type == "cuda":
        found["device_name"] = torch.cuda.get_device_name(device)
        found |= {"ptxas": ptxas.described()} if ptxas.described() else {}
    return found
