"""The benchmark end to end on a CPU, with tiny shapes: rows, verdicts, JSON, exit codes."""

import dataclasses
import json

import pytest
import torch

import mxkernels
import mxref
from mxkernels import reference
from mxkernels.arch import compiler_missing, installed
from mxkernels.bench import (
    competitors,
    families,
    overhead,
    quantizers,
    report,
    run,
    runner,
    site,
    timing,
)
from mxkernels.bench.jobs import Pool, difference, sets_for
from mxkernels.bench.quantizers import Wanted
from mxkernels.bench.site import Site
from mxkernels.registry import KERNELS

SHAPE = (2, 64, 96)

# torch's own, raised when inductor is first imported.
pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")


def claimed(call, **changes):
    """A spec that claims the whole family and answers by `call`."""
    whole = {
        "name": "whole",
        "blocks": ((1, 32), (32, 1), (32, 32)),
        "payload_orders": ("row", "col"),
        "scale_layouts": ("plain", "plain_t", "swizzle_32_4_4"),
        "input_orders": ("n", "t"),
        "configs": ("small", "large"),
        "choices": None,
        "call": lambda x, recipe, block, order, layout, config=None: call(
            x, recipe, block, order, layout
        ),
        "backend": "triton",
    }
    return dataclasses.replace(KERNELS[0], **(whole | changes))


def timed(monkeypatch, tmp_path, specs, names, wanted=None, shapes=(SHAPE,)):
    monkeypatch.setattr(quantizers, "KERNELS", specs)
    monkeypatch.setattr(families, "KERNELS", specs)
    monkeypatch.setattr(runner, "SCALES", (256, 12))
    monkeypatch.setattr(site, "CANDIDATE_ROUNDS", 1)
    wanted = wanted or Wanted(recipes=("rceil",), competitors=())
    plan = runner.Plan(families=names, shapes=shapes, rounds=2, device="cpu", wanted=wanted)
    journal = report.Journal(tmp_path / "out.json", plan.text())
    runner.run(plan, journal)
    return json.loads((tmp_path / "out.json").read_text())


def of(content, family):
    return [row for row in content["rows"] if row["family"] == family]


def test_all_that_a_spec_claims_is_verified_and_timed(monkeypatch, tmp_path):
    content = timed(monkeypatch, tmp_path, (claimed(reference.quantize),), ("quantize",))
    rows = of(content, "quantize")
    assert len(rows) == 3 * 2 * 3 * 2
    assert content["complete"]
    for row in rows:
        assert row["note"] == ""
        assert row["verified"] == "1 of 1 sets"
        assert row["median_us"] > 0
        assert row["limit"] == "stream"  # a small shape is held against a plain cast
    assert {row["recipe"] for row in rows} == {"rceil"}


def test_bytes_are_input_payload_and_scales(monkeypatch, tmp_path):
    content = timed(monkeypatch, tmp_path, (claimed(reference.quantize),), ("quantize",))
    found = {row["variant"]: row["bytes"] for row in of(content, "quantize")}
    n = 2 * 64 * 96
    assert found["1x32 row plain n"] == 3 * n + n // 32
    assert found["32x1 col plain_t n"] == 3 * n + n // 32
    assert found["32x32 row plain n"] == 3 * n + n // 1024
    assert found["1x32 row swizzle_32_4_4 n"] == 3 * n + 2 * 128 * 4


def test_a_wrong_kernel_is_marked_and_not_timed(monkeypatch, tmp_path):
    def floor_under_another_label(x, recipe, block, order, layout):
        return reference.quantize(x, "floor", block, order, layout)

    spec = claimed(floor_under_another_label, payload_orders=("row",), input_orders=("n",))
    rows = of(timed(monkeypatch, tmp_path, (spec,), ("quantize",)), "quantize")
    assert all(row["note"].startswith("WRONG: output") for row in rows)
    assert not any("median_us" in row or row["verified"] for row in rows)


def test_what_raises_is_a_row_too(monkeypatch, tmp_path):
    def unbuilt(x, recipe, block, order, layout):
        raise NotImplementedError("block=(32, 1) is not built")

    spec = claimed(unbuilt, blocks=((32, 1),), payload_orders=("row",), input_orders=("n",))
    rows = of(timed(monkeypatch, tmp_path, (spec,), ("quantize",)), "quantize")
    assert {row["note"] for row in rows} == {"not built: block=(32, 1) is not built"}


def test_every_configuration_is_timed_when_asked(monkeypatch, tmp_path):
    wanted = Wanted(("rceil",), ("plain",), ("1x32 row n",), "all", ())
    spec = claimed(reference.quantize)
    rows = of(timed(monkeypatch, tmp_path, (spec,), ("quantize",), wanted), "quantize")
    assert [row["config"] for row in rows] == ["small", "large"]
    slow = {"family": "quantize", "variant": "b", "median_us": 2.0, "config": "slow"}
    assert run.by_speed([slow, slow | {"median_us": 1.0, "config": "fast"}])[0]["config"] == "fast"


def quantize_both(x, recipe="rceil", *, scale_layout="plain"):
    return (
        reference.quantize(x, recipe, (1, 32), "row", scale_layout),
        reference.quantize(x, recipe, (32, 1), "col", scale_layout),
    )


def dequantize(payload, scale, *, block, dtype, scale_layout="plain", contract=None):
    shape = tuple(payload.shape)
    scale = mxref.layouts.decode(scale, scale_layout, block=block, shape=shape, contract=contract)
    return mxref.dequantize(payload, scale, block=block, dtype=dtype)


def swizzle(scale, layout="swizzle_32_4_4", *, offs=None, axis=None):
    if offs is None:
        return mxref.layouts.encode(scale, layout)
    return mxref.layouts.encode_groups(scale, offs, axis=axis)


def test_the_other_operations_are_found_by_their_public_names(monkeypatch, tmp_path):
    for function in (quantize_both, dequantize, swizzle):
        monkeypatch.setattr(mxkernels, function.__name__, function, raising=False)
    layouts = ("plain", "swizzle_32_4_4")
    spec = claimed(None, op="dequantize", scale_layouts=layouts)
    content = timed(monkeypatch, tmp_path, (spec,), ("both", "dequantize", "swizzle"))
    assert [row["variant"] for row in of(content, "swizzle")] == [
        "whole", "groups M 32", "groups K 32",
    ]  # fmt: skip
    assert [row["limit"] for row in of(content, "swizzle")] == ["cold"] * 3
    assert of(content, "swizzle")[1]["target"] == 0.85
    assert len(of(content, "both")) == 3
    assert {row["limit"] for row in of(content, "both")} == {"dual"}
    assert all("share_of_copy" in row for row in of(content, "both"))
    assert len(of(content, "dequantize")) == 6
    assert not [row for row in content["rows"] if row.get("note")]


def test_an_operation_that_is_not_built_says_so(monkeypatch, tmp_path):
    for name in ("quantize_both", "dequantize", "swizzle"):
        monkeypatch.delattr(mxkernels, name, raising=False)
    content = timed(monkeypatch, tmp_path, KERNELS, ("both", "dequantize", "swizzle"))
    assert [row["note"] for row in content["rows"]] == [
        "not built: both", "not built: dequantize", "not built: swizzle",
    ]  # fmt: skip


def test_the_limits_are_rows_and_a_budget_ends_the_run(monkeypatch, tmp_path):
    content = timed(monkeypatch, tmp_path, KERNELS, ("limits",), shapes=((32, 64),))
    names = [row["kernel"] for row in of(content, "limits") if row["remark"] != "candidate"]
    assert names == ["copy", "stream", "transpose", "dual"]
    plan = runner.Plan(("limits",), (SHAPE,), device="cpu", budget=0.0)
    journal = report.Journal(tmp_path / "none.json", plan.text())
    runner.run(plan, journal)
    assert [row["note"] for row in journal.rows] == ["skipped: over 0 s"]


@pytest.mark.skipif(compiler_missing("cpu") is not None, reason="torch.compile cannot run here")
@pytest.mark.parametrize("recipe", competitors.RULES)
@pytest.mark.parametrize(
    ("block", "order", "layout"), [((1, 32), "row", "plain"), ((32, 1), "col", "plain_t")]
)
def test_the_plain_formula_is_right_too(recipe, block, order, layout):
    x = torch.randn(2, 64, 96, dtype=torch.bfloat16)
    found = competitors.plain(recipe, block, f"test_{recipe}_{block[0]}")(x)
    assert difference(found, reference.quantize(x, recipe, block, order, layout)) == ""


def test_special_values_reach_the_kernels():
    x = Site((4, 64), torch.bfloat16, "cpu", "specials").pool("t").items[0]
    assert x.shape == (4, 64)
    assert x.stride() == (1, 4)
    again = Site((4, 64), torch.bfloat16, "cpu", "specials").pool("t").items[0]
    assert torch.equal(x.view(torch.int16), again.view(torch.int16))


def test_a_pool_takes_turns_and_exceeds_the_cache():
    pool = Pool(["a", "b", "c"])
    assert [pool.next() for _ in range(4)] == ["b", "c", "a", "b"]
    assert sets_for(3 << 20, 60 << 20) * (3 << 20) >= 4 * (60 << 20)


def test_medians_and_their_spread():
    found = timing.summary([5.0, 1.0, 3.0, 2.0, 4.0])
    assert (found["min_us"], found["median_us"], found["max_us"]) == (1.0, 3.0, 5.0)
    assert (found["p20_us"], found["p80_us"]) == (2.0, 4.0)


def test_host_overhead_has_a_row_for_each_way_to_call():
    rows = overhead.rows("cpu", batches=1, count=1)
    assert rows[0]["kernel"] == "mxkernels.quantize"
    assert rows[-1]["kernel"] == "x.to(float8_e4m3fn)"
    assert all(row["note"] == "" for row in rows)


def test_the_table_is_printed_with_and_without_rich(monkeypatch, capsys):
    row = {"shape": [2, 32], "kernel": "k", "median_us": 1.0, "p20_us": 1.0, "p80_us": 1.1}
    for there in {False, installed("rich")}:
        monkeypatch.setattr(report, "installed", lambda name, there=there: there)
        report.show([row | {"share": 0.5, "limit": "stream", "target": 0.98, "reached": False}])
        text = capsys.readouterr().out
        assert "0.500 stream" in text
        assert "NO" in text


@pytest.mark.parametrize(("size", "groups"), [(131072, 32), (224, 32), (12, 32), (7, 1)])
def test_group_ends_rise_and_cover_all(size, groups):
    ends = families.group_ends(size, groups)
    assert ends == sorted(ends)
    assert (len(ends), ends[-1]) == (groups, size)
    assert ends[0] >= 0


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_without_a_gpu_one_line_and_exit_2(capsys, tmp_path):
    assert run.main(["--json", str(tmp_path / "out.json")]) == 2
    assert capsys.readouterr().err.startswith("no CUDA device: torch ")
    assert not (tmp_path / "out.json").exists()


@pytest.mark.parametrize(
    "arguments", [["--families", "x"], ["--shapes", "12xa"], ["--recipes", "fast"]]
)
def test_a_wrong_argument_is_named(arguments, capsys):
    assert run.main(arguments) == 2
    assert arguments[1] in capsys.readouterr().err


def test_quick_and_tune_plans():
    quick = run.plan_of(run.parser().parse_args(["--quick"]))
    assert (quick.wanted.recipes, quick.budget) == (("rceil",), 85.0)
    tune = run.plan_of(run.parser().parse_args(["--tune", "--shapes", "1x64x32"]))
    assert (tune.families, tune.wanted.configs, tune.shapes) == (
        ("quantize",),
        "all",
        ((1, 64, 32),),
    )
    assert run.plan_of(run.parser().parse_args([])).dtypes == ("bfloat16",)


@pytest.mark.gpu
def test_the_benchmark_runs_on_a_gpu(tmp_path):
    path = tmp_path / "out.json"
    arguments = ["--json", str(path), "--shapes", "1024x1024,2x96x64", "--quick"]
    assert run.main(arguments) == 0
    content = json.loads(path.read_text())
    methods = {row.get("method") for row in of(content, "quantize")}
    assert {"events", "graph"} <= methods
