"""What importing costs and loads, and which way the arrows point. Each proof in a fresh process."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOREIGN = (
    "triton",
    "hypothesis",
    "pytest",
    "numpy.random",
    "rich",
    "typer",
    "safetensors",
    "mxkernels",
)


def python(code: str, **environment: str) -> str:
    """Run on a bare checkout: no site entry points, only PYTHONPATH."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd="/",
        env={"PYTHONPATH": str(ROOT), "PATH": "", **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


LOADED = (
    "import sys, torch; before = set(sys.modules); import {0}; print(*set(sys.modules) - before)"
)


def foreign(module: str) -> list[str]:
    loaded = python(LOADED.format(module)).split()
    return [name for name in FOREIGN if any((m + ".").startswith(name + ".") for m in loaded)]


def test_mxref_loads_nothing_but_itself_and_the_standard_library():
    assert foreign("mxref") == []


def test_mxref_testing_loads_neither_hypothesis_nor_pytest():
    assert foreign("mxref.testing") == []


def test_mxkernels_loads_no_triton():
    assert set(foreign("mxkernels.registry")) <= {"mxkernels"}


def test_a_foreign_import_is_found():
    assert foreign("hypothesis") == ["hypothesis"]


FIRST_CALLS = """
import sys, torch, mxkernels
x = torch.ones(4, 64, dtype=torch.bfloat16)
q = mxkernels.quantize(x)
mxkernels.dequantize(*q)
mxkernels.swizzle(q.scale)
mxkernels.matmul(q, q)
{0}
print(*(name for name in ("torch._dynamo", "torch._inductor", "sympy") if name in sys.modules))
"""


def test_no_first_call_loads_the_compiler_of_torch():
    """torch.library.custom_op would: three seconds more on a GPU machine."""
    assert python(FIRST_CALLS.format("")) == ""
    compiler = "torch.compile(lambda x: x, backend='eager')(x)"
    assert "torch._dynamo" in python(FIRST_CALLS.format(compiler))


def test_mxref_adds_under_50_ms_to_torch():
    code = (
        "import torch, time; start = time.perf_counter(); import mxref; "
        "print((time.perf_counter() - start) * 1000)"
    )
    assert min(float(python(code)) for _ in range(5)) < 50


def test_both_packages_work_from_a_bare_checkout():
    code = (
        "import mxref, mxkernels, torch; q = mxkernels.quantize(torch.ones(1, 32)); print(q.scale)"
    )
    assert "float8_e8m0fnu" in python(code)


ALLOWED = {
    "formats": set(),
    "recipes": {"formats"},
    "bits": {"formats"},
    "rules": {"formats", "bits", "recipes", "rules"},
    "casting": {"formats", "bits", "recipes"},
    "tiles": {"formats"},
    "blocks": {"formats", "bits", "rules", "casting", "tiles", "recipes"},
    "layouts": {"formats", "tiles", "blocks", "layouts"},
    "vectors": {"formats", "tiles", "recipes", "blocks", "layouts", "vectors", "SPEC"},
    "rational": {"formats"},
    "exact": {"formats", "recipes", "rational"},
    "shown": set(),
    "matmul": {"formats", "blocks", "tiles", "shown"},
}


def imported(path: Path, package: str) -> set[str]:
    """The modules of `package`, by their first name below it, that a file imports anywhere."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        found |= {name.split(".")[1] for name in names if name.startswith(package + ".")}
    return found


@pytest.mark.parametrize("module", list(ALLOWED))
def test_imports_point_one_way(module):
    place = ROOT / "mxref" / module
    files = sorted(place.glob("*.py")) if place.is_dir() else [place.with_suffix(".py")]
    assert files
    for path in files:
        assert imported(path, "mxref") <= ALLOWED[module], path


def test_kernels_take_names_from_mxref_and_no_arithmetic():
    for path in sorted((ROOT / "mxkernels").rglob("*.py")):
        # shown: how an error shows a value
        allowed = {"formats", "recipes", "shown", "Quantized", "Recipe", "RECIPES"}
        if path.name == "reference.py":
            allowed |= {"quantize", "layouts"}
        if path.parent.name in ("bench", "cli"):
            allowed |= {"cli"}  # how a command prints and fails, which is no arithmetic
        if path.relative_to(ROOT) == Path("mxkernels/bench/report.py"):
            allowed |= {"testing"}  # which ptxas is named
        assert imported(path, "mxref") <= allowed, path


def test_mxref_never_names_mxkernels():
    for path in sorted((ROOT / "mxref").rglob("*.py")):
        modules = {
            name
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, (ast.Import, ast.ImportFrom))
            for name in [getattr(node, "module", None) or "", *(a.name for a in node.names)]
        }
        assert not any(name.split(".")[0] == "mxkernels" for name in modules), path


def test_one_file_of_mxref_imports_hypothesis():
    """The one that says what to install; the extra of Hypothesis itself is asked for by name."""
    found = {
        path.name
        for path in (ROOT / "mxref").rglob("*.py")
        if re.search(r"^\s*(from|import) hypothesis\b(?!\.extra)", path.read_text(), re.M)
    }
    assert found == {"drawing.py"}
