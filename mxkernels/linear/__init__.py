"""Linear layers on MX operands. README.md beside this file says how."""

from mxkernels.linear.config import CastConfig
from mxkernels.linear.function import mx_linear
from mxkernels.linear.module import MXLinear, convert

__all__ = ["CastConfig", "MXLinear", "convert", "mx_linear"]
