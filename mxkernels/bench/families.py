"""Families: which jobs there are for a shape, read off the registry and the public functions.

A family gives groups; the jobs of a group are timed in turns, together with their limit. The
quantizers are a file of their own; the limits, dequantize and swizzle are here.
"""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any

import torch

import mxkernels
import mxref
from mxkernels.bench.jobs import Job, Pool, cache_bytes, sets_for, tensors
from mxkernels.bench.limits import TARGETS
from mxkernels.bench.quantizers import Group, Wanted, both, quantize
from mxkernels.bench.site import Site
from mxkernels.quantize.shapes import SWIZZLE, contracted, stored_shape
from mxkernels.registry import KERNELS

SCALES = (131072, 224)
"""The scale matrix of the grouped swizzle: blocks of K = 7168."""

GROUPS = 32
"""Experts."""


def limits(site: Site, wanted: Wanted) -> Iterator[Group]:
    """Every limit of this shape, measured for its own sake."""
    yield [job for name in ("copy", "stream", "transpose", "dual") if (job := site.limit(name))]


def dequantize(site: Site, wanted: Wanted) -> Iterator[Group]:
    """`mxkernels.dequantize` to bf16, for the blocks and scale layouts that specs claim."""
    function = getattr(mxkernels, "dequantize", None)
    if function is None:
        return
    specs = [spec for spec in KERNELS if spec.op == "dequantize" and spec.backend == "triton"]
    claims = [(b, s) for spec in specs for b, s in product(spec.blocks, spec.scale_layouts)]
    jobs = []
    for block, layout in dict.fromkeys(claims or [((1, 32), "plain")]):
        variant = f"{block[0]}x{block[1]} {layout}"
        if layout in wanted.scale_layouts and wanted.takes(variant):
            jobs.append(_dequantize_job(site, function, block, layout, variant))
    yield jobs


def _dequantize_job(
    site: Site, function: Callable[..., Any], block: tuple[int, int], layout: str, variant: str
) -> Job:
    pool = site.pool("codes")
    generator = torch.Generator(site.device).manual_seed(2)
    shape = torch.Size(stored_shape(site.shape, block, "row", "plain"))
    scale = torch.randint(
        118, 134, shape, dtype=torch.uint8, device=site.device, generator=generator
    )
    kept = scale.view(torch.float8_e8m0fnu)
    contract = contracted(block, "row")
    laid = mxref.layouts.encode(kept, layout, block=block, shape=site.shape, contract=contract)
    options = {"block": block, "dtype": torch.bfloat16}
    if layout != "plain":
        options |= {"scale_layout": layout}
    if layout == SWIZZLE and block == (32, 32):
        options |= {"contract": contract}

    def call(codes: torch.Tensor) -> Any:
        return function(codes.view(torch.float8_e4m3fn), laid, **options)

    def expected(codes: torch.Tensor) -> torch.Tensor:
        payload = codes.view(torch.float8_e4m3fn)
        return mxref.dequantize(payload, kept, block=block, dtype=torch.bfloat16)

    labels = site.labels | {"family": "dequantize", "kernel": "dequantize", "variant": variant}
    moved = 3 * site.numel + laid.numel()
    return Job(labels, pool, call, expected, moved, "widen", TARGETS["dequantize"])


def group_ends(rows: int, groups: int) -> list[int]:
    """Uneven ends of groups that cover all rows, one of them empty.

    >>> group_ends(1024, 4)
    [233, 233, 745, 1024]
    """
    uneven = min(23, rows // groups // 2)
    ends = [(g + 1) * rows // groups - (uneven if g % 2 == 0 else 0) for g in range(groups)]
    if groups > 2:
        ends[1] = ends[0]
    ends[-1] = rows
    return ends


def scale_pool(shape: tuple[int, int], device: torch.device) -> Pool:
    """Matrices of scale bytes that together exceed the L2."""
    count = sets_for(2 * shape[0] * shape[1], cache_bytes(device))
    generator = torch.Generator(device).manual_seed(3)

    def one() -> torch.Tensor:
        return torch.randint(
            1, 255, shape, dtype=torch.uint8, device=device, generator=generator
        ).view(torch.float8_e8m0fnu)

    return Pool([one() for _ in range(count)])


def swizzle(site: Site, wanted: Wanted) -> Iterator[Group]:
    """`mxkernels.swizzle` of one scale matrix: whole, in M groups, in K groups."""
    function = getattr(mxkernels, "swizzle", None)
    if function is None:
        return
    rows, columns = site.shape
    pool = scale_pool((rows, columns), site.device)
    labels = site.labels | {"family": "swizzle", "kernel": "swizzle"}
    encode = mxref.layouts.encode
    jobs = [Job(labels | {"variant": "whole"}, pool, function, lambda s: encode(s, SWIZZLE), 0)]
    for axis, size in (("M", rows), ("K", columns)):
        offs = torch.tensor(group_ends(size, GROUPS), dtype=torch.int32, device=site.device)
        call = partial(lambda s, o, a: function(s, offs=o, axis=a), o=offs, a=axis)
        expected = partial(
            lambda s, o, a: mxref.layouts.encode_groups(s, o, axis=a), o=offs, a=axis
        )
        target = TARGETS["groups"] if axis == "M" else None
        names = labels | {"variant": f"groups {axis} {GROUPS}"}
        jobs.append(Job(names, pool, call, expected, 0, target=target))
    for job in jobs:
        written = sum(each.numel() for each in tensors(job.expected(pool.items[0])))
        job.moved, job.limit = rows * columns + written, "cold"
    yield [job for job in jobs if wanted.takes(job.labels["variant"])]


PER_SHAPE = {"limits": limits, "quantize": quantize, "both": both, "dequantize": dequantize}
ONCE = {"swizzle": swizzle}
