"""MXLinear: nn.Linear whose products are of MX operands; `convert` makes one of the other."""

from collections.abc import Callable
from fnmatch import fnmatchcase

import torch
from torch import nn

from mxkernels.linear.config import CastConfig
from mxkernels.linear.function import mx_linear

Filter = str | Callable[[str], bool] | None


class MXLinear(nn.Linear):
    """nn.Linear with `mx_linear` as its forward: y = cast(x) @ cast(weight).mT + bias.

    The parameters, their initialization and the state_dict are those of nn.Linear (the weight is
    kept as it is and cast in every call), so either loads the other's. `config` may be changed at
    any time. Shapes, dtypes, special values and errors: `mx_linear`. TypeError for a `config` that
    is no CastConfig and for sizes that are no integers, ValueError for negative ones.

    >>> layer = MXLinear(64, 32, config=CastConfig(recipe="floor"))
    >>> layer(torch.zeros(4, 64)).shape, sorted(layer.state_dict())
    (torch.Size([4, 32]), ['bias', 'weight'])
    """

    config: CastConfig

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        *,
        config: CastConfig = CastConfig(),  # noqa: B008 - frozen
    ):
        _require(config)
        for name, value in (("in_features", in_features), ("out_features", out_features)):
            _require_size(name, value)
        super().__init__(in_features, out_features, bias, device, dtype)
        self.config = config

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """`mx_linear` of x with the layer's parameters."""
        return mx_linear(x, self.weight, self.bias, self.config)

    def extra_repr(self) -> str:
        """What nn.Linear says, and the configuration."""
        return f"{super().extra_repr()}, config={self.config}"


def convert(
    model: nn.Module,
    filter: Filter = None,
    config: CastConfig = CastConfig(),  # noqa: B008 - frozen
) -> list[str]:
    """Make every chosen nn.Linear of `model` an MXLinear, in place; returns their names, in order.

    The module object stays, and with it parameters, hooks and whoever refers to it (an optimizer,
    a second place in the model): only its forward changes. Subclasses of nn.Linear are left alone;
    an MXLinear takes the new `config`. Code that reads a layer's weight itself, such as the fast
    path of nn.TransformerEncoderLayer in eval mode without gradients, computes no MX product.

    Args:
        model: any module; its own name is "".
        filter: None for all, a pattern such as "layers.*.mlp.*" (fnmatch, case kept), or a
            function of the name that says whether it is taken.
        config: for all that are swapped.

    Raises TypeError for a model that is no module, a filter or a config of another type, and
    ValueError where a pattern matches no linear layer.

    >>> model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    >>> convert(model, "0"), type(model[0]).__name__, type(model[2]).__name__
    (['0'], 'MXLinear', 'Linear')
    """
    _require(config)
    if not isinstance(model, nn.Module):
        raise TypeError(f"model={model!r}: expected a Module, got {type(model).__name__}")
    if filter is not None and not isinstance(filter, str) and not callable(filter):
        raise TypeError(f"filter={filter!r}: expected None, a pattern or a function of the name")
    taken = []
    for name, module in model.named_modules(remove_duplicate=True):
        if type(module) in (nn.Linear, MXLinear) and _takes(filter, name):
            module.__class__ = MXLinear
            module.config = config
            taken.append(name)
    if isinstance(filter, str) and not taken:
        raise ValueError(f"filter={filter!r}: matches no linear layer of the model")
    return taken


def _takes(filter: Filter, name: str) -> bool:
    if filter is None:
        return True
    return fnmatchcase(name, filter) if isinstance(filter, str) else bool(filter(name))


def _require(config: object) -> None:
    if not isinstance(config, CastConfig):
        raise TypeError(f"config={config!r}: expected a CastConfig, got {type(config).__name__}")


def _require_size(name: str, value: object) -> None:
    """An integer of at least 0, as nn.Linear takes it: whatever has __index__; True is none."""
    if isinstance(value, bool) or not hasattr(type(value), "__index__"):
        found = type(value).__name__
        raise TypeError(f"{name}={value!r}: expected an integer of at least 0, got {found}")
    if value < 0:
        raise ValueError(f"{name}={value!r}: expected an integer of at least 0")
