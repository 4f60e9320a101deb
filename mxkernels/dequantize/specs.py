"""The KernelSpec of dequantize."""

from collections.abc import Hashable

import torch

from mxkernels.dequantize import calls
from mxkernels.dequantize.configs import DEQUANTIZE
from mxkernels.spec import KernelSpec, config_index
from mxkernels.swizzle.op import MIN_ARCH
from mxkernels.swizzle.shapes import LAYOUTS
from mxref.formats import BLOCKS


def _call(
    payload: torch.Tensor,
    scale: torch.Tensor,
    block: tuple[int, int],
    payload_order: str,
    scale_layout: str,
    dtype: torch.dtype,
    config: Hashable | None = None,
) -> torch.Tensor:
    square = tuple(block) == (32, 32)
    return calls.dequantize(
        payload,
        scale,
        block=block,
        scale_layout=scale_layout,
        contract={"row": -1, "col": -2}[payload_order] if square else None,
        dtype=dtype,
        backend="triton",
        config=config_index(config, DEQUANTIZE),
    )


SPECS: tuple[KernelSpec, ...] = (
    KernelSpec(
        name="dequantize_triton",
        op="dequantize",
        backend="triton",
        recipes=(),
        blocks=BLOCKS,
        payload_orders=("row", "col"),
        scale_layouts=LAYOUTS,
        input_orders=("n", "t"),
        dtypes=calls.VALUES,
        ranks=(1, 2, 3, 4),
        min_arch=MIN_ARCH,
        configs=DEQUANTIZE,
        call=_call,
    ),
)
