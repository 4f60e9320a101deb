"""A tensor of more than 2^31 elements: offsets that overflow 32 bits read or write elsewhere."""

import os
from collections.abc import Iterator

import torch
from torch import Tensor

from mxref.testing.answer import Answer
from mxref.testing.check import Check, Setting
from mxref.testing.diff import first_difference, logical
from mxref.testing.fill import scattered
from mxref.testing.judge import Judge, NotHere, Wrong
from mxref.testing.reference import stored

SIDE = 1 << 15
BAND = 256
"""Rows that are made and judged at a time."""

TURN = 129
"""Columns by which each band is turned against the one before: odd, so that no two bands are alike
in their payload, and a band read in place of another one is seen."""

BANDS = (1 << 31) // (SIDE * BAND) + 3


def inputs(setting: Setting) -> Iterator[Tensor]:
    """The same numbers in every band, turned a bit more each time: 2^31 elements, three bands."""
    side, band = (-(-size // setting.step) * setting.step for size in (SIDE, BAND))
    require_memory(setting, BANDS * band * side)
    x = torch.empty((BANDS * band, side), dtype=setting.dtype, device=setting.claims.device)
    integer = torch.int32 if setting.fmt.bits == 32 else torch.int16
    patterns = scattered(setting, (band, side), 220).view(integer)
    for number in range(BANDS):
        rows = slice(number * band, (number + 1) * band)
        x.view(integer)[rows] = patterns.roll(number * TURN % side, 1)
    yield x


def require_memory(setting: Setting, elements: int) -> None:
    """NotHere unless input, answer, a copy of it and some room fit into the memory that is free."""
    need = elements * (setting.fmt.bits // 8 + 3) + (2 << 30)
    free = free_memory(setting.claims.device)
    if free < need:
        raise NotHere(f"needs {need / 2**30:.0f} GiB of free memory, {free / 2**30:.0f} are here")


def free_memory(device: torch.device) -> int:
    """Bytes that are free on the device; for the CPU as far as the system says."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    try:
        return int(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):
        return 0


def judge(judge: Judge, x: Tensor) -> None:
    """Band by band, since a second answer of this size need not fit; padding at the end."""
    claims, shape = judge.claims, tuple(x.shape)
    answer = judge.ask(x)
    scales = logical(answer.scale, shape, claims)
    rows = shape[0] // BANDS
    blocks = rows // claims.block[0]
    for number in range(BANDS):
        piece = x[number * rows : (number + 1) * rows]
        own = scales[number * blocks : (number + 1) * blocks].contiguous()
        actual = Answer(
            answer.payload[number * rows : (number + 1) * rows],
            stored(own, tuple(piece.shape), claims),
        )
        found = first_difference(piece, actual, judge.expected(piece, actual), claims)
        if found is not None:
            raise Wrong(f"from row {number * rows} of {shape[0]} on: {found.message}", found)
        judge.count(piece)
    if not torch.equal(answer.scale, stored(scales, shape, claims)):
        raise Wrong(f"shape {shape}: padding or repeated bytes of the stored scales are wrong")


CHECK = Check("large", inputs, judge=judge, levels=("exhaustive",))
