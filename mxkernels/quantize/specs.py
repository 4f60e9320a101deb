"""The KernelSpecs of quantize and quantize_both."""

from collections.abc import Hashable
from functools import partial
from typing import Any

import torch

from mxkernels import arguments
from mxkernels.quantize import configs, cuda_configs, op
from mxkernels.quantize.shapes import PAYLOAD_ORDERS, SCALE_LAYOUTS
from mxkernels.spec import KernelSpec
from mxref import Quantized
from mxref.formats import BLOCKS, INPUTS

_CHECKED: dict[tuple[Any, ...], tuple[tuple[int, int], str, int]] = {}
"""Requests found right before: block, name of the recipe, number of the configuration."""


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
    # A Recipe and a list are checked each time; so is everything while a graph is captured.
    kept = type(recipe) is str and type(block) is tuple and not torch.compiler.is_compiling()
    kept = kept and (config is None or isinstance(config, tuple))
    found = _CHECKED.get(request) if kept else None
    if found is None:
        pair = arguments.block_pair(block)
        arguments.orders(payload_order, scale_layout)
        x = arguments.source(x, pair)
        name = arguments.recipe_name(recipe)
        spec = _find("quantize", backend)
        spec.require(name, pair, payload_order, scale_layout)
        found = pair, name, _config_index(config, spec)
        if kept:
            _CHECKED[request] = found
    pair, name, index = found
    x = arguments.source(x, pair)
    if x.requires_grad:
        x = x.detach()
    return Quantized(*op.quantize(x, backend, name, pair, payload_order, scale_layout, index))


def _quantize_both(
    backend: str,
    x: torch.Tensor,
    recipe: object,
    scale_layout: object = "plain",
    config: Hashable | None = None,
) -> tuple[Quantized, Quantized]:
    layouts = arguments.layout_pair(scale_layout)
    x = arguments.source(x, (32, 1))
    name = arguments.recipe_name(recipe)
    spec = _find("quantize_both", backend)
    spec.require(name, (1, 32), "row", layouts[0])
    spec.require(name, (32, 1), "col", layouts[1])
    index = _config_index(config, spec)
    a, b, c, d = op.quantize_both(x.detach(), backend, name, *layouts, index)
    return Quantized(a, b), Quantized(c, d)


def _find(operation: str, backend: str) -> KernelSpec:
    return next(spec for spec in SPECS if (spec.op, spec.backend) == (operation, backend))


def _config_index(config: Hashable | None, spec: KernelSpec) -> int:
    """Where `config` is among those of the kernel, -1 for None; ValueError for any other."""
    if config is not None and config not in spec.configs:
        raise ValueError(f"config={config!r}: expected None or one of {spec.configs}")
    return -1 if config is None else spec.configs.index(config)


def _spec(name: str, backend: str, **rest: Any) -> KernelSpec:
    return KernelSpec(
        name=f"{name}_{backend}",
        op=name,
        backend=backend,
        recipes=("floor", "rceil", "ceil", "even"),
        dtypes=tuple(getattr(torch, row.torch_dtype) for row in INPUTS.values()),
        min_arch=op.MIN_ARCH,
        **rest,
    )


SPECS: tuple[KernelSpec, ...] = (
    _spec(
        "quantize",
        "triton",
        blocks=BLOCKS,
        payload_orders=PAYLOAD_ORDERS,
        scale_layouts=SCALE_LAYOUTS,
        input_orders=("n", "t"),
        ranks=(1, 2, 3, 4),
        configs=op.CONFIGS["triton"],
        call=partial(_quantize, "triton"),
        launch=op.launch_triton,
        choices=configs.choices,
    ),
    _spec(
        "quantize",
        "compile",
        blocks=((1, 32),),
        payload_orders=("row",),
        scale_layouts=("plain",),
        input_orders=("n",),
        ranks=(1, 2, 3, 4),
        configs=(),
        call=partial(_quantize, "compile"),
    ),
    _spec(
        "quantize",
        "cuda",
        blocks=BLOCKS,
        payload_orders=PAYLOAD_ORDERS,
        scale_layouts=SCALE_LAYOUTS,
        input_orders=("n", "t"),
        ranks=(1, 2, 3, 4),
        configs=op.CONFIGS["cuda"],
        call=partial(_quantize, "cuda"),
        launch=op.launch_cuda,
        choices=cuda_configs.choices,
    ),
    _spec(
        "quantize_both",
        "triton",
        blocks=((1, 32), (32, 1)),
        payload_orders=PAYLOAD_ORDERS,
        scale_layouts=SCALE_LAYOUTS,
        input_orders=("n", "t"),
        ranks=(2, 3, 4),
        configs=op.BOTH_CONFIGS["triton"],
        call=partial(_quantize_both, "triton"),
    ),
    _spec(
        "quantize_both",
        "cuda",
        blocks=((1, 32), (32, 1)),
        payload_orders=PAYLOAD_ORDERS,
        scale_layouts=SCALE_LAYOUTS,
        input_orders=("n", "t"),
        ranks=(2, 3, 4),
        configs=op.BOTH_CONFIGS["cuda"],
        call=partial(_quantize_both, "cuda"),
    ),
)
