"""`mxref identify`: which dialect a function speaks, or the nearest one and where it departs."""

from typing import Annotated, Any

import typer

import mxref
from mxref.cli import options, screen
from mxref.cli.errors import WrongCallError, one_line
from mxref.cli.options import JsonFile
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
Contract = Annotated[str | None, typer.Option("--contract", help="-1 or -2, for a swizzled 32x32.")]
Device = Annotated[str, typer.Option("--device", help="cpu, cuda or cuda:N.")]
Dtypes = Annotated[
    list[str] | None,
    typer.Option("--dtype", metavar="NAME", help="bf16, fp16 or fp32; may be repeated."),
]
Json = Annotated[
    str | None, typer.Option("--json", metavar="FILE", help="Write what was found as JSON.")
]


def identify(
    target: Target,
    block: Block = None,
    scale_layout: ScaleLayout = None,
    contract: Contract = None,
    device: Device = "cpu",
    dtype: Dtypes = None,
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
    out = JsonFile(json)
    try:
        function = targets.load(target)
    except ValueError as error:
        raise WrongCallError(one_line(error)) from error
    found = named(function, **arguments)
    screen.plain(str(found))
    content = {"target": target, "version": mxref.__version__, "spec": mxref.SPEC}
    out.write({**content, **found.as_dict()})
    raise typer.Exit(0 if found.exact else 1)
