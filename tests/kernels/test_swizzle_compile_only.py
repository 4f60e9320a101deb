"""Machine code of the swizzle kernels without a GPU: access widths and spills."""

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

from mxkernels.loader import kernels
from mxkernels.swizzle.configs import SWIZZLES

triton = pytest.importorskip("triton")

FIRST = SWIZZLES[0]
WORDS = {"UNIT": 4, "WIDTH": 1}
BYTES = {"UNIT": 16, "WIDTH": 4}
TURNED = {"UNIT": 1, "WIDTH": 4}
CHECKS = [
    *(("encode", arch, "M", WORDS, FIRST) for arch in (80, 90, 100)),
    *(("encode", 90, "M", WORDS, config) for config in SWIZZLES[1:]),
    *((kernel, 90, "", WORDS, FIRST) for kernel in ("encode", "decode")),
    ("decode", 90, "M", WORDS, FIRST),
    ("encode", 90, "", BYTES, SWIZZLES[1]),
    ("encode", 90, "", TURNED, SWIZZLES[1]),
]


@cache
def compiled(kernel_name, arch, axis, unit, width, config, aligned=True):
    """A 128-row tile across, as many tiles of the configuration side by side as it takes."""
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    kernel = getattr(kernels("swizzle.triton", interpret=False), kernel_name)
    constants = {"AXIS": axis, "REPEAT": 1, "TAIL": False, "UNIT": unit, "WIDTH": width}
    constants |= {"GROUPS": 32 if axis else 1, "COLUMN_TILES": config.across}
    constants["ROW_TILES"] = config.tiles // config.across
    # Scales by rows have columns of stride 1, a transposed matrix has rows of stride 1.
    constants["row_units" if unit == 1 else "column_stride"] = 1
    pointer = "*i32" if width == 1 else "*u8"
    signature = dict.fromkeys(kernel.arg_names, "i32")
    signature |= {"scale_ptr": pointer, "stored_ptr": pointer, "offs_ptr": "*i32"}
    signature |= dict.fromkeys(constants, "constexpr")
    at = kernel.arg_names.index
    names = ["scale_ptr", "stored_ptr"] if aligned else []
    names += ["rows", "column_stride", "matrix_units"] if unit == 1 else []
    hints = {(at(name),): [["tt.divisibility", 16]] for name in names}
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


@pytest.mark.parametrize(("kernel", "arch", "axis", "elements", "config"), CHECKS)
def test_scales_move_16_bytes_at_a_time(kernel, arch, axis, elements, config, tmp_path):
    built = compiled(kernel, arch, axis, *elements.values(), config)
    ptx = built.asm["ptx"]
    narrow = [load for load in accesses(ptx, "ld") if not load.endswith("v4.b32")]
    assert len(narrow) <= (4 if axis else 0), "only the ends of groups are read in pieces"
    assert accesses(ptx, "ld") != narrow
    stores = accesses(ptx, "st")
    assert stores
    assert all(store.endswith("v4.b32") for store in stores), stores
    assert {"STACK:0", "LOCAL:0"} <= set(resources(built.asm["cubin"], tmp_path).split())


def test_groups_of_columns_compile(tmp_path):
    built = compiled("encode", 90, "K", 1, 4, SWIZZLES[1])
    assert all(store.endswith("v4.b32") for store in accesses(built.asm["ptx"], "st"))
    assert {"STACK:0", "LOCAL:0"} <= set(resources(built.asm["cubin"], tmp_path).split())


def test_an_unaligned_matrix_is_not_loaded_wide():
    """The check of access widths can fail."""
    ptx = compiled("encode", 90, "", *WORDS.values(), FIRST, aligned=False).asm["ptx"]
    assert not any(load.endswith("v4.b32") for load in accesses(ptx, "ld"))
