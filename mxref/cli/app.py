"""The application: the commands, and how every outcome becomes an exit code and one line."""

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

import mxref
from mxref.cli import bench, env, explain, identify, vectors, verify
from mxref.cli.errors import WrongCallError, one_line

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
        raise WrongCallError(f"no command: expected one of {commands()} (see mxref --help)")


def commands() -> str:
    """The names of all commands."""
    return ", ".join(str(command.name) for command in app.registered_commands)


def run(argv: Sequence[str]) -> int:
    """Run the command that the arguments name; returns its exit code."""
    command = typer.main.get_command(app)
    try:
        outcome = command.main(args=list(argv), prog_name="mxref", standalone_mode=False)
    except WrongCallError as error:
        return _wrong(error)
    except (KeyboardInterrupt, typer.Abort):
        return _interrupted()
    except Exception as error:
        # the parser's own errors, whose class lies elsewhere in every version of typer
        if not hasattr(error, "format_message"):
            raise
        message = error.format_message()
        if message.startswith("No such command"):
            message = f"{message.rstrip('.')}: expected one of {commands()}"
        return _wrong(message)
    if outcome == 130:
        return _interrupted()
    return outcome if isinstance(outcome, int) else 0


def _wrong(message: object) -> int:
    sys.stderr.write(f"mxref: {one_line(message)}\n")
    return 2


def _interrupted() -> int:
    sys.stderr.write("mxref: interrupted\n")
    return 130
