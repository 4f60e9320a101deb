"""The dialects of libraries that pip installs, against the libraries: every bf16 amax, mixed fp32.

A comparison accepts 0x7F and 0xFF as the same NaN. torchao: the release 0.18.0.
"""

import importlib
import warnings
from importlib import util
from importlib.metadata import PackageNotFoundError, distribution, version

import pytest
import torch

import mxref
from tests.spec.test_dialects import from_bits, mixed_blocks

NEEDED = "0.18.0"


def bf16_blocks() -> torch.Tensor:
    """Every bf16 pattern as the largest of a block, the others up to 16 binades below it."""
    top = torch.arange(1 << 16).reshape(-1, 1)
    size = top & 0x7FFF
    below = (size - torch.arange(31) * 70).clamp_min(0)
    signs = (torch.arange(31) % 3 == 0).to(torch.int64) << 15
    return from_bits(torch.cat([top, below | signs], 1), "bf16")


def fp32_blocks() -> torch.Tensor:
    return from_bits(mixed_blocks("fp32", 20_000, 32, seed=11), "fp32")


def assert_same(x: torch.Tensor, name: str, payload: torch.Tensor, scale: torch.Tensor) -> None:
    ours = mxref.quantize(x, name)
    assert torch.equal(ours.scale.view(torch.uint8), scale.view(torch.uint8).reshape(-1, 1))
    codes, theirs = ours.payload.view(torch.uint8), payload.view(torch.uint8).reshape(x.shape)
    both_nan = (codes & 0x7F == 0x7F) & (theirs & 0x7F == 0x7F)
    differ = (codes != theirs) & ~both_nan
    assert not differ.any(), x[differ.any(1)][0].tolist()


def torchao_018() -> tuple[object, object]:
    try:
        found = version("torchao")
    except PackageNotFoundError:
        pytest.skip("torchao is not installed")
    if found != NEEDED:
        pytest.skip(f"torchao {found}: the dialects are those of {NEEDED}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        place = "torchao.prototype.mx_formats"
        return importlib.import_module(f"{place}.mx_tensor"), importlib.import_module(
            f"{place}.config"
        )


@pytest.mark.parametrize("blocks", [bf16_blocks, fp32_blocks])
@pytest.mark.parametrize("rule", ["floor", "rceil", "ceil", "even"])
def test_torchao_018(rule, blocks):
    mx_tensor, config = torchao_018()
    x = blocks()
    mode = config.ScaleCalculationMode[rule.upper()]
    scale, payload = mx_tensor.to_mx(x, torch.float8_e4m3fn, 32, mode)
    assert_same(x, f"torchao018_{rule}", payload, scale)


@pytest.mark.parametrize("blocks", [bf16_blocks, fp32_blocks])
@pytest.mark.parametrize("rule", ["floor", "rceil"])
@pytest.mark.filterwarnings("ignore")
def test_quack(rule, blocks):
    """Its quantizer is one file that needs torch alone, so it is loaded without the package."""
    try:
        found = distribution("quack-kernels")
    except PackageNotFoundError:
        pytest.skip("quack-kernels is not installed")
    spec = util.spec_from_file_location(
        "quack_quantize", found.locate_file("quack/blockscaled/quantize.py")
    )
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    x = blocks()
    payload, scale = module.to_mx(x, 32, rule)
    assert_same(x, f"quack_{rule}", payload, scale)


@pytest.mark.parametrize("blocks", [bf16_blocks, fp32_blocks])
@pytest.mark.filterwarnings("ignore")
def test_gfloat(blocks):
    block = pytest.importorskip("gfloat.block")
    row = pytest.importorskip("gfloat.formats").format_info_mxfp8_e4m3
    every = blocks()
    x = every[:: len(every) // 200]
    answers = []
    for values in x.double().numpy():
        scale = block.compute_scale_amax(row.etype.emax, values)
        answers.append(list(block.encode_block(row, scale, values / scale)))
    stored = torch.tensor(answers, dtype=torch.uint8)
    assert_same(x, "gfloat", stored[:, 1:], stored[:, :1])


def test_a_difference_is_seen():
    x = bf16_blocks()[:64]
    payload, scale = mxref.quantize(x, "te")
    assert_same(x, "te", payload, scale)
    with pytest.raises(AssertionError):
        assert_same(x, "quack_rceil", payload, scale)
