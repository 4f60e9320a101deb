"""The jobs of a quantizer: every KernelSpec that claims the variant, and the peers beside it.

What is in the registry is timed with no more code. The jobs of a case take turns.
"""

from collections.abc import Callable
from typing import Any

import torch

from mxkernels.bench.jobs import Job
from mxkernels.bench.limits import TARGETS, config_text, limit_of, target_of
from mxkernels.bench.peers import PEERS
from mxkernels.bench.plan import Case, Plan, parsed
from mxkernels.bench.site import Site, stored
from mxkernels.quantize.shapes import stored_shape
from mxkernels.quantize.variants import Variant
from mxkernels.registry import KERNELS, KernelSpec

BOTH_WAYS = (((1, 32), "row"), ((32, 1), "col"))


def registered(operation: str, plan: Plan) -> list[KernelSpec]:
    """The kernels of an operation, of the back ends asked for where some are."""
    return [
        spec
        for spec in KERNELS
        if spec.op == operation and (not plan.backends or spec.backend in plan.backends)
    ]


def claiming(case: Case, variant: Variant, plan: Plan) -> list[KernelSpec]:
    """The quantizers that claim a variant of this dtype."""
    return [
        spec
        for spec in registered("quantize", plan)
        if variant.block in spec.blocks
        and variant.payload_order in spec.payload_orders
        and variant.scale_layout in spec.scale_layouts
        and variant.input_order in spec.input_orders
        and case.recipe in spec.recipes
        and getattr(torch, case.dtype) in spec.dtypes
    ]


def jobs(site: Site, case: Case, plan: Plan) -> list[Job]:
    """One job for each implementation and, where all are asked for, configuration."""
    variant = parsed(case.variant)
    block, order, layout, input_order = variant
    made = []
    for spec in claiming(case, variant, plan):
        for config in _configs(plan, spec, variant):

            def call(x: torch.Tensor, spec: KernelSpec = spec, config: Any = config) -> Any:
                return spec.call(x, case.recipe, block, order, layout, config)

            job = quantize_job(site, case, variant, call)
            job.labels |= named(spec, config)
            job.target = target_of(block, order, input_order)
            job.note = lacking(spec, site)
            made.append(job)
    for name in plan.peers:
        call = PEERS[name].prepare(case, variant)
        if call is None:
            continue
        job = quantize_job(site, case, variant, call)
        job.labels |= {"kernel": name, "implementation": name, "config": ""}
        job.note = call if isinstance(call, str) else ""
        made.append(job)
    return made


def named(spec: KernelSpec, config: Any = None) -> dict[str, Any]:
    """The columns that name one of our kernels."""
    return {
        "kernel": spec.name,
        "implementation": spec.backend,
        "backend": spec.backend,
        "config": config_text(config),
    }


def lacking(spec: KernelSpec, site: Site) -> str:
    """The note of a kernel that cannot run here; empty if it can."""
    missing = spec.missing(site.device)
    return f"cannot run: {missing}" if missing else ""


def _configs(plan: Plan, spec: KernelSpec, variant: Variant) -> tuple[Any, ...]:
    """Those meant for a variant where all are asked for, else the default."""
    every = spec.configs_for(*variant) if plan.configs == "all" else ()
    return every or (None,)


def quantize_job(
    site: Site, case: Case, variant: Variant, call: Callable[[torch.Tensor], Any] | str
) -> Job:
    """The job of one quantizer; bytes are those of input, payload and stored scales."""
    block, order, layout, input_order = variant

    def expected(x: torch.Tensor) -> Any:
        return stored(site.expected(x, case.recipe, block), block, order, layout)

    scales = torch.Size(stored_shape(site.shape, block, order, layout)).numel()
    return Job(
        case.labels(),
        site.pool(input_order),
        call if callable(call) else expected,
        expected,
        site.numel * (site.dtype.itemsize + 1) + scales,
        "stream" if site.small else limit_of(order, input_order),
    )


def both(site: Site, case: Case, plan: Plan) -> list[Job]:
    """Both directions from one read, (1, 32) row and (32, 1) col, in one scale layout."""
    layout = case.variant.split()[-1]
    specs = [s for s in registered("quantize_both", plan) if layout in s.scale_layouts]
    made = []
    for spec in specs:
        for config in spec.configs if plan.configs == "all" else (None,):

            def call(x: torch.Tensor, spec: KernelSpec = spec, config: Any = config) -> Any:
                return spec.call(x, case.recipe, layout, config)

            job = _both_job(site, case, layout, call)
            job.labels |= named(spec, config)
            job.target = TARGETS["both"]
            job.note = lacking(spec, site)
            made.append(job)
    if "torch_compile" in plan.peers:
        made.append(_both_peer(site, case, layout))
    return made


def _both_peer(site: Site, case: Case, layout: str) -> Job:
    """torch.compile's two quantizers, one after the other."""
    parts = [
        PEERS["torch_compile"].prepare(case, Variant(block, order, layout, "n"))
        for block, order in BOTH_WAYS
    ]
    wrong = next((part for part in parts if isinstance(part, str)), "")
    job = _both_job(site, case, layout, lambda x: tuple(part(x) for part in parts))
    job.labels |= {"kernel": "torch_compile", "implementation": "torch_compile", "config": ""}
    job.note = wrong
    return job


def _both_job(site: Site, case: Case, layout: str, call: Callable[[torch.Tensor], Any]) -> Job:
    def expected(x: torch.Tensor) -> Any:
        return tuple(
            stored(site.expected(x, case.recipe, block), block, order, layout)
            for block, order in BOTH_WAYS
        )

    moved = site.numel * (site.dtype.itemsize + 2)
    for block, order in BOTH_WAYS:
        moved += torch.Size(stored_shape(site.shape, block, order, layout)).numel()
    return Job(case.labels(), site.pool("n"), call, expected, moved, "dual")
