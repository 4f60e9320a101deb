"""Arguments of `dequantize`, checked and handed to the op.

What the public function and the KernelSpec share; `config` counts into `configs.DEQUANTIZE`.
"""

import torch

from mxkernels import arguments as named
from mxkernels.dequantize import op
from mxkernels.swizzle import arguments
from mxkernels.swizzle.shapes import LAYOUTS, SWIZZLE, stored_shape

VALUES = (torch.float32, torch.bfloat16, torch.float16)


def dequantize(
    payload: torch.Tensor,
    scale: torch.Tensor,
    block: tuple[int, int] = (1, 32),
    scale_layout: str = "plain",
    contract: int | None = None,
    dtype: torch.dtype = torch.float32,
    backend: str = "auto",
    config: int = -1,
) -> torch.Tensor:
    """`mxkernels.dequantize` with a configuration."""
    elements = (torch.float8_e4m3fn, torch.float8_e5m2)
    payload = arguments.tensor("payload", payload, elements)
    scale = arguments.tensor("scale", scale, arguments.SCALE_DTYPES)
    pair = named.block_pair(block)
    arguments.rank("payload", payload.shape, pair)
    named.one_of("scale_layout", scale_layout, LAYOUTS)
    if dtype not in VALUES:
        raise TypeError(f"dtype={dtype!r}: expected one of {', '.join(map(str, VALUES))}")
    backend = arguments.backend_name(backend, payload)
    if backend == "triton" and payload.dtype != torch.float8_e4m3fn:
        raise NotImplementedError(f"payload has dtype {payload.dtype}: only e4m3 is built")
    summed = arguments.direction(contract, pair, scale_layout)
    _require_scale(scale, payload, pair, scale_layout, summed)
    return op.dequantize(payload, scale, backend, pair, scale_layout, summed, dtype, config)


def _require_scale(
    scale: torch.Tensor, payload: torch.Tensor, block: tuple[int, int], layout: str, contract: int
) -> None:
    shape = tuple(payload.shape)
    expected = stored_shape(shape, layout, block, contract)
    if layout == SWIZZLE:
        arguments.stored_scale("scale", scale, layout, block, shape, contract)
    elif tuple(scale.shape) != expected:
        raise ValueError(
            f"scale has shape {tuple(scale.shape)}: expected {expected} for a payload of shape "
            f"{shape}, block={block} in {layout!r}"
        )
    if scale.device != payload.device:
        raise ValueError(f"scale is on {scale.device}: expected {payload.device}, as the payload")
