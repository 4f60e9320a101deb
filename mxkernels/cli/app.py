"""The application: the commands, and how every outcome becomes an exit code and one line."""

import sys
from collections.abc import Sequence

import typer

from mxkernels.bench import command
from mxref.cli.errors import WrongCallError, one_line

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


def run(argv: Sequence[str]) -> int:
    """Run the command that the arguments name; returns its exit code."""
    parser = typer.main.get_command(app)
    try:
        outcome = parser.main(args=list(argv), prog_name="mxkernels", standalone_mode=False)
    except WrongCallError as error:
        return _wrong(error)
    except (KeyboardInterrupt, typer.Abort):
        return _interrupted()
    except Exception as error:
        # the parser's own errors, whose class lies elsewhere in every version of typer
        if not hasattr(error, "format_message"):
            raise
        return _wrong(error.format_message())
    if outcome == 130:
        return _interrupted()
    return outcome if isinstance(outcome, int) else 0


def _wrong(message: object) -> int:
    sys.stderr.write(f"mxkernels: {one_line(message)}\n")
    return 2


def _interrupted() -> int:
    sys.stderr.write("mxkernels: interrupted\n")
    return 130
