"""Right bytes in wrong places: shifted, transposed, reordered, or blocks along the other axis."""

from collections.abc import Iterator

import torch
from torch import Tensor

from mxref.formats import BLOCKS
from mxref.testing.diagnosis.evidence import Evidence, Finding

MOST_SHIFT = 1024
PROBES = 1024
"""Wrong bytes for which every shift is tried."""


def findings(evidence: Evidence) -> Iterator[Finding]:
    """Predictions of whole tensors first, then shifts found by search."""
    yield from _reading(evidence)
    yield from _blocks(evidence)
    yield from _payload_order(evidence)
    yield from _shifts(evidence)


def _reading(evidence: Evidence) -> Iterator[Finding]:
    """x read from memory as if its strides or its offset were others."""
    source = evidence.source
    if source.numel() == 0:
        return
    strides = source.new_empty(source.shape).stride()
    held = source.untyped_storage().nbytes() // source.element_size()
    choices = []
    if source.stride() != strides and source.storage_offset() + source.numel() <= held:
        cause = "strides are ignored: the input is read in storage order"
        choices.append((cause, strides, source.storage_offset()))
        choices.append((f"{cause}, from its start", strides, 0))
    if source.storage_offset():
        choices.append(("the storage offset is ignored", source.stride(), 0))
    for cause, stride, offset in choices:
        x = torch.as_strided(source, source.shape, stride, offset).contiguous()
        yield evidence.whole(cause, 9, *evidence.quantized(x))


def _blocks(evidence: Evidence) -> Iterator[Finding]:
    """Blocks of another geometry, or those of the transposed matrix."""
    x = evidence.x
    if x.dim() < 2:
        return
    for block in BLOCKS:
        if block == evidence.block:
            continue
        other, scale = evidence.quantized(x, block=block)
        swapped = 1 in block and 1 in evidence.block
        claimed = "x".join(map(str, evidence.block))
        text = "the row and column axis are swapped: " if swapped else ""
        cause = f"{text}blocks are {block[0]}x{block[1]}, not {claimed}"
        for order in (scale, scale.mT):
            spread = _fitted(order.reshape(-1), evidence)
            if spread is not None:
                yield evidence.whole(cause, 9, other, spread)
        spread = _spread(scale, block, evidence)
        yield evidence.whole(cause, 9, other, spread)
    flipped = x.mT.reshape(x.shape)
    other, scale = evidence.quantized(flipped)
    cause = "the input is read transposed: rows and columns changed places"
    yield evidence.whole(cause, 9, other, scale)


def _fitted(flat: Tensor, evidence: Evidence) -> Tensor | None:
    wanted = evidence.expected[1]
    return flat.reshape(wanted.shape) if flat.numel() == wanted.numel() else None


def _spread(scale: Tensor, block: tuple[int, int], evidence: Evidence) -> Tensor:
    """For each block claimed, the scale that its first element has in the other geometry."""
    rows, columns = evidence.block
    full = scale.repeat_interleave(block[0], -2)[..., : evidence.shape[-2], :]
    full = full.repeat_interleave(block[1], -1)[..., : evidence.shape[-1]]
    return full[..., ::rows, ::columns].contiguous()


def _payload_order(evidence: Evidence) -> Iterator[Finding]:
    payload, scale = evidence.expected
    if bool(evidence.payload_right.all()):
        return
    if payload.dim() > 1:
        transposed = payload.mT.reshape(payload.shape)
        cause = "the payload is stored transposed (column-major), its strides do not say so"
        yield evidence.whole(cause, 9, transposed, scale)
        cause = "the payload is stored column-major, read as row-major"
        restored = payload.reshape(*payload.shape[:-2], payload.shape[-1], payload.shape[-2]).mT
        yield evidence.whole(cause, 9, restored.contiguous(), scale)
    nibbles = ((payload & 0xF) << 4) | (payload >> 4)
    yield evidence.whole("the nibbles of each payload byte are swapped", 9, nibbles, scale)
    for group in (2, 4, 8, 16, 32):
        if payload.shape[-1] % group == 0:
            reordered = payload.reshape(*payload.shape[:-1], -1, group).flip(-1)
            cause = f"the byte order is reversed within each {group} payload bytes"
            yield evidence.whole(cause, 9, reordered.reshape(payload.shape), scale)
    if payload.shape[-1] % 2 == 0:
        pairs = payload.reshape(*payload.shape[:-1], 2, -1).mT.reshape(payload.shape)
        cause = "the payload's halves of a row are interleaved"
        yield evidence.whole(cause, 9, pairs, scale)


def _shifts(evidence: Evidence) -> Iterator[Finding]:
    """Wrong bytes that are the right ones of another row or column, always n away."""
    payload, scale = evidence.expected
    parts = (
        ("scale", evidence.scale, scale, evidence.scale_right, evidence.payload_right),
        ("payload", evidence.payload, payload, evidence.payload_right, evidence.scale_right),
    )
    for name, actual, right, same, other in parts:
        if bool(same.all()) or not bool(other.all()):
            continue
        wrong = (
            evidence.canonical(actual) != evidence.canonical(right)
            if name == "payload"
            else actual != right
        )
        for dim in range(right.dim()):
            n = _shift(actual, right, wrong, dim)
            if n is None:
                continue
            moved = right.roll(n, dim)
            agrees = (actual == moved) | ~wrong
            start = int(wrong.nonzero()[:, dim].min())
            unit = (
                ("rows", "columns")[dim - right.dim() + 2] if dim >= right.dim() - 2 else "indices"
            )
            where = f" from {unit[:-1]} {start} on" if start > abs(n) else ""
            cause = f"{name} {unit} are shifted by {n}{where}"
            yield _moved(evidence, cause, name, agrees)
        n = _shift(actual.reshape(-1), right.reshape(-1), wrong.reshape(-1), 0)
        if n is not None:
            agrees = (actual.reshape(-1) == right.reshape(-1).roll(n)) | ~wrong.reshape(-1)
            cause = f"{name} bytes are shifted by {n} in memory"
            yield _moved(evidence, cause, name, agrees.reshape(actual.shape))


def _moved(evidence: Evidence, cause: str, name: str, agrees: Tensor) -> Finding:
    if name == "scale":
        found = evidence.sampled(agrees)
    else:
        found = (evidence.rows(agrees) | ~evidence.inside).all(1)
    return Finding(cause, 41, found, found, evidence.padding)


def _shift(actual: Tensor, right: Tensor, wrong: Tensor, dim: int) -> int | None:
    """The n for which most wrong bytes are the right ones n before them along dim."""
    size = right.shape[dim]
    places = wrong.nonzero()
    if size < 2 or len(places) < 4 or len(set(actual[wrong][:PROBES].tolist())) < 3:
        return None
    places = places[:: -(-len(places) // PROBES)]
    n = torch.arange(1, min(size, MOST_SHIFT))
    n = torch.cat([n, -n])
    index = [places[:, i, None].expand(-1, len(n)) for i in range(right.dim())]
    moved = places[:, dim, None] - n
    index[dim] = moved.clamp(0, size - 1)
    hits = (right[tuple(index)] == actual[tuple(places.T)][:, None]) & (moved >= 0) & (moved < size)
    counts = hits.sum(0)
    best = int(counts.argmax())
    return int(n[best]) if int(counts[best]) * 2 > len(places) else None
