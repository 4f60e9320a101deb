"""The record of the peers holds where the library is installed: verdicts, reproducers, counts."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch

import mxref
from mxref.testing import verify
from tests.peers import adapters, record

ROOT = Path(__file__).parents[2]
RECORD = json.loads((ROOT / "mxkernels/bench/results/2026-11-30-peers.json").read_text())["peers"]
QUICK = ("edge_blocks", "nonfinite", "empty", "ragged")


def installed(name: str) -> adapters.Peer:
    """The adapter, where the version that is installed is the one that was recorded."""
    peer, recorded = adapters.PEERS[name], RECORD[name]["package"]
    if f"{peer.package} {peer.version}" != recorded:
        found = peer.version or "not installed"
        pytest.skip(f"recorded with {recorded}, {peer.package} here is {found}")
    return peer


def test_every_adapter_is_recorded():
    assert list(RECORD) == list(adapters.PEERS)
    for name, peer in adapters.PEERS.items():
        assert RECORD[name]["claims"]["recipe"] == peer.recipe
        assert RECORD[name]["spec"] == mxref.SPEC
        assert getattr(adapters, name) == peer.quantize, "what reproducers import"


@pytest.mark.parametrize("name", list(adapters.PEERS))
def test_the_recorded_verdicts_hold(name):
    peer = installed(name)
    report = verify(peer.quantize, level="smoke", checks=QUICK, **peer.claims)
    found = {(row.check, row.dtype): row.verdict for row in report.results}
    recorded = {(row["check"], row["dtype"]): row["verdict"] for row in RECORD[name]["results"]}
    assert found == {key: recorded[key] for key in found}
    assert len(found) == len(peer.dtypes) * (1 + len(QUICK))


@pytest.mark.parametrize("name", list(adapters.PEERS))
def test_every_reproducer_shows_its_failure(name):
    installed(name)
    failures = RECORD[name]["failures"]
    failed = [row for row in RECORD[name]["results"] if row["verdict"] == "failed"]
    assert len(failures) == len(failed) > 0
    for failure in failures:
        snippet = failure["reproducer"]
        if "mxref.testing.verify" in snippet:  # asks for the whole check again
            continue
        with pytest.raises(AssertionError, match="bytes differ"):
            exec(compile(snippet, failure["check"], "exec"), {"__name__": "snippet"})


class Reference(adapters.Peer):
    package, recipe, dtypes = "torch", "rceil", (torch.bfloat16, torch.float32)
    checks = ("edge_blocks",)

    def quantize(self, x: torch.Tensor) -> Any:
        return mxref.quantize(x, "rceil")


class Bumped(Reference):
    """The byte of every block one too high."""

    def quantize(self, x: torch.Tensor) -> Any:
        payload, scale = mxref.quantize(x, "rceil")
        return payload, scale.view(torch.uint8) + 1


@pytest.mark.parametrize("dtype", Reference.dtypes)
def test_every_kind_of_block_is_counted(dtype):
    right, wrong = (record.by_kind(peer, dtype) for peer in (Reference(), Bumped()))
    assert all(kind["blocks"] == kind["equal"] > 0 for kind in right.values())
    assert all(kind["equal"] == 0 for kind in wrong.values())


def test_a_record_keeps_the_peers_that_are_not_installed(tmp_path, monkeypatch, capsys):
    path = tmp_path / "out.json"
    path.write_text(json.dumps({"peers": {"absent": {"verdict": "kept"}}}))
    absent = Reference()
    absent.package = "no-such-package"
    monkeypatch.setattr(record, "PEERS", {"absent": absent, "right": Reference()})
    assert record.main([str(path)]) == 0
    found = json.loads(path.read_text())["peers"]
    assert found["absent"] == {"verdict": "kept"}
    assert found["right"]["passed"]
    assert "no-such-package is not installed" in capsys.readouterr().out
    assert record.main([str(path), "nobody"]) == 2
    assert "peer='nobody': expected one of absent, right" in capsys.readouterr().err


def test_the_page_shows_the_record():
    page = (ROOT / "docs" / "peers.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| (.*) \|$", page, re.M)
    shown = {(name, dtype): cells.split(" | ") for name, dtype, cells in rows}
    recorded = {
        (name, dtype): [f"{kind['equal']} / {kind['blocks']}" for kind in kinds.values()]
        for name, peer in RECORD.items()
        for dtype, kinds in peer["kinds"].items()
    }
    assert shown == recorded
