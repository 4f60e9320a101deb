"""Another element rule: how a scaled value becomes a code, under the answer's own scales."""

from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor

from mxref.formats import ElementFormat
from mxref.testing.diagnosis.arithmetic import encoded, floor_log2, narrowed, power, scaled
from mxref.testing.diagnosis.evidence import Evidence, Finding


def _without_carry(units: Tensor) -> Tensor:
    """A significand that rounds up to the next power of two falls back to its own."""
    rounded = torch.round(units)
    full = power(floor_log2(units.clamp_min(1)))
    return torch.where(rounded == 2 * full, full, rounded)


ROUNDINGS: tuple[tuple[str, Callable[[Tensor], Tensor]], ...] = (
    ("elements are truncated (rounded toward zero), not rounded to nearest", torch.floor),
    ("ties are rounded half away from zero, not to even", lambda u: torch.floor(u + 0.5)),
    ("elements are rounded away from zero", torch.ceil),
    ("the carry of rounding is lost: it does not reach the exponent", _without_carry),
    ("ties are rounded toward zero, not to even", lambda u: torch.ceil(u - 0.5)),
)

FORMATS = (("bf16", 7, -126), ("fp16", 10, -14), ("tf32", 10, -126))


def findings(evidence: Evidence) -> Iterator[Finding]:
    """Roundings, double rounding, and what happens above the maximum."""
    if bool(evidence.payload_own.all()):
        return
    own = scaled(evidence.values, evidence.bytes)
    cast = partial(encoded, own, evidence.element)
    for cause, rounding in ROUNDINGS:
        yield evidence.by_payload(cause, 20, cast(rounding=rounding))
    for name, mantissa, lowest in FORMATS:
        cause = f"elements are rounded twice, through {name}"
        narrow = partial(narrowed, mantissa_bits=mantissa, lowest=lowest)
        yield evidence.by_payload(cause, 22, cast(narrow=narrow))
        cause = f"elements are rounded twice, truncated to {name} first"
        yield evidence.by_payload(cause, 23, cast(narrow=partial(_cut, bits=mantissa)))
    for cause, overflow in OVERFLOWS:
        yield evidence.by_payload(cause, 21, cast(overflow=overflow))
    for cause, limit in (("240, the maximum of e4m3fnuz", 240.0), ("464", 464.0)):
        narrow = partial(torch.clamp_max, max=limit)
        yield evidence.by_payload(f"values are clamped at {cause}", 24, cast(narrow=narrow))
    low, high = cast(rounding=torch.floor), cast(rounding=torch.ceil)
    either = (evidence.codes == low) | (evidence.codes == high) | ~evidence.inside
    yield Finding(
        "elements are rounded up or down by no fixed rule (stochastic rounding?)",
        70,
        evidence.scale_right,
        either.all(1),
        evidence.padding,
    )


def _cut(magnitude: Tensor, bits: int) -> Tensor:
    """The leading bits of float64 magnitudes, the others dropped."""
    mask = -(1 << (52 - bits))
    return (magnitude.view(torch.int64) & mask).view(torch.float64)


def _to_nan(codes: Tensor, element: ElementFormat) -> Tensor:
    """What rounds past the maximum is NaN, or Inf where the format has one."""
    top = element.nan_code if element.inf_code is None else element.inf_code
    return torch.where(codes > element.max_code, top, codes)


def _always_nan(codes: Tensor, element: ElementFormat) -> Tensor:
    return torch.where(codes > element.max_code, element.nan_code, codes)


def _wrapped(codes: Tensor, element: ElementFormat) -> Tensor:
    return codes & 0x7F


def _next(codes: Tensor, element: ElementFormat) -> Tensor:
    """The code after the maximum, whatever it means."""
    return codes.clamp_max(element.max_code + 1)


def _zero(codes: Tensor, element: ElementFormat) -> Tensor:
    return torch.where(codes > element.max_code, 0, codes)


OVERFLOWS: tuple[tuple[str, Callable[[Tensor, ElementFormat], Tensor]], ...] = (
    ("saturation is missing: overflow becomes NaN or Inf", _to_nan),
    ("saturation is missing: overflow becomes NaN", _always_nan),
    ("saturation is missing: the code wraps around", _wrapped),
    ("saturation is missing: one code past the maximum", _next),
    ("saturation is missing: overflow becomes zero", _zero),
)
