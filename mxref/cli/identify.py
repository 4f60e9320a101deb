"""`mxref identify`: which dialect a function speaks, or the nearest one and where it departs."""

import multiprocessing
from multiprocessing.connection import Connection
from typing import Annotated, Any

import typer

import mxref
from mxref.cli import options, screen
from mxref.cli.errors import WrongCallError, one_line
from mxref.cli.options import Contract, Device, Dtypes, JsonFile
from mxref.cli.supervisor import STARTING, exit_name
from mxref.formats import INPUTS
from mxref.testing import identify as named
from mxref.testing import targets

Target = Annotated[
    str, typer.Argument(metavar="TARGET", help="package.module:function, x -> (payload, scale).")
]
Block = Annotated[
    str | None, typer.Option("--block", help="The block tried first: 1x32, 32x1 or 32x32.")
]
ScaleLayout = Annotated[
    str | None,
    typer.Option("--scale-layout", help="plain, plain_t or swizzle_32_4_4; found out if left out."),
]
Json = Annotated[
    str | None,
    typer.Option(
        "--json", metavar="FILE", help="Write what was found as JSON; replaces only a results file."
    ),
]

Timeout = Annotated[
    float,
    typer.Option(
        "--timeout", metavar="SECONDS", min=0.1, help="For the import, and for all calls together."
    ),
]


def identify(
    target: Target,
    block: Block = None,
    scale_layout: ScaleLayout = None,
    contract: Contract = None,
    device: Device = "cpu",
    dtype: Dtypes = None,
    timeout: Timeout = 300.0,
    json: Json = None,
) -> None:
    """Name the dialect of TARGET: exit code 0 every byte is a recipe's, 1 not, 2 wrong call."""
    arguments: dict[str, Any] = {
        "block": options.block(block) or (1, 32),
        "scale_layout": options.scale_layout(scale_layout),
        "contract": options.contract(contract),
        "device": options.device(device),
        "dtypes": options.dtypes(dtype) or options.dtypes(tuple(INPUTS)),
    }
    options.require_contract_applies(arguments["contract"], arguments["scale_layout"])
    out = JsonFile(json)
    kind, found = _in_a_child(target, arguments, timeout)
    if kind == "refused":
        raise WrongCallError(found)
    screen.plain(str(found))
    if kind == "ended":
        raise typer.Exit(1)
    content = {"target": target, "version": mxref.__version__, "spec": mxref.SPEC}
    out.write({**content, **found.as_dict()})
    raise typer.Exit(0 if found.exact else 1)


def _in_a_child(target: str, arguments: dict[str, Any], timeout: float) -> tuple[str, Any]:
    """What `_work` sends last, or ("ended", why) where the target ends its process or hangs.

    Where that happens while it is imported, the call is wrong: no answer of it was seen.
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(theirs, target, arguments), daemon=True)
    process.start()
    theirs.close()
    stage = ""
    try:
        # the time of the process and of torch is not the target's
        limit = max(STARTING, timeout)
        while ours.poll(limit):
            message: tuple[str, Any] = ours.recv()
            if message[0] != "stage":
                return message
            stage, limit = message[1], timeout
        why = f"gave no answer within {limit:g} s"
    except EOFError:
        process.join()
        why = f"ended the process with {exit_name(process.exitcode)}"
    finally:
        process.kill()
        process.join()
    if stage == "called":
        return "ended", f"unknown: {target} {why}"
    return "refused", f"target={target!r}: {why} while it was imported"


def _work(connection: Connection, target: str, arguments: dict[str, Any]) -> None:
    """The child's part: ("found", Identity), or ("refused", one line) for a wrong target.

    Before it ("stage", "imported") and ("stage", "called"), as the target is.
    """
    connection.send(("stage", "imported"))
    try:
        function = targets.load(target)
        connection.send(("stage", "called"))
        connection.send(("found", named(function, **arguments)))
    except ValueError as error:
        connection.send(("refused", one_line(error)))
