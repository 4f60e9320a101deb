"""Other libraries' quantizers with what they claim: an adapter each, `quantize` the library's own.

Each is importable without its library, which is loaded at the first call.
"""

import warnings
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import torch
from torch import Tensor


class Peer:
    """A quantizer and its claims; `checks` are those that it is judged on, None for all."""

    package = ""
    recipe = ""
    block = (1, 32)
    scale_layout = "plain"
    dtypes: tuple[torch.dtype, ...] = ()
    checks: tuple[str, ...] | None = None

    def quantize(self, x: Tensor) -> Any:
        raise NotImplementedError

    @property
    def version(self) -> str:
        """Of the installed package, "" where it is not installed."""
        try:
            return version(self.package)
        except PackageNotFoundError:
            return ""

    @property
    def claims(self) -> dict[str, Any]:
        """What `mxref.testing.verify` takes beside the function."""
        names = ("recipe", "block", "scale_layout", "dtypes")
        return {name: getattr(self, name) for name in names}


class Torchao(Peer):
    """torchao's eager `to_mx`: the last dimension in blocks of 32, four rules, bf16 and fp32."""

    package = "torchao"
    dtypes = (torch.bfloat16, torch.float32)

    def __init__(self, recipe: str, scale_layout: str = "plain") -> None:
        self.recipe, self.scale_layout = recipe, scale_layout

    def quantize(self, x: Tensor) -> tuple[Tensor, Tensor]:
        to_mx, modes = _torchao()
        # a recipe is named after its rule, a dialect of torchao's ends with it
        mode = modes[self.recipe.rpartition("_")[2].upper()]
        scale, payload = to_mx(x, torch.float8_e4m3fn, 32, mode, self.scale_layout != "plain")
        return payload, scale


@lru_cache(maxsize=1)
def _torchao() -> tuple[Any, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torchao.prototype.mx_formats.config import ScaleCalculationMode
        from torchao.prototype.mx_formats.mx_tensor import to_mx
    return to_mx, ScaleCalculationMode


class Gfloat(Peer):
    """gfloat's block quantizer: `compute_scale_amax`, then `encode_block`, a block at a time.

    It computes in float64, so every input dtype is exact; some 35 microseconds an element.
    """

    package = "gfloat"
    recipe = "floor"
    dtypes = (torch.bfloat16,)

    def quantize(self, x: Tensor) -> tuple[Tensor, Tensor]:
        import numpy as np
        from gfloat.block import compute_scale_amax, encode_block
        from gfloat.formats import format_info_mxfp8_e4m3 as fmt

        rows = x.double().reshape(x.shape[:-1].numel(), x.shape[-1]).numpy()
        columns = -(-x.shape[-1] // 32)
        payload = torch.zeros(rows.shape, dtype=torch.uint8)
        scale = torch.zeros((rows.shape[0], columns), dtype=torch.uint8)
        with np.errstate(all="ignore"):
            for row in range(rows.shape[0]):
                for at in range(columns):
                    values = rows[row, 32 * at : 32 * at + 32]
                    factor = compute_scale_amax(fmt.etype.emax, values)
                    scale[row, at], *codes = encode_block(fmt, factor, values / factor)
                    payload[row, 32 * at : 32 * at + 32] = torch.tensor(codes)
        return payload.reshape(x.shape), scale.reshape(*x.shape[:-1], columns)


PEERS = {
    **{f"torchao_{name}": Torchao(name) for name in ("floor", "rceil", "ceil", "even")},
    "torchao_rceil_swizzled": Torchao("rceil", "swizzle_32_4_4"),
    "gfloat_floor": Gfloat(),
}
"""Every adapter by name; `torchao_floor` and so on are their functions, for reproducers."""

torchao_floor = PEERS["torchao_floor"].quantize
torchao_rceil = PEERS["torchao_rceil"].quantize
torchao_ceil = PEERS["torchao_ceil"].quantize
torchao_even = PEERS["torchao_even"].quantize
torchao_rceil_swizzled = PEERS["torchao_rceil_swizzled"].quantize
gfloat_floor = PEERS["gfloat_floor"].quantize
