"""mx_arithmetic.cuh on the CPU over all 2^32 fp32 inputs, against definitions."""

import shutil
import subprocess
from pathlib import Path

import pytest

from mxkernels import cubins

PROGRAM = Path(__file__).with_name("mx_arithmetic_sweep.cpp")
HEADER = cubins.ROOT / "mx_arithmetic.cuh"
OPTIONS = ("-O2", "-std=c++17", "-ffp-contract=off", "-Wall", "-Wextra", "-pthread")


def built(folder, header):
    if not shutil.which("g++"):
        pytest.skip("no g++ on PATH")
    (folder / HEADER.name).write_text(header)
    program = folder / "sweep"
    subprocess.run(["g++", *OPTIONS, f"-I{folder}", PROGRAM, "-o", program], check=True)
    return program


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    return built(tmp_path_factory.mktemp("sweep"), HEADER.read_text())


def run(program, *arguments):
    return subprocess.run([program, *arguments], capture_output=True, text=True)


@pytest.mark.parametrize("name", ["floor", "rceil", "ceil", "even", "e4m3"])
def test_every_fp32_input_obeys_the_definition(sweep, name):
    done = run(sweep, name)
    assert done.stdout == f"{name}: 0 wrong\n"
    assert done.returncode == 0


@pytest.mark.parametrize("name", ["four", "element", "bf16", "fp16"])
def test_what_is_made_of_them_obeys_it_too(sweep, name):
    """Every 61st word, which holds every pattern of 16 bits in either half."""
    assert run(sweep, name, "61").stdout == f"{name}: 0 wrong\n"


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["four", "element", "bf16", "fp16"])
def test_what_is_made_of_them_obeys_it_for_every_word(sweep, name):
    assert run(sweep, name).stdout == f"{name}: 0 wrong\n"


@pytest.mark.parametrize(
    ("name", "right", "wrong", "step"),
    [
        ("e4m3", " + ((top >> 20) & 1)", "", "32768"),
        ("e4m3", "size > 0x7F800000u ?", "size >= 0x7F800000u ?", "32768"),
        ("floor", "byte > 0 ? byte : 0", "byte > 1 ? byte : 1", "32768"),
        ("rceil", "return rule == MX_RCEIL ? 0x04600001u : 0u", "return 0 * rule", "73400321"),
        ("bf16", "a > b ? a : b", "a < b ? b : a & 0xFFFEFFFEu", "61"),
        ("fp16", "0x1p112f", "0x1p111f", "61"),
        ("element", "(254u - byte) << 7", "(253u - byte) << 7", "61"),
    ],
)
def test_a_wrong_header_is_found(tmp_path, name, right, wrong, step):
    text = HEADER.read_text()
    assert text.count(right) == 1
    done = run(built(tmp_path, text.replace(right, wrong)), name, step)
    assert done.returncode == 1
    assert f"{name}: wrong for 0x" in done.stdout
