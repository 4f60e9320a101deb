"""What other repositories import to test a quantizer against the reference.

`verify` judges a function on every check and gives a `Report`; `assert_matmul_within_bound` judges
a product of quantized operands. `strategies` (needs Hypothesis), `targets` and `cases` are modules
of their own; importing this package loads torch only.
"""

from mxref.testing.claims import LEVELS
from mxref.testing.conformance import verify
from mxref.testing.matmul_check import assert_matmul_within_bound
from mxref.testing.report import BlockBytes, CheckResult, Failure, Report

__all__ = [
    "LEVELS",
    "BlockBytes",
    "CheckResult",
    "Failure",
    "Report",
    "assert_matmul_within_bound",
    "verify",
]
