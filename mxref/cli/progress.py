"""The bar on standard error while checks run: shown on a terminal only, gone when they are done."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from mxref.cli import screen


class Bar:
    """One bar: `begin` names a piece of work, `report` is what `mxref.testing.verify` calls."""

    def __init__(self, progress: Progress, total: int) -> None:
        self._progress = progress
        self._label = ""
        self._whole = progress.add_task("", total=total, visible=total > 1)
        self._part = progress.add_task("", total=None)

    def begin(self, label: str, total: int | None = None) -> None:
        """Start the next piece of work."""
        self._label = label
        self._progress.update(self._whole, description=label)
        self._progress.reset(self._part, total=total, description=label)

    def end(self) -> None:
        """The piece of work is done."""
        self._progress.advance(self._whole)

    def report(self, check: str, done: int, total: int) -> None:
        """`done` of `total` checks are done; `check` is the one at work."""
        self._progress.update(self._part, description=check, completed=done, total=total)

    def advance(self, label: str, amount: int) -> None:
        """`amount` more of the piece is done."""
        self._progress.update(self._part, description=label, advance=amount)


@contextmanager
def bar(total: int) -> Iterator[Bar]:
    """A bar over `total` pieces of work."""
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    shown = sys.stderr.isatty()
    with Progress(*columns, console=screen.side(), transient=True, disable=not shown) as progress:
        yield Bar(progress, total)
