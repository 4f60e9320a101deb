"""mxref: the bit-exact reference for MX (microscaling) quantization, in pure PyTorch.

Recipe (which bytes) x block (which elements share a scale) x layout (where bytes lie) is the whole
vocabulary: `quantize` and `dequantize` take a recipe and a block, `layouts` stores scales.
`matmul` says what two MX operands multiply to and how far off a kernel may be.
`exact` is a second implementation in Python integers; `testing` judges other implementations;
`vectors` writes golden bytes for every language.

Limitations: elements e4m3 and e5m2. Dialects marked `unverified` were never run at their source.
"""

from importlib import import_module
from types import ModuleType

from mxref import layouts
from mxref.blocks import Quantized, dequantize, quantize
from mxref.matmul import Product, matmul
from mxref.recipes import RECIPES, Recipe

__version__ = "0.1.0"
"""The version of the package."""

SPEC = "mxref-1"
"""The name of the frozen bytes: it changes only if a byte does."""

__all__ = [
    "RECIPES",
    "SPEC",
    "Product",
    "Quantized",
    "Recipe",
    "__version__",
    "dequantize",
    "exact",
    "layouts",
    "matmul",
    "quantize",
    "testing",
    "vectors",
]

_LAZY = ("exact", "testing", "vectors")


def __getattr__(name: str) -> ModuleType:
    if name in _LAZY:
        return import_module(f"mxref.{name}")
    raise AttributeError(f"module 'mxref' has no attribute {name!r}")
