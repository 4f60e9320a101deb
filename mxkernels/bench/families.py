"""Families: which jobs there are for a shape, read off the registry and the public functions.

A family gives groups; the jobs of a group are timed in turns, together with their limit.
"""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import torch

import mxkernels
import mxref
from mxkernels.bench import competitors
from mxkernels.bench.jobs import Job, Pool, cache_bytes, sets_for, tensors
from mxkernels.bench.limits import TARGETS, config_text, limit_of, target_of
from mxkernels.bench.site import Site, shape_text, stored
from mxkernels.quantize.shapes import SWIZZLE, contracted, stored_shape
from mxkernels.registry import KERNELS, KernelSpec

Group = list[Job]
GROUPS = (131072, 224, 32)
"""Rows, columns and group count of the grouped swizzle: 32 experts, blocks of K = 7168."""


@dataclass(frozen=True)
class Wanted:
    """What the command line asks for."""

    recipes: tuple[str, ...] = ("floor", "rceil")
    scale_layouts: tuple[str, ...] = ("plain", "plain_t", SWIZZLE)
    variants: tuple[str, ...] = ()
    configs: str = "default"
    competitors: tuple[tuple[int, int], ...] = ((1, 32), (32, 1))

    def takes(self, variant: str) -> bool:
        """Whether a variant's name contains one of the texts asked for; all words of a text."""
        return not self.variants or any(
            all(word in variant.split() for word in text.split()) for text in self.variants
        )


def variant_text(
    block: tuple[int, int], payload_order: str, scale_layout: str, input_order: str
) -> str:
    """A variant in the words of the contract.

    >>> variant_text((32, 1), "col", "plain_t", "n")
    '32x1 col plain_t n'
    """
    return f"{block[0]}x{block[1]} {payload_order} {scale_layout} {input_order}"


def limits(site: Site, wanted: Wanted) -> Iterator[Group]:
    """Every limit of this shape, measured for its own sake."""
    yield [job for name in ("copy", "stream", "transpose", "dual") if (job := site.limit(name))]


def quantize(site: Site, wanted: Wanted) -> Iterator[Group]:
    """All that the registry claims of `quantize`, a group for each block and pair of orders."""
    specs = [spec for spec in KERNELS if spec.op == "quantize" and site.dtype in spec.dtypes]
    blocks = dict.fromkeys(block for spec in specs for block in spec.blocks)
    for block, payload_order, input_order in product(blocks, ("row", "col"), ("n", "t")):
        group = []
        for spec in specs:
            if (
                block in spec.blocks
                and payload_order in spec.payload_orders
                and input_order in spec.input_orders
            ):
                group += _spec_jobs(site, wanted, spec, (block, payload_order, input_order))
        if group:
            yield group + _plain_jobs(site, wanted, block, payload_order, input_order)


def _spec_jobs(
    site: Site, wanted: Wanted, spec: KernelSpec, case: tuple[tuple[int, int], str, str]
) -> Group:
    block, payload_order, input_order = case
    configs = spec.configs if wanted.configs == "all" and spec.configs else (None,)
    lacking = spec.missing(site.device)
    jobs = []
    for layout, recipe, config in product(spec.scale_layouts, spec.recipes, configs):
        variant = variant_text(block, payload_order, layout, input_order)
        if (
            layout not in wanted.scale_layouts
            or recipe not in wanted.recipes
            or not wanted.takes(variant)
        ):
            continue

        def call(x, recipe=recipe, layout=layout, config=config):
            return spec.call(x, recipe, block, payload_order, layout, config)

        job = quantize_job(site, case, layout, recipe, (spec.name, call))
        job.labels |= {"backend": spec.backend, "config": config_text(config)}
        job.note = f"cannot run: {lacking}" if lacking else ""
        jobs.append(job)
    return jobs


def quantize_job(
    site: Site,
    case: tuple[tuple[int, int], str, str],
    scale_layout: str,
    recipe: str,
    kernel: tuple[str, Callable[[torch.Tensor], Any]],
) -> Job:
    """The job of one quantizer; bytes are those of input, payload and stored scales."""
    block, payload_order, input_order = case

    def expected(x: torch.Tensor) -> Any:
        return stored(site.expected(x, recipe, block), block, payload_order, scale_layout)

    scales = torch.Size(stored_shape(site.shape, block, payload_order, scale_layout)).numel()
    labels = site.labels | {
        "family": "quantize",
        "kernel": kernel[0],
        "variant": variant_text(block, payload_order, scale_layout, input_order),
        "recipe": recipe,
    }
    return Job(
        labels,
        site.pool(input_order),
        kernel[1],
        expected,
        site.numel * (site.dtype.itemsize + 1) + scales,
        limit_of(payload_order, input_order),
        target_of(block, payload_order, input_order),
    )


def _plain_jobs(
    site: Site, wanted: Wanted, block: tuple[int, int], payload_order: str, input_order: str
) -> Group:
    layout = {((1, 32), "row"): "plain", ((32, 1), "col"): "plain_t"}.get((block, payload_order))
    variant = variant_text(block, payload_order, str(layout), input_order)
    if (
        layout is None
        or input_order != "n"
        or block not in wanted.competitors
        or not wanted.takes(variant)
        or site.shape[-1 if block == (1, 32) else -2] % 32
    ):
        return []
    jobs = []
    for recipe in competitors.RULES:
        if recipe in wanted.recipes:
            case = f"{recipe}_{block[0]}_{shape_text(site.shape)}_{site.labels['dtype']}"
            call = competitors.plain(recipe, block, case)
            kernel = ("torch.compile", call)
            job = quantize_job(site, (block, payload_order, input_order), layout, recipe, kernel)
            job.target = None
            job.labels["backend"] = "competitor"
            jobs.append(job)
    return jobs


def both(site: Site, wanted: Wanted) -> Iterator[Group]:
    """`mxkernels.quantize_both`, in its default order, for each scale layout it takes."""
    function = getattr(mxkernels, "quantize_both", None)
    if function is None:
        return
    layouts = wanted.scale_layouts
    if "scale_layout" not in inspect.signature(function).parameters:
        layouts = ("plain",)
    yield [
        _both_job(site, function, recipe, layout)
        for recipe, layout in product(wanted.recipes, layouts)
        if wanted.takes(f"both {layout}")
    ]


def _both_job(site: Site, function: Callable[..., Any], recipe: str, layout: str) -> Job:
    options = {} if layout == "plain" else {"scale_layout": layout}

    def expected(x: torch.Tensor) -> Any:
        # By default the second payload is what a GEMM over the other dimension wants.
        order = "col"
        return tuple(
            stored(mxref.quantize(x, recipe, block=block), block, each, layout)
            for block, each in (((1, 32), "row"), ((32, 1), order))
        )

    moved = site.numel * (site.dtype.itemsize + 2)
    for block, order in (((1, 32), "row"), ((32, 1), "col")):
        moved += torch.Size(stored_shape(site.shape, block, order, layout)).numel()
    labels = site.labels | {"family": "both", "kernel": "quantize_both", "recipe": recipe}
    labels["variant"] = f"both {layout}"
    call = partial(lambda x, **more: function(x, recipe, **more), **options)
    return Job(labels, site.pool("n"), call, expected, moved, "dual", TARGETS["both"])


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
    ends = [min(rows, (g + 1) * rows // groups - (23 if g % 2 == 0 else 0)) for g in range(groups)]
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
    rows, columns, groups = GROUPS if site.device.type == "cuda" else (256, 12, 4)
    pool = scale_pool((rows, columns), site.device)
    labels = {"family": "swizzle", "kernel": "swizzle", "shape": [rows, columns], "dtype": "e8m0"}
    encode = mxref.layouts.encode
    jobs = [Job(labels | {"variant": "whole"}, pool, function, lambda s: encode(s, SWIZZLE), 0)]
    for axis, size in (("M", rows), ("K", columns)):
        offs = torch.tensor(group_ends(size, groups), dtype=torch.int32, device=site.device)
        call = partial(lambda s, o, a: function(s, offs=o, axis=a), o=offs, a=axis)
        expected = partial(lambda s, o, a: mxref.layouts.encode_groups(s, o, axis=a), o=offs, a=axis)
        target = TARGETS["groups"] if axis == "M" else None
        names = labels | {"variant": f"groups {axis} {groups}"}
        jobs.append(Job(names, pool, call, expected, 0, target=target))
    for job in jobs:
        written = sum(each.numel() for each in tensors(job.expected(pool.items[0])))
        job.moved, job.limit = rows * columns + written, "cold"
    yield [job for job in jobs if wanted.takes(job.labels["variant"])]


PER_SHAPE = {"limits": limits, "quantize": quantize, "both": both, "dequantize": dequantize}
ONCE = {"swizzle": swizzle}
