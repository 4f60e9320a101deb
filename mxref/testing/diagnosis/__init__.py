"""Why bytes are wrong: hypotheses, each tested against the reference on every differing block.

A family is a file with `findings`, its name in `FAMILIES`. The hypothesis that predicts every byte
wins, the more specific one where several do; two at once where one explains all scales and another
all payloads.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from mxref.layouts import LAYOUTS, stored_shape
from mxref.recipes import Recipe, resolve
from mxref.testing.diagnosis import (
    amax,
    coverage,
    dialects,
    nonfinite,
    positions,
    rounding,
    scale_rules,
    storage,
    zeros,
)
from mxref.testing.diagnosis.evidence import Evidence, Finding
from mxref.testing.diagnosis.window import window
from mxref.tiles import require_block

FAMILIES = (
    dialects, nonfinite, rounding, zeros, amax, scale_rules, storage, positions, coverage,
)  # fmt: skip
"""The families of hypotheses."""

NEAR = 0.5
"""The least share of the wrong blocks that is worth naming."""


@dataclass(frozen=True)
class Diagnosis:
    """One probable cause: `share` of the `blocks` that differ are as it predicts."""

    cause: str
    share: float
    blocks: int

    def __str__(self) -> str:
        return self.cause


def diagnose(
    actual_payload: Tensor,
    actual_scale: Tensor,
    source: Tensor,
    *,
    recipe: str | Recipe,
    block: tuple[int, int] = (1, 32),
    scale_layout: str = "plain",
    contract: int | None = None,
    first_element: int = 0,
    given: str | None = None,
) -> list[Diagnosis]:
    """The probable causes of wrong bytes, the best first; an empty list where none differs.

    Args:
        actual_payload: float8 or uint8, source's shape.
        actual_scale: float8_e8m0fnu or uint8, stored in `scale_layout`.
        source: what was quantized: bfloat16, float16 or float32.
        recipe: what the bytes should be, with `block`, `scale_layout` and `contract` as in
            `mxref.testing.verify`.
        first_element: the flat index of source[0, ...] in the tensor it was cut from, for offsets
            that overflow.
        given: "scale" to judge the payload under the answer's own scales.

    Of a tensor of more than 2^24 elements the rows around the first wrong block are looked at.
    Two NaN codes count as the same unless nothing else differs.

    Raises:
        TypeError, ValueError: an unknown recipe, block or layout.

    >>> import mxref
    >>> x = torch.arange(64 * 64.0).reshape(64, 64)
    >>> payload, scale = mxref.quantize(x, "floor")
    >>> diagnose(payload, scale, x, recipe="rceil")[0].cause
    "the bytes are those of recipe 'floor', not 'rceil'"
    """
    if scale_layout not in LAYOUTS:
        expected = ", ".join(map(repr, LAYOUTS))
        raise ValueError(f"scale_layout={scale_layout!r}: expected one of {expected}")
    if given not in (None, "scale"):
        raise ValueError(f"given={given!r}: expected None or 'scale'")
    evidence = Evidence(
        source=source.detach().cpu(),
        recipe=resolve(recipe),
        block=require_block(block),
        layout=scale_layout,
        contract=contract,
        payload=actual_payload.detach().cpu().contiguous().view(torch.uint8),
        stored=actual_scale.detach().cpu().contiguous().view(torch.uint8).reshape(-1),
        first_element=first_element,
        given=given is not None,
    )
    misfit = _misfit(evidence, tuple(actual_payload.shape))
    if misfit is not None:
        return [Diagnosis(misfit, 1.0, 0)]
    return explained(window(evidence))


def _misfit(evidence: Evidence, shape: tuple[int, ...]) -> str | None:
    """Outputs whose sizes already say that they are no answer to this source."""
    if shape != evidence.shape:
        swapped = len(shape) > 1 and shape == (*shape[:-2], *evidence.shape[:-3:-1])
        note = ": the payload is transposed" if swapped else ""
        return f"payload has shape {shape}, expected {evidence.shape}{note}"
    size = _stored_size(evidence, evidence.layout)
    found = evidence.stored.numel()
    if found == size:
        return None
    fitting = [name for name in LAYOUTS if _stored_size(evidence, name) == found]
    note = f", as many as layout {fitting[0]!r} has" if fitting else ""
    return f"scale has {found} bytes, expected {size} in layout {evidence.layout!r}{note}"


def _stored_size(evidence: Evidence, layout: str) -> int:
    contract = evidence.contract
    if contract is None and LAYOUTS[layout].needs_contract:
        contract = -2 if evidence.block == (32, 1) else -1
    shape = stored_shape(evidence.shape, layout, block=evidence.block, contract=contract)
    return torch.Size(shape).numel()


def explained(evidence: Evidence) -> list[Diagnosis]:
    """The causes for evidence whose shapes fit."""
    if not evidence.x.numel():
        return []
    wrong = int(evidence.all_wrong.sum())
    if not wrong and evidence.padding:
        return []
    found = [finding for family in FAMILIES for finding in family.findings(evidence)]
    complete = sorted(
        (finding for finding in found if _complete(finding)), key=lambda finding: finding.rank
    )
    if complete:
        causes = list(dict.fromkeys(finding.cause for finding in complete))
        speaks = next((finding.recipe for finding in complete if finding.recipe), "")
        if speaks and not complete[0].recipe:
            causes[0] += f" (so does recipe {speaks})"
        return [Diagnosis(cause, 1.0, wrong) for cause in causes]
    pair = _pair(found)
    if pair is not None:
        return [Diagnosis(pair, 1.0, wrong)]
    return list(_nearest(evidence, found, wrong))


def _complete(finding: Finding) -> bool:
    return finding.padding and bool((finding.scale & finding.payload).all())


def _pair(found: list[Finding]) -> str | None:
    """Two faults: one explains every scale, the other every payload."""
    by_rank = sorted(found, key=lambda finding: finding.rank)
    scales = [each for each in by_rank if bool(each.scale.all()) and each.padding]
    payloads = [each for each in by_rank if bool(each.payload.all())]
    if not scales or not payloads or scales[0].rank >= 50 or payloads[0].rank >= 50:
        return None
    return f"two causes: {scales[0].cause}; and {payloads[0].cause}"


def _nearest(evidence: Evidence, found: list[Finding], wrong: int) -> Iterator[Diagnosis]:
    """What explains most, with its share, and which half of the answer is at fault."""
    verdict = _verdict(evidence)
    shares = [(_share(evidence, finding), -finding.rank, finding.cause) for finding in found]
    share, _, cause = max(shares, default=(0.0, 0, ""))
    if share >= NEAR:
        text = (
            f"no single cause found; nearest: {cause} explains {_percent(share)} of {wrong} blocks"
        )
        yield Diagnosis(text, share, wrong)
        yield Diagnosis(verdict, 0.0, wrong)
    else:
        yield Diagnosis(f"no single cause found; {verdict}", 0.0, wrong)


def _percent(share: float) -> str:
    """A whole number of percent; never 100 where something is left."""
    return f"{min(int(share * 100), 99)} %"


def _share(evidence: Evidence, finding: Finding) -> float:
    """The share of the wrong blocks that are explained, less the right ones that are denied."""
    agrees, wrong = finding.scale & finding.payload, evidence.wrong
    explained_, denied = int((agrees & wrong).sum()), int((~agrees & ~wrong).sum())
    return max(explained_ - denied, 0) / max(int(wrong.sum()), 1)


def _verdict(evidence: Evidence) -> str:
    if bool(evidence.payload_own.all()) and not bool(evidence.scale_right.all()):
        delta = evidence.bytes.to(torch.int16) - evidence.right_bytes.to(torch.int16)
        low, high = int(delta.min()), int(delta.max())
        return (
            "the payload is right under its own scales, so only the scale rule is wrong "
            f"(bytes off by {low:+d} to {high:+d})"
        )
    if bool(evidence.scale_right.all()):
        off = (evidence.codes.to(torch.int16) - evidence.right_codes.to(torch.int16)).abs()
        differ = off[off > 0]
        near = int((differ == 1).sum())
        return (
            "the scales are right, the payload is wrong "
            f"({differ.numel()} elements, {near} of them by one code)"
        )
    return "scales and payload are wrong, the payload under its own scales too"


__all__ = ["FAMILIES", "Diagnosis", "diagnose"]
