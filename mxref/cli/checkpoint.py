"""Reading a safetensors file one bounded piece at a time, so that its size does not matter."""

import math
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open

from mxref.cli.errors import WrongCallError, one_line
from mxref.tiles import Block, pieces

PIECE = 1 << 21
"""Elements read at a time: 8 MiB of fp32, and some fifteen times that for the figures in fp64."""

_DTYPES = {"BF16": torch.bfloat16, "F16": torch.float16, "F32": torch.float32}
_UNITS: Block = (32, 32)
"""Pieces end on multiples of 32 in both dimensions, so that no block is cut."""


@dataclass(frozen=True)
class Entry:
    """One tensor of the file that can be judged."""

    name: str
    dtype: torch.dtype
    shape: tuple[int, ...]

    @property
    def numel(self) -> int:
        """How many elements it has."""
        return math.prod(self.shape)


class Checkpoint:
    """An open file: the tensors that can be judged, and how many were left out, by reason."""

    def __init__(self, path: str, handle: Any, least_rank: int) -> None:
        self.path = path
        self._handle = handle
        self.skipped: Counter[str] = Counter()
        self.entries: list[Entry] = []
        for name in handle.keys():  # noqa: SIM118, not a mapping
            described = handle.get_slice(name)
            dtype, shape = described.get_dtype(), tuple(described.get_shape())
            if dtype not in _DTYPES:
                self.skipped[f"dtype {dtype}"] += 1
            elif len(shape) < least_rank:
                self.skipped[f"rank {len(shape)}"] += 1
            else:
                self.entries.append(Entry(name, _DTYPES[dtype], shape))

    def pieces(self, entry: Entry, limit: int = PIECE) -> Iterator[torch.Tensor]:
        """The tensor in pieces of about `limit` elements, none for an empty tensor."""
        described = self._handle.get_slice(entry.name)
        for index in pieces(entry.shape, _UNITS, limit):
            try:
                yield described[index]
            except SafetensorError as error:
                raise WrongCallError(f"{self.path}: {entry.name}: {one_line(error)}") from error


@contextmanager
def opened(path: str, least_rank: int) -> Iterator[Checkpoint]:
    """The checkpoint at `path`; WrongCallError, one line, where it cannot be read or has nothing.

    `least_rank` is the rank below which a tensor is skipped: that of the block.
    """
    if not path:
        raise WrongCallError("--tensors='': expected the name of a safetensors file")
    if Path(path).is_dir():
        raise WrongCallError(f"--tensors={path!r}: a directory, expected one safetensors file")
    try:
        handle = safe_open(path, framework="pt")
    except (OSError, SafetensorError) as error:
        raise WrongCallError(f"--tensors={path!r}: {one_line(error)}") from error
    with handle as held:
        checkpoint = Checkpoint(path, held, least_rank)
        if not checkpoint.entries:
            skipped = ", ".join(f"{count} of {why}" for why, count in checkpoint.skipped.items())
            raise WrongCallError(
                f"--tensors={path!r}: no bf16, fp16 or fp32 tensor of rank {least_rank} or more"
                + (f" (skipped: {skipped})" if skipped else "")
            )
        yield checkpoint
