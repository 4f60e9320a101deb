"""`mxkernels bench`: every kernel the registry lists, verified to the byte and timed."""

import os
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import torch
import typer

from mxkernels.bench import changes, choices, headline, plots, records, tables
from mxkernels.bench import resume as resuming
from mxkernels.bench.plan import Case, Plan, cases
from mxkernels.bench.report import Journal, environment
from mxkernels.bench.runner import run as measure
from mxkernels.bench.site import shape_text
from mxref import RECIPES
from mxref.cli import screen
from mxref.cli.errors import WrongCallError
from mxref.cli.progress import bar

bench = typer.Typer(
    help="Time every kernel beside the limits of the machine, each verified to the byte first.",
    rich_markup_mode=None,
)

Option = typer.Option


@bench.callback(invoke_without_command=True)
def run(
    context: typer.Context,
    families: Annotated[str | None, Option(help="cast, cast3d, both, dequantize, ...")] = None,
    shapes: Annotated[str | None, Option(help="such as 16384x16384,8x8192x5120")] = None,
    variants: Annotated[str | None, Option(help='32x1_n, "32x1 col n", ... or all')] = None,
    recipes: Annotated[str | None, Option(help="scale rules; default floor,rceil")] = None,
    layouts: Annotated[str | None, Option(help="scale layouts; default all")] = None,
    dtypes: Annotated[str | None, Option(help="bf16, fp16, fp32; default bf16")] = None,
    data: Annotated[str | None, Option(help="randn, specials, subnormals")] = None,
    peers: Annotated[str | None, Option(help="torch_compile, two_stage, torchao or none")] = None,
    backends: Annotated[str | None, Option(help="ours: triton, cuda, compile; default all")] = None,
    configs: Annotated[str | None, Option(help="default or all")] = None,
    rounds: Annotated[int | None, Option(min=1, help="times each call is timed")] = None,
    budget: Annotated[float | None, Option(min=0, help="seconds; later cases are left out")] = None,
    graphs: Annotated[bool | None, Option(help="CUDA graphs too, for small shapes")] = None,
    quick: Annotated[bool, Option("--quick", help="two shapes, one rule")] = False,
    tune: Annotated[bool, Option("--tune", help="every configuration of every variant")] = False,
    dry_run: Annotated[bool, Option("--dry-run", help="count the cases, time nothing")] = False,
    json: Annotated[Path | None, Option(help="rows and environment, kept up to date")] = None,
    csv: Annotated[Path | None, Option(help="one line a comparison")] = None,
    png: Annotated[Path | None, Option(help="bandwidth over size")] = None,
    resume: Annotated[Path | None, Option(help="a run that its budget ended: go on")] = None,
    compare: Annotated[Path | None, Option(help="an older results file")] = None,
    fail_on_regression: Annotated[float | None, Option(min=0, metavar="PERCENT")] = None,
) -> int:
    """Measure; 1 if a kernel of ours was wrong or failed, 2 without a CUDA device."""
    if context.invoked_subcommand is not None:
        return 0
    return begin(dict(context.params), Outputs(json, csv, png, resume, compare, fail_on_regression))


@dataclass(frozen=True)
class Outputs:
    """Where results go, which run they go on with, and what they are compared with."""

    json: Path | None
    csv: Path | None
    png: Path | None
    resume: Path | None
    compare: Path | None
    percent: float | None


def begin(options: dict[str, Any], out: Outputs) -> int:
    """Check everything, then measure; the exit code."""
    plan = choices.plan_of(options)
    if out.percent is not None and out.compare is None:
        raise WrongCallError("--fail-on-regression: expected --compare OLD.json with it")
    old = None if out.compare is None else read(out.compare)
    past = None if out.resume is None else read(out.resume)
    if options["dry_run"]:
        count(plan)
        return 0
    if plan.device == "cuda" and not torch.cuda.is_available():
        raise WrongCallError(
            f"no CUDA device: torch {torch.__version__} sees none, nothing is timed "
            "(`mxref bench` measures the reference on a CPU)"
        )
    choices.results("--json", out.json)
    choices.output("--csv", out.csv)
    choices.plotting("--png", out.png)
    return finish(_measured(plan, out.json, past), old, out)


def _measured(plan: Plan, path: Path | None, past: dict[str, Any] | None) -> dict[str, Any]:
    """Run the plan with a bar on a terminal, a line for each shape elsewhere."""
    done: set[tuple[Any, ...]] = set()
    if past is not None:
        differs = resuming.difference(past["environment"], environment())
        if differs:
            raise WrongCallError(f"--resume: that run is not of this machine: {differs}")
        stay, done = resuming.kept(past["rows"])
        past = past | {"rows": stay}
    journal = Journal(path, plan.text(), past)
    found = [case for case in cases(plan) if resuming.place(case.labels()) not in done]
    last: list[Any] = [None]
    with bar(len(found)) as shown:

        def report(case: Case, ended: int, total: int) -> None:
            if ended:
                shown.end()
            label = f"{case.family} {shape_text(case.shape)} {case.data}".strip()
            shown.begin(f"{label} {case.variant} {case.recipe}".strip())
            if label != last[0] and not sys.stderr.isatty():
                seconds = time.monotonic() - journal.started
                sys.stderr.write(f"[{seconds:6.1f} s] {ended} of {total}: {label}\n")
            last[0] = label

        measure(plan, journal, report, done)
    return {**journal.content, "rows": [records.today(row) for row in journal.rows]}


def finish(content: dict[str, Any], old: dict[str, Any] | None, out: Outputs) -> int:
    """Tables, files and the verdict of a run."""
    rows = content["rows"]
    tables.show(content)
    if out.csv is not None:
        tables.write_csv(out.csv, records.pivot(rows))
    if out.png is not None:
        try:
            plots.draw(out.png, content)
        except ValueError as error:  # a run of other families; its figures stand
            screen.plain(f"no plot: {error}")
    bad = records.failures(rows)
    screen.plain(f"{len(rows)} rows in {content['seconds']} s, {len(bad)} of ours wrong or failed")
    worse = old is not None and _changed(old, content, out.percent)
    return 1 if bad or worse else 0


def _changed(old: dict[str, Any], new: dict[str, Any], percent: float | None) -> bool:
    """Show what changed; whether that is more than is allowed."""
    found = changes.changes(old["rows"], new["rows"])
    for line in changes.machines(old, new):
        screen.plain(line)
    table = changes.table(found)
    if table.row_count:
        screen.results().print(table)
    screen.plain(f"beyond the noise: {changes.summary(found)}")
    return percent is not None and bool(changes.regressions(found, percent))


def count(plan: Plan) -> None:
    """How many cases a plan has, by family and shape."""
    found = cases(plan)
    table = screen.table("family", "shape", "data", "cases", numbers=("cases",))
    parts = Counter((case.family, shape_text(case.shape), case.data) for case in found)
    for (family, shape, data), number in parts.items():
        table.add_row(family, shape, data, str(number))
    screen.results().print(table)
    screen.plain(f"{len(found)} cases, none begun after {plan.budget:.0f} s")


def read(path: Path) -> dict[str, Any]:
    """A results file, or the one line that says why it is none."""
    try:
        return records.load(path)
    except ValueError as error:
        raise WrongCallError(error) from error


Results = Annotated[Path, typer.Argument(help="a file of mxkernels bench --json")]
Rule = Annotated[str, Option(help="the scale rule")]


@bench.command("show")
def show(file: Results, csv: Annotated[Path | None, Option()] = None) -> None:
    """Print the tables of a results file."""
    content = read(file)
    choices.output("--csv", csv)
    tables.show(content)
    if csv is not None:
        tables.write_csv(csv, records.pivot(content["rows"]))


@bench.command("winners")
def winners(file: Results) -> None:
    """Print which of ours is the fastest for each variant: what `auto` should take."""
    table = screen.table("family", "variant", "fastest", "next", "takes", "rows")
    for row in records.winners(records.pivot(read(file)["rows"])):
        ratio = f"{row['over_next']:.3f} x" if "next" in row else ""
        cells = (row["family"], row["variant"], row["best"], row.get("next", ""), ratio)
        table.add_row(*cells, str(row["rows"]))
    screen.results().print(table)


@bench.command("plot")
def plot(
    file: Results,
    png: Annotated[Path, Option(help="the file to write")],
    families: Annotated[str, Option()] = "cast,cast3d",
    variants: Annotated[str | None, Option(help="such as dim0,32x1_n; default all")] = None,
    recipe: Rule = "rceil",
) -> None:
    """Draw bandwidth over size, the limit as a line."""
    content = read(file)
    choices.plotting("--png", png)
    try:
        chosen = choices.words("--families", families, ("cast", "cast3d", "both", "dequantize"))
        named = choices.words("--variants", variants, None)
        plots.draw(png, content, chosen or (), named or (), recipe)
    except ValueError as error:
        raise WrongCallError(error) from error


@bench.command("headline")
def print_headline(
    file: Results,
    recipe: Rule = "rceil",
    into: Annotated[Path | None, Option(help="a README with the two comments")] = None,
) -> None:
    """Print the headline as Markdown, or put it between a README's two comments."""
    content = read(file)
    choices.words("--recipe", recipe, RECIPES)
    try:
        made = headline.table(content, recipe)
    except ValueError as error:
        raise WrongCallError(f"{str(file)!r}: {error}") from error
    if into is None:
        screen.plain(made.rstrip())
        return
    try:
        named = Path(os.path.relpath(file, into.parent)).as_posix()
        into.write_text(headline.write(into.read_text(), named, content, recipe))
    except (ValueError, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise WrongCallError(f"--into={str(into)!r}: {reason}") from error


@bench.command("compare")
def compare_files(
    old: Results,
    new: Results,
    fail_on_regression: Annotated[float | None, Option(min=0, metavar="PERCENT")] = None,
) -> int:
    """Show what changed between two results files beyond the noise of both."""
    return 1 if _changed(read(old), read(new), fail_on_regression) else 0
