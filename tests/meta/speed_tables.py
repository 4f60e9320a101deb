"""The lines of `mxkernels/quantize/README.md` that its results files give."""

from collections.abc import Iterator

LARGE = ((16384, 16384), (8, 8192, 5120), (32, 7168, 2048))
SMALL = ((4096, 4096), (1024, 1024))
OURS = ("triton", "cuda")


def timed(content: dict, families: tuple[str, ...], method: str = "events") -> list[dict]:
    return [
        row
        for row in content["rows"]
        if row["family"] in families and row.get("method") == method and "share" in row
    ]


def variants(content: dict) -> Iterator[str]:
    """A line a variant with a target: microseconds and shares, Triton / CUDA."""
    rows = [r for r in timed(content, ("cast", "cast3d")) if tuple(r["shape"]) in LARGE]
    found = {(r["variant"], r["backend"], tuple(r["shape"])): r for r in rows}
    for variant in dict.fromkeys(row["variant"] for row in rows if row.get("target")):
        of = [[found[variant, backend, shape] for backend in OURS] for shape in LARGE]
        first = of[0][0]
        shares = [" / ".join(f"{row['share']:.3f}" for row in pair) for pair in of]
        us = " / ".join(f"{row['median_us']:.1f}" for row in of[0])
        cells = (variant, first["limit"], str(first["target"]), us, *shares)
        yield f"| {' | '.join(cells)} |"


def both(content: dict) -> str:
    """The best configuration of each back end with plain scales, at each large shape."""
    rows = timed(content, ("both",))
    best = [
        max(r["share"] for r in rows if (r["backend"], tuple(r["shape"])) == (backend, shape))
        for shape in LARGE
        for backend in OURS
    ]
    pairs = zip(best[::2], best[1::2], strict=True)
    return ", ".join(f"{triton:.3f} / {cuda:.3f}" for triton, cuda in pairs)


def both_swizzled(content: dict) -> str:
    rows = [r for r in timed(content, ("both",)) if "swizzle" in r["variant"]]
    at = {(r["backend"], tuple(r["shape"])): r["share"] for r in rows}
    return ", ".join(f"{at['triton', s]:.3f} / {at['cuda', s]:.3f}" for s in LARGE)


def small(content: dict) -> str:
    """The slowest variant with a target, as a multiple of the cast, by events and in a graph."""
    parts = []
    for shape in SMALL:
        for method in ("events", "graph"):
            rows = timed(content, ("cast",), method)
            rows = [r for r in rows if tuple(r["shape"]) == shape and r.get("target")]
            most = [max(r["times_limit"] for r in rows if r["backend"] == b) for b in OURS]
            parts.append(f"{most[0]:.2f} / {most[1]:.2f}")
    return "{} and {} at 4096 x 4096, {} and {} at 1024 x 1024".format(*parts)


def host(content: dict) -> str:
    us = {r["kernel"]: r["median_us"] for r in content["rows"] if r["family"] == "host"}
    pair = " / ".join(f"{us[f'quantize_{backend} call']:.1f}" for backend in OURS)
    plain = us["x.to(float8_e4m3fn)"]
    ratio = us["quantize_cuda call"] / plain
    return (
        f"{pair} us of host time, {ratio:.2f} times x.to(float8_e4m3fn) for CUDA ({plain:.1f} us)"
    )


def cold(content: dict) -> str:
    """The longest first call of each kernel in a process with empty caches, seconds."""
    found: dict[str, float] = {}
    for row in content["rows"]:
        if row["family"] == "cold":
            found[row["kernel"]] = max(found.get(row["kernel"], 0), row["first_call_s"])
    return ", ".join(f"{kernel} {seconds:.1f} s" for kernel, seconds in found.items())
