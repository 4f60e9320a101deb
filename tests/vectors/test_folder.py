"""The folder of vectors: no file is lost, and every changed byte is found and named."""

import hashlib
import json
import re
import shutil

import pytest
import torch
from safetensors.torch import load_file

from mxref import vectors
from mxref.vectors.folder import FILES
from mxref.vectors.text import little_endian


@pytest.fixture(scope="module")
def made():
    return vectors.make("rceil", dtypes=(torch.float16,))


@pytest.fixture(scope="module")
def written(made, tmp_path_factory):
    folder = tmp_path_factory.mktemp("vectors") / "set"
    vectors.save(made, folder)
    return folder


@pytest.fixture
def folder(written, tmp_path):
    """A copy to spoil."""
    return shutil.copytree(written, tmp_path / "set")


def test_a_folder_holds_three_files_and_reads_back(made, written):
    assert sorted(path.name for path in written.iterdir()) == sorted(FILES)
    assert vectors.check(written) == []
    assert vectors.digest(vectors.load(written)) == vectors.digest(made)
    manifest = json.loads((written / "manifest.json").read_text())
    assert manifest["files"]["vectors.txt"]["sha256"] == vectors.digest(made)
    assert manifest["counts"]["elements"] == made.elements


def test_the_tensors_are_those_of_the_text(made, written):
    tensors = load_file(written / "vectors.safetensors")
    assert {tensor.dtype for tensor in tensors.values()} == {torch.uint8}
    assert len(tensors) == 3 * len(made.cases)
    for case in made.cases:
        stored = tensors[f"fp16/{case.name}/x"]
        assert torch.equal(stored, little_endian(case.bits, 2))
        assert stored.numpy().tobytes() == case.x.view(torch.int16).numpy().tobytes()
        assert torch.equal(tensors[f"fp16/{case.name}/payload"], case.payload)
        assert torch.equal(tensors[f"fp16/{case.name}/scale"], case.scale)


def test_the_tensors_file_is_frozen(written):
    """The same from safetensors 0.4.0, 0.5.3 and 0.8.0: its header is part of the bytes."""
    found = hashlib.sha256((written / "vectors.safetensors").read_bytes()).hexdigest()
    assert found == "f26338afff456ffa7a97b09d63fc95dd29f9a17c626b69b2864100f6006e7c53"


def test_written_twice_the_files_are_the_same(made, written, tmp_path):
    vectors.save(made, tmp_path)
    for name in FILES:
        assert (tmp_path / name).read_bytes() == (written / name).read_bytes()


@pytest.mark.parametrize("name", ["vectors.txt", "vectors.safetensors"])
@pytest.mark.parametrize("share", [0.0, 0.21, 0.5, 0.77, 1.0])
def test_a_changed_byte_is_named(folder, name, share):
    path = folder / name
    content = bytearray(path.read_bytes())
    at = round((len(content) - 1) * share)
    was, content[at] = content[at], content[at] ^ 1
    path.write_bytes(content)
    (line,) = vectors.check(folder)
    assert line.startswith(f"{name}: ")
    assert f"byte {at} of the file: 0x{was ^ 1:02X}" in line
    assert f"expected 0x{was:02X}" in line
    with pytest.raises(ValueError, match=f"{name}: SHA-256"):
        vectors.load(folder)


def test_the_case_and_the_array_are_named(folder):
    path = folder / "vectors.txt"
    content = path.read_text()
    at = content.index("\ncase maximum-plus-ulp\n")
    at = content.index("\nscale\n", at) + len("\nscale\n")
    path.write_text(content[:at] + "80"[::-1] + content[at + 2 :])
    (line,) = vectors.check(folder)
    assert "case maximum-plus-ulp of fp16, scale, byte" in line


def test_the_case_of_a_tensor_is_named_with_its_position(folder):
    path = folder / "vectors.safetensors"
    content = bytearray(path.read_bytes())
    start = 8 + int.from_bytes(content[:8], "little")
    begin, _ = json.loads(content[8:start])["fp16/ones/payload"]["data_offsets"]
    content[start + begin + 3] = 0x11
    path.write_bytes(content)
    (line,) = vectors.check(folder)
    assert "case ones of fp16, payload, byte 3 of it, byte" in line
    assert "0x11, expected 0x" in line


@pytest.mark.parametrize("name", FILES)
def test_a_file_cut_short_extended_or_missing_is_named(folder, name):
    path = folder / name
    content = path.read_bytes()
    path.write_bytes(content + b"\n")
    assert re.match(rf"{name}: .*expected the end of the file", vectors.check(folder)[0])
    if name != "manifest.json":
        path.write_bytes(content[:-1])
        assert "the end of the file, expected" in vectors.check(folder)[0]
        path.write_bytes(b"")
        assert "byte 0 of the file: the end" in vectors.check(folder)[0]
        path.unlink()
        assert vectors.check(folder) == [f"{name}: missing"]


def change(folder, **values):
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest.update(values)
    path.write_text(json.dumps(manifest, indent=1) + "\n")


def test_a_changed_count_in_the_manifest_is_named(folder):
    change(folder, counts={"cases": 1, "blocks": 2, "elements": 3})
    (line,) = vectors.check(folder)
    assert line.startswith("manifest.json: line ")


@pytest.mark.parametrize(
    ("values", "part"),
    [
        ({"spec": "mxref-0"}, "spec='mxref-0': expected 'mxref-"),
        ({"format": "other"}, "format='other': expected 'mxref-vectors-1'"),
        ({"recipe": "floor"}, "name='floor'"),
        ({"recipe": 3}, "name=3"),
        ({"axes": {"colour": "red"}}, "'colour' is not an axis"),
        ({"axes": {"round": "up"}}, "round='up'"),
        ({"axes": None}, "axes is missing or of the wrong kind"),
        ({"block": [2, 2]}, r"block=\(2, 2\)"),
        ({"block": []}, r"block=\(\)"),
        ({"scale_layout": 1}, "scale_layout=1"),
        ({"contract": "x", "scale_layout": "swizzle_32_4_4"}, "contract='x'"),
        ({"dtypes": []}, r"dtypes=\[\]"),
        ({"dtypes": ["fp8"]}, r"dtypes=\['fp8'\]"),
        ({"files": {}}, "files: vectors.txt is missing"),
    ],
)
def test_a_manifest_that_is_none_is_one_clear_error(folder, values, part):
    change(folder, **values)
    with pytest.raises(ValueError, match=part) as caught:
        vectors.check(folder)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"[]", b"\xff\xfe", b"{"])
def test_a_manifest_that_is_not_json_is_one_clear_error(folder, content):
    (folder / "manifest.json").write_bytes(content)
    with pytest.raises(ValueError, match=r"manifest\.json"):
        vectors.check(folder)


def test_no_manifest_is_said(folder):
    (folder / "manifest.json").unlink()
    for call in (vectors.check, vectors.load):
        with pytest.raises(FileNotFoundError, match=r"manifest\.json"):
            call(folder)


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_vectors_replace_vectors(folder):
    other = vectors.make("floor", dtypes=(torch.float16,))
    vectors.save(other, folder)
    assert vectors.digest(vectors.load(folder)) == vectors.digest(other)


def test_a_folder_with_other_files_is_refused(made, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(FileExistsError, match="not empty"):
        vectors.save(made, tmp_path)
    assert contents(tmp_path) == {"notes.txt": b"mine"}


def test_a_changed_folder_is_refused_and_force_replaces_the_three_files_alone(made, folder):
    (folder / "notes.txt").write_text("mine")
    (folder / "vectors.txt").write_text("edited")
    before = contents(folder)
    with pytest.raises(FileExistsError, match=r"vectors\.txt was changed since"):
        vectors.save(made, folder)
    assert contents(folder) == before
    vectors.save(made, folder, force=True)
    assert vectors.check(folder) == []
    assert (folder / "notes.txt").read_text() == "mine"


def test_a_file_in_the_place_of_the_folder_is_refused_even_by_force(made, tmp_path):
    (tmp_path / "set").write_text("mine")
    for force in (False, True):
        with pytest.raises(FileExistsError, match="a file"):
            vectors.save(made, tmp_path / "set", force=force)
    assert (tmp_path / "set").read_text() == "mine"


def test_a_write_that_fails_leaves_the_old_files(made, folder, monkeypatch):
    before = contents(folder)

    def fail(self, data):
        raise OSError("no space left")

    monkeypatch.setattr("pathlib.Path.write_bytes", fail)
    with pytest.raises(OSError, match="no space"):
        vectors.save(made, folder)
    assert contents(folder) == before
