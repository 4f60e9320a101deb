"""Machine code of dequantize without a GPU: instructions, access widths and spills."""

from functools import cache

import pytest

from mxkernels.dequantize.configs import DEQUANTIZE
from tests.kernels.compiling import accesses, build, resources

UNPACK = "cvt.rn.f16x2.e4m3x2"
WIDE = {"bf16": 16, "fp16": 16, "fp32": 32}
SOME_TILES = ("along", "inner", "square", "across", "outer")
CHECKS = [
    *((arch, dtype, "flat", DEQUANTIZE[0]) for arch in (80, 90, 100) for dtype in WIDE),
    *((90, "bf16", "flat", config) for config in DEQUANTIZE[1:]),
    *((90, "bf16", tile, DEQUANTIZE[0]) for tile in SOME_TILES),
]


@cache
def compiled(arch, dtype, tile, config, aligned=True):
    flat = tile == "flat"
    constants = {
        "ALONG": tile not in ("across", "outer"),
        "SQUARE": tile == "square",
        "SINGLE": flat,
        "LAYOUT": tile if tile in ("inner", "outer") else "strided",
        "EVEN": not flat,
        "DTYPE": dtype,
        "HARDWARE": arch >= 90,
        "ROWS": config.rows * config.columns // 32 if flat else config.rows,
        "COLUMNS": 32 if flat else config.columns,
        "VECTOR": config.vector,
    }
    constants |= {"scale_column": 1} | ({"scale_row": 1, "across": 1} if flat else {})
    pointers = {"payload_ptr": "*u8", "scale_ptr": "*u8", "values_ptr": f"*i{WIDE[dtype]}"}
    names = ("payload_ptr", "values_ptr", "columns", "row_stride", "matrix_stride")
    return build(
        "dequantize.triton", "dequantize_tiles", constants, pointers, names if aligned else (),
        arch=arch, warps=config.warps,
    )  # fmt: skip


@pytest.mark.parametrize(("arch", "dtype", "tile", "config"), CHECKS)
def test_machine_code(arch, dtype, tile, config, tmp_path):
    built = compiled(arch, dtype, tile, config)
    ptx = built.asm["ptx"]
    assert (UNPACK in ptx) == (arch >= 90)
    assert ".ftz" not in ptx, "subnormals would be flushed"
    width = {8: "v2.b32", 16: "v4.b32"}[config.vector]
    loads = accesses(built, "ld")
    codes = [load for load in loads if load.endswith(width)]
    assert codes
    assert {load.rpartition(".")[2] for load in loads if load not in codes} == {"b8"}
    stores = accesses(built, "st")
    assert stores
    assert all(store.endswith("v4.b32") for store in stores), stores
    assert {"STACK:0", "LOCAL:0"} <= set(resources(built, tmp_path))


def test_an_unaligned_payload_is_not_loaded_wide():
    """The check of access widths can fail."""
    built = compiled(90, "bf16", "flat", DEQUANTIZE[0], aligned=False)
    assert {load.rpartition(".")[2] for load in accesses(built, "ld")} == {"b8"}
