"""Where other libraries are meant to agree with this one they do; elsewhere it is said."""

import pytest
import torch

import mxref
from mxref.formats import ELEMENTS

ml_dtypes = pytest.importorskip("ml_dtypes")
gfloat = pytest.importorskip("gfloat")
ocp = pytest.importorskip("gfloat.formats")
np = pytest.importorskip("numpy")

PEER = {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}


def every_bf16() -> torch.Tensor:
    return torch.arange(1 << 16).sub(1 << 15).to(torch.int16).view(torch.bfloat16)


def at_scale_one(x: torch.Tensor, element: str) -> torch.Tensor:
    scale = torch.full((x.numel() // 32,), 127, dtype=torch.uint8)
    return mxref.quantize(x, mxref.Recipe(element=element), scale=scale).payload


@pytest.mark.parametrize("element", list(ELEMENTS))
def test_ml_dtypes_rounds_alike_below_the_maximum(element):
    x = every_bf16().float()
    limit = float(ml_dtypes.finfo(PEER[element]).max)
    x = torch.where(x.abs() <= limit, x, 1.0)
    theirs = torch.from_numpy(x.numpy().astype(PEER[element]).view(np.uint8))
    assert torch.equal(at_scale_one(x, element).view(torch.uint8), theirs)


def test_ml_dtypes_does_not_saturate():
    """The difference that makes it no oracle: it overflows to NaN where an MX cast saturates."""
    x = torch.full((32,), 500.0)
    theirs = x.numpy().astype(PEER["e4m3"]).view(np.uint8)
    assert set(theirs.tolist()) == {0x7F}
    assert set(at_scale_one(x, "e4m3").view(torch.uint8).tolist()) == {0x7E}


@pytest.mark.parametrize("element", list(ELEMENTS))
def test_torch_casts_alike_below_the_maximum(element):
    x = every_bf16().float()
    limit = {"e4m3": 448.0, "e5m2": 57344.0}[element]
    x = torch.where(x.abs() <= limit, x, 1.0)
    theirs = x.to(getattr(torch, ELEMENTS[element].torch_dtype))
    assert torch.equal(at_scale_one(x, element).view(torch.uint8), theirs.view(torch.uint8))


@pytest.mark.parametrize("element", list(ELEMENTS))
def test_gfloat_decodes_every_code_alike(element):
    formats = {"e4m3": ocp.format_info_ocp_e4m3, "e5m2": ocp.format_info_ocp_e5m2}
    codes = torch.arange(256).to(torch.uint8)
    payload = codes.view(getattr(torch, ELEMENTS[element].torch_dtype))
    ours = mxref.dequantize(payload, torch.full((8,), 127, dtype=torch.uint8))
    theirs = [gfloat.decode_float(formats[element], code).fval for code in range(256)]
    theirs = torch.tensor(theirs, dtype=torch.float32)
    finite = ~theirs.isnan()
    assert torch.equal(ours.isnan(), theirs.isnan())
    assert torch.equal(ours.view(torch.int32)[finite], theirs.view(torch.int32)[finite])


@pytest.mark.parametrize("element", list(ELEMENTS))
def test_gfloat_rounds_alike_and_saturates(element):
    formats = {"e4m3": ocp.format_info_ocp_e4m3, "e5m2": ocp.format_info_ocp_e5m2}
    x = every_bf16().float()[::37]
    x = x[x.isfinite()][: 32 * 50]
    ours = at_scale_one(x, element).view(torch.uint8).tolist()
    for value, code in zip(x.double().tolist(), ours, strict=True):
        rounded = gfloat.round_float(formats[element], value, sat=True)
        assert gfloat.encode_float(formats[element], rounded) == code
