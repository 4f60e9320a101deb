"""The quantizers: jobs read off the registry, torch.compile's beside them, and both directions.

What a KernelSpec claims is timed with no more code. The jobs of a group take turns.
"""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import torch

import mxkernels
from mxkernels.bench import competitors
from mxkernels.bench.jobs import Job
from mxkernels.bench.limits import TARGETS, config_text, limit_of, target_of
from mxkernels.bench.site import Site, shape_text, stored
from mxkernels.quantize.shapes import SWIZZLE, stored_shape
from mxkernels.registry import KERNELS, KernelSpec

Group = list[Job]


@dataclass(frozen=True)
class Wanted:
    """What the command line asks for."""

    recipes: tuple[str, ...] = ("floor", "rceil")
    scale_layouts: tuple[str, ...] = ("plain", "plain_t", SWIZZLE)
    variants: tuple[str, ...] = ()
    configs: str = "default"
    competitors: tuple[tuple[int, int], ...] = ((1, 32), (32, 1))
    backends: tuple[str, ...] = ()

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


def _specs(operation: str, wanted: Wanted) -> list[KernelSpec]:
    """The registered kernels of an operation, of the back ends asked for where some are."""
    return [
        spec
        for spec in KERNELS
        if spec.op == operation and spec.backend in (wanted.backends or (spec.backend,))
    ]


def quantize(site: Site, wanted: Wanted) -> Iterator[Group]:
    """All that the registry claims of `quantize`, a group for each block and pair of orders."""
    specs = [spec for spec in _specs("quantize", wanted) if site.dtype in spec.dtypes]
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
    lacking = spec.missing(site.device)
    jobs = []
    cases = [
        (recipe, layout, config)
        for recipe, layout in product(spec.recipes, spec.scale_layouts)
        for config in _configs(wanted, spec, block, payload_order, layout, input_order)
    ]
    for recipe, layout, config in cases:
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


def _configs(wanted: Wanted, spec: KernelSpec, *variant: Any) -> tuple[Any, ...]:
    """Those meant for a variant where all are asked for, else the default."""
    every = spec.configs_for(*variant) if wanted.configs == "all" else ()
    return every or (None,)


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
        "stream" if site.small else limit_of(payload_order, input_order),
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
        or site.small
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
    # How the second payload lies by default is the function's own choice; small shapes show it.
    probe = function(torch.ones(32, 64, dtype=site.dtype, device=site.device), wanted.recipes[0])
    order = "col" if probe[1].payload.stride(0) == 1 else "row"
    specs = _specs("quantize_both", wanted)
    kernels = [
        (spec, config)
        for spec in specs
        for config in (spec.configs if wanted.configs == "all" else (None,))
    ]
    yield [
        _both_job(site, function, recipe, (order, layout), kernel)
        for recipe, layout, kernel in product(wanted.recipes, layouts, kernels or [None])
        if wanted.takes(f"both {order} {layout}")
    ]


def _both_job(
    site: Site,
    function: Callable[..., Any],
    recipe: str,
    second: tuple[str, str],
    kernel: tuple[KernelSpec, Any] | None,
) -> Job:
    """The job of one spec and configuration; of the public function where no spec is listed."""
    order, layout = second
    options = {} if layout == "plain" else {"scale_layout": layout}
    names, note = {"kernel": "quantize_both"}, ""
    if kernel is not None:
        spec, config = kernel
        function, options = spec.call, {"scale_layout": layout, "config": config}
        names = {"kernel": spec.name, "backend": spec.backend, "config": config_text(config)}
        lacking = spec.missing(site.device)
        note = f"cannot run: {lacking}" if lacking else ""
    directions = (((1, 32), "row"), ((32, 1), order))

    def call(x: torch.Tensor) -> Any:
        return function(x, recipe, **options)

    def expected(x: torch.Tensor) -> Any:
        return tuple(
            stored(site.expected(x, recipe, block), block, lies, layout)
            for block, lies in directions
        )

    moved = site.numel * (site.dtype.itemsize + 2)
    for block, lies in directions:
        moved += torch.Size(stored_shape(site.shape, block, lies, layout)).numel()
    labels = site.labels | {"family": "both", "variant": f"both {order} {layout}"}
    labels |= names | {"recipe": recipe}
    return Job(labels, site.pool("n"), call, expected, moved, "dual", TARGETS["both"], note)
