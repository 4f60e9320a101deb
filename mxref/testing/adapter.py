"""Adapter: a quantizer with what it claims, as a class that other repositories subclass."""

from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from mxref.recipes import Recipe
from mxref.testing.claims import INPUT_FORMATS, Claims

if TYPE_CHECKING:
    from mxref.testing.report import Report

CLAIMS = (
    "recipe",
    "block",
    "scale_layout",
    "dtypes",
    "contract",
    "payload_order",
    "multiple_of",
    "nan",
    "flushes_subnormals",
    "deterministic",
    "exact_scales",
    "device",
)
"""The attributes in which a target says what it is."""


class Adapter:
    """A quantizer under its claims: subclass it, set what differs, and define `quantize`.

    `Adapter(**claims)` sets claims of one object, as in `Mine(recipe="floor")`. Everything is
    checked when the object is made. Names that begin with an underscore, and methods, are free.

    ==================  =============================================================
    recipe              a name in `mxref.RECIPES` or a `mxref.Recipe`; has to be set
    block               (1, 32), (32, 1) or (32, 32): elements that share a scale
    scale_layout        a name in `mxref.layouts.LAYOUTS`
    dtypes              inputs: torch.bfloat16, torch.float16, torch.float32
    contract            -1, -2 or None; a swizzled (32, 32) needs it
    payload_order       "row", "col" (column-major) or "any": strides are not judged
    multiple_of         sizes of the matrices that have to be answered
    nan                 "any" NaN code counts as NaN, or "strict": exactly 0x7F
    flushes_subnormals  True: inputs below 2^-126 count as zeros of their sign
    deterministic       False: a second run may give other bytes
    exact_scales        False: a finite scale may be one step off, the payload is then
                        judged under the target's own scales
    device              where inputs are made and outputs have to be
    ==================  =============================================================

    Raises TypeError for a name that is no claim or a value of a wrong type, ValueError for a value
    that is not allowed, NotImplementedError for an axis value of the recipe that is not built.

    >>> import mxref
    >>> class Mine(Adapter):
    ...     recipe, dtypes = "floor", (torch.bfloat16,)
    ...
    ...     def quantize(self, x):
    ...         return mxref.quantize(x, "floor")
    >>> Mine().verify(level="smoke").passed
    True
    >>> class Typo(Mine):
    ...     blok = (1, 32)
    >>> Typo()  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    TypeError: Typo.blok=(1, 32): no claim of an Adapter, did you mean 'block'? Claims are ...
    """

    recipe: str | Recipe = ""
    block: tuple[int, int] = (1, 32)
    scale_layout: str = "plain"
    dtypes: tuple[torch.dtype, ...] = tuple(INPUT_FORMATS)
    contract: int | None = None
    payload_order: str = "any"
    multiple_of: int = 32
    nan: str = "any"
    flushes_subnormals: bool = False
    deterministic: bool = True
    exact_scales: bool = True
    device: str | torch.device = "cpu"

    def __init__(self, **claims: Any) -> None:
        for name, value in claims.items():
            _require_claim(name, value, type(self).__name__)
            setattr(self, name, value)
        self._require_names()
        # on the CPU: the device claimed may be absent where the tests are only collected
        self.claims(device="cpu")
        _require_device_name(self.device)

    def quantize(self, x: Tensor) -> Any:
        """x -> (payload, scale): float8 (e8m0fnu for the scale) or uint8 tensors, any strides."""
        raise NotImplementedError(f"{type(self).__name__} has to define quantize(self, x)")

    def __call__(self, x: Tensor) -> Any:
        """The same as `quantize`."""
        return self.quantize(x)

    @property
    def target(self) -> str:
        """What reports call it, and how a reproducer finds it: module:Class()."""
        return f"{type(self).__module__}:{type(self).__qualname__}()"

    def claims(self, **run: Any) -> Claims:
        """The claims, checked, with how they are to be run: level, seed, device, fuzz_seconds."""
        if not self.recipe and isinstance(self.recipe, str):
            raise ValueError(f"{type(self).__name__}.recipe='': has to be set, 'rceil' for example")
        return Claims.of(**{**{name: getattr(self, name) for name in CLAIMS}, **run})

    def verify(
        self,
        *,
        level: str = "full",
        seed: int = 0,
        checks: Iterable[str] | None = None,
        progress: Callable[[str, int, int], None] | None = None,
        waivers: str | None = None,
        fuzz_seconds: int = 60,
    ) -> "Report":
        """The conformance run, as `mxref.testing.verify`; `waivers` is a TOML file's name."""
        from mxref.testing.conformance import judged

        claims = self.claims(level=level, seed=seed, fuzz_seconds=fuzz_seconds)
        return judged(self, claims, checks=checks, progress=progress, waivers=waivers)

    def _require_names(self) -> None:
        label = type(self).__name__
        for owner in type(self).__mro__:
            if owner is Adapter or not issubclass(owner, Adapter):
                continue
            for name, value in vars(owner).items():
                data = not callable(value) and not hasattr(type(value), "__get__")
                if data and not name.startswith("_"):
                    _require_claim(name, value, label)
        if type(self).quantize is Adapter.quantize:
            near = get_close_matches("quantize", [n for n in vars(type(self)) if n[0] != "_"])
            hint = f" (it has {near[0]!r})" if near else ""
            raise TypeError(f"{label}: has to define quantize(self, x){hint}")


class FunctionAdapter(Adapter):
    """The Adapter of a plain function: what `mxref.testing.verify` makes of its arguments."""

    def __init__(self, fn: Callable[[Tensor], Any], name: str, **claims: Any) -> None:
        self._fn, self._name = fn, name
        super().__init__(**claims)

    def quantize(self, x: Tensor) -> Any:
        """Call the function."""
        return self._fn(x)

    @property
    def target(self) -> str:
        """The function's name."""
        return self._name


def _require_device_name(device: object) -> None:
    if not isinstance(device, (str, torch.device)):
        raise TypeError(f"device={device!r}: expected a name such as 'cpu' or a torch.device")
    try:
        torch.device(device)
    except RuntimeError as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"device={device!r}: expected 'cpu', 'cuda', ... ({reason})") from None


def _require_claim(name: str, value: object, label: str) -> None:
    if name not in CLAIMS:
        near = get_close_matches(name, CLAIMS, n=1)
        hint = f", did you mean {near[0]!r}?" if near else "."
        raise TypeError(
            f"{label}.{name}={value!r}: no claim of an Adapter{hint} Claims are "
            f"{', '.join(CLAIMS)}; a name of your own begins with an underscore"
        )
