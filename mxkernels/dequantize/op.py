"""`torch.ops.mxkernels.dequantize`: the schema, its fake kernel, and the way to each back end.

Contract 0 stands for none. Arguments are checked by the public function; what only the machine
knows is asked when the op runs, never while it is traced.
"""

from collections.abc import Sequence

import torch

from mxkernels.dequantize import reference, shapes
from mxkernels.dequantize.configs import DEQUANTIZE
from mxkernels.library import operator
from mxkernels.loader import interpreting, kernels
from mxkernels.swizzle.op import missing


def launch(
    payload: torch.Tensor,
    scale: torch.Tensor,
    values: torch.Tensor,
    block: tuple[int, int],
    scale_layout: str,
    contract: int,
    config: int = -1,
) -> None:
    """Write `values`, of strides `shapes.values_strides(payload)`, by the Triton kernel."""
    lacking = missing(payload.device)
    if lacking:
        raise RuntimeError(f"backend='triton' cannot run here: {lacking}")
    turned = shapes.order_of(payload) == "col"
    matrices = shapes.in_memory(payload.view(torch.uint8))
    task = shapes.task_of(payload.shape, matrices, turned, block, scale_layout, contract)
    codes, chosen = scale.view(torch.uint8).contiguous(), None if config < 0 else DEQUANTIZE[config]
    flat = (values.mT if turned else values).reshape(-1)
    if payload.device.type != "cpu":
        kernels("dequantize.triton", interpret=False).launch(matrices, codes, flat, task, chosen)
        return
    import numpy as np

    # A GPU overflows to Inf without a word, and so must the interpreter's numpy.
    with interpreting(), np.errstate(over="ignore", invalid="ignore"):
        kernels("dequantize.triton", interpret=True).launch(matrices, codes, flat, task, chosen)


def _fake(
    payload: torch.Tensor,
    scale: torch.Tensor,
    backend: str,
    block: Sequence[int],
    scale_layout: str,
    contract: int,
    dtype: torch.dtype,
    config: int = -1,
) -> torch.Tensor:
    """Empty values of the right shape and strides: the real op allocates by this as well."""
    strides = shapes.values_strides(payload)
    return torch.empty_strided(payload.shape, strides, dtype=dtype, device=payload.device)


@operator("dequantize", _fake)
def dequantize(
    payload: torch.Tensor,
    scale: torch.Tensor,
    backend: str,
    block: Sequence[int],
    scale_layout: str,
    contract: int,
    dtype: torch.dtype,
    config: int = -1,
) -> torch.Tensor:
    """The values of payload and scale; `config` counts into `configs.DEQUANTIZE`."""
    pair = (int(block[0]), int(block[1]))
    if backend == "reference":
        return reference.dequantize(payload, scale, pair, scale_layout, contract, dtype)
    values = _fake(payload, scale, backend, block, scale_layout, contract, dtype)
    launch(payload, scale, values, pair, scale_layout, contract, config)
    return values
