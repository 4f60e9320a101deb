"""C++ and numpy read the text without torch, compute its bytes, and notice a wrong one."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from mxref import vectors
from mxref.formats import BLOCKS

HERE = Path(__file__).parent
READERS = ("reader.cpp", "reader_numpy.py")


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    if shutil.which("g++") is None:
        pytest.skip("needs g++")
    program = tmp_path_factory.mktemp("reader") / "reader"
    flags = ("-std=c++20", "-O1", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off")
    subprocess.run(["g++", *flags, HERE / "reader.cpp", "-o", program], check=True)
    return program


@pytest.fixture
def read(request, compiled):
    """Run a reader on a file; neither has torch in its process."""
    python = (sys.executable, "-W", "error", str(HERE / "reader_numpy.py"))
    command = {"reader.cpp": (str(compiled),), "reader_numpy.py": python}[request.param]

    def run(path):
        return subprocess.run([*command, str(path)], capture_output=True, text=True)

    return run


@pytest.mark.parametrize(
    ("recipe", "block"),
    [*(("floor", block) for block in BLOCKS), *zip(("rceil", "ceil", "even"), BLOCKS, strict=True)],
)
@pytest.mark.parametrize("read", READERS, indirect=True)
def test_a_reader_agrees_on_every_case(read, recipe, block, tmp_path):
    made = vectors.make(recipe, block=block)
    path = tmp_path / "vectors.txt"
    path.write_text(vectors.text(made))
    ran = read(path)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith(f"{recipe} {len(made.cases)} cases")
    assert "torch loaded: True" not in ran.stdout


@pytest.mark.parametrize(
    ("case", "array", "was", "now"),
    [
        ("ones", "payload", "78", "77"),
        ("minus-ones", "payload", "F8", "78"),
        ("minus-zeros", "payload", "80", "00"),
        ("nan-alone", "payload", "7F", "7E"),
        ("ones", "scale", "77", "76"),
        ("inf-alone", "scale", "FF", "F7"),
    ],
)
@pytest.mark.parametrize("read", READERS, indirect=True)
def test_a_reader_notices_a_wrong_byte(read, case, array, was, now, tmp_path):
    content = vectors.text(vectors.make("floor", dtypes=(torch.bfloat16,)))
    at = content.index(f"\n{array}\n", content.index(f"\ncase {case}\n")) + len(array) + 2
    assert content[at : at + 2] == was
    path = tmp_path / "vectors.txt"
    path.write_text(content[:at] + now + content[at + 2 :])
    ran = read(path)
    assert ran.returncode == 1
    assert f"case {case} of bf16" in ran.stdout + ran.stderr


@pytest.mark.parametrize("name", READERS)
def test_a_reader_is_short_and_names_no_torch(name):
    source = (HERE / name).read_text()
    assert len(source.splitlines()) < 60
    assert "import torch" not in source
    assert "mxref." not in source
