"""Times the cases of a plan, each together with its limit, row by row into the journal."""

import math
import time
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import torch

from mxkernels.arch import installed
from mxkernels.bench import cold, overhead
from mxkernels.bench.jobs import Job, verify
from mxkernels.bench.limits import SMALL_TARGET
from mxkernels.bench.others import JOBS
from mxkernels.bench.plan import WHOLE, Case, Plan, cases
from mxkernels.bench.report import Journal
from mxkernels.bench.resume import place
from mxkernels.bench.site import Site
from mxkernels.bench.timing import interleaved, replays, summary, watch_for

TOGETHER = 12
"""Jobs of one case that are timed in turns; more would hold too many outputs at once."""

Report = Callable[[Case, int, int], None]
"""Called before each case with its place among all."""


def run(
    plan: Plan,
    journal: Journal,
    report: Report = lambda case, done, total: None,
    done: Container[tuple[Any, ...]] = (),
) -> None:
    """Everything in the plan but `done`; past the budget each case left is a row that says so."""
    found = [case for case in cases(plan) if place(case.labels()) not in done]
    site: Site | None = None
    for index, case in enumerate(found):
        report(case, index, len(found))
        if time.monotonic() - journal.started > plan.budget:
            journal.add([_left_out(each, plan) for each in found[index:]])
            break
        with _noting(journal, case):
            if case.family in WHOLE:
                for rows in _whole(plan, case, journal.started + plan.budget):
                    journal.add(rows)
                continue
            if site is None or site.key != case.site:
                site = None
                _release(plan.device)
                site = Site(case.shape, case.dtype, plan.device, case.data)
            _time(plan, journal, site, case)
    journal.finish()


def _left_out(case: Case, plan: Plan) -> dict[str, Any]:
    return case.labels() | {"kernel": "", "note": f"skipped: over {plan.budget:.0f} s"}


@contextmanager
def _noting(journal: Journal, case: Case) -> Iterator[None]:
    """One case's failure is a row and must not cost the others."""
    try:
        yield
    except Exception as error:
        note = f"error: {type(error).__name__}: {' '.join(str(error).split())[:300]}"
        journal.add([case.labels() | {"kernel": "", "note": note}])


def _release(device: str) -> None:
    if device == "cuda":
        torch.cuda.empty_cache()


def _whole(plan: Plan, case: Case, end: float) -> Iterator[list[dict[str, Any]]]:
    """The rows of a family that takes no shape."""
    if case.family == "host":
        yield overhead.rows(plan.device)
    elif case.family == "cold":
        yield cold.rows(plan.device)
    elif not installed("mxkernels.bench.linear"):
        yield [case.labels() | {"kernel": "", "note": "not built: linear"}]
    else:
        yield from _linear(plan, case, end)


def _linear(plan: Plan, case: Case, end: float) -> Iterator[list[dict[str, Any]]]:
    """The groups of `mxkernels.bench.linear`: all where it is the only family, else a few."""
    linear = import_module("mxkernels.bench.linear")
    arguments = ["--device", plan.device]
    if len(plan.families) > 1:
        arguments += ["--quick", "--no-compile"]
    for name, make in linear.groups(linear.parser().parse_args(arguments)):
        if time.monotonic() > end:
            yield [_left_out(case, plan) | {"variant": name}]
            return
        yield make()


def _time(plan: Plan, journal: Journal, site: Site, case: Case) -> None:
    """Verify, time, and journal one case and the candidates of limits it was the first to ask."""
    jobs = JOBS[case.family](site, case, plan)
    if not jobs:
        journal.add([case.labels() | {"kernel": "", "note": f"not built: {case.variant}"}])
        return
    verify(jobs)
    limit = _limit(site, jobs[0])
    sound = [job for job in jobs if not job.failed]
    for first in range(0, len(sound), TOGETHER):
        together = sound[first : first + TOGETHER]
        if limit is not None and limit not in together:
            together = [limit, *together]
        interleaved(together, plan.rounds, watch_for(site.device))
        if plan.graphs and site.small and site.device.type == "cuda":
            _graphs(together, plan.graph_rounds)
    if case.family == "both":
        site.limit("copy")
    candidates = [job for job in site.candidates if job not in jobs]
    site.candidates = []
    if plan.graphs and site.small and site.device.type == "cuda":
        _graphs([job for job in candidates if not job.failed and job is not limit], 5)
    found = [row for job in candidates for row in rows_of(job, None, remark="candidate")]
    found += [row for job in jobs for row in rows_of(job, limit, site.small)]
    if case.family == "both":
        _against_copy(found, site.limit("copy"))
    journal.add(found)


def _limit(site: Site, job: Job) -> Job | None:
    if job.limit is None:
        return None
    return site.limit(job.limit, job.pool if job.limit == "cold" else None)


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
    base["elements"] = math.prod(base.get("shape", ()))
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
    elif job.labels["family"] in ("cast", "cast3d"):
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
