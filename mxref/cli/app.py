"""The application `mxref`: its commands."""

from typing import Annotated

import typer

import mxref
from mxref.cli import bench, env, explain, identify, vectors, verify
from mxref.cli.errors import WrongCallError
from mxref.cli.outcomes import command_names

app = typer.Typer(
    name="mxref",
    help="The bit-exact reference for MX (microscaling) quantization.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("verify")(verify.verify)
app.command("identify")(identify.identify)
# an unknown option may be a negative number: `mxref explain -3.5`
app.command("explain", context_settings={"ignore_unknown_options": True})(explain.explain)
app.command("vectors")(vectors.vectors)
app.command("bench")(bench.bench)
app.command("env")(env.env)


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and SPEC.")] = False,
) -> None:
    """The bit-exact reference for MX (microscaling) quantization."""
    if version:
        typer.echo(f"mxref {mxref.__version__} (SPEC {mxref.SPEC})")
        raise typer.Exit(0)
    if context.invoked_subcommand is None:
        names = command_names(context)
        raise WrongCallError(f"no command: expected one of {names} (see mxref --help)")
