"""Machine code of dequantize without a GPU: instructions, access widths and spills."""

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

from mxkernels.dequantize.configs import DEQUANTIZE
from mxkernels.loader import kernels

triton = pytest.importorskip("triton")

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
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    kernel = kernels("dequantize.triton", interpret=False).dequantize_tiles
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
    signature = dict.fromkeys(kernel.arg_names, "i32")
    signature |= {"payload_ptr": "*u8", "scale_ptr": "*u8", "values_ptr": f"*i{WIDE[dtype]}"}
    signature |= dict.fromkeys(constants, "constexpr")
    at = kernel.arg_names.index
    names = ("payload_ptr", "values_ptr", "columns", "row_stride", "matrix_stride")
    hints = {(at(name),): [["tt.divisibility", 16]] for name in names} if aligned else {}
    source = ASTSource(
        kernel, signature, {(at(name),): value for name, value in constants.items()}, hints
    )
    options = {"num_warps": config.warps, "enable_fp_fusion": False}
    return triton.compile(source, target=GPUTarget("cuda", arch, 32), options=options)


def resources(binary, tmp_path):
    tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    if not tool.exists():
        pytest.skip("this Triton brings no cuobjdump")
    file = tmp_path / "kernel.cubin"
    file.write_bytes(binary)
    command = [tool, "--dump-resource-usage", file]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def accesses(ptx, what):
    return re.findall(rf"{what}\.global\S*", ptx)


@pytest.mark.parametrize(("arch", "dtype", "tile", "config"), CHECKS)
def test_machine_code(arch, dtype, tile, config, tmp_path):
    built = compiled(arch, dtype, tile, config)
    ptx = built.asm["ptx"]
    assert (UNPACK in ptx) == (arch >= 90)
    assert ".ftz" not in ptx, "subnormals would be flushed"
    width = {8: "v2.b32", 16: "v4.b32"}[config.vector]
    loads = accesses(ptx, "ld")
    codes = [load for load in loads if load.endswith(width)]
    assert codes
    assert {load.rpartition(".")[2] for load in loads if load not in codes} == {"b8"}
    stores = accesses(ptx, "st")
    assert stores
    assert all(store.endswith("v4.b32") for store in stores), stores
    assert {"STACK:0", "LOCAL:0"} <= set(resources(built.asm["cubin"], tmp_path).split())


def test_an_unaligned_payload_is_not_loaded_wide():
    """The check of access widths can fail."""
    ptx = compiled(90, "bf16", "flat", DEQUANTIZE[0], aligned=False).asm["ptx"]
    assert {load.rpartition(".")[2] for load in accesses(ptx, "ld")} == {"b8"}
