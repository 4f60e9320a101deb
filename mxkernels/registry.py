"""KERNELS: what is built, one KernelSpec for each operation and back end.

Tests, command line and benchmarks read this tuple and nothing else, so a kernel that is listed is
judged and timed without more code. Importing it loads no Triton.
"""

from itertools import product

import torch

from mxkernels import arch
from mxkernels.dequantize.specs import SPECS as DEQUANTIZE
from mxkernels.quantize.shapes import SCALE_LAYOUTS
from mxkernels.quantize.specs import SPECS as QUANTIZE
from mxkernels.spec import KernelSpec
from mxkernels.swizzle.specs import SPECS as SWIZZLE

BACKENDS = ("auto", "triton", "cuda", "triton_ue8m0", "cuda_ue8m0", "compile", "reference")

Variant = tuple[object, ...]
"""Of quantize: block, payload order, scale layout; of quantize_both: the two scale layouts."""

USUAL = "triton"
"""The back end `auto` takes for a CUDA tensor where no other one was measured to be faster."""

_SM_90 = {90: "cuda"}

WINNERS: dict[str, dict[Variant, dict[int, str]]] = {
    "quantize": {
        ((1, 32), "row", "plain"): _SM_90,
        ((1, 32), "row", "swizzle_32_4_4"): _SM_90,
        **{((32, 1), "row", layout): _SM_90 for layout in SCALE_LAYOUTS},
    },
    "quantize_both": dict.fromkeys(product(SCALE_LAYOUTS, repeat=2), _SM_90),
}
"""By operation, variant and architecture (90 for sm_90): what was measured faster than USUAL.

On an H200, bf16, at 16384 x 16384, (8, 8192, 5120) and (32, 7168, 2048): faster at each, by 0.3 to
1 %, both directions by up to 4 % (results/2026-12-01-h200-kernels.json). plain_t was not timed and
goes with plain. Of transposed payloads each was the faster one somewhere.
"""

KERNELS: tuple[KernelSpec, ...] = (*QUANTIZE, *DEQUANTIZE, *SWIZZLE)


def find(operation: str, backend: str) -> KernelSpec:
    """The spec of this operation and back end; NotImplementedError if there is none yet."""
    for spec in KERNELS:
        if spec.op == operation and spec.backend == backend:
            return spec
    built = ", ".join(repr(spec.backend) for spec in KERNELS if spec.op == operation)
    raise NotImplementedError(f"backend={backend!r} is not built for {operation}: {built} are")


def chosen_backend(operation: str, variant: Variant, device: torch.device | str = "cuda") -> str:
    """The back end that `auto` takes for a variant on a device.

    WINNERS for its architecture, else USUAL, for a CUDA tensor; a winner that cannot run here (its
    extra is not installed) leaves the work to USUAL. "reference" for any other device.

    >>> chosen_backend("quantize", ((1, 32), "row", "plain"), "cpu")
    'reference'
    """
    device = torch.device(device)
    if device.type != "cuda":
        return "reference"
    architecture = arch.capability(arch.cuda_index(device)) if torch.cuda.is_available() else 0
    backend = WINNERS[operation].get(variant, {}).get(architecture, USUAL)
    return USUAL if backend != USUAL and find(operation, backend).missing(device) else backend
