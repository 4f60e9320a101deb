"""Back end "triton": a kernel that decodes payload and scales on the fly, for few tokens.

Every scale byte is exact: codes and scales meet only in fp32 (`triton.py`). Any number of rows
works; past 64 the weights are read once for every 64 of them.
"""

import torch

from mxkernels.loader import interpreting, kernels
from mxkernels.matmul.backend import LAYOUTS, Backend, any_shape
from mxkernels.matmul.configs import DECODES
from mxkernels.swizzle.op import missing


def call(
    a: torch.Tensor, a_scale: torch.Tensor, b: torch.Tensor, b_scale: torch.Tensor, config: int
) -> torch.Tensor:
    """a @ b.mT in bf16; a CPU tensor runs in Triton's interpreter."""
    operands = [part.view(torch.uint8) for part in (a, a_scale, b, b_scale)]
    chosen = None if config < 0 else DECODES[config]
    if a.is_cuda:
        return kernels("matmul.triton", interpret=False).launch(*operands, chosen)
    import numpy as np

    # A GPU overflows and makes NaN without a word, and so must the interpreter's numpy.
    with interpreting(), np.errstate(over="ignore", invalid="ignore"):
        return kernels("matmul.triton", interpret=True).launch(*operands, chosen)


BACKEND = Backend("triton", LAYOUTS, missing, any_shape, call, DECODES)
