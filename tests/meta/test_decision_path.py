"""Integer arithmetic decides every bit: what the syntax tree of the decision path may not have."""

import ast
from pathlib import Path

import pytest

import mxref

PACKAGE = Path(mxref.__file__).parent
FILES = [
    "bits.py", "casting.py", "blocks.py", "tiles.py", "formats.py", "recipes.py", "exact.py",
    "rational.py",
]  # fmt: skip
DECISION_PATH = [PACKAGE / name for name in FILES] + sorted((PACKAGE / "rules").glob("*.py"))

NAMES = {"log2", "exp2", "ldexp", "frexp", "log", "exp", "pow", "log10", "round_", "nextafter"}
CASTS = {"float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu"}


def offences(source: str) -> list[str]:
    """Calls of float functions, and conversions (.to) to a float8 dtype."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and node.attr in NAMES:
            found.append(node.attr)
        if isinstance(node, ast.Name) and node.id in NAMES:
            found.append(node.id)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            named = {
                n.attr for arg in node.args for n in ast.walk(arg) if isinstance(n, ast.Attribute)
            }
            if node.func.attr in ("to", "type", "copy_") and named & CASTS:
                found.append(f".{node.func.attr}({named & CASTS})")
    return found


@pytest.mark.parametrize("path", DECISION_PATH, ids=lambda path: path.name)
def test_no_float_function_decides_a_bit(path):
    assert offences(path.read_text()) == []


@pytest.mark.parametrize(
    "source",
    [
        "torch.log2(x)",
        "from math import frexp\nfrexp(x)",
        "x.exp2()",
        "torch.ldexp(x, e)",
        "x.to(torch.float8_e4m3fn)",
        "x.to(dtype).to(torch.float8_e8m0fnu)",
    ],
)
def test_an_offence_is_found(source):
    assert offences(source)


def test_views_are_no_offence():
    assert offences("x.view(torch.float8_e4m3fn)") == []
