"""The rows of the family `linear`: layers at M = K = N, a large matmul, a few tokens."""

import functools
from typing import Any

import torch

from mxkernels.bench import linear_jobs as made
from mxkernels.bench.jobs import Job
from mxkernels.bench.site import Site
from mxkernels.bench.timing import LEAST_SAMPLES, interleaved, summary, watch_for
from mxkernels.linear import CastConfig
from mxkernels.matmul import table
from mxkernels.matmul.configs import DECODES

PEAKS = (("B200", 2250.0, 4500.0), ("H200", 989.0, None), ("H100", 989.0, None))
"""By a part of the device's name: dense TFLOP/s of bf16 and of MX fp8, from the datasheets."""

LEAST_OF_BF16 = 0.90
LEAST_DECODE = 1.5
MOST_CAST = 1.10


def peak(device: torch.device, mx: bool) -> float | None:
    """FLOP/s by the datasheet, None for a device that PEAKS does not list."""
    if device.type != "cuda":
        return None
    name = torch.cuda.get_device_name(device)
    for part, bf16, scaled in PEAKS:
        if part in name:
            return 1e12 * (scaled if mx and scaled else bf16)
    return None


def tensor_cores(device: torch.device) -> str:
    """What multiplies MX operands here, in words."""
    if table.find("scaled_mm").missing(device) is None:
        return "MX tensor cores"
    return "no MX tensor core here: emulated by dequantize and bf16 matmul"


def median(job: Job) -> float | None:
    """Microseconds, None where it was not timed."""
    return summary(job.samples["events"])["median_us"] if job.samples else None


def spread(job: Job) -> float | None:
    """(p80 - p20) / median, None of fewer than three samples."""
    if not job.samples or len(job.samples["events"]) < LEAST_SAMPLES:
        return None
    found = summary(job.samples["events"])
    return round((found["p80_us"] - found["p20_us"]) / max(found["median_us"], 1e-9), 4)


def ratio(first: float | None, second: float | None, digits: int = 4) -> float | None:
    """first / second where both are there."""
    return None if first is None or not second else round(first / second, digits)


def memory_time(cast: Job, limit: Job | None) -> float | None:
    """Microseconds the bytes of `cast` take at the bandwidth of the limit; None without one."""
    least = None if limit is None else median(limit)
    return None if least is None or limit is None else least * cast.moved / limit.moved


@functools.cache
def compiled_layers(config: CastConfig) -> dict[str, made.Layer]:
    """The layers under torch.compile, each compiled once for all sizes."""
    return {
        name: torch.compile(layer, dynamic=True, fullgraph=True)
        for name, layer in made.layers(config).items()
    }


def layer_rows(
    size: int, device: torch.device, rounds: int, config: CastConfig, *, compiled: bool = True
) -> list[dict[str, Any]]:
    """A row for each MX layer at M = K = N = `size`: roofline, measured, speed-up over bf16."""
    pool = made.inputs(size, device)
    functions = {(name, False): layer for name, layer in made.layers(config).items()}
    if compiled:
        functions |= {(name, True): layer for name, layer in compiled_layers(config).items()}
    jobs = {key: made.job({"name": key}, pool, made.step(f)) for key, f in functions.items()}
    jobs["gemm", False] = made.job({}, pool, made.three_products)
    cast = made.job({}, pool, made.three_casts(config), made.cast_bytes(size))
    for key in (("mx linear", False), ("mx linear", True)):
        if key in jobs:
            made.guarded(jobs[key], lambda key=key: _judge(jobs[key], config.recipe))
    timed = [job for job in jobs.values() if not job.note]
    interleaved(timed, rounds, watch_for(device))
    # Without products in turns with them, which slow the clock down for what comes next.
    limit = Site((size, size), torch.bfloat16, str(device), "randn").limit("dual")
    interleaved([job for job in (cast, limit) if job], rounds, watch_for(device))
    return [
        _layer_row(size, device, config, jobs, key, (cast, limit))
        for key in jobs
        if key[0].startswith("mx")
    ]


def _judge(job: Job, recipe: str) -> None:
    item = job.pool.items[0]
    made.judge_layer(item, job.call(item), recipe)


def _layer_row(
    size: int,
    device: torch.device,
    config: CastConfig,
    jobs: dict[tuple[str, bool], Job],
    key: tuple[str, bool],
    casts: tuple[Job, Job | None],
) -> dict[str, Any]:
    name, compiled = key
    mx, bf16 = jobs[key], jobs["bf16" + name.removeprefix("mx"), compiled]
    chosen = table.resolve(config.matmul, device, size, size, size)
    flops = peak(device, chosen == "scaled_mm")
    cast, floor = median(casts[0]), memory_time(*casts)
    over = ratio(cast, floor)
    return {
        "family": "linear",
        "size": size,
        "layer": name.removeprefix("mx "),
        "compiled": compiled,
        "matmul": chosen,
        "roofline_gemm_us": None if flops is None else round(6e6 * size**3 / flops, 1),
        "roofline_cast_us": None if floor is None else round(floor, 1),
        "measured_gemm_us": median(jobs["gemm", False]),
        "measured_cast_us": cast,
        "cast_times_limit": over,
        "end_to_end_us": median(mx),
        "bf16_us": median(bf16),
        "speed_up": ratio(median(bf16), median(mx)),
        "spread": spread(mx),
        "target": MOST_CAST,
        "reached": None if over is None else over <= MOST_CAST,
        "verified": jobs["mx linear", compiled].verified,
        "remark": tensor_cores(device),
        "note": mx.note or jobs["mx linear", compiled].note,
    }


def matmul_rows(size: int, device: torch.device, rounds: int) -> list[dict[str, Any]]:
    """What `auto` takes at (size, size) x (size, size), dequantizing included, over bf16 matmul."""
    pool = made.matmul_pool(size, size, size, device)
    chosen = table.resolve("auto", device, size, size, size)
    bf16 = made.matmul_job(pool, "bf16", -1, {})
    auto = made.matmul_job(pool, chosen, -1, {})
    interleaved([job for job in (bf16, auto) if not job.note], rounds, watch_for(device))
    share = ratio(median(bf16), median(auto))
    row = {
        "family": "matmul",
        "size": size,
        "backend": f"auto: {chosen}",
        "us": median(auto),
        "bf16_us": median(bf16),
        "ratio": share,
        "target": LEAST_OF_BF16,
        "reached": None if share is None else share >= LEAST_OF_BF16,
        "spread": spread(auto),
        "verified": auto.verified,
        "remark": f"bf16 torch.matmul over auto; {tensor_cores(device)}",
        "note": auto.note,
    }
    return [row]


def token_rows(
    tokens: int, device: torch.device, rounds: int, depth: int, tune: bool = True
) -> list[dict[str, Any]]:
    """The decode and dequantize-then-matmul of `tokens` rows by (depth, depth) weights."""
    pool = made.matmul_pool(tokens, depth, depth, device)
    cases = [("dequantize", -1), ("triton", -1)]
    cases += [("triton", index) for index in range(len(DECODES))] if tune else []
    jobs = {case: made.matmul_job(pool, *case, {}) for case in cases}
    jobs["bf16", -1] = made.matmul_job(pool, "bf16", -1, {})
    interleaved([job for job in jobs.values() if not job.note], rounds, watch_for(device))
    base = median(jobs["dequantize", -1])
    auto = table.resolve("auto", device, tokens, depth, depth)
    rows = []
    for (backend, config), job in jobs.items():
        faster = ratio(base, median(job))
        taken = backend == auto and config < 0
        row = {
            "family": "tokens",
            "size": tokens,
            "backend": backend,
            "config": str(DECODES[config]) if config >= 0 else "default",
            "us": median(job),
            "ratio": faster,
            "spread": spread(job),
            "verified": job.verified,
            "remark": "taken by auto" if taken else "",
            "note": job.note,
        }
        if backend == "triton" and config < 0 and faster is not None:
            row |= {"target": LEAST_DECODE, "reached": faster >= LEAST_DECODE or not taken}
        rows.append(row)
    return rows
