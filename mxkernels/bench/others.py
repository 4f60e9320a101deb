"""The jobs of the other operations: limits for their own sake, dequantize, swizzle."""

from typing import Any

import torch

import mxref
from mxkernels.bench.casts import both, lacking, named, registered
from mxkernels.bench.casts import jobs as casts
from mxkernels.bench.jobs import Job, Pool, cache_bytes, sets_for, tensors
from mxkernels.bench.limits import TARGETS
from mxkernels.bench.plan import Case, Plan
from mxkernels.bench.site import Site
from mxkernels.quantize.shapes import SWIZZLE, contracted, stored_shape
from mxkernels.spec import KernelSpec


def limits(site: Site, case: Case, plan: Plan) -> list[Job]:
    """Every limit of this shape."""
    return [job for name in ("copy", "stream", "transpose", "dual") if (job := site.limit(name))]


def dequantize(site: Site, case: Case, plan: Plan) -> list[Job]:
    """To bf16, for one block and scale layout."""
    size, layout = case.variant.split()
    rows, columns = map(int, size.split("x"))
    block = rows, columns
    shape = torch.Size(stored_shape(site.shape, block, "row", "plain"))
    generator = torch.Generator(site.device).manual_seed(2)
    byte = torch.randint(
        118, 134, shape, dtype=torch.uint8, device=site.device, generator=generator
    )
    kept = byte.view(torch.float8_e8m0fnu)
    contract = contracted(block, "row")
    laid = mxref.layouts.encode(kept, layout, block=block, shape=site.shape, contract=contract)

    def expected(codes: torch.Tensor) -> torch.Tensor:
        payload = codes.view(torch.float8_e4m3fn)
        return mxref.dequantize(payload, kept, block=block, dtype=torch.bfloat16)

    made = []
    for spec in registered("dequantize", plan):
        if block not in spec.blocks or layout not in spec.scale_layouts:
            continue

        def call(codes: torch.Tensor, spec: KernelSpec = spec) -> Any:
            payload = codes.view(torch.float8_e4m3fn)
            return spec.call(payload, laid, block, "row", layout, torch.bfloat16)

        moved = 3 * site.numel + laid.numel()
        labels = case.labels() | named(spec)
        job = Job(labels, site.pool("codes"), call, expected, moved, "widen", TARGETS["dequantize"])
        job.note = lacking(spec, site)
        made.append(job)
    return made


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


def scale_pool(shape: tuple[int, ...], device: torch.device) -> Pool:
    """Matrices of scale bytes that together exceed the L2."""
    count = sets_for(2 * torch.Size(shape).numel(), cache_bytes(device))
    generator = torch.Generator(device).manual_seed(3)

    def one() -> torch.Tensor:
        return torch.randint(
            1, 255, shape, dtype=torch.uint8, device=device, generator=generator
        ).view(torch.float8_e8m0fnu)

    return Pool([one() for _ in range(count)])


def swizzle(site: Site, case: Case, plan: Plan) -> list[Job]:
    """One scale matrix: whole, in M groups, in K groups."""
    rows, columns = site.shape
    pool = site.own("swizzle", lambda: scale_pool(site.shape, site.device))
    options: dict[str, Any] = {}
    if case.variant != "whole":
        _, axis, groups = case.variant.split()
        ends = group_ends(rows if axis == "M" else columns, int(groups))
        options = {"offs": torch.tensor(ends, dtype=torch.int32, device=site.device), "axis": axis}

    def expected(scale: torch.Tensor) -> torch.Tensor:
        if options:
            return mxref.layouts.encode_groups(scale, options["offs"], axis=options["axis"])
        return mxref.layouts.encode(scale, SWIZZLE)

    written = sum(each.numel() for each in tensors(expected(pool.items[0])))
    made = []
    for spec in registered("swizzle", plan):
        if SWIZZLE not in spec.scale_layouts:
            continue

        for config in spec.configs if plan.configs == "all" else (None,):

            def call(
                scale: torch.Tensor, spec: KernelSpec = spec, config: Any = config
            ) -> torch.Tensor:
                return spec.call(scale, SWIZZLE, config=config, **options)

            labels = case.labels() | named(spec, config)
            job = Job(labels, pool, call, expected, rows * columns + written, "cold")
            job.target = TARGETS["groups"] if options else None
            job.note = lacking(spec, site)
            made.append(job)
    return made


JOBS = {
    "limits": limits,
    "cast": casts,
    "cast3d": casts,
    "both": both,
    "dequantize": dequantize,
    "swizzle": swizzle,
}
"""How a case of each family becomes jobs."""
