"""What other repositories import to test a quantizer against the reference.

`Adapter` is a quantizer with what it claims, `conformance_tests` makes pytest tests of one,
`verify` judges a plain function; each check gives a verdict of its own, all of them a `Report`.
`strategies` (needs Hypothesis), `targets` and `cases` are modules of their own; importing this
package loads torch only.
"""

from typing import Any

from mxref.testing.adapter import Adapter
from mxref.testing.claims import LEVELS
from mxref.testing.conformance import verify
from mxref.testing.report import BlockBytes, CheckResult, Failure, NotRun, Report

__all__ = [
    "LEVELS",
    "Adapter",
    "BlockBytes",
    "CheckResult",
    "Failure",
    "NotRun",
    "Report",
    "conformance_tests",
    "verify",
]


def __getattr__(name: str) -> Any:
    # the one file that imports pytest is loaded where it is asked for
    if name == "conformance_tests":
        from mxref.testing.pytest_tests import conformance_tests

        return conformance_tests
    raise AttributeError(f"module 'mxref.testing' has no attribute {name!r}")
