"""What other repositories import to test a quantizer against the reference.

`verify` judges a function on every check and gives a `Report`. `strategies` (needs Hypothesis),
`targets` and `cases` are modules of their own; importing this package loads torch only.
"""

from mxref.testing.claims import LEVELS
from mxref.testing.conformance import verify
from mxref.testing.report import BlockBytes, CheckResult, Failure, Report

__all__ = ["LEVELS", "BlockBytes", "CheckResult", "Failure", "Report", "verify"]
