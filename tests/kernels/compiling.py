"""A kernel compiled for a GPU that is not here, and what its machine code holds."""

import re
import subprocess
from pathlib import Path

import pytest

from mxkernels.loader import kernels

triton = pytest.importorskip("triton")

POINTERS = {"bf16": "*i16", "fp16": "*i16", "fp32": "*i32"}
ALIGNED = ("columns", "rows", "row_stride", "matrix_stride")


def compiled(module, name, config, constants, *, arch, aligned=True, ones=()):
    """`constants` holds DTYPE and HARDWARE; arch a number, 90 for sm_90, or a name of AMD's.

    Sizes in `ones` are 1, which Triton makes constants of.
    """
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    kernel = getattr(kernels(module, interpret=False), name)
    constants = constants | {
        field.upper(): value for field, value in config._asdict().items() if field != "warps"
    }
    constants |= dict.fromkeys(ones, 1)
    signature, hints = {}, {}
    for at, argument in enumerate(kernel.arg_names):
        if argument in constants:
            signature[argument] = "constexpr"
            continue
        pointer = argument.endswith("_ptr")
        kind = POINTERS[constants["DTYPE"]] if argument == "x_ptr" else "*u8"
        signature[argument] = kind if pointer else "i32"
        if aligned and (pointer or argument in ALIGNED):
            hints[at,] = [["tt.divisibility", 16]]
    at = kernel.arg_names.index
    source = ASTSource(
        kernel, signature, {(at(each),): value for each, value in constants.items()}, hints
    )
    amd = isinstance(arch, str)
    target = GPUTarget("hip", arch, 64) if amd else GPUTarget("cuda", arch, 32)
    options = {"num_warps": config.warps, "enable_fp_fusion": False}
    return triton.compile(source, target=target, options=options)


def resources(built, tmp_path):
    """The words of the wheel's own cuobjdump that count stack and local memory."""
    tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    if not tool.exists():
        pytest.skip("this Triton brings no cuobjdump")
    file = tmp_path / "kernel.cubin"
    file.write_bytes(built.asm["cubin"])
    command = [tool, "--dump-resource-usage", file]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


def accesses(built, kind):
    """The widths of global loads (kind "ld") or stores ("st"), as PTX names them."""
    return [each.split(".", 2)[2] for each in re.findall(rf"{kind}\.global\S*", built.asm["ptx"])]
