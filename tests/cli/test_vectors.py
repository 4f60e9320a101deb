"""`mxref vectors`: exit codes and lines."""

import pytest

from mxref import vectors
from tests.cli.cli_call import call


def test_written_and_checked(tmp_path):
    out = str(tmp_path / "set")
    line = call("vectors", out, "--recipe", "floor", "--block", "32x1", "--dtype", "fp16").ok
    assert line.startswith(f"{out}: floor 32x1 plain, ")
    assert line.strip().endswith(vectors.digest(vectors.load(out)))
    assert call("vectors", "--check", out).ok == f"{out}: every byte is as computed now\n"


def test_a_changed_byte_is_one_line_and_exit_1(tmp_path):
    call("vectors", str(tmp_path), "--dtype", "fp16")
    path = tmp_path / "vectors.txt"
    content = bytearray(path.read_bytes())
    content[50_000] ^= 1
    path.write_bytes(content)
    ran = call("vectors", "--check", str(tmp_path))
    assert (ran.code, ran.err, ran.out.count("\n")) == (1, "", 1)
    assert "vectors.txt: case " in ran.out
    assert "byte 50000 of the file" in ran.out


def test_a_swizzled_tile_needs_the_contraction(tmp_path):
    swizzled = ("--block", "32x32", "--scale-layout", "swizzle_32_4_4", "--dtype", "fp16")
    assert "contract=None" in call("vectors", str(tmp_path), *swizzled).wrong
    assert "swizzle_32_4_4" in call("vectors", str(tmp_path), *swizzled, "--contract", "-2").ok


def test_a_folder_that_is_not_empty_is_refused_unless_forced(tmp_path):
    (tmp_path / "mine").write_text("mine")
    assert "--force" in call("vectors", str(tmp_path), "--dtype", "fp16").wrong
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
    assert call("vectors", str(tmp_path), "--dtype", "fp16", "--force").ok
    assert (tmp_path / "mine").read_text() == "mine"


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ((), "expected OUT, or --check DIR"),
        (("",), "expected OUT"),
        (("out", "--recipe", "up"), "--recipe='up'"),
        (("out", "--block", "2x2"), "--block='2x2'"),
        (("out", "--scale-layout", "x"), "--scale-layout='x'"),
        (("out", "--dtype", "fp8"), "--dtype='fp8'"),
        (("out", "--contract", "1"), "--contract='1'"),
        (("out", "--contract", "-1"), "--contract=-1: without effect on scale layout 'plain'"),
        (("out", "--check", "other"), "takes no OUT"),
        (("--check", "dir", "--recipe", "floor", "--force"), "takes no --recipe, --force"),
        (("--check", "no-such-folder"), "no such folder"),
        (("--check", "."), "manifest.json"),
        (("/dev/null/x",), "/dev/null"),
    ],
)
def test_wrong_calls(arguments, part, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert part in call("vectors", *arguments).wrong
