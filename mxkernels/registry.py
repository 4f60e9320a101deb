"""KERNELS: what is built, one KernelSpec for each operation and back end.

Tests, command line and benchmarks read this tuple and nothing else, so a kernel that is listed is
judged and timed without more code. Importing it loads no Triton.
"""

from mxkernels.dequantize.specs import SPECS as DEQUANTIZE
from mxkernels.quantize.specs import SPECS as QUANTIZE
from mxkernels.spec import KernelSpec
from mxkernels.swizzle.specs import SPECS as SWIZZLE

BACKENDS = ("auto", "triton", "cuda", "compile", "reference")

WINNERS = {"quantize": "triton", "quantize_both": "triton"}
"""The back end `auto` takes for a CUDA tensor, by operation: the fastest one measured."""


KERNELS: tuple[KernelSpec, ...] = (*QUANTIZE, *DEQUANTIZE, *SWIZZLE)


def find(operation: str, backend: str) -> KernelSpec:
    """The spec of this operation and back end; NotImplementedError if there is none yet."""
    for spec in KERNELS:
        if spec.op == operation and spec.backend == backend:
            return spec
    built = ", ".join(repr(spec.backend) for spec in KERNELS if spec.op == operation)
    raise NotImplementedError(f"backend={backend!r} is not built for {operation}: {built} are")
