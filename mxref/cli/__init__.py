"""The command line `mxref`. Importing this loads nothing beyond what the core needs."""

import importlib
import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run `mxref` with the arguments (those of the process by default); returns the exit code.

    0: done, or the target conforms. 1: it does not. 2: the call or the target is wrong, or the
    extra `verify` is not installed. 130: interrupted. `verify` starts a child process that imports
    the main module again: a script calls this under `if __name__ == "__main__"`.
    """
    return start("mxref", "verify", argv)


def start(name: str, extra: str, argv: Sequence[str] | None) -> int:
    """Run `app` of the package's module `cli.app`; one line where its `extra` is not installed."""
    try:
        app = importlib.import_module(f"{name}.cli.app").app
        from mxref.cli.outcomes import run
    except ImportError as error:
        if (error.name or "").split(".")[0] not in ("rich", "safetensors", "typer"):
            raise
        sys.stderr.write(
            f"{name}: {error.name} is not installed: the command line needs "
            f"pip install 'mxref[{extra}]'\n"
        )
        return 2
    return run(app, name, sys.argv[1:] if argv is None else argv)
