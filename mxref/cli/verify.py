"""`mxref verify`: judge the registered kernels, or anyone's function, and say so in a table."""

from dataclasses import replace
from typing import Annotated, Any

import typer

import mxref
from mxref.cli import checking, options, reports, tensor_reports
from mxref.cli import tensors as checkpoints
from mxref.cli.checkpoint import opened
from mxref.cli.errors import WrongCallError
from mxref.cli.options import Choice, Contract, Device, Dtypes, JsonFile
from mxref.cli.progress import bar
from mxref.cli.subjects import NotRun, kernels
from mxref.cli.supervisor import Child, RemoteJudge
from mxref.testing.conformance import known_ids, require_level
from mxref.testing.report import Report
from mxref.testing.waivers import Waivers

Target = Annotated[
    str | None,
    typer.Argument(
        metavar="TARGET",
        help="package.module:name, a function x -> (payload, scale) or an Adapter; left out, the "
        "registered kernels.",
    ),
]
RecipeName = Annotated[
    str | None, typer.Option("--recipe", help="The recipe claimed (rceil), or the only one to run.")
]
Block = Annotated[str | None, typer.Option("--block", help="1x32, 32x1 or 32x32.")]
ScaleLayout = Annotated[
    str | None, typer.Option("--scale-layout", help="plain, plain_t or swizzle_32_4_4.")
]
Level = Annotated[
    str | None,
    typer.Option(
        "--level",
        help="smoke (registered kernels: every pair of choices), full (a target: everything), "
        "exhaustive or fuzz.",
    ),
]
MultipleOf = Annotated[
    str | None, typer.Option("--multiple-of", metavar="N", help="Sizes that the target takes (32).")
]
Seed = Annotated[str, typer.Option("--seed", metavar="N", help="Seed of the random inputs.")]
Json = Annotated[
    str | None,
    typer.Option(
        "--json", metavar="FILE", help="Write the reports as JSON; replaces only a results file."
    ),
]
Timeout = Annotated[
    str, typer.Option("--timeout", metavar="N", help="Seconds for one call, or the import; 0: any.")
]
FuzzSeconds = Annotated[
    str, typer.Option("--fuzz-seconds", metavar="N", help="Budget of level fuzz for each dtype.")
]
WaiversFile = Annotated[
    str | None, typer.Option("--waivers", metavar="FILE", help="Known failures of TARGET (TOML).")
]
Tensors = Annotated[
    str | None,
    typer.Option("--tensors", metavar="FILE", help="Judge on the tensors of a safetensors file."),
]


def verify(
    target: Target = None,
    recipe: RecipeName = None,
    block: Block = None,
    scale_layout: ScaleLayout = None,
    contract: Contract = None,
    device: Device = "cpu",
    dtype: Dtypes = None,
    level: Level = None,
    multiple_of: MultipleOf = None,
    seed: Seed = "0",
    timeout: Timeout = "300",
    fuzz_seconds: FuzzSeconds = "60",
    waivers: WaiversFile = None,
    json: Json = None,
    tensors: Tensors = None,
) -> None:
    """Judge TARGET, or every registered kernel: exit code 0 conforms, 1 does not, 2 wrong call."""
    choice = Choice(
        target=target,
        recipe=options.recipe(recipe),
        block=options.block(block),
        scale_layout=options.scale_layout(scale_layout),
        contract=options.contract(contract),
        device=options.device(device),
        dtypes=options.dtypes(dtype),
        level=options.one_of("--level", level, options.LEVELS),
        multiple_of=options.integer("--multiple-of", multiple_of, least=1),
        seed=options.integer("--seed", seed, least=0) or 0,
        timeout=options.integer("--timeout", timeout, least=0) or 0,
        fuzz_seconds=options.integer("--fuzz-seconds", fuzz_seconds, least=1) or 1,
        waivers=_waivers_file(waivers, target, tensors),
    )
    _require_level(choice.level)
    out = JsonFile(json, tensors)
    passed = _on_checks(choice, out) if tensors is None else _on_tensors(tensors, choice, out)
    raise typer.Exit(0 if passed else 1)


def _require_level(level: str | None) -> None:
    try:
        require_level(level or "")
    except ModuleNotFoundError as error:
        raise WrongCallError(str(error)) from None


def _waivers_file(path: str | None, target: str | None, tensors: str | None) -> str | None:
    if path is not None and (target is None or tensors is not None):
        raise WrongCallError(f"--waivers={path!r}: for the checks of one TARGET")
    if path is not None:
        _waivers(path)
    return path


def _waivers(path: str) -> Waivers:
    try:
        return Waivers.load(path)
    except ValueError as error:
        raise WrongCallError(f"--waivers: {error}") from None


def _on_checks(choice: Choice, out: JsonFile) -> bool:
    not_run = kernels(choice)[1] if choice.target is None else []
    results: list[Report] = []
    with Child(choice) as child, bar(len(child.claims)) as shown:
        for label, claims in child.claims.items():
            shown.begin(label)
            report = checking.run(child, label, claims, shown.report)
            if choice.waivers is not None:
                report = _waivers(choice.waivers).applied(report, known_ids(claims))
            results.append(report)
            shown.end()
    if choice.target is None:
        reports.show_all(results, not_run)
    else:
        reports.show_one(results[0])
    passed = all(report.passed for report in results)
    out.write(_content(passed, not_run, reports=[reports.as_json(report) for report in results]))
    return passed


def _on_tensors(path: str, choice: Choice, out: JsonFile) -> bool:
    block = choice.block or (1, 32)
    with opened(path, least_rank=1 if block[0] == 1 else 2) as checkpoint:
        # after the file, which is the more likely slip and the quicker to find
        arguments: dict[str, Any] = {}
        not_run: list[NotRun] = []
        if choice.target is None:
            choice = replace(choice, block=block, scale_layout=choice.scale_layout or "plain")
            arguments = {"recipes": checkpoints.RULES, "payload_orders": ("row",)}
            not_run = kernels(choice, **arguments)[1]
        entries = checkpoints.selected(checkpoint, choice.dtypes)
        with Child(choice, **arguments) as child, bar(1) as shown:
            labels = list(child.claims)
            judges = {each: RemoteJudge(child, each, child.claims[each]) for each in labels}
            shown.begin("", total=sum(entry.numel for entry in entries))
            rows = checkpoints.judge(
                checkpoint, entries, judges, block, lambda e, n: shown.advance(e.name, n)
            )
        skipped = dict(checkpoint.skipped)
    tensor_reports.show(rows, labels, skipped, not_run)
    passed = checkpoints.passed(rows, labels)
    content = tensor_reports.as_json(rows, skipped)
    out.write(_content(passed, not_run, tensors={"file": path, **content}))
    return passed


def _content(passed: bool, not_run: list[NotRun], **rest: Any) -> dict[str, Any]:
    return {
        "passed": passed,
        "version": mxref.__version__,
        "spec": mxref.SPEC,
        "not_run": [{"name": each.name, "reason": each.reason} for each in not_run],
        **rest,
    }
