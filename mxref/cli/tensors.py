"""`mxref verify --tensors`: targets judged on the tensors of a checkpoint, one piece at a time."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from mxref.blocks import quantize
from mxref.cli.checkpoint import Checkpoint, Entry
from mxref.cli.errors import WrongCallError
from mxref.cli.figures import Figures, measure
from mxref.cli.options import dtype_name
from mxref.testing.diff import payload_differs
from mxref.testing.judge import Judge, Refused, Wrong
from mxref.tiles import Block

RULES = ("floor", "rceil")
"""The recipes whose figures stand side by side, whatever the targets claim."""


@dataclass
class Tally:
    """What one target answered to one tensor, byte by byte; `refused` is its exception's text."""

    compared: int = 0
    scale_wrong: int = 0
    payload_wrong: int = 0
    refused: str = ""
    malformed: str = ""

    @property
    def verdict(self) -> str:
        """equal, different, declined (it raised) or, where it was not asked, not asked."""
        if self.scale_wrong or self.payload_wrong or self.malformed:
            return "different"
        if self.refused:
            return "declined"
        return "equal" if self.compared else "not asked"

    @property
    def detail(self) -> str:
        """Why the verdict is not equal, in a line."""
        if self.malformed or self.verdict != "different":
            return self.malformed or self.refused
        return f"{self.scale_wrong} scale bytes and {self.payload_wrong} payload bytes differ"


@dataclass
class Row:
    """One tensor: figures by recipe, answers by target."""

    entry: Entry
    figures: dict[str, Figures] = field(default_factory=lambda: {rule: Figures() for rule in RULES})
    tallies: dict[str, Tally] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """The row for a JSON file."""
        return {
            "name": self.entry.name,
            "dtype": str(self.entry.dtype).removeprefix("torch."),
            "shape": list(self.entry.shape),
            "figures": {rule: figures.as_json() for rule, figures in self.figures.items()},
            "targets": {
                label: {"verdict": tally.verdict, "detail": tally.detail}
                for label, tally in self.tallies.items()
            },
        }


def judge(
    checkpoint: Checkpoint,
    entries: Iterable[Entry],
    judges: Mapping[str, Judge],
    block: Block,
    started: Callable[[Entry, int], None],
) -> list[Row]:
    """Every entry through the reference and every target; `started` hears of each piece."""
    rows = []
    for entry in entries:
        row = Row(entry, tallies={label: Tally() for label in judges})
        for piece in checkpoint.pieces(entry):
            for rule in RULES:
                row.figures[rule].add(measure(piece, quantize(piece, rule, block=block), block))
            for label, judging in judges.items():
                ask(judging, piece, row.tallies[label])
            started(entry, piece.numel())
        rows.append(row)
    return rows


def ask(judging: Judge, piece: Tensor, tally: Tally) -> None:
    """Add to the tally what the target answers to a piece; no further piece once it has refused."""
    claims = judging.claims
    if piece.dtype not in claims.dtypes or tally.refused or tally.malformed:
        return
    x = piece
    if claims.block[0] == 1:
        # the same blocks and the same bytes, in the one rank that every target answers
        x = piece.reshape(-1, piece.shape[-1])
    elif piece.dim() == 1:
        return
    x = x.to(claims.device)
    # the target gets its own copy: it may write into its input
    try:
        actual = judging.ask(x.clone())
    except Refused as error:
        tally.refused = str(error)
        return
    except Wrong as error:
        tally.malformed = str(error)
        return
    expected = judging.expected(x, actual)
    tally.compared += x.numel()
    tally.scale_wrong += int((actual.scale != expected.scale).sum())
    tally.payload_wrong += int(payload_differs(actual.payload, expected.payload, claims).sum())


def totals(rows: Sequence[Row]) -> dict[str, Figures]:
    """The figures of all tensors together, by recipe."""
    summed = {rule: Figures() for rule in RULES}
    for row in rows:
        for rule, figures in row.figures.items():
            summed[rule].add(figures)
    return summed


def passed(rows: Sequence[Row], labels: Iterable[str]) -> bool:
    """Whether no answer differs and every target has answered at least one tensor."""
    verdicts = {label: [row.tallies[label].verdict for row in rows] for label in labels}
    return all("different" not in found and "equal" in found for found in verdicts.values())


def selected(checkpoint: Checkpoint, dtypes: tuple[torch.dtype, ...] | None) -> list[Entry]:
    """The entries of the dtypes asked for; the others are counted as skipped."""
    if dtypes is None:
        return checkpoint.entries
    kept = [entry for entry in checkpoint.entries if entry.dtype in dtypes]
    if not kept:
        raise WrongCallError(f"{checkpoint.path}: no tensor of the dtypes asked for with --dtype")
    for entry in checkpoint.entries:
        if entry not in kept:
            dtype = dtype_name(entry.dtype)
            checkpoint.skipped[f"dtype {dtype}, not asked for"] += 1
    return kept
