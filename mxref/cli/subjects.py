"""What a call of `mxref verify` judges: a named function, or the registered kernels."""

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from mxref.cli.errors import WrongCallError, one_line
from mxref.cli.options import Choice, block_name, require_contract_applies
from mxref.formats import INPUTS
from mxref.testing import targets
from mxref.testing.adapter import CLAIMS, Adapter
from mxref.testing.claims import INPUT_FORMATS, Claims
from mxref.testing.judge import describe

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


@dataclass(frozen=True)
class NotRun:
    """A registered kernel that cannot run here, and why."""

    name: str
    reason: str


def named(choice: Choice, target: str) -> Subject:
    """What the call names, under its claims: those of an Adapter, or those that the options make.

    An Adapter's claims stand where the options say nothing.
    """
    try:
        fn = targets.load(target)
    except ValueError as error:
        raise WrongCallError(one_line(error)) from error
    if isinstance(fn, Adapter) or (isinstance(fn, type) and issubclass(fn, Adapter)):
        return _adapter(choice, target, fn)
    claims = _claims(
        choice,
        recipe=choice.recipe or "rceil",
        block=choice.block or (1, 32),
        scale_layout=choice.scale_layout or "plain",
        contract=choice.contract,
        dtypes=choice.dtypes or tuple(INPUT_FORMATS),
        level=choice.level or "full",
    )
    require_contract_applies(choice.contract, claims.scale_layout)
    return Subject(target, fn, claims)


def _adapter(choice: Choice, target: str, found: Adapter | type[Adapter]) -> Subject:
    given = {
        "recipe": choice.recipe,
        "block": choice.block,
        "scale_layout": choice.scale_layout,
        "contract": choice.contract,
        "dtypes": choice.dtypes,
        "multiple_of": choice.multiple_of,
    }
    changed = {name: value for name, value in given.items() if value is not None}
    try:
        adapter = found() if isinstance(found, type) else found
    except Exception as error:
        raise WrongCallError(f"target={target!r}: {one_line(describe(error))}") from error
    claims = {**{name: getattr(adapter, name) for name in CLAIMS}, **changed}
    if choice.device != "cpu":
        claims["device"] = choice.device
    device = claims.pop("device")
    label = f"{target}()" if isinstance(found, type) else target
    made = _claims(choice, device, level=choice.level or "full", **claims)
    require_contract_applies(choice.contract, made.scale_layout)
    return Subject(label, adapter, made)


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


def _claims(choice: Choice, device: object = None, **rest: Any) -> Claims:
    try:
        return Claims.of(
            **{
                "device": device or choice.device,
                "multiple_of": choice.multiple_of or 32,
                "seed": choice.seed,
                "fuzz_seconds": choice.fuzz_seconds,
                **rest,
            }
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
