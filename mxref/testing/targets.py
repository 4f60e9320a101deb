"""Finding targets: registries by entry point, their kernels by duck typing, functions by name."""

import importlib
import sys
from collections.abc import Callable, Collection, Iterator
from functools import partial
from importlib.metadata import entry_points
from itertools import product
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple

import torch

from mxref.layouts import LAYOUTS
from mxref.testing.adapter import Adapter
from mxref.testing.claims import INPUT_FORMATS
from mxref.testing.judge import describe
from mxref.testing.pairs import covering

GROUP = "mxref.targets"
"""The entry-point group. Each entry names an iterable of kernel specs, such as KernelSpec's."""

_SQUARE_CONTRACT = {"row": -1, "col": -2}


class Combination(NamedTuple):
    """One way to call a kernel: `verify(fn, **claims, name=label)` judges it."""

    label: str
    fn: Callable[[torch.Tensor], Any]
    claims: dict[str, Any]


def registered() -> list[Any]:
    """The kernel specs of every installed registry; an empty list where none is installed.

    A spec has `name, recipes, blocks, payload_orders, scale_layouts, dtypes`, a
    `call(x, recipe, block, payload_order, scale_layout)` and `missing(device) -> str | None`.

    Raises ValueError in one line for an entry point that cannot be loaded.
    """
    specs: list[Any] = []
    # a checkout that is also installed lists its entry points twice
    unique = {(entry.name, entry.value): entry for entry in entry_points(group=GROUP)}
    for entry in unique.values():
        try:
            specs.extend(entry.load())
        except Exception as error:
            raise ValueError(
                f"entry point {entry.name!r} = {entry.value!r}: {describe(error)}"
            ) from None
    return specs


def combinations(
    spec: Any,
    *,
    recipes: Collection[str] | None = None,
    blocks: Collection[tuple[int, int]] | None = None,
    payload_orders: Collection[str] | None = None,
    scale_layouts: Collection[str] | None = None,
    dtypes: Collection[torch.dtype] | None = None,
    pairs: bool = False,
) -> Iterator[Combination]:
    """Every recipe x block x payload order x scale layout of a quantizer, as targets for `verify`.

    The filters keep what they list; None keeps all. A square block in a layout that needs a
    direction serves the one of its payload order. With `pairs`, fewer: one dtype each, so that any
    two choices of different axes, the dtype among them, meet in some combination. Nothing comes
    out for a spec of another `op`, or where no dtype is left.
    """
    if getattr(spec, "op", "quantize") != "quantize":
        return
    axes: list[list[Any]] = [
        _kept(spec.recipes, recipes),
        _kept(spec.blocks, blocks),
        _kept(spec.payload_orders, payload_orders),
        _kept(spec.scale_layouts, scale_layouts),
        [(dtype,) for dtype in _kept(spec.dtypes, dtypes)],
    ]
    if not all(axes):
        return
    if not pairs:
        axes[-1] = [tuple(dtype for (dtype,) in axes[-1])]
    for recipe, block, order, layout, taken in covering(axes) if pairs else product(*axes):
        contract = None
        if block[0] == block[1] and LAYOUTS[layout].needs_contract:
            contract = _SQUARE_CONTRACT[order]
        claims = {
            "recipe": recipe,
            "block": tuple(block),
            "scale_layout": layout,
            "contract": contract,
            "payload_order": order,
            "dtypes": taken,
        }
        name = getattr(recipe, "label", recipe)
        label = f"{spec.name} {name} {block[0]}x{block[1]} {order} {layout}"
        if pairs:
            label += f" {INPUT_FORMATS[taken[0]].name}"
        call = partial(_call, spec.call, recipe, block, order, layout)
        yield Combination(label, call, claims)


def _kept(values: Collection[Any], wanted: Collection[Any] | None) -> list[Any]:
    return [value for value in values if wanted is None or value in wanted]


def _call(
    call: Callable[..., Any],
    recipe: Any,
    block: tuple[int, int],
    order: str,
    layout: str,
    x: torch.Tensor,
) -> Any:
    return call(x, recipe, block, order, layout)


def load(target: str) -> Callable[..., Any]:
    """The function that "package.module:function" names; dots reach into classes and objects.

    The current directory can be imported from. Raises ValueError in one line: not of this form,
    no such module, a module that fails while it is imported, no such attribute, not callable, a
    class that is no Adapter: called, it makes an object of its own and no (payload, scale).

    >>> load("mxref:quantize").__name__
    'quantize'
    """
    module_name, _, path = target.partition(":") if isinstance(target, str) else ("", "", "")
    if not all(part.isidentifier() for part in (*module_name.split("."), *path.split("."))):
        raise ValueError(f"target={target!r}: expected package.module:function")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name and (module_name + ".").startswith(error.name + "."):
            raise ValueError(f"target={target!r}: no module named {error.name!r}") from None
        raise ValueError(
            f"target={target!r}: {module_name} needs {error.name!r}, not found"
        ) from None
    except (Exception, SystemExit) as error:
        message = f"importing {module_name} failed: {describe(error)}"
        raise ValueError(f"target={target!r}: {message}") from None
    for part in path.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise ValueError(f"target={target!r}: {module_name} has no {path!r}") from None
    if not callable(found):
        raise ValueError(f"target={target!r}: found {found!r:.80}, expected a function")
    if _only_makes_itself(found):
        raise ValueError(
            f"target={target!r}: the class {found.__name__}, expected a function x -> (payload, "
            "scale), an object that can be called so, or an Adapter"
        )
    function: Callable[..., Any] = found
    return function


def _only_makes_itself(found: Any) -> bool:
    """Whether it is a class and a call gives an object of it, which is neither Adapter nor pair."""
    if not isinstance(found, type) or issubclass(found, (Adapter, tuple, list)):
        return False
    # __new__ and a metaclass in Python may return anything
    return not any(isinstance(f, FunctionType) for f in (found.__new__, type(found).__call__))
