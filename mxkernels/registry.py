"""KERNELS: what is built, one KernelSpec for each operation and back end.

Tests, command line and benchmarks read this tuple and nothing else, so a kernel that is listed is
judged and timed without more code. Importing it loads no Triton.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from mxkernels import arguments
from mxkernels.quantize import op
from mxref import Quantized
from mxref.formats import INPUTS

BACKENDS = ("auto", "triton", "cuda", "compile", "reference")

WINNERS = {"quantize": "triton"}
"""The back end `auto` takes for a CUDA tensor, by operation: the fastest one measured."""


@dataclass(frozen=True)
class KernelSpec:
    """One kernel: what it does, on which inputs, and how to call it.

    `call(x, recipe, block, payload_order, scale_layout, config=None)` returns a Quantized, new
    tensors on the device of x. `launch`, where the back end has one, writes into two contiguous
    uint8 buffers: `launch(x, payload, scale, recipe, config=None)`. `configs` are hashable; None
    takes the default. `recipes` are names in `mxref.RECIPES`, `dtypes` are torch dtypes,
    `input_orders` "n" (contiguous) or "t" (a transposed view) are read in place, others may be
    copied. Ranks above the largest one listed work as that one does.

    >>> sorted({spec.op for spec in KERNELS})
    ['quantize']
    """

    name: str
    op: str
    backend: str
    recipes: tuple[str, ...]
    blocks: tuple[tuple[int, int], ...]
    payload_orders: tuple[str, ...]
    scale_layouts: tuple[str, ...]
    input_orders: tuple[str, ...]
    dtypes: tuple[torch.dtype, ...]
    ranks: tuple[int, ...]
    min_arch: int
    configs: tuple[Hashable, ...]
    call: Callable[..., Any]
    launch: Callable[..., None] | None = None

    def missing(self, device: torch.device | str = "cpu") -> str | None:
        """None if this kernel can run on `device` here, else one line that names what lacks."""
        return op.missing(self.backend, torch.device(device))

    def require(
        self, recipe: str, block: tuple[int, int], payload_order: str, scale_layout: str
    ) -> None:
        """NotImplementedError naming what is asked for and not built."""
        for name, value, built in (
            ("recipe", recipe, self.recipes),
            ("block", block, self.blocks),
            ("payload_order", payload_order, self.payload_orders),
            ("scale_layout", scale_layout, self.scale_layouts),
        ):
            if value not in built:
                listed = ", ".join(map(repr, built))
                raise NotImplementedError(
                    f"{name}={value!r} is not built for backend={self.backend!r}: {listed} are"
                )


def _quantize(
    backend: str,
    x: torch.Tensor,
    recipe: object,
    block: object = (1, 32),
    payload_order: str = "row",
    scale_layout: str = "plain",
    config: Hashable | None = None,
) -> Quantized:
    pair = arguments.block_pair(block)
    arguments.orders(payload_order, scale_layout)
    x = arguments.source(x, pair)
    name = arguments.recipe_name(recipe)
    spec = find("quantize", backend)
    spec.require(name, pair, payload_order, scale_layout)
    if config is not None and config not in spec.configs:
        raise ValueError(f"config={config!r}: expected None or one of {spec.configs}")
    index = -1 if config is None else spec.configs.index(config)
    outputs = op.quantize(x.detach(), backend, name, pair, payload_order, scale_layout, index)
    return Quantized(*outputs)


def _quantize_spec(backend: str, launch: Callable[..., None] | None) -> KernelSpec:
    return KernelSpec(
        name=f"quantize_{backend}",
        op="quantize",
        backend=backend,
        recipes=("floor", "rceil", "ceil", "even"),
        blocks=((1, 32),),
        payload_orders=("row",),
        scale_layouts=("plain",),
        input_orders=("n",),
        dtypes=tuple(getattr(torch, row.torch_dtype) for row in INPUTS.values()),
        ranks=(1, 2, 3, 4),
        min_arch=op.MIN_ARCH,
        configs=op.CONFIGS[backend],
        call=partial(_quantize, backend),
        launch=launch,
    )


KERNELS: tuple[KernelSpec, ...] = (
    _quantize_spec("triton", op.launch_triton),
    _quantize_spec("compile", None),
)


def find(operation: str, backend: str) -> KernelSpec:
    """The spec of this operation and back end; NotImplementedError if there is none yet."""
    for spec in KERNELS:
        if spec.op == operation and spec.backend == backend:
            return spec
    built = ", ".join(repr(spec.backend) for spec in KERNELS if spec.op == operation)
    raise NotImplementedError(f"backend={backend!r} is not built for {operation}: {built} are")
