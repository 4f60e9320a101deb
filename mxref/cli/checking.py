"""All checks of one target in the child, one report: the run of `mxref verify`."""

from typing import Any

import torch

from mxref.cli.supervisor import BrokenDeviceError, Child, EndedError
from mxref.testing import conformance
from mxref.testing.check import Check, Setting
from mxref.testing.claims import Claims
from mxref.testing.report import DECLINED, FAILED, CheckResult, Failure, NotRun, Report
from mxref.testing.reproducer import reproducer
from mxref.testing.run import DTYPE_DECLINED, Outcome, Progress, Run, dtype_name

MOST_ENDS = 3
"""Ends of the process in a row, after which the rest of a dtype is left: each costs a start."""


def run(child: Child, label: str, claims: Claims, progress: Progress) -> Report:
    """The report on one target, whatever it does to its process."""
    checks = conformance.select(claims.level)
    found = Run(_elsewhere, claims, label, checks)
    answered = [
        _on_dtype(child, found, dtype, number, progress)
        for number, dtype in enumerate(claims.dtypes)
    ]
    progress("done", len(checks) * len(claims.dtypes), len(checks) * len(claims.dtypes))
    return found.finished(any(answered), conformance.left_out(claims.level, checks))


def _on_dtype(
    child: Child, found: Run, dtype: torch.dtype, number: int, progress: Progress
) -> bool:
    """Run every check on one dtype; whether the dtype was answered at all."""
    checks, total = found.checks, len(found.checks) * len(found.claims.dtypes)
    waiting, ends = list(checks), 0
    while waiting:
        at = len(checks) - len(waiting)
        # the first alone: a dtype that it declines is done
        items = waiting[:1] if at == 0 else waiting
        try:
            child.send("checks", found.name, [(dtype, check.name) for check in items])
            for check in items:
                progress(check.name, number * len(checks) + len(checks) - len(waiting), total)
                outcome = _received(child)
                waiting, ends = waiting[1:], 0
                found.keep(outcome)
                if check is checks[0] and outcome.verdict == DECLINED:
                    _leave(found, waiting, dtype, DTYPE_DECLINED)
                    return False
        except BrokenDeviceError:
            continue  # with a new child; it broke in a check that has its verdict
        except EndedError as error:
            found.keep(_ended(found, waiting[0], dtype, error))
            waiting, ends = waiting[1:], ends + 1
        if ends == MOST_ENDS:
            _leave(found, waiting, dtype, f"{ends} checks in a row ended the process")
            return True
    return True


def _received(child: Child) -> Outcome:
    """The outcome of the check at work; each sign of life renews its time."""
    while True:
        message = child.receive()
        if message[0] == "outcome":
            outcome: Outcome = message[1]
            return outcome


def _ended(found: Run, check: Check, dtype: torch.dtype, error: EndedError) -> Outcome:
    """The verdict on a check that ended its process."""
    line = f"{error} during check {check.name}"
    setting, name = Setting(found.claims, dtype), dtype_name(dtype)
    snippet = reproducer(_elsewhere, found.name, setting, check.name, None)
    return Outcome(
        CheckResult(check.name, FAILED, detail=line, dtype=name),
        Failure(check.name, line, name, reproducer=snippet),
    )


def _leave(found: Run, waiting: list[Check], dtype: torch.dtype, reason: str) -> None:
    for check in waiting:
        found.keep(Outcome(not_run=NotRun(check.name, dtype_name(dtype), reason)))


def _elsewhere(x: torch.Tensor) -> Any:
    raise AssertionError("the target is in the child")
