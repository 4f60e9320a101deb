"""How a command line runs an application: every outcome becomes an exit code and one line."""

import sys
from collections.abc import Sequence
from typing import Any

import typer

from mxref.cli.errors import WrongCallError, one_line


def run(app: typer.Typer, name: str, argv: Sequence[str]) -> int:
    """Run the command of `app` that the arguments name; returns its exit code.

    A wrong call is one line that begins with `name`, and 2; an interrupt is one line, and 130.
    """
    command = typer.main.get_command(app)
    try:
        outcome = command.main(args=list(argv), prog_name=name, standalone_mode=False)
    except WrongCallError as error:
        return _end(name, error, 2)
    except (KeyboardInterrupt, typer.Abort):
        outcome = 130
    except Exception as error:
        # the parser's own errors, whose class lies elsewhere in every version of typer
        if not hasattr(error, "format_message"):
            raise
        return _end(name, _parser_message(error), 2)
    if outcome == 130:
        return _end(name, "interrupted", 130)
    return outcome if isinstance(outcome, int) else 0


def command_names(context: Any) -> str:
    """The names of the commands that may come next."""
    return ", ".join(context.command.list_commands(context))


def _parser_message(error: Any) -> str:
    message: str = error.format_message()
    if message.startswith("No such command"):
        message = f"{message.rstrip('.')}: expected one of {command_names(error.ctx)}"
    return message


def _end(name: str, message: object, code: int) -> int:
    sys.stderr.write(f"{name}: {one_line(message)}\n")
    return code
