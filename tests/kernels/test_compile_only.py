"""Machine code without a GPU: instructions, access widths and spills of every configuration."""

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

from mxkernels.loader import kernels
from mxkernels.quantize.configs import FLAT

triton = pytest.importorskip("triton")

CONVERT = "cvt.rn.satfinite.e4m3x2.f32"
ALIGNED = ("x_ptr", "payload_ptr", "scale_ptr", "columns", "row_stride")
POINTERS = {"bf16": "*i16", "fp16": "*i16", "fp32": "*i32"}
CHECKS = [
    *((arch, dtype, "flat", FLAT[0]) for arch in (80, 90, 100) for dtype in POINTERS),
    *((90, "bf16", layout, FLAT[0]) for layout in ("whole", "ragged")),
    *((90, "bf16", "flat", config) for config in FLAT[1:]),
]


@cache
def compiled(arch, dtype, layout, config, rule="rceil", aligned=True):
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    kernel = kernels("quantize.triton", interpret=False).quantize_1x32
    constants = {
        "RULE": rule,
        "DTYPE": dtype,
        "LAYOUT": layout,
        "HARDWARE": arch >= 90,
        "BLOCKS": config.blocks,
    }
    signature = {"x_ptr": POINTERS[dtype], "payload_ptr": "*u8", "scale_ptr": "*u8"}
    for name in ("n_blocks", "row_blocks", "columns", "row_stride"):
        signature[name] = "i32"
    signature |= dict.fromkeys(constants, "constexpr")
    at = kernel.arg_names.index
    hints = {(at(name),): [["tt.divisibility", 16]] for name in ALIGNED} if aligned else {}
    source = ASTSource(
        kernel, signature, {(at(name),): value for name, value in constants.items()}, hints
    )
    options = {"num_warps": config.warps, "enable_fp_fusion": False}
    return triton.compile(source, target=GPUTarget("cuda", arch, 32), options=options)


def resources(binary, tmp_path):
    """The line of the wheel's own cuobjdump that counts stack and local memory."""
    tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    if not tool.exists():
        pytest.skip("this Triton brings no cuobjdump")
    file = tmp_path / "kernel.cubin"
    file.write_bytes(binary)
    command = [tool, "--dump-resource-usage", file]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(("arch", "dtype", "layout", "config"), CHECKS)
def test_machine_code(arch, dtype, layout, config, tmp_path):
    built = compiled(arch, dtype, layout, config)
    ptx = built.asm["ptx"]
    assert (CONVERT in ptx) == (arch >= 90)
    assert ".ftz" not in ptx, "subnormals would be flushed"
    loads = re.findall(r"ld\.global\S*", ptx)
    stores = re.findall(r"st\.global\S*", ptx)
    assert loads
    assert all(load.endswith("v4.b32") for load in loads), loads
    narrow = [store for store in stores if not store.endswith("v4.b32")]
    assert len(narrow) == 1, f"only the scale is stored in narrow pieces: {stores}"
    assert len(narrow) < len(stores)
    assert {"STACK:0", "LOCAL:0"} <= set(resources(built.asm["cubin"], tmp_path).split())


@pytest.mark.parametrize("rule", ["floor", "ceil", "even"])
def test_every_rule_compiles(rule):
    ptx = compiled(90, "bf16", "flat", FLAT[0], rule).asm["ptx"]
    assert CONVERT in ptx
    assert ptx != compiled(90, "bf16", "flat", FLAT[0]).asm["ptx"]


def test_an_unaligned_input_is_not_loaded_wide():
    """The check of access widths can fail."""
    ptx = compiled(90, "bf16", "flat", FLAT[0], aligned=False).asm["ptx"]
    assert not any(load.endswith("v4.b32") for load in re.findall(r"ld\.global\S*", ptx))
