"""The exact answers in tests/cases: 127 blocks x 4 rules, 12 layouts, dialects."""

import json
from pathlib import Path

import pytest
import torch

import mxref
from mxref import exact, layouts

CASES = Path(__file__).parent.parent / "cases"
BLOCKS = json.loads((CASES / "blocks_e4m3.json").read_text())["cases"]
LAYOUTS = json.loads((CASES / "layouts.json").read_text())["cases"]
DIALECTS = json.loads((CASES / "dialects_e4m3.json").read_text())
DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}


def tensor_of(words: list[str], dtype: str) -> torch.Tensor:
    width = len(words[0]) // 2
    raw = b"".join(int(word, 16).to_bytes(width, "little") for word in words)
    return torch.frombuffer(bytearray(raw), dtype=DTYPES[dtype])


def hex_of(tensor: torch.Tensor) -> str:
    return bytes(tensor.view(torch.uint8).flatten().tolist()).hex()


@pytest.mark.parametrize("flush", [False, True])
@pytest.mark.parametrize("recipe", ["floor", "rceil", "ceil", "even"])
@pytest.mark.parametrize("case", BLOCKS, ids=lambda case: case["name"])
def test_quantize_gives_the_handed_bytes(case, recipe, flush):
    x = tensor_of(case["input"], case["dtype"])
    torch.set_flush_denormal(flush)
    try:
        payload, scale = mxref.quantize(x, recipe)
    finally:
        torch.set_flush_denormal(False)
    assert (hex_of(scale), hex_of(payload)) == (case[recipe]["scale"], case[recipe]["payload"])


@pytest.mark.parametrize("case", BLOCKS, ids=lambda case: case["name"])
def test_exact_gives_the_handed_bytes(case):
    bits = [int(word, 16) for word in case["input"]]
    for recipe in ("floor", "rceil", "ceil", "even"):
        scale, payload = exact.quantize_block(bits, case["dtype"], recipe)
        expected = (case[recipe]["scale"], case[recipe]["payload"])
        assert (f"{scale:02x}", bytes(payload).hex()) == expected


def test_no_handed_case_is_satisfied_by_every_rule_alone():
    """The cases can fail: each pair of rules differs somewhere."""
    rules = ("floor", "rceil", "ceil", "even")
    for i, first in enumerate(rules):
        for second in rules[i + 1 :]:
            assert any(case[first] != case[second] for case in BLOCKS)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float8_e8m0fnu])
@pytest.mark.parametrize("case", LAYOUTS, ids=lambda c: f"{c['layout']}-{c['R']}x{c['C']}")
def test_layouts_give_the_handed_bytes(case, dtype):
    rows, columns = case["R"], case["C"]
    codes = (torch.arange(rows * columns) % 251 + 1).to(torch.uint8).reshape(rows, columns)
    scale = codes.view(dtype)
    if "ends" in case:
        axis = "M" if case["layout"] == "m_groups" else "K"
        offs = torch.tensor(case["ends"], dtype=torch.int32)
        stored = layouts.encode_groups(scale, offs, axis=axis)
        back = layouts.decode_groups(stored, offs, axis=axis, shape=(rows, columns))
        beyond = codes[case["ends"][-1] :] if axis == "M" else codes[:, case["ends"][-1] :]
        beyond.zero_()
    else:
        block = tuple(case.get("block", (1, 32)))
        shape = tuple(case.get("shape", (rows, 32 * columns)))
        where = {"block": block, "contract": case.get("contract"), "shape": shape}
        stored = layouts.encode(scale, case["layout"], **where)
        back = layouts.decode(stored, case["layout"], **where)
    assert stored.dtype == back.dtype == dtype
    assert stored.is_contiguous()
    assert hex_of(stored) == case["bytes"]
    assert back.view(torch.uint8).tolist() == codes.tolist()


@pytest.mark.parametrize("probe", DIALECTS["probes"])
@pytest.mark.parametrize("name", sorted(set(DIALECTS["dialects"]) & set(mxref.RECIPES)))
def test_recipes_that_are_dialects_give_the_probed_bytes(name, probe):
    x = tensor_of(DIALECTS["probes"][probe], DIALECTS["dtype"])
    payload, scale = mxref.quantize(x, name)
    assert [hex_of(scale), hex_of(payload)] == DIALECTS["dialects"][name]["bytes"][probe]
