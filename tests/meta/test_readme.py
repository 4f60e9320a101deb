"""The README tells the truth: its table gives these bytes, its code runs."""

import contextlib
import re
from pathlib import Path

import pytest
import torch

import mxref

TEXT = (Path(__file__).parents[2] / "README.md").read_text()

BLOCKS = {
    "all +0": ("fp32", 0x00000000),
    "all -0": ("fp32", 0x80000000),
    "fp32 2^-149 (smallest subnormal)": ("fp32", 0x00000001),
    "bf16 2^-133 (smallest subnormal)": ("bf16", 0x0001),
    "2^-126 (smallest normal)": ("fp32", 0x00800000),
    "448 (the largest e4m3)": ("bf16", 0x43E0),
    "480 (halfway to 512)": ("bf16", 0x43F0),
    "512 - ulp, fp32": ("fp32", 0x43FFFFFF),
    "largest finite fp32": ("fp32", 0x7F7FFFFF),
    "NaN or Inf among ones": ("bf16", 0x7FC0),
}


def policy_table() -> tuple[list[str], dict[str, list[str]]]:
    lines = TEXT.split("## Which bytes")[1].split("## ")[0].splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if "|" in line]
    return rows[0][1:], {row[0]: row[1:] for row in rows[2:]}


def test_the_policy_table_is_complete():
    recipes, rows = policy_table()
    assert recipes == list(mxref.RECIPES)[:4]
    assert list(rows) == list(BLOCKS)


@pytest.mark.parametrize("name", list(BLOCKS))
def test_the_policy_table_gives_these_bytes(name):
    recipes, rows = policy_table()
    dtype, bits = BLOCKS[name]
    for recipe, cell in zip(recipes, rows[name], strict=True):
        ones = [0x3F80] * 31 if "among ones" in name else [bits] * 31
        byte, codes = mxref.exact.quantize_block([bits, *ones], dtype, recipe)
        assert cell == f"{byte} / {codes[0]:02X}"
        assert codes == [codes[0]] * 32
        integer, kind = {
            "fp32": (torch.int32, torch.float32),
            "bf16": (torch.int16, torch.bfloat16),
        }[dtype]
        width = torch.iinfo(integer).bits
        x = torch.tensor([b - (b >> (width - 1) << width) for b in (bits, *ones)]).to(integer)
        payload, scale = mxref.quantize(x.view(kind), recipe)
        assert cell == f"{int(scale.view(torch.uint8))} / {int(payload.view(torch.uint8)[0]):02X}"


@pytest.mark.parametrize("code", re.findall(r"```python\n(.*?)```", TEXT, re.S))
def test_the_code_runs(code):
    namespace: dict[str, object] = {}
    exec(compile(code, "README.md", "exec"), namespace)
    for name, value in namespace.items():
        if name.startswith("test_"):
            judged(value)


def judged(test):
    """Run what pytest would collect: each case of a parametrized test."""
    cases = [case for mark in test.pytestmark for case in mark.args[1]]
    passed = 0
    for case in cases:
        with contextlib.suppress(pytest.skip.Exception):  # of another level
            test(*case.values, record_property=lambda name, value: None)
            passed += 1
    assert passed > 10


def test_who_agrees_with_whom_is_the_page_of_the_dialects():
    page = (Path(__file__).parents[2] / "docs" / "dialects.md").read_text()
    table = page.split("## Who agrees")[1].split("## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    rows = [row for row in rows if row[0].split(" ")[0] in mxref.RECIPES]
    assert len(rows) == len(mxref.RECIPES)
    for name in list(mxref.RECIPES)[:4]:
        same = ", ".join(row[0] for row in rows if row[1] == name)
        assert f"\n| {name} | {same} |\n" in TEXT


def test_both_commands_are_there_as_one_line_each():
    commands = [line for line in TEXT.splitlines() if line.startswith("python3 -m venv .venv && ")]
    assert len(commands) == 2
    assert commands[0].endswith(".venv/bin/mxref verify")
    assert commands[1].endswith(".venv/bin/pytest -n auto")
