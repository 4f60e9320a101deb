"""The pages under docs/: their code runs or at least compiles, what they name is there."""

import re
from pathlib import Path

import pytest

from mxref import vectors
from mxref.formats import E4M3, INPUTS
from mxref.vectors.inputs import inputs

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted(DOCS.glob("*.md"))


def snippets(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(), re.S)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_code_compiles_and_the_links_lead_somewhere(page):
    for code in snippets(page):
        compile(code, page.name, "exec")
    for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
        assert (DOCS / link).exists(), link


def test_the_code_of_the_vectors_page_runs():
    (code,) = snippets(DOCS / "vectors.md")
    namespace: dict = {}
    exec(compile(code, "vectors.md", "exec"), namespace)
    assert namespace["case"].name == "maximum-plus-ulp"


def test_the_text_shown_on_the_vectors_page_is_that_of_floor():
    shown = re.search(r"```\n(format .*?)```", (DOCS / "vectors.md").read_text(), re.S)[1]
    text = vectors.text(vectors.make("floor")).splitlines()
    wanted = shown.splitlines()
    head = wanted[: wanted.index("x") + 1]
    assert text[: len(head)] == head


def test_the_cases_named_on_the_vectors_page_are_there():
    table = (DOCS / "vectors.md").read_text().split("## The cases")[1].split("##")[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    named = {name for row in rows for name in re.findall(r"`([a-z0-9-]+)`", row)}
    known = {name for fmt in INPUTS.values() for name in inputs(fmt, E4M3, (1, 32))}
    whole = {name for name in named if not name.startswith("-") and not name.endswith("-")}
    assert whole <= known
    assert len(whole) >= 12
