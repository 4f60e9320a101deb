"""Another scale rule over the right amax: an offset, a threshold, a clamp, a log2, a flush."""

from collections.abc import Iterator

import torch
from torch import Tensor

from mxref.bits import INFINITY
from mxref.casting import max_pattern
from mxref.formats import FP32
from mxref.testing.diagnosis.arithmetic import floor_log2, to_float64
from mxref.testing.diagnosis.evidence import Evidence, Finding

EPSILONS = (1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-10, 1e-12, 1e-30, 2.0**-126)
MAXIMA = (240, 256, 464, 480, 512, 6, 57344, 65504)
ULPS = 64
"""A library's log2 in fp32 errs within about 40 ulp of a power of two."""


def findings(evidence: Evidence) -> Iterator[Finding]:
    """Scales that the answer's amax explains by another rule."""
    if bool(evidence.scale_right.all()):
        return
    yield from _offsets(evidence)
    yield from _thresholds(evidence)
    yield from _small(evidence)
    yield from _codes(evidence)


def _finite(evidence: Evidence) -> Tensor:
    return evidence.amax < INFINITY


def _changed(evidence: Evidence, cause: str, rank: int, scale: Tensor) -> Finding:
    """These scales, but where the block holds NaN or Inf."""
    kept = torch.where(_finite(evidence), scale.to(torch.uint8), evidence.right_bytes)
    return evidence.by_scale(cause, rank, kept)


def _offsets(evidence: Evidence) -> Iterator[Finding]:
    right = evidence.right_bytes.to(torch.int16)
    for n in (1, -1, 2, -2, 3, -3, 7, -7, 8, -8, 127, -127):
        inside = (right + n >= 0) & (right + n <= 254)
        if int(inside.sum()) * 2 <= inside.numel():
            continue  # clamped, this says nothing of the offset
        moved = (right + n).clamp(0, 254)
        cause = f"the scale is off by {n:+d} everywhere"
        yield _changed(evidence, cause, 12, moved)
        some = torch.where(right == 0, right, moved)
        yield _changed(evidence, f"{cause}, byte 0 left out", 13, some)


def _thresholds(evidence: Evidence) -> Iterator[Finding]:
    amax = evidence.amax
    for n, cause in (
        (1, "an amax exactly at a threshold counts as above it (>= where > is meant)"),
        (-1, "an amax one ulp above a threshold counts as at it"),
    ):
        normal = amax >= 1 << 23
        moved = torch.where(normal, (amax + n).clamp(0, INFINITY - 1), amax)
        yield _changed(evidence, cause, 28, evidence.rule(moved))
    if evidence.recipe.round == "rceil":
        cause = "the ratio is not rounded to fp32: exact at amax 0x04600001"
        yield _changed(evidence, cause, 16, _exact_ratio(evidence))
    if evidence.recipe.round == "ceil":
        cause = "ceil counts up after the clamp at byte 0, not before"
        for scale in _counted_late(evidence):
            yield _changed(evidence, cause, 16, scale)
    for scale, text, rank in _other_logarithms(evidence):
        yield _changed(evidence, text, rank, scale)
    near = torch.zeros_like(evidence.wrong)
    for n in (ULPS, -ULPS):
        near |= evidence.bytes == evidence.rule((amax + n).clamp(0, INFINITY - 1))
    agrees = (near | evidence.scale_right) & (evidence.payload_own | evidence.payload_right)
    cause = f"scales are wrong only within {ULPS} ulp of a threshold: an inexact log2 or division"
    yield evidence.by_blocks(cause, 50, agrees)


def _exact_ratio(evidence: Evidence) -> Tensor:
    """amax / maximum rounded up, with no rounding between: significands compared as integers."""
    maximum = max_pattern(evidence.element) - (FP32.bias << 23)
    return ((evidence.amax - maximum + 0x7FFFFF) >> 23).clamp_min(0)


def _other_logarithms(evidence: Evidence) -> Iterator[tuple[Tensor, str, int]]:
    """log2 rounded to nearest, and ratios to another maximum rounded up, in float64."""
    amax = torch.where(_finite(evidence), evidence.amax, 0)
    values = to_float64(amax.view(torch.float32)).clamp_min(2.0**-160)
    nearest = torch.round(torch.log2(values)) - evidence.element.emax + 127
    yield nearest.clamp(0, 254), "log2 is rounded to nearest, not down or up", 29
    for maximum in MAXIMA:
        ratio = values / maximum
        exponent = floor_log2(ratio)
        up = (ratio.view(torch.int64) & ((1 << 52) - 1)) != 0
        byte = (exponent + up.to(torch.int64) + 127).clamp(0, 254)
        yield byte, f"the ratio is taken to a maximum of {maximum:g} and rounded up", 46


def _counted_late(evidence: Evidence) -> Iterator[Tensor]:
    """max(exponent - emax, 0) + 1 for amax that is no power of two, or that has mantissa bits."""
    amax = evidence.amax
    mantissa = amax & 0x7FFFFF
    least = ((amax >> 23) - evidence.element.emax).clamp_min(0)
    subnormal_power = (amax < 1 << 23) & ((mantissa & (mantissa - 1)) == 0)
    for up in ((mantissa != 0) & ~subnormal_power, mantissa != 0):
        yield least + up.to(torch.int32)


def _small(evidence: Evidence) -> Iterator[Finding]:
    amax = torch.where(_finite(evidence), evidence.amax, 0)
    right = evidence.right_bytes.to(torch.int32)
    field = amax >> 23
    # the smallest amax whose ratio to the element's maximum is a normal number
    ratio = (amax > 0) & (amax < max_pattern(evidence.element) - (126 << 23))
    for cause, where, byte in (
        ("subnormal amax is flushed to zero", (amax > 0) & (field == 0), 0),
        ("a subnormal ratio is flushed to zero: scale byte 0", ratio, 0),
        ("a tiny amax gives scale byte 1, not 0", (amax > 0) & (right == 0), 1),
        ("scale byte 0 is never used: the smallest is 1", right == 0, 1),
        ("a block of zeros gets scale byte 127", amax == 0, 127),
        ("a block of zeros gets scale byte 1", amax == 0, 1),
        ("a block of zeros gets scale byte 255", amax == 0, 255),
    ):
        yield _changed(evidence, cause, 33, right.masked_fill(where, byte))
    for epsilon in EPSILONS:
        least = int(torch.tensor(epsilon, dtype=torch.float32).view(torch.int32))
        cause = f"amax is raised to at least {epsilon:g}"
        yield _changed(evidence, cause, 34, evidence.rule(amax.clamp_min(least)))


def _codes(evidence: Evidence) -> Iterator[Finding]:
    right = evidence.right_bytes.to(torch.int32)
    yield _changed(evidence, "the scale is stored as its reciprocal: 254 - byte", 30, 254 - right)
    signed = (right - 127) & 0xFF
    yield _changed(evidence, "the exponent is stored without the bias 127", 30, signed)
    yield _changed(evidence, "large scales are clamped at byte 246", 34, right.clamp_max(246))
    for low, high in ((127 - 8, 127 + 7), (127 - 14, 127 + 15), (127 - 20, 127 + 20)):
        cause = f"scales are clamped to {low}..{high}"
        yield _changed(evidence, cause, 39, right.clamp(low, high))
