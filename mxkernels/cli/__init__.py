"""The command line `mxkernels`. Importing this loads nothing beyond what the package needs."""

import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run `mxkernels` with the arguments (those of the process by default); returns the exit code.

    0: done. 1: a kernel of ours was wrong or failed, or is slower than asked for. 2: the call is
    wrong, there is no GPU, or the extra `bench` is not installed. 130: interrupted.
    """
    try:
        from mxkernels.cli.app import run
    except ImportError as error:
        if (error.name or "").split(".")[0] not in ("rich", "typer"):
            raise
        sys.stderr.write(
            f"mxkernels: {error.name} is not installed: the command line needs "
            "pip install 'mxref[bench]'\n"
        )
        return 2
    return run(sys.argv[1:] if argv is None else argv)
