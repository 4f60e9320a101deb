"""A kernel compiled for a GPU that is not here, and what its machine code holds."""

import re
import subprocess
from pathlib import Path

import pytest

from mxkernels.loader import kernels

triton = pytest.importorskip("triton")

POINTERS = {"bf16": "*i16", "fp16": "*i16", "fp32": "*i32"}
ALIGNED = ("columns", "rows", "row_stride", "matrix_stride")


def build(module, name, constants, pointers, aligned, *, arch, warps, registers=None):
    """A kernel of ours, as `build_kernel` takes it."""
    kernel = getattr(kernels(module, interpret=False), name)
    return build_kernel(
        kernel, constants, pointers, aligned, arch=arch, warps=warps, registers=registers
    )


def build_kernel(kernel, constants, pointers, aligned, *, arch, warps, registers=None):
    """Any kernel: `pointers` maps arguments to pointer types, other arguments are 32-bit integers;
    `aligned` names those that 16 divides; arch is 90 for sm_90, or a name of AMD's."""
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    at = kernel.arg_names.index
    signature = dict.fromkeys(kernel.arg_names, "i32") | pointers
    signature |= dict.fromkeys(constants, "constexpr")
    hints = {(at(each),): [["tt.divisibility", 16]] for each in aligned if each not in constants}
    values = {(at(each),): value for each, value in constants.items()}
    target = GPUTarget("hip", arch, 64) if isinstance(arch, str) else GPUTarget("cuda", arch, 32)
    bounds = {"maxnreg": registers} if registers and target.backend == "cuda" else {}
    options = {"num_warps": warps, "enable_fp_fusion": False} | bounds
    return triton.compile(
        ASTSource(kernel, signature, values, hints), target=target, options=options
    )


def compiled(module, name, config, constants, *, arch, aligned=True, ones=()):
    """A quantizer. `constants` holds DTYPE and HARDWARE; sizes in `ones` are 1, which Triton makes
    constants of."""
    constants = constants | {
        field.upper(): value
        for field, value in config._asdict().items()
        if field not in ("warps", "registers")
    }
    constants |= dict.fromkeys(ones, 1)
    names = getattr(kernels(module, interpret=False), name).arg_names
    pointers = {each: "*u8" for each in names if each.endswith("_ptr")}
    pointers["x_ptr"] = POINTERS[constants["DTYPE"]]
    sizes = (each for each in ALIGNED if each in names)
    return build(
        module, name, constants, pointers, (*pointers, *sizes) if aligned else (),
        arch=arch, warps=config.warps, registers=getattr(config, "registers", None),
    )  # fmt: skip


def tool_output(option, built, tmp_path):
    """What the wheel's own cuobjdump says of a cubin."""
    tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    if not tool.exists():
        pytest.skip("this Triton brings no cuobjdump")
    file = tmp_path / "kernel.cubin"
    file.write_bytes(built.asm["cubin"])
    return subprocess.run([tool, option, file], capture_output=True, text=True, check=True).stdout


def resources(built, tmp_path):
    """The words that count stack and local memory."""
    return tool_output("--dump-resource-usage", built, tmp_path).split()


def machine_code(built, tmp_path):
    """The instructions, one a line."""
    return tool_output("--dump-sass", built, tmp_path)


def torn(built):
    """Pairs of codes, in 16-bit registers, that go into a word and are used alone as well: ptxas
    12.8 then reads registers that nobody wrote (mxkernels/device.py)."""
    lines = built.asm["ptx"].splitlines()
    pairs = re.findall(r"cvt\.rn\.satfinite\.e4m3x2\.f32\s+(%rs\d+)", built.asm["ptx"])
    found = []
    for pair in pairs:
        uses = [line.strip() for line in lines if re.search(rf"{pair}\b", line)]
        packed = [use for use in uses if re.match(r"mov\.b32\s+%r\d+, {", use)]
        if packed and len(packed) < len(uses) - 1:
            found.append(pair)
    return found


def accesses(built, kind):
    """The widths of global loads (kind "ld") or stores ("st"), as PTX names them."""
    return [each.split(".", 2)[2] for each in re.findall(rf"{kind}\.global\S*", built.asm["ptx"])]
