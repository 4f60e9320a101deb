"""Every kernel on the handed blocks: 127 blocks with known bytes for each recipe."""

import json
from pathlib import Path

import pytest
import torch

from tests.kernels.guarded import assert_bytes, bytes_of

CASES = json.loads((Path(__file__).parents[1] / "cases" / "blocks_e4m3.json").read_text())["cases"]
NAMES = {torch.bfloat16: "bf16", torch.float16: "fp16", torch.float32: "fp32"}


def case_blocks(dtype):
    """The cases of one dtype and their inputs as (n, 32)."""
    cases = [case for case in CASES if case["dtype"] == NAMES[dtype]]
    assert cases
    assert {len(case["input"]) for case in cases} == {32}
    bits = torch.tensor([[int(code, 16) for code in case["input"]] for case in cases])
    stored = torch.int32 if dtype == torch.float32 else torch.int16
    limit = 1 << (32 if dtype == torch.float32 else 16)
    return cases, torch.where(bits >= limit // 2, bits - limit, bits).to(stored).view(dtype)


def wanted(cases, recipe):
    payload = [list(bytes.fromhex(case[recipe]["payload"])) for case in cases]
    scale = [[int(case[recipe]["scale"], 16)] for case in cases]
    return torch.tensor(payload, dtype=torch.uint8), torch.tensor(scale, dtype=torch.uint8)


def test_kernel_gives_the_handed_bytes(kernel, recipe, dtype, device):
    cases, x = case_blocks(dtype)
    result = kernel.call(x.to(device), recipe, (1, 32), "row", "plain")
    assert_bytes(bytes_of(result), wanted(cases, recipe))


def test_the_handed_bytes_can_be_missed(kernel, device):
    cases, x = case_blocks(torch.bfloat16)
    result = kernel.call(x.to(device), "floor", (1, 32), "row", "plain")
    with pytest.raises(AssertionError, match="differ"):
        assert_bytes(bytes_of(result), wanted(cases, "rceil"))
