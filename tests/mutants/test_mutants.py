"""Is the suite sharp? Each wrong quantizer is caught, its cause named, and no right one blamed."""

from functools import lru_cache

import pytest
import torch

from mxref.testing import verify
from mxref.testing.checks import CHECKS
from tests.mutants.model import fault
from tests.mutants.mutant import Mutant
from tests.mutants.rates import Row, measure, shares
from tests.mutants.right import RIGHT, Right
from tests.mutants.wrong import MUTANTS

# one worker measures each mutant once, for its own test and for the shares
pytestmark = pytest.mark.xdist_group("mutants")

measured = lru_cache(maxsize=None)(lambda name: measure(_NAMED[name]))
_NAMED = {mutant.name: mutant for mutant in MUTANTS}


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_full_catches(mutant: Mutant) -> None:
    row: Row = measured(mutant.name)
    assert row.full, f"{mutant.check} passes {mutant.name!r}"


def test_smoke_catches_nine_of_ten_and_the_diagnosis_names_eight_of_ten() -> None:
    rows = [measured(mutant.name) for mutant in MUTANTS]
    found = shares(rows)
    assert found["smoke"] >= 0.9, [row.mutant for row in rows if not row.smoke]
    assert found["named"] >= 0.8, [(row.true_cause, row.said) for row in rows if not row.named]
    # a randn test lets through what this suite is for
    assert found["randn_atol"] < found["randn_default"] < 0.75


@pytest.mark.parametrize("right", RIGHT, ids=lambda right: right.name)
def test_full_passes_right_quantizers_of_other_make(right: Right) -> None:
    claims = {"recipe": "rceil", "dtypes": right.dtypes, **right.claims}
    report = verify(right.fn, **claims)
    assert report.passed, str(report)


@pytest.mark.parametrize("block", [(32, 1), (32, 32)])
def test_the_model_that_faults_are_made_of_is_right_for_every_block(
    block: tuple[int, int],
) -> None:
    report = verify(fault(block=block), recipe="rceil", block=block, level="smoke")
    assert report.passed, str(report)


def test_there_are_mutants_enough_over_all_blocks_and_layouts() -> None:
    assert len(MUTANTS) >= 50
    assert len(RIGHT) >= 12
    for group in (MUTANTS, RIGHT):
        assert len({each.name for each in group}) == len(group)
    claims = [mutant.claims for mutant in MUTANTS]
    assert {each.get("block", (1, 32)) for each in claims} == {(1, 32), (32, 1), (32, 32)}
    layouts = {each.get("scale_layout", "plain") for each in claims}
    assert layouts == {"plain", "plain_t", "swizzle_32_4_4"}
    assert {mutant.dtype for mutant in MUTANTS} == {torch.bfloat16, torch.float16, torch.float32}
    assert {mutant.check for mutant in MUTANTS} <= {check.name for check in CHECKS}


def test_a_cause_that_is_not_named_is_counted_as_such() -> None:
    mutant = _NAMED["truncates"]
    assert measured("truncates").named
    wrong = measure(mutant._replace(cause="no such cause"))
    assert not wrong.named
    right = measure(mutant._replace(fn=fault()))
    assert (right.full, right.smoke, right.randn_default, right.named) == (False,) * 4
