"""What other repositories import to test a quantizer against the reference.

`verify` judges a function on every check and gives a `Report`. `fuzz` draws inputs for as long as
a budget lasts. `strategies` and `fleet` (these three need Hypothesis), `targets` and `cases` are
modules of their own; importing this package loads torch only.
"""

from typing import Any

from mxref.testing.claims import LEVELS
from mxref.testing.conformance import verify
from mxref.testing.report import BlockBytes, CheckResult, Failure, Report

__all__ = ["LEVELS", "BlockBytes", "CheckResult", "Failure", "Report", "fuzz", "verify"]


def __getattr__(name: str) -> Any:
    if name == "fuzz":
        try:
            from mxref.testing.fuzzing import fuzz
        except ModuleNotFoundError as error:
            if error.name != "hypothesis":
                raise
            message = "mxref.testing.fuzz needs Hypothesis: pip install 'mxref[verify]'"
            raise ModuleNotFoundError(message, name="hypothesis") from None
        return fuzz
    raise AttributeError(f"module 'mxref.testing' has no attribute {name!r}")
