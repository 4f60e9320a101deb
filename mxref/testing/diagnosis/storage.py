"""Where the scale bytes lie: another layout, a wrong swizzle, padding that is not zero."""

from collections.abc import Iterator
from itertools import permutations

import torch
from torch import Tensor

from mxref import layouts
from mxref.layouts import LAYOUTS
from mxref.layouts.matrix import require_contract, to_matrix
from mxref.layouts.swizzle_32_4_4 import COLUMNS, NAME, ROWS, padded, swizzle
from mxref.testing.diagnosis.evidence import Evidence, Finding

TILE = ("quarter of 128 rows", "row of a quarter", "column")


def findings(evidence: Evidence) -> Iterator[Finding]:
    """The reference's scales, stored otherwise than claimed."""
    if bool(evidence.scale_right.all()) and evidence.padding:
        return
    for cause, rank, stored in _stored(evidence):
        yield _placed(evidence, cause, rank, stored)
    if not evidence.padding and bool(evidence.scale_right.all()):
        yield _padding(evidence)


def _placed(evidence: Evidence, cause: str, rank: int, stored: Tensor) -> Finding:
    """These bytes, cut or filled with zeros to the size claimed; the payload is right."""
    wanted = evidence.stored.numel()
    flat = stored.reshape(-1)[:wanted]
    whole = torch.cat([flat, flat.new_zeros(wanted - flat.numel())])
    agrees = evidence.sampled(evidence.decoded(whole)) == evidence.bytes
    right = evidence.payload_right
    return Finding(cause, rank, agrees, right, evidence.same_padding(whole))


def _stored(evidence: Evidence) -> Iterator[tuple[str, int, Tensor]]:
    scale = evidence.expected[1]
    yield from _transposed(evidence, scale)
    if evidence.layout == NAME:
        yield from _swizzles(evidence, scale)
        return
    for contract in (-1, -2):
        fixed = {(1, 32): -1, (32, 1): -2}.get(evidence.block, contract)
        if fixed == contract:
            stored = layouts.encode(
                scale, NAME, block=evidence.block, shape=evidence.shape, contract=contract
            )
            yield f"the scales are swizzled, {evidence.layout!r} is claimed", 11, stored


def _transposed(evidence: Evidence, scale: Tensor) -> Iterator[tuple[str, int, Tensor]]:
    if scale.dim() > 1:
        yield "the scales are transposed", 11, evidence.encoded(scale.mT.reshape(scale.shape))
    for layout in LAYOUTS:
        if layout != NAME and layout != evidence.layout:
            plain = evidence.encoded(scale, layout)
            how = "not swizzled" if evidence.layout == NAME else "transposed"
            yield f"the scales are stored {how}: as layout {layout!r}", 10, plain


def _swizzles(evidence: Evidence, scale: Tensor) -> Iterator[tuple[str, int, Tensor]]:
    contract = require_contract(evidence.contract, evidence.block, evidence.layout)
    matrix = to_matrix(scale, evidence.block, contract, evidence.shape)
    yield "the scales are not swizzled: a row-major matrix, not padded", 10, matrix
    rows, columns = padded(matrix.shape[-2], matrix.shape[-1])
    lead = matrix.shape[:-2]
    whole = matrix.new_zeros((*lead, rows, columns))
    whole[..., : matrix.shape[-2], : matrix.shape[-1]] = matrix
    yield "the scales are not swizzled: padded and left row-major", 10, whole
    yield (
        "the scales are swizzled transposed (rows and columns changed places)",
        11,
        swizzle(matrix.mT),
    )
    if lead:
        flattened = swizzle(matrix.reshape(-1, matrix.shape[-1]))
        cause = "leading dimensions are flattened into rows before the swizzle"
        yield cause, 11, flattened
    tiles = whole.reshape(-1, rows // ROWS, 4, 32, columns // COLUMNS, COLUMNS)
    for outer, name in (((1, 4), ""), ((4, 1), "tiles by columns, ")):
        for inner in permutations((2, 3, 5)):
            order = " x ".join(TILE[(2, 3, 5).index(i)] for i in inner)
            if (outer, inner) != ((1, 4), (3, 2, 5)):
                cause = f"the scales are swizzled wrongly: {name}{order}"
                yield cause, 12, tiles.permute(0, *outer, *inner)
    if evidence.block[0] == evidence.block[1]:
        spread = scale.repeat_interleave(32, -2 if contract == -1 else -1)
        full = spread if contract == -1 else spread.mT
        more = -full.shape[-2] % ROWS
        last = full[..., -1:, :].expand(*lead, more, full.shape[-1])
        cause = "padding is not zero: a square tile's byte is repeated beyond the matrix"
        yield cause, 11, swizzle(torch.cat([full, last], -2))
        yield cause, 11, swizzle(full)
        other = layouts.encode(
            scale, NAME, block=evidence.block, shape=evidence.shape, contract=-3 - contract
        )
        yield "the scales are swizzled for the other direction (contract)", 10, other


def _padding(evidence: Evidence) -> Finding:
    """Only bytes outside of the logical scales differ."""
    right = evidence.encoded(evidence.expected[1])
    wrong = evidence.stored[(evidence.stored != right) & evidence.padding_places]
    codes = sorted(set(wrong.tolist()))
    shown = ", ".join(f"0x{code:02X}" for code in codes[:4]) + (", ..." if len(codes) > 4 else "")
    everywhere = torch.ones_like(evidence.scale_right)
    cause = f"padding is not zero: {len(wrong)} bytes outside of the scales hold {shown}"
    if len(codes) > 1:
        cause += " (stale, uninitialised memory?)"
    return Finding(cause, 13, everywhere, evidence.payload_right, True)
