"""The KernelSpecs of swizzle and unswizzle."""

from collections.abc import Callable, Hashable
from functools import partial
from typing import Any

import torch

from mxkernels.spec import KernelSpec, config_index
from mxkernels.swizzle import arguments, calls
from mxkernels.swizzle.configs import SWIZZLES
from mxkernels.swizzle.op import MIN_ARCH
from mxkernels.swizzle.shapes import LAYOUTS
from mxref.formats import BLOCKS


def _call(
    function: Callable[..., torch.Tensor],
    scale: torch.Tensor,
    layout: str,
    *,
    config: Hashable | None = None,
    **options: Any,
) -> torch.Tensor:
    index = config_index(config, SWIZZLES)
    return function(scale, layout, backend="triton", config=index, **options)


def _spec(operation: str, function: Callable[..., torch.Tensor]) -> KernelSpec:
    return KernelSpec(
        name=f"{operation}_triton",
        op=operation,
        backend="triton",
        recipes=(),
        blocks=BLOCKS,
        payload_orders=("row", "col"),
        scale_layouts=LAYOUTS,
        input_orders=("n", "t"),
        dtypes=arguments.SCALE_DTYPES,
        ranks=(1, 2, 3, 4),
        min_arch=MIN_ARCH,
        configs=SWIZZLES,
        call=partial(_call, function),
    )


SPECS: tuple[KernelSpec, ...] = (
    _spec("swizzle", calls.swizzle),
    _spec("unswizzle", calls.unswizzle),
)
