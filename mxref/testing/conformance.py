"""verify: the conformance run. Every check of a level on every dtype, one report."""

import platform
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from mxref import SPEC, __version__
from mxref.recipes import Recipe
from mxref.testing.check import Check, Setting
from mxref.testing.checks import CHECKS
from mxref.testing.claims import Claims
from mxref.testing.judge import Judge, Refused, Wrong, describe
from mxref.testing.report import DECLINED, FAILED, PASSED, CheckResult, Failure, Report
from mxref.testing.reproducer import reproducer

Progress = Callable[[str, int, int], None]


def verify(
    fn: Callable[[Tensor], Any],
    *,
    recipe: str | Recipe,
    block: tuple[int, int] = (1, 32),
    scale_layout: str = "plain",
    dtypes: tuple[torch.dtype, ...] = (torch.bfloat16, torch.float16, torch.float32),
    device: str | torch.device = "cpu",
    level: str = "full",
    multiple_of: int = 32,
    contract: int | None = None,
    nan: str = "any",
    seed: int = 0,
    progress: Progress | None = None,
    name: str | None = None,
    checks: Iterable[str] | None = None,
) -> Report:
    """Judge a quantizer: its bytes must be those of `mxref.quantize`, on the inputs of every check.

    Bytes are compared, never values, and by logical index, so a payload's strides are free. Ragged,
    empty, non-contiguous and offset inputs, ranks other than 2 and each dtype are checks of their
    own: a target that raises there has declined, which does not fail. It has to answer contiguous
    matrices of at least one dtype. Whatever the target does ends in the report.

    Args:
        fn: x -> (payload, scale). payload: the element's float8 dtype or uint8, x's shape. scale:
            float8_e8m0fnu or uint8, the logical shape for "plain", else any shape with the right
            number of bytes.
        recipe: a name in `mxref.RECIPES` or a Recipe.
        block: (1, 32), (32, 1) or (32, 32).
        scale_layout: where the scale bytes lie, a name in `mxref.layouts.LAYOUTS`.
        dtypes: the input dtypes to try: bfloat16, float16, float32.
        device: where inputs are made and outputs have to be.
        level: "smoke" (seconds) or "full" (every pair of value and scale byte; under a minute).
        multiple_of: sizes of the matrices that must be answered are multiples of it, and of 32.
        contract: -1 or -2 as in `mxref.layouts.encode`; a swizzled (32, 32) needs it.
        nan: "any" NaN code where NaN is expected, or "strict": exactly 0x7F.
        seed: of the noise in the inputs, the same on every machine.
        progress: called as progress(check, done, total) before each check and at the end.
        name: the target's name; "module:function" goes into reproducers as an import.
        checks: names of checks to run, default all of the level; `matrices` always runs.

    Raises:
        TypeError, ValueError: a wrong argument, named with its value and what is allowed.
        NotImplementedError: an axis value of the recipe that is not built.

    >>> import mxref
    >>> report = verify(mxref.quantize, recipe="rceil", level="smoke", checks=["edge_blocks"])
    >>> report.passed, report.verdict
    (True, 'conforms')
    """
    if not callable(fn):
        raise TypeError(f"fn={fn!r}: expected a function x -> (payload, scale)")
    if progress is not None and not callable(progress):
        raise TypeError(f"progress={progress!r}: expected a function (check, done, total) or None")
    if name is not None and not isinstance(name, str):
        raise TypeError(f"name={name!r}: expected a string or None")
    claims = Claims.of(
        recipe=recipe,
        block=block,
        scale_layout=scale_layout,
        contract=contract,
        dtypes=dtypes,
        device=device,
        multiple_of=multiple_of,
        nan=nan,
        level=level,
        seed=seed,
    )
    run = Run(fn, claims, target_name(fn) if name is None else name, select(claims.level, checks))
    return run.report(progress)


def select(level: str, names: Iterable[str] | None = None) -> tuple[Check, ...]:
    """The checks of a level, of these names where given; ValueError for an unknown name."""
    of_level = tuple(check for check in CHECKS if level in check.levels)
    if names is None:
        return of_level
    if isinstance(names, str):
        raise TypeError(f"checks={names!r}: expected a list of names")
    wanted = list(names)
    known = [check.name for check in of_level]
    for each in wanted:
        if each not in known:
            expected = ", ".join(map(repr, known))
            raise ValueError(
                f"checks={wanted!r}: {each!r} is not one of level {level!r}: {expected}"
            )
    return tuple(check for check in of_level if check is CHECKS[0] or check.name in wanted)


def target_name(fn: object) -> str:
    """module:function where that names fn, else what Python calls it."""
    module, qualname = getattr(fn, "__module__", None), getattr(fn, "__qualname__", None)
    if isinstance(module, str) and isinstance(qualname, str):
        return f"{module}:{qualname}"
    return f"a {type(fn).__name__}"


@dataclass
class Run:
    """One target under its claims, through some checks; `stop` ends at the first failure."""

    fn: Callable[[Tensor], Any]
    claims: Claims
    name: str
    checks: tuple[Check, ...]
    stop: bool = False
    results: list[CheckResult] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)

    def report(self, progress: Progress | None = None) -> Report:
        """Run all checks on all dtypes."""
        total = len(self.checks) * len(self.claims.dtypes)
        answered = False
        for number, dtype in enumerate(self.claims.dtypes):
            setting = Setting(self.claims, dtype)
            for at, check in enumerate(self.checks):
                if progress is not None:
                    progress(check.name, number * len(self.checks) + at, total)
                verdict = self.run(check, setting)
                if at == 0 and verdict == DECLINED:
                    break
                answered = True
                if self.stop and self.failures:
                    break
            if self.stop and self.failures:
                break
        if progress is not None:
            progress("done", total, total)
        return Report(
            target=self.name,
            spec=SPEC,
            claims=self.claims.as_dict(),
            results=tuple(self.results),
            failures=tuple(self.failures),
            environment=environment(self.claims.device),
            answered=answered,
        )

    def run(self, check: Check, setting: Setting) -> str:
        """Run one check on one dtype; returns the verdict, "" where it has no inputs."""
        start = time.perf_counter()
        judge = Judge(self.fn, self.claims)
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
        except Exception as error:  # a target that broke its device or this process's state
            failure = self._failure(check, setting, Wrong(f"broke off: {describe(error)}"))
        if not inputs and failure is None:
            return ""
        verdict, detail = PASSED, ""
        if failure is not None:
            self.failures.append(failure)
            verdict, detail = FAILED, failure.message
        elif refusals:
            detail = f"{len(refusals)} of {inputs} inputs: {refusals[0]}"
            verdict = DECLINED
        seconds = round(time.perf_counter() - start, 4)
        dtype = str(setting.dtype).removeprefix("torch.")
        counts = (judge.blocks, judge.elements, seconds)
        self.results.append(CheckResult(check.name, verdict, *counts, detail, dtype))
        return verdict

    def _failure(self, check: Check, setting: Setting, wrong: Wrong) -> Failure:
        found = wrong.difference
        try:
            snippet = reproducer(self.fn, self.name, setting, check.name, found)
        except Exception as error:
            snippet = f"# no reproducer: {describe(error)}\n"
        return Failure(
            check=check.name,
            message=str(wrong),
            dtype=str(setting.dtype).removeprefix("torch."),
            block_index=found.block_index if found else (),
            input_bits=found.input_bits if found else (),
            expected=found.expected if found else None,
            actual=found.actual if found else None,
            reproducer=snippet,
        )


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
    return found
