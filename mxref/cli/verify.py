"""`mxref verify`: judge the registered kernels, or anyone's function, and say so in a table."""

from dataclasses import replace
from typing import Annotated, Any

import typer

import mxref
from mxref.cli import options, reports, tensor_reports
from mxref.cli import tensors as checkpoints
from mxref.cli.checkpoint import opened
from mxref.cli.options import Choice, JsonFile
from mxref.cli.progress import bar
from mxref.cli.subjects import NotRun, Subject, kernels, named
from mxref.testing import verify as judge
from mxref.testing.report import Report

Target = Annotated[
    str | None,
    typer.Argument(
        metavar="TARGET",
        help="package.module:function, x -> (payload, scale); left out, the registered kernels.",
    ),
]
RecipeName = Annotated[
    str | None, typer.Option("--recipe", help="The recipe claimed (rceil), or the only one to run.")
]
Block = Annotated[str | None, typer.Option("--block", help="1x32, 32x1 or 32x32.")]
ScaleLayout = Annotated[
    str | None, typer.Option("--scale-layout", help="plain, plain_t or swizzle_32_4_4.")
]
Contract = Annotated[str | None, typer.Option("--contract", help="-1 or -2, for a swizzled 32x32.")]
Device = Annotated[str, typer.Option("--device", help="cpu, cuda or cuda:N.")]
Dtypes = Annotated[
    list[str] | None,
    typer.Option("--dtype", metavar="NAME", help="bf16, fp16 or fp32; may be repeated."),
]
Level = Annotated[
    str | None,
    typer.Option(
        "--level",
        help="smoke (registered kernels: every pair of choices) or full (a target: everything).",
    ),
]
MultipleOf = Annotated[
    str | None, typer.Option("--multiple-of", metavar="N", help="Sizes that the target takes (32).")
]
Seed = Annotated[str, typer.Option("--seed", metavar="N", help="Seed of the random inputs.")]
Json = Annotated[
    str | None, typer.Option("--json", metavar="FILE", help="Write the reports as JSON.")
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
    )
    out = JsonFile(json, tensors)
    passed = _on_checks(choice, out) if tensors is None else _on_tensors(tensors, choice, out)
    raise typer.Exit(0 if passed else 1)


def _named(choice: Choice) -> tuple[list[Subject], list[NotRun]]:
    return [named(choice, choice.target or "")], []


def _on_checks(choice: Choice, out: JsonFile) -> bool:
    found, not_run = kernels(choice) if choice.target is None else _named(choice)
    results: list[Report] = []
    with bar(len(found)) as shown:
        for subject in found:
            shown.begin(subject.label)
            results.append(
                judge(subject.fn, name=subject.label, progress=shown.report, **subject.arguments())
            )
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
        if choice.target is None:
            one = replace(choice, block=block, scale_layout=choice.scale_layout or "plain")
            found, not_run = kernels(one, checkpoints.RULES, payload_orders=("row",))
        else:
            found, not_run = _named(choice)
        entries = checkpoints.selected(checkpoint, choice.dtypes)
        with bar(1) as shown:
            shown.begin("", total=sum(entry.numel for entry in entries))
            rows = checkpoints.judge(
                checkpoint, entries, found, block, lambda e, n: shown.advance(e.name, n)
            )
        skipped = dict(checkpoint.skipped)
    tensor_reports.show(rows, found, skipped, not_run)
    passed = checkpoints.passed(rows, found)
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
