"""verify: the conformance run. Every check of a level on every dtype, one report."""

from collections.abc import Callable, Iterable
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

from mxref.recipes import Recipe
from mxref.testing.adapter import Adapter, FunctionAdapter
from mxref.testing.check import Check
from mxref.testing.checks import CHECKS
from mxref.testing.claims import Claims
from mxref.testing.report import NotRun, Report
from mxref.testing.run import Progress, Run
from mxref.testing.waivers import Waivers


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
    payload_order: str = "any",
    flushes_subnormals: bool = False,
    deterministic: bool = True,
    exact_scales: bool = True,
    seed: int = 0,
    fuzz_seconds: int = 60,
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
        level: "smoke" (seconds), "full" (every pair of value and scale byte; under a minute),
            "exhaustive" (every fp32 amax, a tensor past 2^31 elements) or "fuzz" (Hypothesis).
        multiple_of: sizes of the matrices that must be answered are multiples of it, and of 32.
        contract: -1 or -2 as in `mxref.layouts.encode`; a swizzled (32, 32) needs it.
        nan: "any" NaN code where NaN is expected, or "strict": exactly 0x7F.
        payload_order: "row", "col", or "any" where it is not claimed.
        flushes_subnormals: inputs below 2^-126 count as zeros of their sign.
        deterministic: the same input gives the same bytes again.
        exact_scales: False lets a finite scale be one step off; the payload is judged under it.
        seed: of the noise in the inputs, the same on every machine.
        fuzz_seconds: the budget of level "fuzz" for each dtype.
        progress: called as progress(check, done, total) before each check and at the end.
        name: the target's name; "module:function" goes into reproducers as an import.
        checks: names of checks to run, default all of the level; `matrices` always runs.

    Raises:
        TypeError, ValueError: a wrong argument, named with its value and what is allowed.
        NotImplementedError: an axis value of the recipe that is not built.
        ModuleNotFoundError: level "fuzz" without Hypothesis.

    >>> import mxref
    >>> report = verify(mxref.quantize, recipe="rceil", level="smoke", checks=["edge_blocks"])
    >>> report.passed, report.verdict
    (True, 'conforms')
    """
    if not callable(fn):
        raise TypeError(f"fn={fn!r}: expected a function x -> (payload, scale)")
    if name is not None and not isinstance(name, str):
        raise TypeError(f"name={name!r}: expected a string or None")
    adapter = FunctionAdapter(
        fn,
        target_name(fn) if name is None else name,
        recipe=recipe,
        block=block,
        scale_layout=scale_layout,
        contract=contract,
        dtypes=dtypes,
        device=device,
        multiple_of=multiple_of,
        nan=nan,
        payload_order=payload_order,
        flushes_subnormals=flushes_subnormals,
        deterministic=deterministic,
        exact_scales=exact_scales,
    )
    claims = adapter.claims(level=level, seed=seed, fuzz_seconds=fuzz_seconds)
    return judged(adapter, claims, checks=checks, progress=progress)


def judged(
    adapter: Adapter,
    claims: Claims,
    *,
    checks: Iterable[str] | None = None,
    progress: Progress | None = None,
    waivers: str | None = None,
) -> Report:
    """The run itself: `verify`, `Adapter.verify` and the command line end here."""
    if progress is not None and not callable(progress):
        raise TypeError(f"progress={progress!r}: expected a function (check, done, total) or None")
    require_level(claims.level)
    kept = None if waivers is None else Waivers.load(waivers)
    names = None if checks is None else _listed(checks)
    run = Run(adapter, claims, adapter.target, select(claims.level, names))
    report = run.report(progress, left_out(claims.level, run.checks))
    return report if kept is None else kept.applied(report, known_ids(claims))


def require_level(level: str) -> None:
    """ModuleNotFoundError, one line, where what the level needs is not installed."""
    if level == "fuzz" and find_spec("hypothesis") is None:
        raise ModuleNotFoundError(
            "level 'fuzz' needs Hypothesis: pip install 'mxref[verify]'", name="hypothesis"
        )


def known_ids(claims: Claims) -> tuple[str, ...]:
    """The ids of all checks of all levels: dtype-check, as pytest and waivers name them."""
    dtypes = [str(dtype).removeprefix("torch.") for dtype in claims.dtypes]
    return tuple(f"{dtype}-{check.name}" for dtype in dtypes for check in CHECKS)


def left_out(level: str, run: tuple[Check, ...]) -> tuple[NotRun, ...]:
    """The checks that a call leaves out, by level or by name."""
    return tuple(
        NotRun(check.name, "", reason)
        for check in CHECKS
        if check not in run
        for reason in [
            "left out by checks="
            if level in check.levels
            else f"of level {' and '.join(check.levels)}"
        ]
    )


def select(level: str, names: Iterable[str] | None = None) -> tuple[Check, ...]:
    """The checks of a level, of these names where given; ValueError for an unknown name."""
    of_level = tuple(check for check in CHECKS if level in check.levels)
    if names is None:
        return of_level
    wanted = _listed(names)
    known = [check.name for check in of_level]
    for each in wanted:
        if each not in known:
            expected = ", ".join(map(repr, known))
            raise ValueError(
                f"checks={wanted!r}: {each!r} is not one of level {level!r}: {expected}"
            )
    return tuple(check for check in of_level if check is CHECKS[0] or check.name in wanted)


def _listed(names: Iterable[str]) -> list[str]:
    if isinstance(names, str):
        raise TypeError(f"checks={names!r}: expected a list of names")
    return list(names)


def target_name(fn: object) -> str:
    """module:function where that names fn, else what Python calls it."""
    module, qualname = getattr(fn, "__module__", None), getattr(fn, "__qualname__", None)
    if isinstance(module, str) and isinstance(qualname, str):
        return f"{module}:{qualname}"
    return f"a {type(fn).__name__}"
