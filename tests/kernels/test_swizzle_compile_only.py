"""Machine code of the swizzle kernels without a GPU: access widths and spills."""

import re
from functools import cache

import pytest

from mxkernels.loader import kernels
from mxkernels.swizzle.configs import SWIZZLES
from tests.kernels.compiling import accesses, build, resources

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


def swizzle_kernel(name):
    return getattr(kernels("swizzle.triton", interpret=False), name)


@cache
def compiled(kernel_name, arch, axis, unit, width, config, aligned=True, groups=32):
    """A 128-row tile across, as many tiles of the configuration side by side as it takes."""
    constants = {"AXIS": axis, "REPEAT": 1, "TAIL": False, "UNIT": unit, "WIDTH": width}
    constants |= {"GROUPS": groups if axis else 1, "COLUMN_TILES": config.across}
    constants["ROW_TILES"] = config.tiles // config.across
    # Scales by rows have columns of stride 1, a transposed matrix has rows of stride 1.
    constants["row_units" if unit == 1 else "column_stride"] = 1
    pointer = "*i32" if width == 1 else "*u8"
    pointers = {"scale_ptr": pointer, "stored_ptr": pointer, "offs_ptr": "*i32"}
    names = ["scale_ptr", "stored_ptr"] if aligned else []
    names += ["rows", "column_stride", "matrix_units"] if unit == 1 else []
    return build(
        "swizzle.triton", kernel_name, constants, pointers, names, arch=arch, warps=config.warps
    )


@pytest.mark.parametrize(("kernel", "arch", "axis", "elements", "config"), CHECKS)
def test_scales_move_16_bytes_at_a_time(kernel, arch, axis, elements, config, tmp_path):
    built = compiled(kernel, arch, axis, *elements.values(), config)
    narrow = [load for load in accesses(built, "ld") if not load.endswith("v4.b32")]
    assert len(narrow) <= (4 if axis else 0), "only the ends of groups are read in pieces"
    assert accesses(built, "ld") != narrow
    stores = accesses(built, "st")
    assert stores
    assert all(store.endswith("v4.b32") for store in stores), stores
    assert {"STACK:0", "LOCAL:0"} <= set(resources(built, tmp_path))


@pytest.mark.parametrize("kernel", ["encode", "decode"])
def test_many_groups_compile(kernel):
    """The ends are not told to be aligned: with that, Triton 3.6 never ended compiling these."""
    assert compiled(kernel, 90, "K", 1, 4, SWIZZLES[1], groups=512).asm["cubin"]
    parameter = next(p for p in swizzle_kernel(kernel).params if p.name == "offs_ptr")
    assert parameter.do_not_specialize_on_alignment


@pytest.mark.parametrize("elements", [TURNED, WORDS], ids=str)
def test_groups_of_columns_compile(elements, tmp_path):
    built = compiled("encode", 90, "K", *elements.values(), SWIZZLES[1])
    if elements is WORDS:
        assert set(accesses(built, "ld")) == {"b32"}, "words are cut from words, never from bytes"
    assert all(store.endswith("v4.b32") for store in accesses(built, "st"))
    assert {"STACK:0", "LOCAL:0"} <= set(resources(built, tmp_path))


def test_an_unaligned_matrix_is_not_loaded_wide():
    """The check of access widths can fail."""
    built = compiled("encode", 90, "", *WORDS.values(), FIRST, aligned=False)
    assert not any(load.endswith("v4.b32") for load in accesses(built, "ld"))


def test_words_of_column_groups_are_loaded_along_the_rows_of_s():
    """In vectors: of (rows, columns) Triton 3.6 puts 32 rows in a warp, 32 sectors a load."""
    built = compiled("encode", 90, "K", *WORDS.values(), SWIZZLES[1])
    loads = re.findall(r"tt\.load .*?tensor<([\dx]+)x!tt\.ptr<i32>", built.asm["ttgir"])
    assert str(128 * SWIZZLES[1].tiles) in loads
    assert not [shape for shape in loads if "x" in shape]
