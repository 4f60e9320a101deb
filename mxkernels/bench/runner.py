"""Times the groups of every family on every shape, each group together with its limit."""

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import torch

from mxkernels.bench import families, overhead
from mxkernels.bench.families import SCALES
from mxkernels.bench.jobs import Job, verify
from mxkernels.bench.limits import SMALL_TARGET
from mxkernels.bench.quantizers import Group, Wanted
from mxkernels.bench.report import Journal
from mxkernels.bench.site import Site, shape_text
from mxkernels.bench.timing import interleaved, replays, summary, watch_for

FAMILIES = ("host", *families.PER_SHAPE, *families.ONCE)
TOGETHER = 12
"""Jobs of one group that are timed in turns; more would hold too many outputs at once."""


@dataclass(frozen=True)
class Plan:
    """One run: what, where, how long."""

    families: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...] = ("bfloat16",)
    rounds: int = 100
    graph_rounds: int = 30
    data: str = "randn"
    budget: float = 240.0
    device: str = "cuda"
    graphs: bool = True
    wanted: Wanted = field(default_factory=Wanted)

    def text(self) -> dict[str, Any]:
        """The plan as JSON holds it."""
        return asdict(self)


def run(plan: Plan, journal: Journal) -> None:
    """Everything in the plan, row by row into the journal."""
    if "host" in plan.families:
        journal.add(overhead.rows(plan.device))
    for shape in plan.shapes:
        for dtype in plan.dtypes:
            site = Site(shape, getattr(torch, dtype), plan.device, plan.data)
            _visit(plan, journal, site, families.PER_SHAPE)
            del site
            _release(plan.device)
    if any(name in plan.families for name in families.ONCE):
        site = Site(SCALES, torch.uint8, plan.device, plan.data)
        site.labels["dtype"] = "e8m0"
        _visit(plan, journal, site, families.ONCE)
    journal.finish()


def _release(device: str) -> None:
    if device == "cuda":
        torch.cuda.empty_cache()


Family = Callable[[Site, Wanted], Iterator[Group]]


def _visit(plan: Plan, journal: Journal, site: Site, known: dict[str, Family]) -> None:
    for name, family in known.items():
        if name not in plan.families:
            continue
        label = site.labels | {"family": name, "kernel": "", "variant": ""}
        try:
            groups = 0
            for group in family(site, plan.wanted):
                groups += 1
                for first in range(0, len(group), TOGETHER):
                    if time.monotonic() - journal.started > plan.budget:
                        journal.add([label | {"note": f"skipped: over {plan.budget:.0f} s"}])
                        return
                    _time(plan, journal, site, group[first : first + TOGETHER])
            if not groups:
                journal.add([label | {"note": f"not built: {name}"}])
        except Exception as error:  # one family's failure must not cost the others
            journal.add([label | {"note": f"error: {type(error).__name__}: {str(error)[:300]}"}])


def _time(plan: Plan, journal: Journal, site: Site, group: Group) -> None:
    """Verify, time, and journal one group and the candidates of limits it was the first to ask."""
    started = time.monotonic()
    verify(group)
    limit = _limit(site, group)
    sound = [job for job in group if not job.failed]
    together = sound if limit is None or limit in sound else [limit, *sound]
    if sound:
        interleaved(together, plan.rounds, watch_for(site.device))
        if plan.graphs and site.small and site.device.type == "cuda":
            _graphs(together, plan.graph_rounds)
    site.settle()
    candidates = [job for job in site.candidates if job not in group]
    site.candidates = []
    found = [row for job in candidates for row in rows_of(job, None, remark="candidate")]
    found += [row for job in group for row in rows_of(job, limit, site.small)]
    _against_competitor(found)
    if group[0].labels["family"] == "both":
        _against_copy(found, site.limit("copy"))
        site.candidates = []
    journal.add(found)
    words = f"{shape_text(site.shape)} {group[0].labels['family']} {group[0].labels['variant']}"
    sys.stderr.write(
        f"[{time.monotonic() - journal.started:6.1f} s] {words}: {len(sound)} of {len(group)} "
        f"timed in {time.monotonic() - started:.1f} s\n"
    )


def _limit(site: Site, group: Group) -> Job | None:
    name = group[0].limit
    if name is None:
        return None
    return site.limit(name, group[0].pool if name == "cold" else None)


def _graphs(jobs: list[Job], rounds: int) -> None:
    for job in jobs:
        try:
            replays([job], rounds)
        except Exception as error:  # its other row stands
            job.samples.pop("graph", None)
            job.labels["graph_error"] = f"{type(error).__name__}: {str(error)[:200]}"


def rows_of(
    job: Job, limit: Job | None, small: bool = False, remark: str = ""
) -> list[dict[str, Any]]:
    """The rows of a timed job, one a method; a job that failed has one row with its note."""
    base = {"recipe": "", "config": ""} | job.labels
    base |= {"bytes": job.moved, "verified": job.verified, "remark": remark}
    if job.note or not job.samples:
        return [base | {"note": job.note}]
    rows = []
    for method, samples in job.samples.items():
        row = base | {"method": method, "note": ""} | summary(samples)
        row["gbps"] = round(job.moved / row["median_us"] / 1e3, 1)
        if limit is not None and method in limit.samples and limit is not job:
            row |= _share(job, limit, method, row, small)
        rows.append(row)
    return rows


def _share(job: Job, limit: Job, method: str, row: dict[str, Any], small: bool) -> dict[str, Any]:
    least = summary(limit.samples[method])["median_us"]
    bandwidth = limit.moved / least / 1e3
    share = job.moved / row["median_us"] / 1e3 / bandwidth
    found: dict[str, Any] = {
        "limit": limit.labels["kernel"],
        "limit_config": limit.labels["config"],
        "limit_us": least,
        "limit_gbps": round(bandwidth, 1),
        "share": round(share, 4),
        "times_limit": round(row["median_us"] / least, 4),
    }
    if job.target is None:
        return found
    if not small:
        found |= {"target": job.target, "reached": share >= job.target}
    elif job.labels["family"] == "quantize":
        found |= {
            "target": SMALL_TARGET,
            "target_text": f"<= {SMALL_TARGET} x time",
            "reached": found["times_limit"] <= SMALL_TARGET,
        }
    return found


def _against_copy(rows: list[dict[str, Any]], copy: Job | None) -> None:
    """Add `share_of_copy`: what reads and writes the most is also held against a plain copy."""
    if copy is None:
        return
    rate = copy.moved / summary(copy.samples["events"])["median_us"] / 1e3
    for row in rows:
        if row["family"] == "both" and "gbps" in row:
            row["share_of_copy"] = round(row["gbps"] / rate, 4)
            row["remark"] = f"{row['share_of_copy']:.3f} of the copy rate"


def _against_competitor(rows: list[dict[str, Any]]) -> None:
    """Add `times_competitor` where torch.compile's own row has the same variant and recipe."""
    keys = ("variant", "recipe", "method")
    theirs = {
        tuple(row.get(key) for key in keys): row["median_us"]
        for row in rows
        if row.get("backend") == "competitor" and "median_us" in row
    }
    for row in rows:
        other = theirs.get(tuple(row.get(key) for key in keys))
        if other and "median_us" in row and row.get("backend") != "competitor":
            row["times_competitor"] = round(row["median_us"] / other, 4)
            row["remark"] = f"{row['times_competitor']:.3f} x torch.compile's time"
