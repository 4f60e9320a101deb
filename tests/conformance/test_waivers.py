"""Waivers: known failures are set apart, and a file that has gone stale fails."""

from datetime import date
from pathlib import Path
from typing import Any

import pytest
import torch

import mxref
from mxref.testing import Adapter
from mxref.testing.waivers import Waivers

TODAY = date(2027, 1, 15)


class Floor(Adapter):
    recipe, dtypes = "rceil", (torch.bfloat16,)

    def quantize(self, x: torch.Tensor) -> Any:
        return mxref.quantize(x, "floor")


def entry(name: str, expires: str = "2027-01-15", more: str = "") -> str:
    return f'[[waiver]]\nid = "{name}"\nissue = "#7"\nexpires = {expires}\n{more}\n'


def report_under(tmp_path: Path, text: str) -> Any:
    path = tmp_path / "w.toml"
    path.write_text(text)
    report = Floor().verify(level="smoke", checks=["ties", "empty"])
    known = [f"bfloat16-{check}" for check in ("matrices", "ties", "empty", "thresholds")]
    return Waivers.load(path).applied(report, known, TODAY)


def test_waived_failures_do_not_fail(tmp_path: Path) -> None:
    report = report_under(tmp_path, entry("bfloat16-ties") + entry("bfloat16-matrices"))
    assert report.passed
    assert [each.check for each in report.waived] == ["matrices", "ties"]
    assert report.counts["waived"] == 2
    assert report.verdict == "conforms, 2 failed and are waived"
    (ties,) = [each for each in report.results if each.check == "ties"]
    assert ties.verdict == "waived"
    assert "#7" in ties.detail


def test_what_is_not_waived_still_fails(tmp_path: Path) -> None:
    report = report_under(tmp_path, entry("bfloat16-ties"))
    assert [each.check for each in report.failures] == ["matrices"]


def test_an_expired_waiver_fails(tmp_path: Path) -> None:
    text = entry("bfloat16-ties", "2027-01-14") + entry("bfloat16-matrices")
    report = report_under(tmp_path, text)
    (failure,) = report.failures
    assert "waiver expired on 2027-01-14: #7" in failure.message


def test_a_waiver_that_is_not_needed_fails(tmp_path: Path) -> None:
    waived = entry("bfloat16-ties") + entry("bfloat16-matrices")
    report = report_under(tmp_path, waived + entry("bfloat16-empty"))
    (failure,) = report.failures
    assert (failure.check, failure.message) == ("empty", "passes, so the waiver has to go (#7)")


def test_an_unknown_id_fails_with_the_nearest(tmp_path: Path) -> None:
    waived = entry("bfloat16-ties") + entry("bfloat16-matrices")
    report = report_under(tmp_path, waived + entry("bfloat16-tiess"))
    (failure,) = report.failures
    assert "id='bfloat16-tiess': no such check, nearest are 'bfloat16-ties'" in failure.message


def test_a_waiver_of_a_check_that_was_not_run_is_let_be(tmp_path: Path) -> None:
    waived = entry("bfloat16-ties") + entry("bfloat16-matrices")
    assert report_under(tmp_path, waived + entry("bfloat16-thresholds")).passed


def test_an_empty_file_waives_nothing(tmp_path: Path) -> None:
    assert len(report_under(tmp_path, "").failures) == 2


MALFORMED = [
    ("[[waiver]]\nid = \n", ["w.toml", "Invalid value"]),
    ("[[waivers]]\nid = 'x'\n", ["w.toml", "key 'waivers'", "[[waiver]]"]),
    ("waiver = 3\n", ["key 'waiver'"]),
    ("[waiver]\nid = 'x'\n", ["key 'waiver'"]),
    (entry("x", more="until = 3"), ["w.toml", "id='x'", "key 'until'", "id, issue, expires"]),
    (entry("x", '"2027-01-01"'), ["expires='2027-01-01'", "a date such as 2027-03-31"]),
    (entry("x", "2027-01-01T00:00:00"), ["expires=", "a date"]),
    (entry("x", more="reason = 3"), ["reason=3", "a text"]),
    ('[[waiver]]\nid = "x"\nexpires = 2027-01-01\n', ["id='x'", "issue is missing"]),
    ('[[waiver]]\nissue = "x"\nexpires = 2027-01-01\n', ["without id", "id is missing"]),
    (entry("x") + entry("x"), ["id='x'", "twice"]),
]


@pytest.mark.parametrize(("text", "parts"), MALFORMED)
def test_a_malformed_file_names_file_key_and_what_is_allowed(
    tmp_path: Path, text: str, parts: list[str]
) -> None:
    with pytest.raises(ValueError, match=r"w\.toml") as caught:
        report_under(tmp_path, text)
    assert all(part in str(caught.value) for part in parts), str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_absent_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"none\.toml.*No such file"):
        Waivers.load(tmp_path / "none.toml")
    with pytest.raises(TypeError, match="waivers=3"):
        Waivers.load(3)  # type: ignore[arg-type]
