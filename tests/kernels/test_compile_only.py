"""Machine code without a GPU: instructions, access widths and spills of every configuration."""

import re
from functools import cache
from itertools import product

import pytest

from mxkernels.quantize.canonical import Case
from mxkernels.quantize.configs import ACROSS, ALONG, ALONG_TURNED, BOTH, FLAT, TURNED, family
from tests.kernels.compiling import (
    POINTERS,
    accesses,
    build_kernel,
    compiled,
    machine_code,
    resources,
    torn,
    triton,
)

UE8M0 = re.compile(r"F2FP\S*E8\S*\.RP|F2FP\S*RP\S*E8")
CONVERT = "cvt.rn.satfinite.e4m3x2.f32"
SWIZZLE = "swizzle_32_4_4"
LAYOUTS = ("plain", "plain_t", SWIZZLE)
ARCHS = (80, 90, 100, 120)
AMD = "gfx950"

FLAT_CASES = [
    *((arch, "bf16", "flat", FLAT[0]) for arch in ARCHS),
    *((arch, dtype, "flat", FLAT[0]) for arch, dtype in ((90, "fp16"), (80, "fp32"), (90, "fp32"))),
    *((90, "bf16", layout, FLAT[0]) for layout in ("whole", "ragged")),
    *((90, "bf16", "flat", config) for config in FLAT[1:]),
]

ROWS, ROWS_TURNED = ((1, 32), False), ((1, 32), True)
COLUMNS, COLUMNS_TURNED = ((32, 1), False), ((32, 1), True)
TILES, TILES_TURNED = ((32, 32), False), ((32, 32), True)
TILE_CASES = [
    *((90, "bf16", *ROWS, SWIZZLE, config) for config in ALONG.configs),
    *((90, "bf16", *COLUMNS, "plain", config) for config in ACROSS.configs),
    *((90, "bf16", *COLUMNS_TURNED, "plain_t", config) for config in TURNED.configs),
    *(
        (90, "bf16", *kind, layout, config)
        for kind, config in (
            (TILES, ACROSS.usual),
            (TILES_TURNED, TURNED.usual),
            (ROWS_TURNED, ALONG_TURNED.usual),
        )
        for layout in LAYOUTS
    ),
    *((arch, "bf16", *ROWS, SWIZZLE, ALONG.usual) for arch in (80, 100, 120)),
    *((80, dtype, *COLUMNS_TURNED, SWIZZLE, TURNED.float32) for dtype in ("bf16", "fp16")),
    *((arch, "bf16", *COLUMNS_TURNED, SWIZZLE, TURNED.usual) for arch in (100, 120)),
    *((arch, "fp32", *COLUMNS_TURNED, SWIZZLE, TURNED.float32) for arch in (80, 100, 120)),
    (90, "fp16", *COLUMNS_TURNED, SWIZZLE, TURNED.usual),
    (90, "fp32", *COLUMNS_TURNED, SWIZZLE, TURNED.float32),
    *((90, "bf16", *ROWS_TURNED, "plain", config) for config in ALONG_TURNED.configs[1:]),
]


EVERY = list(product(ARCHS, POINTERS, ((1, 32), (32, 1), (32, 32)), (False, True), LAYOUTS))
"""All combinations with the configuration that each takes unasked: nightly."""


@cache
def flat(arch, dtype, layout, config, rule="rceil", aligned=True):
    constants = {"RULE": rule, "DTYPE": dtype, "LAYOUT": layout, "HARDWARE": hardware(arch)}
    name = "quantize_1x32"
    return compiled("quantize.triton", name, config, constants, arch=arch, aligned=aligned)


def hardware(arch):
    return isinstance(arch, int) and arch >= 90


@cache
def tile(
    arch, dtype, block, turned, layout, config,
    even=True, wide=False, ones=(), words=True, rule="rceil",
):  # fmt: skip
    constants = {
        "RULE": rule,
        "DTYPE": dtype,
        "ROW_BLOCK": block[0],
        "COLUMN_BLOCK": block[1],
        "LAYOUT": layout,
        "CONTRACT": Case(None, block, turned, layout).contract,
        "HARDWARE": hardware(arch),
        "EVEN": even,
        "ALIGNED": words,
        "WIDE": wide,
    }
    name = "quantize_turned" if turned else "quantize_tile"
    return compiled("quantize.tiled", name, config, constants, arch=arch, ones=ones)


@cache
def both(arch, dtype, config):
    constants = {
        "RULE": "rceil",
        "DTYPE": dtype,
        "ROW_LAYOUT": "plain",
        "COLUMN_LAYOUT": SWIZZLE,
        "HARDWARE": hardware(arch),
        "EVEN": True,
        "ALIGNED": True,
        "WIDE": False,
    }
    return compiled("quantize.both", "quantize_both", config, constants, arch=arch)


def assert_exact(built, arch):
    assert (CONVERT in built.asm["ptx"]) == hardware(arch)
    assert ".ftz" not in built.asm["ptx"], "subnormals would be flushed"
    assert not torn(built)


def assert_no_spills(built, tmp_path, most=40):
    """ptxas may give `most` bytes of stack to fit one more block on a multiprocessor; no more."""
    words = resources(built, tmp_path)
    assert "LOCAL:0" in words
    assert int(next(word for word in words if word.startswith("STACK:"))[6:]) <= most, words


def stack(config):
    """The bytes that are borne: a bound on registers costs some, and is worth it (README)."""
    return 40 if config.registers is None else 112


def assert_wide(built, widths):
    """Loads are 16 bytes; stores have these widths, those of scales aside."""
    loads, stores = accesses(built, "ld"), accesses(built, "st")
    assert loads
    assert all(load.endswith("v4.b32") for load in loads), loads
    payload = [store for store in stores if store.endswith("b32") and store.startswith("v")]
    assert set(payload) == set(widths), stores
    # One scale byte for 32 elements, so far fewer pieces than elements.
    assert len(stores) - len(payload) <= 8, stores


@pytest.mark.parametrize(("arch", "dtype", "layout", "config"), FLAT_CASES)
def test_flat_machine_code(arch, dtype, layout, config, tmp_path):
    built = flat(arch, dtype, layout, config)
    assert_exact(built, arch)
    assert_wide(built, ["v4.b32" if config.vector == 16 else "v2.b32"])
    assert_no_spills(built, tmp_path)


@pytest.mark.parametrize(("arch", "dtype", "block", "turned", "layout", "config"), TILE_CASES)
def test_tile_machine_code(arch, dtype, block, turned, layout, config, tmp_path):
    built = tile(arch, dtype, block, turned, layout, config)
    assert_exact(built, arch)
    assert_wide(built, ["v4.b32" if turned or config.vector == 16 else "v2.b32"])
    assert_no_spills(built, tmp_path)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("arch", "dtype", "block", "turned", "layout"), EVERY)
def test_every_combination_compiles(arch, dtype, block, turned, layout, tmp_path):
    wide = dtype == "fp32" or not hardware(arch)
    meant = family(block, turned=turned)
    config = meant.float32 if wide else meant.usual
    built = tile(arch, dtype, block, turned, layout, config)
    assert_exact(built, arch)
    assert_wide(built, ["v4.b32" if turned or config.vector == 16 else "v2.b32"])
    assert_no_spills(built, tmp_path)


@pytest.mark.parametrize("config", BOTH.configs)
def test_machine_code_of_both_directions(config, tmp_path):
    built = both(90, "bf16", config)
    assert_exact(built, 90)
    assert_wide(built, {"v4.b32"} if config.vector == 16 else {"v4.b32", "v2.b32"})
    assert_no_spills(built, tmp_path, stack(config))


@pytest.mark.parametrize(
    ("arch", "dtype"),
    [(80, "bf16"), (80, "fp32"), (90, "fp32"), (100, "bf16"), (100, "fp32"), (120, "fp16")],
)
def test_both_directions_on_other_gpus(arch, dtype, tmp_path):
    wide = dtype == "fp32" or not hardware(arch)
    config = BOTH.float32 if wide else BOTH.usual
    built = both(arch, dtype, config)
    assert_exact(built, arch)
    assert_no_spills(built, tmp_path, stack(config))


@pytest.mark.parametrize(
    ("even", "wide", "ones"),
    [(False, False, ()), (False, True, ()), (True, True, ()), (False, False, ("rows",)),
     (False, False, ("columns",)), (False, False, ("row_stride",))],
)  # fmt: skip
@pytest.mark.parametrize("kind", [(*ROWS, ALONG.usual), (*TILES_TURNED, TURNED.usual)])
def test_ragged_far_and_single_rows_compile(even, wide, ones, kind, tmp_path):
    """A size of 1 becomes a constant, which the interpreter does not show."""
    block, turned, config = kind
    built = tile(90, "bf16", block, turned, SWIZZLE, config, even, wide, ones)
    assert_exact(built, 90)
    assert_no_spills(built, tmp_path)
    if not ones:
        assert all(load.endswith("v4.b32") for load in accesses(built, "ld"))


def test_columns_that_are_no_whole_words_are_stored_in_bytes(tmp_path):
    built = tile(90, "bf16", *COLUMNS_TURNED, "plain", TURNED.usual, even=False, words=False)
    assert_exact(built, 90)
    assert_no_spills(built, tmp_path)
    assert all(store.endswith(".b8") or store == "b8" for store in accesses(built, "st"))


@pytest.mark.parametrize("kind", [(*ROWS, ALONG.usual), (*COLUMNS_TURNED, TURNED.usual)])
def test_amd_machine_code(kind):
    block, turned, config = kind
    built = tile(AMD, "bf16", block, turned, SWIZZLE, config)
    text = built.asm["amdgcn"]
    assert "global_load_dwordx4" in text or "buffer_load_dwordx4" in text
    assert ".private_segment_fixed_size: 0" in text, "registers are spilled"


@pytest.mark.parametrize("rule", ["floor", "ceil", "even"])
def test_every_rule_compiles(rule):
    ptx = flat(90, "bf16", "flat", FLAT[0], rule).asm["ptx"]
    assert CONVERT in ptx
    assert ptx != flat(90, "bf16", "flat", FLAT[0]).asm["ptx"]


@pytest.mark.parametrize("arch", [100, 120])
def test_the_ue8m0_instruction(arch, tmp_path):
    """`cvt.rp` rounds the ratio up: the machine code has it, and only where it was asked for."""
    kind = (*COLUMNS_TURNED, SWIZZLE, TURNED.usual)
    for ours, own in (
        (flat(arch, "bf16", "flat", FLAT[0], "rceil_ue8m0"), flat(arch, "bf16", "flat", FLAT[0])),
        (tile(arch, "bf16", *kind, rule="rceil_ue8m0"), tile(arch, "bf16", *kind)),
    ):
        assert UE8M0.search(machine_code(ours, tmp_path))
        assert not UE8M0.search(machine_code(own, tmp_path))
        assert "mul.rn.f32" in ours.asm["ptx"]
        assert ".ftz" not in ours.asm["ptx"]
        assert_no_spills(ours, tmp_path)


def test_a_gpu_without_the_ue8m0_instruction_refuses_it(capfd):
    with pytest.raises(triton.runtime.errors.PTXASError, match="ue8m0x2"):
        flat(90, "bf16", "flat", FLAT[0], "rceil_ue8m0")


def test_a_spill_is_found(tmp_path):
    config = TURNED.usual._replace(warps=1)
    built = tile(80, "bf16", *COLUMNS_TURNED, "plain", config)
    with pytest.raises(AssertionError, match="<= 40"):
        assert_no_spills(built, tmp_path)


def test_an_unaligned_input_is_not_loaded_wide():
    """The check of access widths can fail."""
    built = flat(90, "bf16", "flat", FLAT[0], aligned=False)
    assert not any(load.endswith("v4.b32") for load in accesses(built, "ld"))


def test_codes_that_leave_in_words_and_one_by_one_are_found():
    """The pattern that ptxas 12.8.93 miscompiles: of this kernel's transposed codes a quarter was
    wrong on an H200, of 4,096 bytes 1,020; assembled by 13.0.88 none."""
    from tests.kernels.torn_kernel import torn_cast

    pointers = {"x_ptr": "*fp32", "row_ptr": "*u8", "column_ptr": "*u8"}
    assert torn(build_kernel(torn_cast, {}, pointers, pointers, arch=90, warps=2))
