"""The options of `mxkernels bench`, checked: a Plan before anything runs."""

import dataclasses
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mxkernels.arch import installed
from mxkernels.bench import plan as plans
from mxkernels.bench.peers import PEERS
from mxkernels.bench.plan import Plan, Shape
from mxkernels.quantize.shapes import SCALE_LAYOUTS
from mxkernels.quantize.variants import VARIANTS
from mxkernels.registry import BACKENDS
from mxref import RECIPES
from mxref.cli.errors import WrongCallError, unknown
from mxref.cli.options import holds_results, reason_of, require_writable

DTYPES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}
QUICK_BUDGET = 85.0


def words(option: str, text: str | None, known: Iterable[str] | None) -> tuple[str, ...] | None:
    """The parts of a comma-separated option, each of which has to be known; None if not given."""
    if text is None:
        return None
    parts = tuple(part.strip() for part in text.split(","))
    for part in parts:
        if not part or (known is not None and part not in known):
            raise unknown(option, part, known or ("words",))
    return parts


def shape_of(text: str) -> Shape:
    """A shape out of "8x8192x5120".

    >>> shape_of("8x8192x5120")
    (8, 8192, 5120)
    """
    sizes = text.strip().split("x")
    if len(sizes) < 2 or not all(size.isdecimal() and int(size) > 0 for size in sizes):
        raise WrongCallError(f"--shapes={text!r}: expected shapes such as 8x8192x5120")
    return tuple(map(int, sizes))


def plan_of(options: dict[str, Any]) -> Plan:
    """The plan that the options of the command describe; what is None takes its default."""
    given = {name: options.get(name) for name in ("configs", "rounds", "budget", "graphs")}
    if given["configs"] not in (None, "default", "all"):
        raise unknown("--configs", given["configs"], ("default", "all"))
    for name, known in KNOWN.items():
        given[name] = words(f"--{name}", options.get(name), known)
    for name, read in (("shapes", shape_of), ("dtypes", DTYPES.__getitem__)):
        given[name] = given[name] and tuple(map(read, given[name]))
    if "none" in (given["peers"] or ()):
        if len(given["peers"]) > 1:
            raise WrongCallError(
                f"--peers={options['peers']!r}: expected none, or names without it"
            )
        given["peers"] = ()
    elif given["peers"] is None and options["tune"]:
        given["peers"] = ()
    short = preset(quick=options["quick"], tune=options["tune"])
    chosen = short | {name: value for name, value in given.items() if value is not None}
    made = dataclasses.replace(Plan(peers=tuple(PEERS)), **chosen)
    _known_variants(made, given["variants"] or ())
    if not plans.cases(made):
        raise WrongCallError(
            "nothing to measure: no variant of these families, shapes, layouts and words is known"
        )
    return made


def _known_variants(plan: Plan, variants: tuple[str, ...]) -> None:
    """Each variant asked for has to be one of some family in the plan."""
    families = [name for name in plan.families if name in plans.USUAL]
    for variant in variants:
        asked = dataclasses.replace(plan, variants=(variant,))
        if not any(plans.variants_of(asked, family) for family in families):
            names = (*VARIANTS, "all", 'words such as "32x1 col n"')
            raise unknown("--variants", variant, names)


KNOWN: dict[str, Iterable[str] | None] = {
    "families": plans.FAMILIES,
    "shapes": None,
    "variants": None,
    "recipes": RECIPES,
    "layouts": SCALE_LAYOUTS,
    "dtypes": DTYPES,
    "data": plans.DATA,
    "peers": (*PEERS, "none"),
    "backends": BACKENDS,
}
"""The options that take words, and which; None where any are read."""


def preset(*, quick: bool, tune: bool) -> dict[str, Any]:
    """What --quick and --tune change of the default run."""
    if tune:
        return {
            "families": ("cast", "cast3d", "both"),
            "shapes": plans.TUNE_SHAPES,
            "variants": ("all",),
            "recipes": ("rceil",),
            "data": ("randn",),
            "configs": "all",
        }
    if quick:
        return {
            "families": tuple(name for name in plans.FAMILIES if name != "cold"),
            "shapes": plans.QUICK_SHAPES,
            "recipes": ("rceil",),
            "data": ("randn",),
            "graph_rounds": 10,
            "budget": QUICK_BUDGET,
        }
    return {}


def output(option: str, path: Path | None) -> None:
    """WrongCallError where a file cannot be written, before an hour is spent on its content."""
    if path is None:
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WrongCallError(f"{option}={str(path)!r}: {reason_of(error)}") from error
    require_writable(option, path)


def results(option: str, path: Path | None) -> None:
    """The same for results, which replace older results and nothing else."""
    output(option, path)
    if path is not None and path.exists() and not (path.is_file() and holds_results(path)):
        raise WrongCallError(
            f"{option}={str(path)!r}: exists and is no results file, which alone is replaced"
        )


def plotting(option: str, path: Path | None) -> None:
    """The same for a plot, which needs matplotlib."""
    if path is not None and not installed("matplotlib"):
        raise WrongCallError(
            f"{option}={str(path)!r}: matplotlib is not installed: pip install 'mxref[bench]'"
        )
    output(option, path)
