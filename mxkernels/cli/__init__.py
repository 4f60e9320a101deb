"""The command line `mxkernels`. Importing this loads nothing beyond what the package needs."""

from collections.abc import Sequence

from mxref.cli import start

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run `mxkernels` with the arguments (those of the process by default); returns the exit code.

    0: done. 1: a kernel of ours was wrong or failed, or is slower than asked for. 2: the call is
    wrong, there is no GPU, or the extra `bench` is not installed. 130: interrupted.
    """
    return start("mxkernels", "bench", argv)
