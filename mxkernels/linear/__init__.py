"""Linear layers on MX operands. README.md beside this file says how."""

from mxkernels.linear.config import CastConfig
from mxkernels.linear.function import mx_linear
from mxkernels.linear.module import MXLinear, convert
from mxkernels.linear.storage import Stored, load_quantized, save_quantized

__all__ = [
    "CastConfig",
    "MXLinear",
    "Stored",
    "convert",
    "load_quantized",
    "mx_linear",
    "save_quantized",
]
