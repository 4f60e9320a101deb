"""The limit kernels: bytes in the interpreter, machine code for sm_90, which limit is whose."""

import pytest
import torch

from mxkernels.arch import triton_missing
from mxkernels.bench.jobs import Pool, difference, verify
from mxkernels.bench.limits import LIMITS, limit_of, saturated, target_of
from mxkernels.loader import kernels
from tests.kernels.compiling import POINTERS, accesses, build_kernel, resources, torn

if lacking := triton_missing(interpret=True):
    pytest.skip(lacking, allow_module_level=True)

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}
MODULE = kernels("bench.limit_kernels", interpret=False)
ALIGNED = ("x_ptr", "out_ptr", "row_ptr", "col_ptr", "codes_ptr", "numel", "rows", "columns")


def source(name, shape, dtype, device="cpu"):
    x = (torch.randn(shape, device=device) * 100).to(dtype)
    x.view(-1)[:3] = torch.tensor([-0.0, 1e4, -1e4])
    if name == "codes":
        codes = torch.arange(x.numel(), device=device).remainder(256).to(torch.uint8).view(shape)
        return codes.masked_fill(codes & 0x7F == 0x7F, 0)  # NaN patterns are torch's own choice
    return saturated(x).view(torch.float8_e8m0fnu) if name == "scales" else x


def sound(name, shape, dtype, device="cpu"):
    jobs = LIMITS[name].jobs(Pool([source(LIMITS[name].source, shape, dtype, device)]), {})
    jobs = [job for job in jobs if not (name == "stream" and job.labels["config"] == "torch")]
    verify(jobs)
    return {job.labels["config"]: job.note for job in jobs if job.note}


@pytest.mark.parametrize("shape", [(32, 64), (2, 37, 45), (64, 128)], ids=str)
@pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
@pytest.mark.parametrize("name", LIMITS)
def test_every_candidate_writes_the_right_bytes(name, shape, dtype):
    assert sound(name, shape, dtype) == {}


@pytest.mark.gpu
@pytest.mark.parametrize("shape", [(128, 256), (3, 37, 45)], ids=str)
@pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
@pytest.mark.parametrize("name", LIMITS)
def test_every_candidate_writes_the_right_bytes_on_a_gpu(name, shape, dtype):
    assert sound(name, shape, dtype, "cuda") == {}


def test_a_wrong_candidate_is_found():
    x = source("x", (32, 64), torch.float32)
    job = LIMITS["stream"].jobs(Pool([x]), {})[0]
    job.call = lambda x: saturated(x).index_fill_(1, torch.tensor([7]), 0x11)
    verify([job])
    assert job.note.startswith("WRONG: output 0: 32 of 2048 elements differ, the first at 7")


def test_what_is_left_unwritten_is_found():
    x = source("x", (256, 256), torch.float32)
    job = LIMITS["stream"].jobs(Pool([x]), {})[0]
    job.call = lambda x: torch.empty(x.shape, dtype=torch.uint8)
    verify([job])
    assert job.note.startswith("WRONG")


def test_strides_are_compared():
    x = torch.arange(6).to(torch.uint8).view(2, 3)
    assert difference(x, x.t().contiguous().t()) == "output 0: strides (3, 1), expected (1, 2)"
    assert difference(x[:1], x[:1].t().contiguous().t()) == ""


@pytest.mark.parametrize(
    ("block", "payload_order", "input_order", "limit", "target"),
    [
        ((1, 32), "row", "n", "stream", 0.98),
        ((32, 1), "col", "t", "stream", 0.98),
        ((32, 32), "col", "t", "stream", 0.98),
        ((32, 1), "col", "n", "transpose", 0.95),
        ((32, 32), "col", "n", "transpose", 0.95),
        ((32, 1), "row", "n", "stream", 0.95),
        ((32, 32), "row", "n", "stream", None),
        ((1, 32), "row", "t", "transpose", None),
    ],
)
def test_the_speed_table(block, payload_order, input_order, limit, target):
    assert limit_of(payload_order, input_order) == limit
    assert target_of(block, payload_order, input_order) == target


@pytest.mark.parametrize(
    ("name", "moved"),
    [("copy", 16), ("stream", 12), ("transpose", 12), ("dual", 16), ("widen", 12)],
)
def test_bytes_are_those_read_and_written(name, moved):
    x = source(LIMITS[name].source, (1, 4), torch.bfloat16)
    assert LIMITS[name].moved(x) == moved


def compiled(kernel, pointers, constants, warps):
    names = [each for each in ALIGNED if each in kernel.arg_names]
    return build_kernel(kernel, constants, pointers, names, arch=90, warps=warps)


def assert_wide_and_unspilled(built, convert, tmp_path):
    assert convert in built.asm["ptx"]
    assert not torn(built)
    found = accesses(built, "ld") + accesses(built, "st")
    assert found
    assert all(each.endswith(("v4.b32", "v2.b32")) for each in found), found
    assert {"STACK:0", "LOCAL:0"} <= set(resources(built, tmp_path))


CAST = "cvt.rn.satfinite.e4m3x2.f32"


@pytest.mark.parametrize("config", MODULE.FLAT, ids=str)
def test_compile_only_stream(config, tmp_path):
    constants = {"DTYPE": "bf16", "HARDWARE": True, "EVEN": True, "ELEMENTS": config.elements}
    pointers = {"x_ptr": "*i16", "out_ptr": "*u8"}
    built = compiled(MODULE.stream_cast, pointers, constants, config.warps)
    assert_wide_and_unspilled(built, CAST, tmp_path)


@pytest.mark.parametrize("dtype", POINTERS)
@pytest.mark.parametrize("dual", [False, True], ids=["transpose", "dual"])
@pytest.mark.parametrize("config", MODULE.TILES, ids=str)
def test_compile_only_tiles(config, dual, dtype, tmp_path):
    constants = {"DTYPE": dtype, "HARDWARE": True, "EVEN": True, "DUAL": dual}
    constants |= {"ROWS": config.rows, "COLUMNS": config.columns, "ROWS_FIRST": config.rows_first}
    pointers = {"x_ptr": POINTERS[dtype], "row_ptr": "*u8", "col_ptr": "*u8"}
    built = compiled(MODULE.transpose_cast, pointers, constants, config.warps)
    assert_wide_and_unspilled(built, CAST, tmp_path)


@pytest.mark.parametrize("config", MODULE.WIDEN, ids=str)
def test_compile_only_widen(config, tmp_path):
    constants = {"HARDWARE": True, "EVEN": True, "ELEMENTS": config.elements}
    pointers = {"codes_ptr": "*u8", "out_ptr": "*i16"}
    built = compiled(MODULE.widen_e4m3, pointers, constants, config.warps)
    assert_wide_and_unspilled(built, "cvt.rn.f16x2.e4m3x2", tmp_path)
