"""What other repositories import to test a quantizer against the reference.

`verify` judges a function on every check and gives a `Report`; `identify` names the dialect that
a function speaks; `assert_bits_equal` and `assert_mx_equal` compare tensors and say why bytes
differ. `strategies` (needs Hypothesis), `targets`, `cases` and `diagnosis` are modules of their
own; importing this package loads torch only.
"""

from mxref.testing.asserts import assert_bits_equal, assert_mx_equal
from mxref.testing.claims import LEVELS
from mxref.testing.conformance import verify
from mxref.testing.identify import identify
from mxref.testing.identity import Identity
from mxref.testing.report import BlockBytes, CheckResult, Failure, Report

__all__ = [
    "LEVELS",
    "BlockBytes",
    "CheckResult",
    "Failure",
    "Identity",
    "Report",
    "assert_bits_equal",
    "assert_mx_equal",
    "identify",
    "verify",
]
