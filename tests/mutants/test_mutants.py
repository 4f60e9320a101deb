"""Is the suite sharp? Each wrong quantizer is caught by the check named, no right one by any."""

import pytest
import torch

from mxref.testing import verify
from tests.mutants.model import fault
from tests.mutants.right import RIGHT
from tests.mutants.wrong import MUTANTS, Mutant


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_full_catches(mutant: Mutant) -> None:
    claims = {"recipe": "rceil", "dtypes": (mutant.dtype,), **mutant.claims}
    report = verify(mutant.fn, checks=[mutant.check], **claims)
    assert not report.passed
    assert mutant.check in {failure.check for failure in report.failures}, str(report)


@pytest.mark.parametrize("name", RIGHT)
def test_full_passes_right_quantizers_of_other_make(name: str) -> None:
    dtypes = (torch.float16, torch.bfloat16) if name == "bf16_only" else (torch.bfloat16,)
    report = verify(RIGHT[name], recipe="rceil", dtypes=dtypes)
    assert report.passed, str(report)


@pytest.mark.parametrize("block", [(32, 1), (32, 32)])
def test_the_model_that_faults_are_made_of_is_right_for_every_block(
    block: tuple[int, int],
) -> None:
    report = verify(fault(block=block), recipe="rceil", block=block, level="smoke")
    assert report.passed, str(report)


def test_there_are_mutants_enough() -> None:
    assert len(MUTANTS) >= 20
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
    assert len(RIGHT) >= 4
