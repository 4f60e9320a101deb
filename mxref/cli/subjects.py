"""What a call of `mxref verify` judges: a named function, or the registered kernels."""

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, fields
from typing import Any

from mxref.cli.errors import WrongCallError, one_line
from mxref.cli.options import Choice, block_name
from mxref.formats import INPUTS
from mxref.testing import targets
from mxref.testing.claims import INPUT_FORMATS, Claims

NOTHING = (
    "no kernel is registered (entry points in the group mxref.targets): name a target, "
    "package.module:function, or install kernels with pip install 'mxref[kernels]'"
)


@dataclass(frozen=True)
class Subject:
    """One function under its claims; the label is unique among those of a call."""

    label: str
    fn: Callable[..., Any]
    claims: Claims

    def arguments(self) -> dict[str, Any]:
        """The claims as keyword arguments of `mxref.testing.verify`."""
        return {each.name: getattr(self.claims, each.name) for each in fields(self.claims)}


@dataclass(frozen=True)
class NotRun:
    """A registered kernel that cannot run here, and why."""

    name: str
    reason: str


def named(choice: Choice, target: str) -> Subject:
    """The function that the call names, under the claims that its options make."""
    claims = _claims(
        choice,
        recipe=choice.recipe or "rceil",
        block=choice.block or (1, 32),
        scale_layout=choice.scale_layout or "plain",
        contract=choice.contract,
        dtypes=choice.dtypes or tuple(INPUT_FORMATS),
        level=choice.level or "full",
    )
    try:
        return Subject(target, targets.load(target), claims)
    except ValueError as error:
        raise WrongCallError(one_line(error)) from error


def registered() -> list[Any]:
    """The specs of every registered kernel; WrongCallError for a registry that does not load."""
    try:
        return targets.registered()
    except ValueError as error:
        raise WrongCallError(one_line(error)) from error


def kernels(
    choice: Choice,
    recipes: Collection[str] | None = None,
    payload_orders: Collection[str] | None = None,
) -> tuple[list[Subject], list[NotRun]]:
    """Every combination of the registered kernels that the options leave, and what cannot run.

    `recipes` are those taken where the call names none; None takes all. Without `payload_orders`,
    level smoke takes fewer: every two choices of a kernel meet in some combination. WrongCallError,
    one line, where nothing is left to judge.
    """
    specs = registered()
    if not specs:
        raise WrongCallError(NOTHING)
    found: list[Subject] = []
    not_run: list[NotRun] = []
    for spec in specs:
        lacks = spec.missing(choice.device)
        if lacks:
            not_run.append(NotRun(spec.name, one_line(lacks)))
            continue
        found += _subjects(choice, spec, recipes, payload_orders)
    if not found:
        reasons = "; ".join(f"{each.name}: {each.reason}" for each in not_run)
        raise WrongCallError(
            f"no registered kernel on {choice.device} takes {_asked(choice)}"
            + (f" ({reasons})" if reasons else "")
        )
    return found, not_run


def _subjects(
    choice: Choice,
    spec: Any,
    recipes: Collection[str] | None,
    payload_orders: Collection[str] | None,
) -> list[Subject]:
    return [
        Subject(each.label, each.fn, _claims(choice, level=choice.level or "smoke", **each.claims))
        for each in targets.combinations(
            spec,
            recipes=recipes if choice.recipe is None else (choice.recipe,),
            blocks=None if choice.block is None else (choice.block,),
            scale_layouts=None if choice.scale_layout is None else (choice.scale_layout,),
            payload_orders=payload_orders,
            dtypes=choice.dtypes,
            # at smoke every two choices meet somewhere; at full every combination is run
            pairs=choice.level != "full" and payload_orders is None,
        )
        if choice.contract in (None, _contract(each.claims))
    ]


def _contract(claims: dict[str, Any]) -> int | None:
    """The dimension contracted: given, or fixed by the block."""
    fixed = {(1, 32): -1, (32, 1): -2}
    given: int | None = claims.get("contract")
    return fixed.get(claims["block"]) if given is None else given


def _claims(choice: Choice, **rest: Any) -> Claims:
    try:
        return Claims.of(
            device=choice.device, multiple_of=choice.multiple_of or 32, seed=choice.seed, **rest
        )
    except (ValueError, TypeError) as error:
        # the option has the argument's name
        line = re.sub(r"^(\w+)=", lambda m: f"--{m[1].replace('_', '-')}=", one_line(error))
        raise WrongCallError(line) from error


def _asked(choice: Choice) -> str:
    """The options that filter, as they were given."""
    names = {row.torch_dtype: name for name, row in INPUTS.items()}
    dtypes = choice.dtypes or ()
    given = [
        ("--recipe", choice.recipe),
        ("--block", None if choice.block is None else block_name(choice.block)),
        ("--scale-layout", choice.scale_layout),
        ("--contract", choice.contract),
        *(("--dtype", names[str(dtype).removeprefix("torch.")]) for dtype in dtypes),
    ]
    return " ".join(f"{name} {value}" for name, value in given if value is not None) or "anything"
