"""The KernelSpecs of quantize and quantize_both."""

from collections.abc import Callable, Hashable
from functools import partial
from typing import Any

import torch

from mxkernels import arguments
from mxkernels.quantize import again, configs, cuda_configs, op
from mxkernels.quantize.launch import launch
from mxkernels.quantize.shapes import PAYLOAD_ORDERS, SCALE_LAYOUTS, SWIZZLE
from mxkernels.spec import KernelSpec, config_index
from mxref import Quantized
from mxref.formats import BLOCKS, INPUTS


def _quantize(
    backend: str,
    x: torch.Tensor,
    recipe: object,
    block: object = (1, 32),
    payload_order: str = "row",
    scale_layout: str = "plain",
    config: Hashable | None = None,
) -> Quantized:
    request = (backend, recipe, block, payload_order, scale_layout, config)
    outputs = again.served(x, request)
    if outputs is not None:
        return Quantized(*outputs)
    pair = arguments.block_pair(block)
    arguments.orders(payload_order, scale_layout)
    x = arguments.source(x, pair)
    name = arguments.recipe_name(recipe)
    spec = _find("quantize", backend)
    spec.require(name, pair, payload_order, scale_layout)
    index = config_index(config, spec.configs)
    asked = name, pair, payload_order, scale_layout
    outputs = op.quantize(x.detach(), backend, *asked, index)
    if backend in op.PLANS and again.can_remember(x, request):
        plan, source = op.PLANS[backend](x, outputs, *asked, config)
        if source is x:
            again.remember(x, request, plan, outputs)
    return Quantized(*outputs)


def _quantize_both(
    backend: str,
    x: torch.Tensor,
    recipe: object,
    scale_layout: object = "plain",
    config: Hashable | None = None,
) -> tuple[Quantized, Quantized]:
    request = (backend, recipe, scale_layout, config)
    outputs = again.served(x, request)
    if outputs is None:
        layouts = arguments.layout_pair(scale_layout)
        x = arguments.source(x, (32, 1))
        name = arguments.recipe_name(recipe)
        spec = _find("quantize_both", backend)
        spec.require(name, (1, 32), "row", layouts[0])
        spec.require(name, (32, 1), "col", layouts[1])
        index = config_index(config, spec.configs)
        outputs = op.quantize_both(x.detach(), backend, name, *layouts, index)
        if backend in op.BOTH_PLANS and again.can_remember(x, request):
            plan, source = op.BOTH_PLANS[backend](x, outputs, name, layouts, config)
            if source is x:
                again.remember(x, request, plan, outputs)
    a, b, c, d = outputs
    return Quantized(a, b), Quantized(c, d)


def _launch(
    backend: str,
    x: torch.Tensor,
    payload: torch.Tensor,
    scale: torch.Tensor,
    recipe: str,
    block: tuple[int, int] = (1, 32),
    payload_order: str = "row",
    scale_layout: str = "plain",
    config: Hashable | None = None,
) -> None:
    request = recipe, block, payload_order, scale_layout, config
    launch(op.PLANS[backend], x, (payload, scale), *request)


def _find(operation: str, backend: str) -> KernelSpec:
    return next(spec for spec in SPECS if (spec.op, spec.backend) == (operation, backend))


def _spec(name: str, backend: str, **rest: Any) -> KernelSpec:
    usual: dict[str, Any] = {
        "recipes": ("floor", "rceil", "ceil", "even"),
        "dtypes": tuple(getattr(torch, row.torch_dtype) for row in INPUTS.values()),
        "min_arch": op.MIN_ARCH,
    }
    return KernelSpec(name=f"{name}_{backend}", op=name, backend=backend, **usual | rest)


def _full(backend: str, choices: Callable[..., tuple[Hashable, ...]], **rest: Any) -> KernelSpec:
    """A quantizer of every block, order and layout."""
    return _spec(
        "quantize",
        backend,
        blocks=BLOCKS,
        payload_orders=PAYLOAD_ORDERS,
        scale_layouts=SCALE_LAYOUTS,
        input_orders=("n", "t"),
        ranks=(1, 2, 3, 4),
        configs=op.CONFIGS[backend],
        call=partial(_quantize, backend),
        launch=partial(_launch, backend),
        choices=choices,
        **rest,
    )


def _both(backend: str) -> KernelSpec:
    return _spec(
        "quantize_both",
        backend,
        blocks=((1, 32), (32, 1)),
        payload_orders=PAYLOAD_ORDERS,
        scale_layouts=SCALE_LAYOUTS,
        input_orders=("n", "t"),
        ranks=(2, 3, 4),
        configs=op.BOTH_CONFIGS[backend],
        call=partial(_quantize_both, backend),
    )


SPECS: tuple[KernelSpec, ...] = (
    _full("triton", configs.choices),
    _spec(
        "quantize",
        "compile",
        blocks=((1, 32),),
        payload_orders=("row",),
        scale_layouts=("plain", SWIZZLE),
        input_orders=("n",),
        ranks=(1, 2, 3, 4),
        configs=(),
        call=partial(_quantize, "compile"),
    ),
    _full("cuda", cuda_configs.choices),
    _full("triton_ue8m0", configs.choices, recipes=("rceil",), min_arch=100),
    _full("cuda_ue8m0", cuda_configs.choices, recipes=("rceil",), min_arch=100),
    _both("triton"),
    _both("cuda"),
)
