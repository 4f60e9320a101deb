"""The decode for GPUs that are not here: it compiles, does not spill, and multiplies by MMA."""

import pytest

from mxkernels.loader import kernels
from mxkernels.matmul.configs import default
from tests.kernels.compiling import accesses, resources

pytest.importorskip("triton")

WORDS = {1: "*u8", 2: "*i16", 4: "*i32"}
UNALIGNED = ("tokens", "part_blocks")


def built(arch, config, tokens, **constants):
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    kernel = kernels("matmul.triton", interpret=False).decode_matmul
    constants = {
        "EVEN": True,
        "WHOLE": config.parts == 1,
        "HARDWARE": arch >= 90,
        "INTERPRET": False,
        "SWIZZLED": True,
        "TOKENS": tokens,
        "COLUMNS": config.columns,
        "UNROLL": config.unroll,
    } | constants
    types = {"a_ptr": "*u8", "b_ptr": "*u8", "out_ptr": "*i16" if config.parts == 1 else "*fp32"}
    types |= dict.fromkeys(("a_scale_ptr", "b_scale_ptr"), WORDS[config.unroll])
    signature, hints = {}, {}
    for at, name in enumerate(kernel.arg_names):
        signature[name] = "constexpr" if name in constants else types.get(name, "i32")
        if name not in constants and name not in UNALIGNED:
            hints[at,] = [["tt.divisibility", 16]]
    at = kernel.arg_names.index
    source = ASTSource(kernel, signature, {(at(k),): v for k, v in constants.items()}, hints)
    options = {"num_warps": config.warps, "num_stages": config.stages, "enable_fp_fusion": True}
    return triton.compile(source, target=GPUTarget("cuda", arch, 32), options=options)


@pytest.mark.parametrize("tokens", [16, 32, 64])
@pytest.mark.parametrize("arch", [80, 90, 100, 120])
def test_compile_only_the_default_neither_spills_nor_computes_in_fp32(arch, tokens, tmp_path):
    config = default(tokens, 8192, 256, capability=arch)
    # On sm_100, where the tensor cores take them, swizzled scales cost two or four words of stack.
    found = built(arch, config, tokens, SWIZZLED=arch != 100)
    assert {"STACK:0", "LOCAL:0"} <= set(resources(found, tmp_path))
    ptx = found.asm["ptx"]
    assert any(word in ptx for word in ("mma.sync", "wgmma.mma_async", "tcgen05.mma"))
    assert ("cvt.rn.f16x2.e4m3x2" in ptx) == (arch >= 90)
    assert "cp.async" in ptx
    # the weights come by cp.async: what is loaded otherwise are words of scales
    assert {width.split(".")[-1] for width in accesses(found, "ld")} == {f"b{8 * config.unroll}"}


@pytest.mark.parametrize(
    "ones", [(), ("part_blocks",), ("columns",), ("columns", "depth", "part_blocks")], ids=str
)
def test_compile_only_ragged_sizes(ones):
    """Triton makes constants of sizes that are 1."""
    config = default(1, 100, 3)._replace(unroll=1)
    for parts in (1, 2):
        sizes = {"EVEN": False, "SWIZZLED": parts == 2} | dict.fromkeys(ones, 1)
        sizes |= {"UNROLL": 4} if parts == 2 else {}
        assert built(90, config._replace(parts=parts), 16, **sizes).asm["cubin"]
