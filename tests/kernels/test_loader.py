"""One process, two copies of each kernel module: interpreted and compiled."""

import os
import subprocess
import sys

import pytest

from mxkernels.loader import kernels

pytest.importorskip("triton")

NAMES = ("quantize_1x32", "scale_byte", "cast_e4m3")


@pytest.mark.parametrize("interpret", [True, False])
def test_a_copy_and_its_device_functions_are_of_one_kind(interpret):
    from triton.runtime.interpreter import InterpretedFunction
    from triton.runtime.jit import JITFunction

    module = kernels("quantize.triton", interpret=interpret)
    kind = InterpretedFunction if interpret else JITFunction
    functions = [getattr(kernels("device", interpret=interpret), name) for name in NAMES[1:]]
    assert [type(each) for each in functions] == [kind] * 2
    assert type(module.quantize_1x32) is kind
    assert module.scale_byte is functions[0]


def test_loading_leaves_the_setting_alone():
    from triton import knobs

    before = knobs.runtime.interpret
    kernels("device", interpret=True)
    assert knobs.runtime.interpret == before


def test_the_environment_variable_does_not_reach_the_compiled_copy():
    code = (
        "from mxkernels.loader import kernels; import mxkernels, torch; "
        "print(type(kernels('quantize.triton', interpret=False).quantize_1x32).__name__); "
        "print(mxkernels.quantize(torch.ones(1, 32), backend='triton').scale.shape)"
    )
    environment = os.environ | {"TRITON_INTERPRET": "1"}
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert result.stdout.split("\n")[:2] == ["JITFunction", "torch.Size([1, 1])"]
