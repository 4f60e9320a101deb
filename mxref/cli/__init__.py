"""The command line `mxref`. Importing this loads nothing beyond what the core needs."""

import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run `mxref` with the arguments (those of the process by default); returns the exit code.

    0: done, or the target conforms. 1: it does not. 2: the call or the target is wrong, or the
    extra `verify` is not installed. 130: interrupted. `verify` starts a child process that imports
    the main module again: a script calls this under `if __name__ == "__main__"`.
    """
    try:
        from mxref.cli.app import run
    except ImportError as error:
        if (error.name or "").split(".")[0] not in ("rich", "safetensors", "typer"):
            raise
        sys.stderr.write(
            f"mxref: {error.name} is not installed: the command line needs "
            "pip install 'mxref[verify]'\n"
        )
        return 2
    return run(sys.argv[1:] if argv is None else argv)
