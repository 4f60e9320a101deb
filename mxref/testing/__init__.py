"""What other repositories import to test a quantizer against the reference.

`Adapter` is a quantizer with what it claims, `conformance_tests` makes pytest tests of one,
`verify` judges a plain function; each check gives a verdict of its own, all of them a `Report`.
`identify` names the dialect that a function speaks; `assert_bits_equal` and `assert_mx_equal`
compare tensors and say why bytes differ; `assert_matmul_within_bound` judges a product. `fuzz`
draws inputs for as long as a budget lasts. `strategies` and `fleet` (these three need Hypothesis),
`targets`, `cases` and `diagnosis` are modules of their own; importing this package loads torch
only.
"""

from typing import Any

from mxref.testing.adapter import Adapter
from mxref.testing.asserts import assert_bits_equal, assert_mx_equal
from mxref.testing.claims import LEVELS
from mxref.testing.conformance import verify
from mxref.testing.identify import identify
from mxref.testing.identity import Identity
from mxref.testing.matmul_check import assert_matmul_within_bound
from mxref.testing.report import BlockBytes, CheckResult, Failure, NotRun, Report

__all__ = [
    "LEVELS",
    "Adapter",
    "BlockBytes",
    "CheckResult",
    "Failure",
    "Identity",
    "NotRun",
    "Report",
    "assert_bits_equal",
    "assert_matmul_within_bound",
    "assert_mx_equal",
    "conformance_tests",
    "fuzz",
    "identify",
    "verify",
]


def __getattr__(name: str) -> Any:
    # the files that import pytest and Hypothesis are loaded where they are asked for
    if name == "conformance_tests":
        from mxref.testing.pytest_tests import conformance_tests

        return conformance_tests
    if name == "fuzz":
        from mxref.testing.fuzzing import fuzz

        return fuzz
    raise AttributeError(f"module 'mxref.testing' has no attribute {name!r}")
