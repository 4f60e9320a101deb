import sys

import pytest

from mxref.testing import conformance


@pytest.fixture(autouse=True)
def few_checks(monkeypatch):
    """The first checks alone: which checks there are is not what these tests are about."""
    monkeypatch.setattr(conformance, "CHECKS", conformance.CHECKS[:3])


@pytest.fixture
def registry(tmp_path, monkeypatch):
    """Register names of stub_targets in the entry-point group, and nothing else."""

    def register(*values):
        # a distribution of this name hides an installed one with its entry points
        folder = tmp_path / "mxref-0.0.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: mxref\nVersion: 0.0.0\n")
        lines = [f"k{i} = {value}" for i, value in enumerate(values)]
        (folder / "entry_points.txt").write_text("\n".join(["[mxref.targets]", *lines, ""]))
        monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])

    return register
