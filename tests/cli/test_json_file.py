"""`--json FILE`: an older results file is replaced, no other file, and that is known at once."""

import json

import pytest

from mxref.cli import bench
from mxref.cli.errors import WrongCallError
from mxref.cli.options import JsonFile
from tests.cli.cli_call import call

STUBS = "tests.cli.stub_targets"
VERIFY = ("verify", f"{STUBS}:right", "--level", "smoke", "--dtype", "bf16")
OTHERS = {
    "notes.txt": b"my notes\n",
    "other.json": b'{"version": 1}',
    "list.json": b'["version", "spec"]',
    "broken.json": b'{"version": 1, "spec"',
    "model.safetensors": b"\x02\0\0\0\0\0\0\0{}",
    "latin.json": b'{"version": "\xe9", "spec": ""}',
    "deep.json": b'{"a":' * 100_000,
}


@pytest.mark.parametrize("name", OTHERS)
def test_a_file_of_another_kind_keeps_its_bytes(name, tmp_path):
    path = tmp_path / name
    path.write_bytes(OTHERS[name])
    with pytest.raises(WrongCallError, match="exists and is no results file of mxref"):
        JsonFile(str(path))
    assert path.read_bytes() == OTHERS[name]


@pytest.mark.parametrize(
    "arguments", [VERIFY, ("identify", f"{STUBS}:right"), ("bench", "--size", "64", "--runs", "1")]
)
def test_every_command_refuses_before_it_runs(arguments, tmp_path, monkeypatch):
    monkeypatch.setattr(bench, "measure", None)
    path = tmp_path / "notes.txt"
    path.write_text("my notes\n")
    assert f"--json={str(path)!r}: exists" in call(*arguments, "--json", str(path)).wrong
    assert path.read_text() == "my notes\n"


def test_results_replace_results_and_an_empty_file(tmp_path, monkeypatch):
    monkeypatch.setattr(bench, "measure", lambda *_: {"environment": {}, "rows": [], "memory": []})
    monkeypatch.setattr(bench, "show", lambda content: None)
    path = tmp_path / "out.json"
    path.touch()
    for arguments, key in ((VERIFY, "reports"), (("bench",), "rows"), (("bench",), "memory")):
        assert call(*arguments, "--json", str(path)).code == 0
        assert key in json.loads(path.read_text())
    JsonFile(str(path)).write({"version": "0", "spec": "of an older version"})
    JsonFile(str(path)).write({})


def test_a_device_is_no_file_to_keep():
    JsonFile("/dev/null").write({})


@pytest.mark.parametrize("there", [True, False], ids=["full", "dangling"])
def test_a_link_stays_a_link(there, tmp_path):
    target, link = tmp_path / "target.json", tmp_path / "link.json"
    if there:
        target.write_text('{"version": "0", "spec": ""}')
    link.symlink_to(target)
    file = JsonFile(str(link))
    assert link.is_symlink()
    assert target.exists() == there
    file.write({"version": "1", "spec": ""})
    assert link.is_symlink()
    assert json.loads(target.read_text())["version"] == "1"


@pytest.mark.parametrize("path", ["n" * 300, "none/x.json", "."], ids=["long", "no folder", "."])
def test_what_cannot_be_written_is_one_line(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(WrongCallError, match=r"--json='.*': [A-Z][a-z ]+$"):
        JsonFile(path)
    assert list(tmp_path.iterdir()) == []
