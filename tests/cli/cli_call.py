"""Running the command line in this process, and reading what it wrote."""

import contextlib
import io
from dataclasses import dataclass

from mxref.cli import main


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str

    @property
    def ok(self) -> str:
        assert self.code == 0, (self.code, self.out, self.err)
        return self.out

    @property
    def wrong(self) -> str:
        """The one line of a call that was wrong."""
        assert self.code == 2, (self.code, self.out, self.err)
        assert self.out == ""
        assert self.err.startswith("mxref: ")
        assert self.err.count("\n") == 1
        return self.err


def call(*arguments: str) -> Outcome:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(list(arguments))
    return Outcome(code, out.getvalue(), err.getvalue())
