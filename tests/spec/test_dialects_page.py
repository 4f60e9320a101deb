"""docs/dialects.md: both of its tables are computed again, and every axis has its paragraph."""

import re
from pathlib import Path

import pytest
import torch

import mxref
from mxref.recipes import AXES

PAGE = Path(__file__).parents[2] / "docs" / "dialects.md"
ONE, NAN, INF = 0x3F800000, 0x7FC00000, 0x7F800000
REGIONS = ["amax >= 2^-13", "2^-110 to 2^-13", "below 2^-110", "zeros", "NaN", "Inf", "fp32 edges"]
PROBES = {
    "zeros": [0] * 32,
    "-0 and 1": [1 << 31, ONE, *[0] * 30],
    "NaN and 1": [NAN, ONE, *[0] * 30],
    "NaN alone": [NAN] * 32,
    "Inf and 1": [INF, ONE, *[0] * 30],
    "2^-126": [0x00800000, *[0] * 31],
    "448": [0x43E00000, *[0] * 31],
    "450": [0x43E10000, *[0] * 31],
    "largest": [0x7F7FFFFF, *[0] * 31],
}


def fp32(rows: torch.Tensor) -> torch.Tensor:
    return rows.to(torch.int32).view(torch.float32)


def blocks(largest: torch.Tensor) -> torch.Tensor:
    """Four elements: fp32 patterns with these maxima, the others up to 14 binades below."""
    below = (largest.reshape(-1, 1) - torch.arange(4) * (600 << 16)).clamp_min(0)
    return fp32(below | (torch.arange(4) % 3 == 1).to(torch.int64) << 31)


def region(name: str) -> torch.Tensor:
    """The blocks on which two recipes have to give the same bytes to agree in this column."""
    bf16 = torch.arange(1, 0x7F80) << 16
    low, high = (127 - 110) << 23, (127 - 13) << 23
    edges = (torch.arange(27, 254).reshape(-1, 1, 1) << 23) + torch.tensor([[0], [0x600000]])
    ones = torch.full((32,), ONE)
    return {
        "amax >= 2^-13": lambda: blocks(bf16[bf16 >= high]),
        "2^-110 to 2^-13": lambda: blocks(bf16[(bf16 >= low) & (bf16 < high)]),
        "below 2^-110": lambda: blocks(bf16[bf16 < low]),
        "zeros": lambda: fp32(torch.stack([ones * 0, ones * 0 + (1 << 31)])),
        "NaN": lambda: fp32(
            torch.stack([torch.cat([ones[1:], ones[:1] * 0 + NAN]), ones * 0 + NAN])
        ),
        "Inf": lambda: fp32(
            torch.stack([torch.cat([ones[:1] * 0 + s, ones[1:]]) for s in (INF, INF | 1 << 31)])
        ),
        "fp32 edges": lambda: blocks((edges + torch.arange(-50, 51, 2)).flatten()),
    }[name]()


def bytes_of(x: torch.Tensor, name: str) -> bytes:
    """Scales and payloads, every NaN as 0x7F."""
    payload, scale = (part.view(torch.uint8) for part in mxref.quantize(x, name))
    payload = torch.where(payload & 0x7F == 0x7F, 0x7F, payload)
    return bytes(torch.cat([scale, payload], 1).flatten().numpy())


def agreement() -> dict[str, list[str]]:
    """For each recipe and region the first recipe that gives the same bytes there."""
    columns = []
    for each in REGIONS:
        x, first = region(each), {}
        columns.append([first.setdefault(bytes_of(x, name), name) for name in mxref.RECIPES])
    return dict(zip(mxref.RECIPES, map(list, zip(*columns, strict=True)), strict=True))


def probed(name: str) -> list[str]:
    """`byte: first two payload bytes` of each probe."""
    cells = []
    for rows in PROBES.values():
        payload, scale = mxref.quantize(fp32(torch.tensor([rows])), name)
        byte, codes = int(scale.view(torch.uint8)), payload.view(torch.uint8)[0, :2].tolist()
        cells.append(f"{byte:02x}: {bytes(codes).hex(' ')}")
    return cells


def table(heading: str) -> tuple[list[str], dict[str, list[str]]]:
    """The first table under a heading: its columns and its rows by name."""
    lines = PAGE.read_text().split(f"## {heading}\n")[1].split("\n## ")[0].splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if "|" in line]
    return rows[0][1:], {row[0]: row[1:] for row in rows[2:]}


def shown(name: str) -> str:
    return mxref.RECIPES[name].shown.replace(" (unverified)", " *")


def test_who_agrees_with_whom():
    columns, rows = table("Who agrees with whom")
    assert columns == REGIONS
    computed = agreement()
    assert list(rows) == [shown(name) for name in computed]
    for name, cells in computed.items():
        assert rows[shown(name)] == ["" if cell == name else cell for cell in cells], name


def test_the_probes_give_these_bytes():
    columns, rows = table("What each does")
    assert columns == list(PROBES)
    assert list(rows) == [shown(name) for name in mxref.RECIPES]
    for name in mxref.RECIPES:
        assert rows[shown(name)] == probed(name), name


@pytest.mark.parametrize("axis", list(AXES))
def test_every_axis_has_a_paragraph_that_names_its_values(axis):
    (paragraph,) = re.findall(rf"^\*\*{axis}\*\*(.*?)(?=^\*\*|\Z)", PAGE.read_text(), re.S | re.M)
    for value in AXES[axis]:
        assert f"`{value}`" in paragraph, value


def test_the_page_is_short():
    assert len(PAGE.read_text().splitlines()) <= 150
