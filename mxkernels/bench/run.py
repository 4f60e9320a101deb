"""`python -m mxkernels.bench.run --json OUT.json`: every kernel the registry lists, timed.

Each row is verified to the byte against mxref on the timed inputs first, and stands beside the
limit that was measured in turns with it. Without a CUDA device: one line, exit 2.
"""

import argparse
import sys
from pathlib import Path

import torch

from mxkernels.bench.quantizers import Wanted
from mxkernels.bench.report import Journal, show
from mxkernels.bench.runner import FAMILIES, Plan, run
from mxkernels.bench.site import DATA
from mxkernels.quantize.shapes import SCALE_LAYOUTS, SWIZZLE
from mxkernels.registry import BACKENDS
from mxref import RECIPES

SHAPES = ((16384, 16384), (8, 8192, 5120), (32, 7168, 2048), (4096, 4096), (1024, 1024))
QUICK_SHAPES = ((16384, 16384), (32, 7168, 2048), (1024, 1024))
TUNE_SHAPES = ((16384, 16384), (8, 8192, 5120))


def shape_of(text: str) -> tuple[int, ...]:
    """A shape out of "8x8192x5120".

    >>> shape_of("8x8192x5120")
    (8, 8192, 5120)
    """
    try:
        shape = tuple(int(size) for size in text.split("x"))
    except ValueError:
        shape = ()
    if len(shape) < 2 or min(shape) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a shape such as 8x8192x5120")
    return shape


def parser() -> argparse.ArgumentParser:
    """All options."""
    made = argparse.ArgumentParser(prog="python -m mxkernels.bench.run", description=__doc__)
    add = made.add_argument
    add("--json", type=Path, metavar="OUT.json", help="results, written after every group")
    add("--families", help=f"comma-separated, out of {','.join(FAMILIES)}")
    add("--shapes", help="comma-separated, such as 16384x16384,8x8192x5120")
    add("--recipes", help="comma-separated names of recipes; default floor,rceil")
    add("--dtypes", default="bfloat16", help="comma-separated torch dtypes")
    add("--layouts", help="comma-separated scale layouts; default all")
    add("--variants", help='comma-separated; each a few words such as "32x1 col n"')
    add("--backends", help="comma-separated, such as triton,cuda; default all")
    add("--configs", choices=("default", "all"), default="default")
    add("--tune", action="store_true", help="every configuration of every variant, fastest first")
    add("--quick", action="store_true", help="fewer shapes, layouts, rounds; one recipe")
    add("--rounds", type=int, help="times each call is timed; default 100, quick 40")
    add("--data", choices=DATA, default="randn", help="inputs; specials: NaN, Inf, subnormals")
    add("--budget", type=float, help="seconds after which no group is begun; default 240, quick 85")
    add("--no-graphs", action="store_true", help="small shapes by events only")
    add("--no-competitors", action="store_true", help="leave torch.compile's rows out")
    return made


def _words(text: str | None, default: tuple[str, ...], name: str, known: tuple[str, ...] | None):
    words = default if text is None else tuple(part.strip() for part in text.split(","))
    for word in words:
        if known is not None and word not in known:
            raise SystemExit(f"--{name} {word!r}: expected some of {', '.join(known)}")
    return words


def plan_of(options: argparse.Namespace) -> Plan:
    """The plan that the options describe."""
    quick, tune = options.quick, options.tune
    short = quick or tune
    shapes = TUNE_SHAPES if tune else QUICK_SHAPES if quick else SHAPES
    if options.shapes:
        shapes = tuple(shape_of(text) for text in options.shapes.split(","))
    competing = () if options.no_competitors or tune else ((1, 32),) if quick else None
    recipes = ("rceil",) if short else ("floor", "rceil")
    layouts = ("plain", SWIZZLE) if quick else SCALE_LAYOUTS
    wanted = Wanted(
        recipes=_words(options.recipes, recipes, "recipes", tuple(RECIPES)),
        scale_layouts=_words(options.layouts, layouts, "layouts", SCALE_LAYOUTS),
        variants=_words(options.variants, (), "variants", None),
        backends=_words(options.backends, (), "backends", BACKENDS),
        configs="all" if tune else options.configs,
        **({} if competing is None else {"competitors": competing}),
    )
    return Plan(
        families=_words(
            options.families, ("quantize",) if tune else FAMILIES, "families", FAMILIES
        ),
        shapes=shapes,
        dtypes=_words(options.dtypes, (), "dtypes", ("bfloat16", "float16", "float32")),
        rounds=options.rounds or (40 if short else 100),
        graph_rounds=10 if short else 30,
        data=options.data,
        budget=options.budget or (85.0 if quick else 240.0),
        graphs=not options.no_graphs,
        wanted=wanted,
    )


def by_speed(rows: list[dict]) -> list[dict]:
    """Rows with the configurations of one variant together, the fastest first."""
    return sorted(
        rows,
        key=lambda row: (
            row["family"] == "limits",
            row.get("shape", []),
            row.get("variant", ""),
            row.get("recipe", ""),
            row.get("method", ""),
            row.get("median_us", float("inf")),
        ),
    )


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark; 1 if any row was wrong or failed, 2 without a CUDA device."""
    options = parser().parse_args(arguments)
    try:
        plan = plan_of(options)
    except (argparse.ArgumentTypeError, SystemExit) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    if not torch.cuda.is_available():
        sys.stderr.write(f"no CUDA device: torch {torch.__version__} sees none, nothing is timed\n")
        return 2
    journal = Journal(options.json, plan.text())
    run(plan, journal)
    show(by_speed(journal.rows) if options.tune else journal.rows)
    bad = [row for row in journal.rows if row.get("note", "").startswith(("WRONG", "error"))]
    sys.stdout.write(f"{len(journal.rows)} rows in {journal.content['seconds']} s, ")
    sys.stdout.write(f"{len(bad)} wrong or failed\n")
    return 1 if any(row.get("family") != "limits" for row in bad) else 0


if __name__ == "__main__":
    raise SystemExit(main())
