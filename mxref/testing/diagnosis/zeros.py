"""Zeros, signs and subnormals: -0 lost, flushed to zero, a bias or a multiplier that is wrong."""

from collections.abc import Iterator

import torch
from torch import Tensor

from mxref.testing.diagnosis.arithmetic import encoded, power, scaled
from mxref.testing.diagnosis.evidence import Evidence, Finding

SMALLEST_NORMAL = 2.0**-126


def findings(evidence: Evidence) -> Iterator[Finding]:
    """Changes of the reference's codes, then casts under other multipliers."""
    yield from _flushed_inputs(evidence)
    if bool(evidence.payload_own.all()):
        return
    yield from _signs(evidence)
    yield from _subnormals(evidence)
    yield from _biases(evidence)
    yield from _multipliers(evidence)


def _flushed_inputs(evidence: Evidence) -> Iterator[Finding]:
    x = evidence.sample
    limit = 2.0**-14 if x.dtype == torch.float16 else SMALLEST_NORMAL
    magnitude = x.abs()
    tiny = magnitude < limit
    if not bool((tiny & (magnitude > 0)).any()):
        return
    for cause, zero in (("", x * 0), (" and lose their sign", torch.zeros(()))):
        flushed = torch.where(tiny, zero.to(x.dtype), x)
        text = f"subnormal inputs are flushed to zero{cause}"
        yield evidence.local(text, 25, flushed)


def _signs(evidence: Evidence) -> Iterator[Finding]:
    codes, values = evidence.own_codes, evidence.values
    minus = codes == 0x80
    changes = (
        ("-0 is lost: an input of -0 becomes +0", minus & (values == 0), 0),
        ("-0 is lost: it becomes +0, underflow included", minus, 0),
        ("-0 is lost where an element underflows", minus & (values != 0), 0),
        ("+0 becomes -0", codes == 0, 0x80),
    )
    for cause, where, code in changes:
        yield evidence.by_payload(cause, 18, codes.masked_fill(where, code))
    numbers = ~values.isnan() & (evidence.bytes != 0xFF)[:, None]
    for cause, changed in (
        ("the sign is lost: every element is positive", codes & 0x7F),
        ("the sign is inverted", codes ^ 0x80),
    ):
        yield evidence.by_payload(cause, 19, torch.where(numbers, changed, codes))
    sign = torch.signbit(values).to(torch.uint8) << 7
    nan = (codes & 0x7F) == evidence.element.nan_code
    for cause, written in (
        ("the sign is kept on NaN: payload 0xFF beside 0x7F", codes | sign),
        ("NaN is written as 0xFF, not 0x7F", torch.full_like(codes, 0xFF)),
    ):
        yield evidence.by_payload(cause, 17, torch.where(nan, written, codes))


def _subnormals(evidence: Evidence) -> Iterator[Finding]:
    codes, element = evidence.own_codes, evidence.element
    low = (codes & 0x7F) < (1 << element.mantissa_bits)
    own = scaled(evidence.values, evidence.bytes)
    below = own.abs() < 2.0**element.emin
    for where, text in ((low, "subnormal codes"), (below, "values below the smallest normal")):
        for kept, sign in ((0x80, "their sign kept"), (0, "their sign lost")):
            cause = f"{text} of the element format are flushed to zero, {sign}"
            yield evidence.by_payload(cause, 26, torch.where(where, codes & kept, codes))
    rounded = encoded(own, element, rounding=torch.floor)
    cause = "subnormal codes of the element format are truncated"
    yield evidence.by_payload(cause, 27, torch.where(below, rounded, codes))


def _biases(evidence: Evidence) -> Iterator[Finding]:
    codes, element = evidence.own_codes, evidence.element
    step = 1 << element.mantissa_bits
    magnitude, sign = (codes & 0x7F).to(torch.int16), codes & 0x80
    for delta, text in ((1, "one too high (the fnuz bias)"), (-1, "one too low")):
        moved = (magnitude + delta * step).clamp(0, element.nan_code)
        cause = f"the exponent bias of the element is wrong: codes {text}"
        yield evidence.by_payload(cause, 28, moved.to(torch.uint8) | sign)
        kept = torch.where(magnitude == 0, magnitude, moved)
        yield evidence.by_payload(cause, 28, kept.to(torch.uint8) | sign)


def _multipliers(evidence: Evidence) -> Iterator[Finding]:
    byte, right = evidence.bytes, evidence.own_codes
    factors = {
        0: ((126, "2^126"), (0, "1"), (128, "2^128"), (None, "0")),
        254: ((None, "0: 2^-127 is flushed"), (-126, "2^-126"), (-128, "2^-128")),
        255: ((-128, "2^-128"), (0, "1"), (None, "0")),
    }
    for stored, choices in factors.items():
        rows = byte == stored
        if not bool(rows.any()):
            continue
        for exponent, text in choices:
            factor = torch.zeros(()) if exponent is None else power(torch.tensor(exponent))
            codes = encoded(evidence.values * factor.to(torch.float64), evidence.element)
            cause = f"the multiplier of scale byte {stored} is wrong: {text}"
            yield evidence.by_payload(cause, 24, torch.where(rows[:, None], codes, right))
    for delta in (1, -1, 2, -2):
        codes = _under(evidence, byte.to(torch.int64) + delta)
        side = "above" if delta > 0 else "below"
        cause = f"the payload is made under a scale {abs(delta)} {side} the one stored"
        yield evidence.by_payload(cause, 30, codes)
    direct = encoded(evidence.values, evidence.element)
    yield evidence.by_payload("the payload is not scaled at all", 30, direct)


def _under(evidence: Evidence, byte: Tensor) -> Tensor:
    moved = scaled(evidence.values, byte.clamp(0, 254))
    codes = encoded(moved, evidence.element)
    return torch.where((evidence.bytes == 0xFF)[:, None], evidence.own_codes, codes)
