"""torchao's own kernels where it is installed: dim0 and dim1 of a matrix, experts in 3-D.

Nothing is lifted: where torchao's gate refuses the GPU, the row says so in torchao's words.
"""

import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any

import torch

from mxkernels.arch import installed
from mxkernels.bench.plan import NAMES, Case, text
from mxkernels.quantize.variants import Variant
from mxref import Quantized

NAME = "torchao"

MATRICES = "torchao.prototype.mx_formats.kernels"
EXPERTS = "torchao.prototype.moe_training.kernels.mxfp8.quant"
FUNCTIONS = {
    "dim0": (MATRICES, "triton_to_mxfp8_dim0"),
    "dim1": (MATRICES, "triton_to_mxfp8_dim1"),
    "32x1_n": (EXPERTS, "mxfp8_quantize_cuda_3d"),
    "32x1_t": (EXPERTS, "mxfp8_quantize_cuda_3d"),
    "32x32_n": (EXPERTS, "mxfp8_quantize_cuda_3d"),
    "32x32_t": (EXPERTS, "mxfp8_quantize_cuda_3d"),
}
"""Where each variant's function lies in torchao 0.18."""


def prepare(case: Case, variant: Variant) -> Callable[[torch.Tensor], Any] | str:
    """torchao's function for this case."""
    if not installed("torchao"):
        return "torchao is not installed"
    name = NAMES.get(text(variant), "")
    three = len(case.shape) == 3
    if name not in FUNCTIONS or three != (FUNCTIONS[name][0] == EXPERTS):
        return "torchao has no kernel for this variant and rank"
    place, attribute = FUNCTIONS[name]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            function = getattr(import_module(place), attribute)
    except (ImportError, AttributeError, RuntimeError) as error:
        return f"torchao cannot be loaded: {type(error).__name__}: {error}"

    def call(x: torch.Tensor) -> Quantized:
        try:
            if not three:
                return Quantized(*function(x, scaling_mode=case.recipe))
            blocks = {"scale_block_dim1": 32, "scale_block_dim2": variant.block[1]}
            payload, scale = function(x, scaling_mode=case.recipe, **blocks)
        except (NotImplementedError, AssertionError, RuntimeError) as error:
            raise NotImplementedError(f"torchao refuses: {error}") from error
        scale = scale.view(torch.uint8).reshape(case.shape[0], -1)
        return Quantized(payload, scale.view(torch.float8_e8m0fnu))

    return call
