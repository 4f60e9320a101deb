"""The reference's answer under a target's claims, and under the scales that the target gave."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from mxref.blocks import quantize
from mxref.formats import SCALE_NAN
from mxref.layouts import encode
from mxref.recipes import Recipe
from mxref.testing.answer import Answer
from mxref.testing.claims import Claims
from mxref.testing.diff import logical, payload_differs


def reference(x: Tensor, claims: Claims) -> Answer:
    """The reference's bytes for x, in the layout claimed."""
    payload, scale = quantize(x, _under(claims), block=claims.block)
    kept = stored(scale.view(torch.uint8), tuple(x.shape), claims)
    return Answer(payload.view(torch.uint8), kept)


def payload_under(x: Tensor, scale: Tensor, claims: Claims) -> Tensor:
    """The reference's payload bytes for x under logical scales (uint8)."""
    payload = quantize(x, _under(claims), block=claims.block, scale=scale).payload
    return payload.view(torch.uint8)


def tolerated(x: Tensor, actual: Answer, expected: Answer, claims: Claims) -> tuple[Answer, int]:
    """What may stand for `expected` without exact scales, and how many scales are off.

    A finite scale may be one step off; then the payload has to be right under it. NaN scales,
    padding and bytes that repeat one scale are as strict as ever.
    """
    shape = tuple(x.shape)
    found, wanted = (logical(each.scale, shape, claims).int() for each in (actual, expected))
    finite = (found != SCALE_NAN) & (wanted != SCALE_NAN)
    near = finite & ((found - wanted).abs() <= 1)
    scale = torch.where(near, found, wanted).to(torch.uint8)
    payload = payload_under(x, scale, claims)
    off = int((near & (found != wanted)).sum())
    return Answer(payload, stored(scale, shape, claims)), off


@dataclass(frozen=True)
class Verdicts:
    """The two verdicts on a wrong answer, in words: from the input, and under its own scales."""

    from_input: str
    own_scales: str


def verdicts(x: Tensor, actual: Answer, claims: Claims) -> Verdicts:
    """Both, so that a wrong scale does not hide wrong elements, nor the reverse."""
    shape = tuple(x.shape)
    expected = reference(x, claims)
    scale = logical(actual.scale, shape, claims)
    scales = int((scale != logical(expected.scale, shape, claims)).sum())
    elements = int(payload_differs(actual.payload, expected.payload, claims).sum())
    total = f"of {x.numel()} payload bytes differ"
    first = f"{scales} of {scale.numel()} scale bytes and {elements} {total}"
    if not scales and not elements:
        first = "conforms"
    own = payload_differs(actual.payload, payload_under(x, scale, claims), claims)
    wrong = int(own.sum())
    return Verdicts(first, f"{wrong} {total}" if wrong else "conforms")


def _under(claims: Claims) -> Recipe:
    """The recipe that gives the bytes claimed: as it is, or with inputs flushed."""
    if not claims.flushes_subnormals or claims.recipe.flush != "none":
        return claims.recipe
    return replace(claims.recipe, flush="inputs")


def stored(scale: Tensor, shape: tuple[int, ...], claims: Claims) -> Tensor:
    """Logical scale bytes as the layout claimed stores them, flat."""
    out = encode(
        scale, claims.scale_layout, block=claims.block, shape=shape, contract=claims.contract
    )
    return out.reshape(-1)
