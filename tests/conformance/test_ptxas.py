"""One ptxas for a run: Triton's own unless the caller names one; torch's inductor names another."""

import os
import sys

import pytest

from mxref.testing import ptxas
from tests.cli.cli_call import call


@pytest.fixture
def brought(tmp_path, monkeypatch):
    """A Triton whose ptxas says 12.8.93."""
    path = tmp_path / "triton" / "backends" / "nvidia" / "bin" / "ptxas"
    path.parent.mkdir(parents=True)
    path.write_text("#!/bin/sh\necho 'Cuda compilation tools, release 12.8, V12.8.93'\n")
    path.chmod(0o755)
    (tmp_path / "triton" / "__init__.py").write_text("raise AssertionError('imported')")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.delitem(sys.modules, "triton", raising=False)
    monkeypatch.delenv(ptxas.VARIABLE, raising=False)
    return path


def test_tritons_own_is_named_and_triton_not_imported(brought):
    ptxas.pin()
    assert os.environ[ptxas.VARIABLE] == str(brought)
    assert ptxas.described() == "12.8.93 (Triton's own)"


def test_what_the_caller_names_stays(brought, monkeypatch, tmp_path):
    other = tmp_path / "ptxas"
    other.write_text("#!/bin/sh\necho 'release 13.0, V13.0.88'\n")
    other.chmod(0o755)
    monkeypatch.setenv(ptxas.VARIABLE, str(other))
    ptxas.pin()
    assert os.environ[ptxas.VARIABLE] == str(other)
    assert ptxas.described() == "13.0.88 (TRITON_PTXAS_PATH)"


@pytest.mark.parametrize(
    "says", [None, "V99.9.9", "\\377\\376"], ids=["none", "no release", "bytes"]
)
def test_where_triton_falls_back_its_own_is_told(brought, monkeypatch, tmp_path, says):
    other = tmp_path / "ptxas"
    if says is not None:
        other.write_text(f"#!/bin/sh\nprintf '{says}'\n")
        other.chmod(0o755)
    monkeypatch.setenv(ptxas.VARIABLE, str(other))
    told = ptxas.described()
    assert told == "12.8.93 (Triton's own; TRITON_PTXAS_PATH names none that runs)"


def test_without_triton_nothing_is_named(monkeypatch):
    monkeypatch.setattr(ptxas, "find_spec", lambda name: None)
    monkeypatch.delenv(ptxas.VARIABLE, raising=False)
    ptxas.pin()
    assert ptxas.VARIABLE not in os.environ
    assert ptxas.described() == ""


def test_env_tells_it():
    pytest.importorskip("triton")
    assert ptxas.described().split(",")[0] in call("env").out


def test_a_target_sees_it_pinned(monkeypatch, tmp_path):
    """The process of the targets has it, whatever the caller's was."""
    pytest.importorskip("triton")
    monkeypatch.delenv(ptxas.VARIABLE)
    (tmp_path / "seen.py").write_text(
        "import os, mxref\n"
        "def target(x):\n"
        "    assert 'triton' in os.environ['TRITON_PTXAS_PATH']\n"
        "    return tuple(mxref.quantize(x, 'floor'))\n"
    )
    monkeypatch.chdir(tmp_path)
    assert call("verify", "seen:target", "--recipe", "floor", "--dtype", "bf16").code == 0
