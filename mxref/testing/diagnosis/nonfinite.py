"""NaN and Inf: dropped from amax, taken as finite, poisoning too little, or a code of its own."""

from collections.abc import Iterator
from itertools import product

import torch
from torch import Tensor

from mxref.bits import INFINITY
from mxref.formats import SCALE_NAN
from mxref.testing.diagnosis.evidence import Evidence, Finding

LARGEST = 0x7F7FFFFF


def findings(evidence: Evidence) -> Iterator[Finding]:
    """What happens to blocks with a NaN, to blocks with an Inf, and both at once."""
    values = evidence.values
    nan, inf = values.isnan().any(1), values.isinf().any(1)
    special = nan | inf
    if evidence.strict or not bool((evidence.wrong & special).any()):
        return
    right = evidence.scale_right & evidence.payload_right
    of_nan: list[tuple[str, Tensor | None]] = [("", None), *_of_nan(evidence)]
    of_inf: list[tuple[str, Tensor | None]] = [("", None), *_of_inf(evidence)]
    for (first, nan_ok), (second, inf_ok) in product(of_nan, of_inf):
        if nan_ok is None and inf_ok is None:
            continue
        agrees = right
        if inf_ok is not None:
            agrees = torch.where(inf & ~nan, inf_ok, agrees)
        if nan_ok is not None:
            # a block with both may follow either policy
            agrees = torch.where(nan, nan_ok | inf, agrees)
        cause = "; ".join(part for part in (first, second) if part)
        yield evidence.by_blocks(cause, 47 if first and second else 14, agrees)


def _finite_amax(evidence: Evidence, inf: int | None) -> Tensor:
    """The patterns of amax without NaN; Inf counts as `inf`, or is left out too."""
    values = evidence.values
    patterns = values.abs().masked_fill(~values.isfinite(), 0).to(torch.float32).view(torch.int32)
    if inf is not None:
        patterns = patterns.masked_fill(values.isinf(), inf)
    return patterns.amax(1)


def _others_right(evidence: Evidence) -> Tensor:
    """Blocks whose finite elements are right under the answer's own scale."""
    loose = ~evidence.values.isfinite()
    return ((evidence.codes == evidence.own_codes) | loose).all(1)


def _others_no_nan(evidence: Evidence) -> Tensor:
    """Blocks in which no finite element became NaN, and every NaN is one."""
    finite = evidence.values.isfinite() & evidence.inside
    nan = (evidence.codes & 0x7F) == evidence.element.nan_code
    kept = nan | ~evidence.values.isnan()
    return kept.all(1) & ~(nan & finite).any(1)


def _of_nan(evidence: Evidence) -> Iterator[tuple[str, Tensor]]:
    byte, others = evidence.bytes, _others_right(evidence)
    nan, alone = evidence.values.isnan().any(1), evidence.values.isnan().all(1)
    if not bool((evidence.wrong & nan & ~alone).any()):
        alone = torch.zeros_like(alone)  # such a block says little where it is the only evidence
    dropped = others & (byte == evidence.rule(_finite_amax(evidence, INFINITY)))
    yield (
        "NaN is dropped from amax: its block gets the scale of the other elements",
        dropped | alone,
    )
    poisoned = (byte == SCALE_NAN) & _others_no_nan(evidence)
    yield "NaN poisons its element only: scale 255 beside payloads that are no NaN", poisoned
    nan &= evidence.wrong
    if not bool(nan.any()):
        return
    constant = byte[nan][0]
    if int(constant) != SCALE_NAN:
        cause = f"a NaN gives its block the scale byte {int(constant)}, not 255"
        yield cause, byte == constant
    first = evidence.codes[nan][0, 0]
    same = ((evidence.codes == first) | ~evidence.inside).all(1)
    if int(first) & 0x7F != evidence.element.nan_code:
        cause = f"a block with a NaN has the payload 0x{int(first):02X}, not NaN"
        yield cause, same & (byte == SCALE_NAN)


def _of_inf(evidence: Evidence) -> Iterator[tuple[str, Tensor]]:
    byte, others = evidence.bytes, _others_right(evidence)
    largest = evidence.rule(_finite_amax(evidence, LARGEST))
    yield "Inf is treated as finite: as the largest finite number", others & (byte == largest)
    exponent = 255 - evidence.element.emax
    for constant, text in ((254, "scale 254"), (exponent, f"scale {exponent}, from its exponent")):
        yield f"Inf is treated as finite: {text}", others & (byte == constant)
    yield "Inf is dropped from amax", others & (byte == evidence.rule(_finite_amax(evidence, None)))
    poisoned = (byte == SCALE_NAN) & _others_no_nan(evidence)
    yield "Inf poisons its element only: scale 255 beside payloads that are no NaN", poisoned
    finite = evidence.values.isinf().any(1) & (byte != SCALE_NAN)
    yield "Inf is treated as finite", finite & _others_no_nan(evidence)
