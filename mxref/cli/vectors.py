"""`mxref vectors`: golden bytes for every language, written to a folder or checked there."""

from pathlib import Path
from typing import Annotated

import typer

import mxref.vectors
from mxref.cli import options
from mxref.cli.errors import WrongCallError, one_line


def vectors(
    out: Annotated[
        str | None, typer.Argument(metavar="[OUT]", help="The folder to write, new or empty.")
    ] = None,
    check: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Compare a folder of vectors with what they are now."),
    ] = None,
    recipe: Annotated[str | None, typer.Option(help="The recipe, rceil if left out.")] = None,
    block: Annotated[str | None, typer.Option(help="1x32 (if left out), 32x1 or 32x32.")] = None,
    scale_layout: Annotated[
        str | None, typer.Option(help="Where scale bytes lie, plain if left out.")
    ] = None,
    contract: Annotated[
        str | None, typer.Option(help="-1 or -2: what the GEMM sums over, for a swizzled 32x32.")
    ] = None,
    dtype: Annotated[
        list[str] | None, typer.Option(help="bf16, fp16 or fp32; may be repeated. All if left out.")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace the three files of vectors in OUT.")
    ] = False,
) -> None:
    """Write the golden vectors of a recipe x block x layout to OUT, or --check a folder of them."""
    made = {
        "--recipe": recipe,
        "--block": block,
        "--scale-layout": scale_layout,
        "--contract": contract,
        "--dtype": dtype or None,
        "--force": force or None,
    }
    if check is not None:
        given = [name for name, value in {"OUT": out, **made}.items() if value is not None]
        if given:
            raise WrongCallError(f"--check={check!r}: takes no {', '.join(given)} beside it")
        raise typer.Exit(_check(check))
    if not out:
        raise WrongCallError("no folder: expected OUT, or --check DIR")
    try:
        layout, summed = options.scale_layout(scale_layout) or "plain", options.contract(contract)
        options.require_contract_applies(summed, layout)
        chosen = mxref.vectors.make(
            options.recipe(recipe) or "rceil",
            block=options.block(block) or (1, 32),
            scale_layout=layout,
            contract=summed,
            dtypes=options.dtypes(dtype) or tuple(mxref.vectors.DTYPES),
        )
        mxref.vectors.save(chosen, out, force=force)
    except (ValueError, OSError) as error:
        raise WrongCallError(_reason(error)) from None
    typer.echo(
        f"{out}: {chosen.recipe.label} {options.block_name(chosen.block)} {chosen.scale_layout}, "
        f"{len(chosen.cases)} cases, {chosen.blocks} blocks, {chosen.elements} elements, SHA-256 "
        f"of the text {mxref.vectors.digest(chosen)}"
    )


def _check(folder: str) -> int:
    if not Path(folder).is_dir():
        raise WrongCallError(f"--check={folder!r}: no such folder")
    try:
        lines = mxref.vectors.check(folder)
    except (ValueError, OSError) as error:
        raise WrongCallError(_reason(error)) from None
    for line in lines:
        typer.echo(f"{folder}: {line}")
    if not lines:
        typer.echo(f"{folder}: every byte is as computed now")
    return 1 if lines else 0


def _reason(error: Exception) -> str:
    text = one_line(error)
    return text.replace("or force", "or --force") if isinstance(error, FileExistsError) else text
