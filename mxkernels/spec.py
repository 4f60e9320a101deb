"""KernelSpec: what tests, command line and benchmarks know of a kernel. `registry` lists them."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from itertools import product
from typing import Any

import torch

from mxkernels.quantize import op


@dataclass(frozen=True)
class KernelSpec:
    """One kernel: what it does, on which inputs, and how to call it. By `op`:

    * "quantize": `call(x, recipe, block, payload_order, scale_layout, config=None)` returns a
      Quantized, new tensors on the device of x; "quantize_both": `call(x, recipe, scale_layout,
      config=None)` returns two. `launch`, where the back end has one, writes into two dense uint8
      buffers: `launch(x, payload, scale, recipe, block, payload_order, scale_layout, config=None)`.
    * "dequantize": `call(payload, scale, block, payload_order, scale_layout, dtype, config=None)`
      returns the values; the order decides what a swizzled (32, 32) contracts: -1 row, -2 col.
    * "swizzle", "unswizzle": `call(scale, layout, **arguments, config=None)`, as the functions.

    `configs` are hashable; None takes the default; `configs_for` names those worth timing for a
    variant. `recipes` are names in `mxref.RECIPES`, `dtypes` are torch dtypes (of the values of
    "dequantize", of the scales of "swizzle"), `input_orders` "n" (contiguous) or "t" (a transposed
    view) are read in place, others may be copied. Ranks above the largest one listed work as that
    one does.

    >>> from mxkernels.registry import KERNELS
    >>> "quantize" in {spec.op for spec in KERNELS}
    True
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
    choices: Callable[..., tuple[Hashable, ...]] | None = None

    def missing(self, device: torch.device | str = "cpu") -> str | None:
        """None if this kernel can run on `device` here, else one line that names what lacks."""
        return op.missing(self.backend, torch.device(device))

    def configs_for(
        self, block: tuple[int, int], payload_order: str, scale_layout: str, input_order: str = "n"
    ) -> tuple[Hashable, ...]:
        """The configurations meant for this variant, the default first; a part of `configs`."""
        if self.choices is None:
            return self.configs
        return self.choices(block, payload_order, scale_layout, input_order)

    def automatic(self, device: torch.device | str = "cuda") -> tuple[str, ...]:
        """The variants for which backend="auto" takes this kernel on a CUDA device, in words."""
        from mxkernels import registry

        if self.op == "quantize":
            variants = product(self.blocks, self.payload_orders, self.scale_layouts)
        elif self.op == "quantize_both":
            variants = product(self.scale_layouts, repeat=2)
        else:
            return ()
        return tuple(
            " ".join(map(str, variant))
            for variant in variants
            if registry.chosen_backend(self.op, variant, device) == self.backend
        )

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


def config_index(config: Hashable | None, configs: tuple[Hashable, ...]) -> int:
    """Where `config` is in `configs`, -1 for None; ValueError for any other."""
    if config is not None and config not in configs:
        raise ValueError(f"config={config!r}: expected None or one of {configs}")
    return -1 if config is None else configs.index(config)
