"""Amax over the wrong elements, or in the wrong format: the scales are right for another amax."""

from collections.abc import Iterator

import torch
from torch import Tensor

from mxref.bits import INFINITY, MAGNITUDE
from mxref.testing.diagnosis.evidence import Evidence, Finding


def findings(evidence: Evidence) -> Iterator[Finding]:
    """Parts of a block, several blocks, signed or rounded amax."""
    if bool(evidence.scale_right.all()) and bool(evidence.payload_right.all()):
        return
    yield from _rounded(evidence)
    yield from _signed(evidence)
    yield from _parts(evidence)
    yield from _several(evidence)


def _rounded(evidence: Evidence) -> Iterator[Finding]:
    finite = torch.where(evidence.amax < INFINITY, evidence.amax, 0)
    values = finite.view(torch.float32)
    tops = {torch.bfloat16: 0x7F7F0000, torch.float16: 0x477FE000}
    for dtype, name in ((torch.bfloat16, "bf16"), (torch.float16, "fp16")):
        if evidence.x.dtype == dtype:
            continue
        patterns = values.to(dtype).to(torch.float32).view(torch.int32).clamp_max(tops[dtype])
        yield _from_amax(evidence, f"amax is rounded to {name} before the rule", 32, patterns)
        x = evidence.sample.to(dtype).to(evidence.x.dtype)
        yield evidence.local(f"the input is converted to {name} first", 29, x)
    if evidence.x.dtype == torch.float32:
        cut = (evidence.sample.contiguous().view(torch.int32) & ~0xFFFF).view(torch.float32)
        yield evidence.local("the input is truncated to bf16 first", 29, cut)
    yield _from_amax(evidence, "amax is truncated to bf16 before the rule", 33, finite & ~0xFFFF)


def _from_amax(evidence: Evidence, cause: str, rank: int, patterns: Tensor) -> Finding:
    """Scales by the rule from these patterns; a block with NaN or Inf keeps its own."""
    special = evidence.amax >= INFINITY
    return evidence.by_scale(
        cause, rank, torch.where(special, evidence.right_bytes, evidence.rule(patterns))
    )


def _patterns(evidence: Evidence) -> Tensor:
    """The fp32 patterns of |x|, (blocks, elements)."""
    return evidence.rows(evidence.x.to(torch.float32).view(torch.int32) & MAGNITUDE)


def _signed(evidence: Evidence) -> Iterator[Finding]:
    patterns = _patterns(evidence)
    negative = torch.signbit(evidence.values)
    positive = patterns.masked_fill(negative, 0).amax(1)
    cause = "amax is taken of signed values: negative elements are not counted"
    yield _from_amax(evidence, cause, 31, positive)
    first = torch.where(evidence.inside, patterns, INFINITY - 1).amin(1)
    yield _from_amax(evidence, "the smallest magnitude is taken, not the largest", 34, first)


def _parts(evidence: Evidence) -> Iterator[Finding]:
    """Only the first or last n of the elements, or of the rows or columns of a square block."""
    patterns = _patterns(evidence)
    rows, columns = evidence.block
    tiles = patterns.reshape(-1, rows, columns)
    axes = [(2, "columns", tiles.amax(1))] if columns > 1 else []
    axes += [(1, "rows", tiles.amax(2))] if rows > 1 else []
    for _, name, line in axes:
        what = "elements" if 1 in evidence.block else name
        for side, ordered in (("first", line), ("last", line.flip(1))):
            running = ordered.cummax(1).values[:, :-1]
            bytes_ = evidence.rule(running)
            for n in range(1, running.shape[1] + 1):
                cause = f"amax is taken of the {side} {n} {what} of a block of 32 only"
                if n > 16:
                    other = "last" if side == "first" else "first"
                    cause += f": the {other} {32 - n} are ignored"
                rank = 35 if n in (8, 16, 24, 31) else 36
                yield _special_kept(evidence, cause, rank, bytes_[:, n - 1], running[:, n - 1])
    if rows == columns:
        for name, line in (("row", tiles.amax(2)[:, 0]), ("column", tiles.amax(1)[:, 0])):
            cause = f"amax is taken of the first {name} of a square block only"
            yield _special_kept(evidence, cause, 34, evidence.rule(line), line)


def _special_kept(
    evidence: Evidence, cause: str, rank: int, scale: Tensor, amax: Tensor
) -> Finding:
    """As `by_scale`; a NaN or Inf that this amax does not see leaves the payload open."""
    found = evidence.by_scale(cause, rank, scale)
    unseen = (evidence.amax >= INFINITY) & (amax < INFINITY)
    return Finding(cause, rank, found.scale, found.payload | unseen, found.padding)


def _several(evidence: Evidence) -> Iterator[Finding]:
    """One amax for 64, 128, ... elements, for a row, a column, or the whole tensor."""
    grid = evidence.all_amax
    if evidence.shape[-1:] == evidence.shape or len(grid.shape) == 1:
        grid = grid.reshape(1, -1)
    size = {"columns": (-1, evidence.block[1]), "rows": (-2, evidence.block[0])}
    for name, (dim, unit) in size.items():
        for count in (2, 4, 8):
            if grid.shape[dim] > count:
                merged = _merged(grid, dim, count)
                if unit > 1:
                    cause = f"amax is taken over {32 * count} {name}, not 32"
                else:
                    cause = f"amax is taken over {count} neighbouring {name}, not one"
                yield _over(evidence, cause, 36, merged)
    for cause, dims in (
        ("one scale for the whole tensor", tuple(range(grid.dim()))),
        ("one scale for each row", (-1,)),
        ("one scale for each column", (-2,)),
        ("one scale for each matrix", (-2, -1)),
    ):
        if grid.amax(dims).numel() < grid.numel():
            merged = grid.amax(dims, keepdim=True).expand(grid.shape)
            yield _over(
                evidence,
                f"{cause} (per-tensor, not per block)" if "tensor" in cause else cause,
                37,
                merged,
            )
    yield evidence.by_scale(
        "every scale is 2^0: byte 127", 37, torch.full_like(evidence.bytes, 127)
    )


def _over(evidence: Evidence, cause: str, rank: int, merged: Tensor) -> Finding:
    return evidence.by_scale(cause, rank, evidence.rule(evidence.sampled(merged.contiguous())))


def _merged(grid: Tensor, dim: int, count: int) -> Tensor:
    """The largest of each run of `count` entries along dim, repeated over the run."""
    moved = grid.movedim(dim, -1)
    size = moved.shape[-1]
    padded = moved.new_zeros((*moved.shape[:-1], -(-size // count) * count))
    padded[..., :size] = moved
    most = padded.reshape(*moved.shape[:-1], -1, count).amax(-1)
    return most.repeat_interleave(count, -1)[..., :size].movedim(-1, dim)
