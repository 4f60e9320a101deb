"""Where output goes: one console for results, one for progress and errors. No markup is read.

Text that people copy (reproducers, bytes) is written by `plain`, which neither wraps nor colours.
"""

import sys

from rich import box
from rich.console import Console
from rich.table import Table

_WIDE = 240
"""Columns where no terminal says how many it has: a table in a file or a pipe is not folded."""


def results() -> Console:
    """The console on standard output."""
    wide = None if sys.stdout.isatty() else _WIDE
    return Console(file=sys.stdout, width=wide, markup=False, highlight=False, emoji=False)


def side() -> Console:
    """The console on standard error, for progress."""
    return Console(file=sys.stderr, markup=False, highlight=False, emoji=False)


def plain(text: str) -> None:
    """Write the text as it is, with a line end, to standard output."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def table(*columns: str, numbers: tuple[str, ...] = ()) -> Table:
    """An empty table; the columns named in `numbers` are aligned to the right."""
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column in columns:
        right = column in numbers
        made.add_column(
            column, justify="right" if right else "left", no_wrap=right, overflow="fold"
        )
    return made


def steps() -> Table:
    """A grid of two columns without frame: what a line is about, and the line."""
    made = Table.grid(padding=(0, 2))
    made.add_column(no_wrap=True)
    made.add_column(overflow="fold")
    return made


def printable(name: str) -> str:
    """A name from a file, with control characters escaped: it must not steer the terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in name)
