"""The README's headline: a Markdown table and its machine out of one results file.

A README holds it between two comments; `write` replaces what lies between them, and a test
compares it with the file that the first comment names, a path from the README's folder:

    <!-- mxkernels bench headline mxkernels/bench/results/FILE.json -->
    <!-- end of headline -->
"""

import re
from typing import Any

from mxkernels.bench import records
from mxkernels.bench.records import Row
from mxkernels.bench.tables import WORDS

LINES = (
    ("cast", (16384, 16384), "dim0"),
    ("cast", (16384, 16384), "1x32 row swizzle_32_4_4 n"),
    ("cast", (16384, 16384), "dim1"),
    ("cast3d", (32, 8192, 5120), "32x1_n"),
    ("cast3d", (32, 8192, 5120), "32x1_t"),
    ("cast3d", (32, 8192, 5120), "32x32_n"),
    ("cast3d", (32, 8192, 5120), "32x32_t"),
    ("both", (16384, 16384), "both col plain"),
    ("dequantize", (16384, 16384), "1x32 plain"),
)
"""What the headline shows, in this order, where the results have it."""

BEGIN, END = "<!-- mxkernels bench headline ", "<!-- end of headline -->"
MARKED = re.compile(rf"{BEGIN}(?P<file>\S+) -->\n(?P<table>.*?){END}", re.DOTALL)


def table(content: dict[str, Any], recipe: str = "rceil") -> str:
    """The headline as Markdown; ValueError if the results hold none of its lines.

    Time is that of the fastest of ours; its share is of the limit measured in turns with it.
    """
    rows = records.pivot(content["rows"])
    chosen = [found for line in LINES for found in rows if _is(found, line, recipe)]
    if not chosen:
        raise ValueError(f"recipe={recipe!r}: these results hold no line of the headline")
    peers = [who for who in records.PEERS if any(f"{who}_us" in row for row in chosen)]
    heads = ["variant", "shape", "kernel", "us", "TB/s", "of the limit"]
    heads += [f"{WORDS[who]}, times as long" for who in peers]
    lines = [heads, ["---"] * len(heads), *(_cells(row, peers) for row in chosen)]
    text = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    return f"{text}\n{machine(content)}, {recipe}\n"


def _is(row: Row, line: tuple[str, tuple[int, ...], str], recipe: str) -> bool:
    family, shape, variant = line
    return (
        (row["family"], tuple(row["shape"])) == (family, shape)
        and variant in (row["name"], row["variant"])
        and row["recipe"] in (recipe, "")
        and (row["dtype"], row["data"], row["method"]) == ("bfloat16", "randn", "events")
        and "best" in row
    )


def _cells(row: Row, peers: list[str]) -> list[str]:
    who = row["best"]
    ours = row[f"{who}_us"]
    shown = [
        f"{row[f'{peer}_us'] / ours:.2f}"
        if f"{peer}_us" in row and records.sound(row, peer)
        else ""
        for peer in peers
    ]
    share = row.get(f"{who}_share")
    return [
        row["name"] or row["variant"],
        " x ".join(map(str, row["shape"])),
        WORDS[who],
        f"{ours:.1f}",
        f"{row[f'{who}_gbps'] / 1e3:.2f}",
        "" if share is None else f"{share:.3f}",
        *shown,
    ]


def machine(content: dict[str, Any]) -> str:
    """The machine, versions and date in a line."""
    found = content["environment"]
    parts = [f"One {found.get('gpu', 'CPU')}"]
    parts += [f"driver {found['driver']}"] if found.get("driver") else []
    parts += [f"torch {found['torch']}"]
    parts += [f"Triton {found['triton']}"] if found.get("triton") else []
    return ", ".join([*parts, found["date"][:10], "bf16"])


def marked(text: str) -> list[tuple[str, str]]:
    """The headlines in a text: the results file each names, and what stands there.

    >>> marked("<!-- mxkernels bench headline a.json -->\\n| x |\\n<!-- end of headline -->")
    [('a.json', '| x |\\n')]
    """
    return [(found["file"], found["table"]) for found in MARKED.finditer(text)]


def write(text: str, file: str, content: dict[str, Any], recipe: str = "rceil") -> str:
    """The text with the headline of `content` between its comments; ValueError without them."""
    if not MARKED.search(text):
        raise ValueError(f"expected a headline's two comments: {BEGIN}FILE --> and {END}")
    made = f"{BEGIN}{file} -->\n{table(content, recipe)}{END}"
    return MARKED.sub(lambda _: made, text, count=1)
