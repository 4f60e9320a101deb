"""How sharp the suite is: which mutants each level catches, which cause is named.

`python -m tests.mutants.rates --json FILE` writes all that is measured: kill rates of the levels
smoke and full and of a plain randn test with `torch.testing.assert_close`, and the share of the
mutants whose true cause the diagnosis names.
"""

import argparse
import json
import platform
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import mxref
from mxref.testing import Failure, verify
from mxref.testing.checks import CHECKS
from mxref.testing.diagnosis import diagnose
from tests.mutants.held_out import HELD_OUT
from tests.mutants.mutant import Mutant
from tests.mutants.right import RIGHT
from tests.mutants.wrong import MUTANTS

BEHAVIOUR = ("input_unchanged", "new_numbers", "repeatable", "result_kept")
"""Checks whose own names are the cause; no hypothesis on bytes is asked."""
SMOKE = tuple(check.name for check in CHECKS if "smoke" in check.levels)


@dataclass(frozen=True)
class Row:
    """What became of one mutant; `named` is whether `said` holds the true cause."""

    mutant: str
    true_cause: str
    full: bool
    smoke: bool
    randn_default: bool
    randn_atol: bool
    named: bool
    said: str


class Recorder:
    """A quantizer, and what it was given and answered."""

    def __init__(self, fn: Callable[[Tensor], Any]) -> None:
        self.fn = fn
        self.calls: list[tuple[Tensor, Any]] = []

    def __call__(self, x: Tensor) -> Any:
        output = self.fn(x)
        kept = [each.clone() if isinstance(each, Tensor) else each for each in output]
        self.calls.append((x, kept))
        return output


def claims_of(mutant: Mutant) -> dict[str, Any]:
    return {"recipe": "rceil", "dtypes": (mutant.dtype,), **mutant.claims}


def caught(mutant: Mutant, check: str, level: str) -> tuple[Failure, Recorder] | None:
    """The first failure of this check and the calls made; None where it passes."""
    recorder = Recorder(mutant.fn)
    report = verify(recorder, checks=[check], level=level, **claims_of(mutant))
    assert report.answered, f"{mutant.name!r} is no quantizer: {report.verdict}"
    return None if report.passed else (report.failures[0], recorder)


def told(mutant: Mutant, failure: Failure, recorder: Recorder) -> str:
    """What the user is told: the first cause for the first wrong answer, else the failure."""
    message = f"{failure.check}: {failure.message}"
    if failure.check in BEHAVIOUR or "dtype" in failure.message or "raised" in failure.message:
        return message
    claims = claims_of(mutant)
    keywords = {key: claims[key] for key in ("recipe", "block", "scale_layout", "contract")
                if key in claims}  # fmt: skip
    for x, (payload, scale) in recorder.calls:
        found = diagnose(payload, scale, x, **keywords)
        if found:
            return found[0].cause
    return message


def survives_randn(mutant: Mutant, **tolerances: float) -> bool:
    """Whether a randn test of dequantized values with assert_close passes the mutant."""
    claims = claims_of(mutant)
    block = claims.get("block", (1, 32))
    x = torch.randn(256, 512, generator=torch.Generator().manual_seed(0)).to(mutant.dtype)
    right = mxref.quantize(x, claims["recipe"], block=block)
    try:
        payload, scale = mutant.fn(x.clone())
        codes = mxref.layouts.decode(
            scale.view(torch.uint8).reshape(-1),
            claims.get("scale_layout", "plain"),
            block=block,
            shape=tuple(x.shape),
            contract=claims.get("contract"),
        )
        values = mxref.dequantize(payload.view(right.payload.dtype), codes, block=block)
        torch.testing.assert_close(
            values, mxref.dequantize(*right, block=block), equal_nan=True, **tolerances
        )
    except (AssertionError, ValueError, TypeError, RuntimeError):
        return False
    return True


def measure(mutant: Mutant) -> Row:
    """Smoke check by check until one fails, and the check that has to catch it at level full."""
    smoke = next((found for check in SMOKE if (found := caught(mutant, check, "smoke"))), None)
    full = caught(mutant, mutant.check, "full")
    first = smoke or full
    said = told(mutant, *first) if first else ""
    return Row(
        mutant=mutant.name,
        true_cause=mutant.cause,
        full=full is not None,
        smoke=smoke is not None,
        randn_default=not survives_randn(mutant),
        randn_atol=not survives_randn(mutant, atol=1e-2, rtol=0.0),
        named=mutant.cause.lower() in said.lower(),
        said=said,
    )


def shares(rows: list[Row]) -> dict[str, float]:
    """The share of the mutants for each thing measured."""
    return {key: count / len(rows) for key, count in counts(rows).items()}


def counts(rows: list[Row]) -> dict[str, int]:
    """How many of the mutants each test catches, and how many causes are named."""
    keys = ("full", "smoke", "randn_default", "randn_atol", "named")
    return {key: sum(getattr(row, key) for row in rows) for key in keys}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, required=True)
    path = parser.parse_args().json
    rows = [measure(mutant) for mutant in MUTANTS]
    held_out = {mutant.name for mutant in HELD_OUT}
    content = {
        "environment": {
            "mxref": mxref.__version__,
            "spec": mxref.SPEC,
            "torch": torch.__version__,
            "python": platform.python_version(),
            "machine": f"{platform.system()} {platform.machine()}",
            "threads": torch.get_num_threads(),
        },
        "randn": "256 x 512, dequantized values, assert_close with default tolerances; "
        "randn_atol: atol=1e-2, rtol=0",
        "mutants": len(rows),
        "counts": counts(rows),
        "held_out": {
            "note": "mutants written after the hypotheses of the diagnosis, none added since",
            "mutants": len(HELD_OUT),
            "counts": counts([row for row in rows if row.mutant in held_out]),
        },
        "right": len(RIGHT),
        "rows": [asdict(row) for row in rows],
    }
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(content["counts"]))  # noqa: T201


if __name__ == "__main__":
    main()
