"""The application `mxkernels`: its commands."""

import typer

from mxkernels.bench import command
from mxref.cli.errors import WrongCallError

app = typer.Typer(
    name="mxkernels",
    help="MX quantization kernels: their benchmark.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(command.bench, name="bench")


@app.callback(invoke_without_command=True)
def root(context: typer.Context) -> None:
    """MX quantization kernels: their benchmark."""
    if context.invoked_subcommand is None:
        raise WrongCallError("no command: expected bench (see mxkernels --help)")
