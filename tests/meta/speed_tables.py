"""The lines of `mxkernels/quantize/README.md` that its results files give."""

from collections.abc import Iterator

from mxkernels.bench.limits import config_text
from mxkernels.quantize import configs, cuda_configs

LARGE = ((16384, 16384), (8, 8192, 5120), (32, 7168, 2048))
SMALL = ((4096, 4096), (1024, 1024))
OURS = ("triton", "cuda")
DEFAULTS = (configs.BOTH.usual, cuda_configs.BOTH[0])


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


def both(content: dict, column: str = "share") -> str:
    """The default configurations with plain scales, the slower of floor and rceil, by shape."""
    rows = [r for r in timed(content, ("both",)) if r["config"] in map(config_text, DEFAULTS)]
    parts = []
    for shape in LARGE:
        of = [[r for r in rows if (r["backend"], tuple(r["shape"])) == (b, shape)] for b in OURS]
        assert [sorted(r["recipe"] for r in each) for each in of] == [["floor", "rceil"]] * 2
        parts.append(" / ".join(f"{min(r[column] for r in each):.3f}" for each in of))
    return ", ".join(parts)


def both_of_copy(content: dict) -> str:
    return both(content, "share_of_copy")


def plain_formula(content: dict) -> str:
    """The fastest of ours over torch.compile of the plain formula, 1x32 row plain, by shape."""
    rows = [
        r for r in content["rows"] if r.get("method") == "events" and r.get("recipe") == "rceil"
    ]
    rows = [r for r in rows if r["variant"] == "1x32 row plain n" and r["data"] == "randn"]
    parts = []
    for shape in dict.fromkeys(tuple(r["shape"]) for r in rows):
        us = {r["implementation"]: r["median_us"] for r in rows if tuple(r["shape"]) == shape}
        parts.append(us["torch_compile"] / min(us[backend] for backend in OURS))
    return f"{min(parts):.2f} to {max(parts):.2f} times"


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


def small_torch(content: dict) -> str:
    """The same as a multiple of torch's own cast, in a graph."""
    parts = []
    for shape in SMALL:
        rows = [r for r in content["rows"] if r.get("method") == "graph"]
        rows = [r for r in rows if tuple(r["shape"]) == shape]
        plain = next(r for r in rows if (r["kernel"], r["config"]) == ("stream", "torch"))
        ours = [r for r in rows if r["family"] == "cast" and r.get("target")]
        most = [max(r["median_us"] for r in ours if r["backend"] == b) for b in OURS]
        parts.append(" / ".join(f"{us / plain['median_us']:.2f}" for us in most))
    return f"{parts[0]} and {parts[1]}"


def host(content: dict) -> str:
    us = {r["kernel"]: r["median_us"] for r in content["rows"] if r["family"] == "host"}
    pair = " / ".join(f"{us[f'quantize_{backend} call']:.1f}" for backend in OURS)
    public, plain = us["mxkernels.quantize"], us["x.to(float8_e4m3fn)"]
    return (
        f"{public:.1f} us of host time, {public / plain:.2f} times x.to(float8_e4m3fn) "
        f"({plain:.1f} us); KernelSpec.call {pair}"
    )


def cold(content: dict) -> str:
    """The longest that each kernel adds, import and first call with empty caches, in seconds."""
    found: dict[str, float] = {}
    whole = []
    for row in content["rows"]:
        if row["family"] == "cold":
            found[row["kernel"]] = max(found.get(row["kernel"], 0), row["seconds"])
            whole.append(row.get("process_s", row["seconds"]))
    calls = ", ".join(f"{kernel} {seconds:.1f} s" for kernel, seconds in found.items())
    return f"{calls}; the whole process {min(whole):.1f} to {max(whole):.1f} s"
