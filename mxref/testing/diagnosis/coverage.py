"""Blocks not reached: a tail, a last row, all beyond 2^31 elements, memory never written."""

from collections.abc import Iterator
from math import prod

import torch
from torch import Tensor

from mxref.bits import MAGNITUDE
from mxref.testing.diagnosis.evidence import Evidence, Finding

INT32 = 1 << 31


def findings(evidence: Evidence) -> Iterator[Finding]:
    """Where the wrong blocks lie, and whether that alone tells the story."""
    if not bool(evidence.wrong.any()):
        return
    yield from _overflow(evidence)
    yield from _tail(evidence)
    yield from _unwritten(evidence)
    yield from _region(evidence)


def _coordinates(evidence: Evidence) -> tuple[Tensor, ...]:
    """The logical index of each sampled block."""
    return torch.unravel_index(evidence.taken, evidence.grid)


def _first_elements(evidence: Evidence) -> Tensor:
    """The flat index in x of the first element of each sampled block."""
    sizes = (1,) * (len(evidence.grid) - 2) + evidence.block if len(evidence.grid) > 1 else (32,)
    flat = torch.zeros_like(evidence.taken)
    for index, size, whole in zip(_coordinates(evidence), sizes, evidence.shape, strict=True):
        flat = flat * whole + index * size
    return flat + evidence.first_element


def _overflow(evidence: Evidence) -> Iterator[Finding]:
    rows = (evidence.block[0] - 1) * evidence.shape[-1] + evidence.block[1] - 1
    start = _first_elements(evidence)
    for limit, name in ((INT32, "2^31"), (2 * INT32, "2^32")):
        beyond = start + rows >= limit
        if _mostly_wrong(evidence, beyond):
            agrees = beyond | (evidence.scale_right & evidence.payload_right)
            cause = f"int32 overflow of an offset: the differences start at {name} elements"
            yield evidence.by_blocks(cause, 8, agrees)


def _mostly_wrong(evidence: Evidence, region: Tensor) -> bool:
    """Whether nine of ten blocks of the region differ, and some block does."""
    wrong = int((evidence.wrong & region).sum())
    return wrong > 0 and wrong * 10 >= int(region.sum()) * 9


def _tail(evidence: Evidence) -> Iterator[Finding]:
    """Partial blocks at the end, or the last blocks of a row or column."""
    partial = ~evidence.inside.all(1)
    right = evidence.scale_right & evidence.payload_right
    names = ("row", "column") if len(evidence.grid) > 1 else ("row",)
    if bool((evidence.wrong & partial).any()):
        text = "the tail block is ignored: only partial blocks at the end differ"
        empty = partial & (evidence.bytes == 0)
        yield evidence.by_blocks(
            f"{text}, their scale byte is 0", 12, torch.where(partial, empty, right)
        )
        yield evidence.by_blocks(text, 20, right | partial)
        yield from _reading_on(evidence, partial)
    coordinates = _coordinates(evidence)
    for name, dim in zip(names, (-1, -2), strict=False):
        last = coordinates[dim] == evidence.grid[dim] - 1
        if evidence.grid[dim] < 4 or not _mostly_wrong(evidence, last):
            continue
        cause = f"the last block of each {name} is ignored"
        zero = (evidence.codes == 0).all(1)
        written = torch.where(last, zero, right)
        yield evidence.by_blocks(f"{cause}: its payload is zero", 14, written)
        yield evidence.by_blocks(f"{cause} or wrong: all differences lie there", 60, right | last)


def _reading_on(evidence: Evidence, partial: Tensor) -> Iterator[Finding]:
    """Row blocks whose amax counts the elements that follow in memory."""
    if evidence.block[0] != 1:
        return
    flat = evidence.x.reshape(-1).to(torch.float32).view(torch.int32) & MAGNITUDE
    flat = torch.cat([flat, flat.new_zeros(evidence.block[1])])
    start = _first_elements(evidence) - evidence.first_element
    ends = start[:, None] + torch.arange(evidence.block[1])
    scale = evidence.rule(flat[ends].amax(1))
    cause = "the tail block reads beyond the row: its amax counts elements behind it"
    yield evidence.by_scale(cause, 13, torch.where(partial, scale, evidence.right_bytes))


def _unwritten(evidence: Evidence) -> Iterator[Finding]:
    """Wrong bytes that all are one constant, whatever they should be: an output not written."""
    right = evidence.scale_right & evidence.payload_right
    differ = (evidence.codes != evidence.right_codes) & evidence.inside
    codes, scales = evidence.codes[differ], evidence.bytes[~evidence.scale_right]
    rights = evidence.right_codes[differ], evidence.right_bytes[~evidence.scale_right]
    for name, found, wanted in zip(("payload", "scale"), (codes, scales), rights, strict=True):
        values = set(found[:4096].tolist())
        if len(values) != 1 or len(found) < 8 or len(set(wanted[:4096].tolist())) == 1:
            continue
        value = values.pop()
        rows = (evidence.codes == value).all(1) if name == "payload" else evidence.bytes == value
        other = evidence.scale_right if name == "payload" else evidence.payload_right
        if name == "payload" and len(scales):
            other = evidence.bytes == scales[0]
        cause = f"memory is never written (stale): wrong {name} bytes are all 0x{value:02X}"
        yield evidence.by_blocks(cause, 65, right | (rows & other))


def _region(evidence: Evidence) -> Iterator[Finding]:
    """All blocks from some row or column on differ, all before it are right."""
    right = evidence.scale_right & evidence.payload_right
    coordinates = _coordinates(evidence)
    names = ("row", "column") if len(evidence.grid) > 1 else ("column",)
    for name, dim, size in zip(
        names, (-2, -1)[-len(names) :], evidence.block[-len(names) :], strict=True
    ):
        first = int(coordinates[dim][evidence.wrong].min())
        inner = coordinates[dim] >= first
        if first and _mostly_wrong(evidence, inner):
            cause = f"every block from {name} {first * size} of x on is wrong, none before it"
            yield evidence.by_blocks(cause, 75, right | inner)
    if prod(evidence.grid[:-2]) > 1:
        for dim in range(len(evidence.grid) - 2):
            first = int(coordinates[dim][evidence.wrong].min())
            if first:
                cause = f"only index {first} and up of dimension {dim} differ"
                yield evidence.by_blocks(cause, 76, right | (coordinates[dim] >= first))
