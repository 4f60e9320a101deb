"""The benchmark end to end on a CPU, with tiny shapes: rows, verdicts, JSON."""

import argparse
import dataclasses
import json

import pytest
import torch

import mxref
from mxkernels import reference
from mxkernels.arch import triton_missing
from mxkernels.bench import casts, cold, others, overhead, plan, report, runner, site, timing
from mxkernels.bench.jobs import Job, Pool, difference, sets_for
from mxkernels.bench.plan import Plan
from mxkernels.bench.site import Site
from mxkernels.registry import KERNELS

if lacking := triton_missing(interpret=True):
    pytest.skip(lacking, allow_module_level=True)  # the limits are Triton's

SHAPE = (2, 64, 96)


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


WHOLE = claimed(reference.quantize)


def timed(monkeypatch, tmp_path, specs, families, **changes):
    for module in (casts, plan):
        monkeypatch.setattr(module, "KERNELS", specs)
    monkeypatch.setattr(site, "CANDIDATE_ROUNDS", 1)
    options = {"shapes": (SHAPE,), "recipes": ("rceil",), "rounds": 2, "variants": ("all",)}
    chosen = Plan(families=families, device="cpu", **(options | changes))
    kept = report.Journal(tmp_path / "out.json", chosen.text())
    runner.run(chosen, kept)
    return json.loads((tmp_path / "out.json").read_text())


def of(content, family):
    return [row for row in content["rows"] if row["family"] == family]


def test_all_that_a_spec_claims_is_verified_and_timed(monkeypatch, tmp_path):
    content = timed(monkeypatch, tmp_path, (WHOLE,), ("cast3d",))
    rows = of(content, "cast3d")
    assert len(rows) == 3 * 2 * 3 * 2
    assert content["complete"]
    for row in rows:
        assert row["note"] == ""
        assert row["verified"] == "1 of 1 sets"
        assert row["median_us"] > 0
        assert row["limit"] == "stream"  # a small shape is held against a plain cast
    assert {row["recipe"] for row in rows} == {"rceil"}
    found = {row["variant"]: row["bytes"] for row in rows}
    n = 2 * 64 * 96
    assert found["1x32 row plain n"] == 3 * n + n // 32
    assert found["32x1 col plain_t n"] == 3 * n + n // 32
    assert found["32x32 row plain n"] == 3 * n + n // 1024
    assert found["1x32 row swizzle_32_4_4 n"] == 3 * n + 2 * 128 * 4


def test_a_spec_of_any_back_end_stands_in_the_same_case(monkeypatch, tmp_path):
    specs = (WHOLE, dataclasses.replace(WHOLE, name="second", backend="cuda"))
    content = timed(monkeypatch, tmp_path, specs, ("cast3d",), variants=("32x1_n",))
    rows = of(content, "cast3d")
    assert [(row["implementation"], row["name"]) for row in rows] == [
        ("triton", "32x1_n"),
        ("cuda", "32x1_n"),
    ]


@pytest.mark.parametrize("data", ["specials", "subnormals"])
def test_adversarial_inputs_are_verified_too(monkeypatch, tmp_path, data):
    content = timed(
        monkeypatch, tmp_path, (WHOLE,), ("cast3d",), variants=("dim0", "32x32_t"), data=(data,)
    )
    rows = of(content, "cast3d")
    assert len(rows) == 2
    assert {row["data"] for row in rows} == {data}
    assert all(row["verified"] for row in rows)


def test_adversarial_inputs_hold_what_they_promise():
    tiny = Site((64, 96), "bfloat16", "cpu", "subnormals").pool("n").items[0]
    scales = mxref.quantize(tiny, block=(32, 32)).scale.view(torch.uint8)
    assert scales[0].tolist() == [0, 0, 0]
    assert scales[1].min() > 0
    assert tiny[:32].signbit().any()
    for kind in ("bfloat16", "float16", "float32"):
        x = Site((64, 96), kind, "cpu", "specials").pool("t").items[0]
        assert (x.shape, x.stride()) == ((64, 96), (1, 64))
        assert not x.isfinite().all()
        again = Site((64, 96), kind, "cpu", "specials").pool("t").items[0]
        assert difference(x, again) == ""


def test_a_wrong_kernel_is_marked_and_not_timed(monkeypatch, tmp_path):
    def floor_under_another_label(x, recipe, block, order, layout):
        return reference.quantize(x, "floor", block, order, layout)

    spec = claimed(floor_under_another_label)
    content = timed(monkeypatch, tmp_path, (spec,), ("cast3d",), variants=("32x1_n", "dim0"))
    rows = of(content, "cast3d")
    assert len(rows) == 2
    assert all(row["note"].startswith("WRONG: output") for row in rows)
    assert not any("median_us" in row or row["verified"] for row in rows)


def test_what_raises_is_a_row_too(monkeypatch, tmp_path):
    def unbuilt(x, recipe, block, order, layout):
        raise NotImplementedError("block=(32, 1) is not built")

    content = timed(monkeypatch, tmp_path, (claimed(unbuilt),), ("cast3d",), variants=("dim1",))
    assert of(content, "cast3d")[0]["note"] == "not built: block=(32, 1) is not built"


def test_every_configuration_is_timed_when_asked(monkeypatch, tmp_path):
    changes = {"variants": ("dim0",), "configs": "all"}
    content = timed(monkeypatch, tmp_path, (WHOLE,), ("cast3d",), **changes)
    assert [row["config"] for row in of(content, "cast3d")] == ["small", "large"]


def both(x, recipe, layout, config=None):
    return reference.quantize_both(x, recipe, (layout, layout))


def dequantize(payload, scale, block, order, layout, dtype, config=None):
    shape, contract = tuple(payload.shape), -1 if block[0] == 1 or block[1] == 32 else -2
    scale = mxref.layouts.decode(scale, layout, block=block, shape=shape, contract=contract)
    return mxref.dequantize(payload, scale, block=block, dtype=dtype)


def swizzle(scale, layout, *, offs=None, axis=None, config=None):
    if offs is None:
        return mxref.layouts.encode(scale, layout)
    return mxref.layouts.encode_groups(scale, offs, axis=axis)


def test_the_other_operations_are_read_off_the_registry(monkeypatch, tmp_path):
    monkeypatch.setitem(plan.SHAPES, "swizzle", ((256, 12),))
    calls = {"quantize_both": both, "dequantize": dequantize, "swizzle": swizzle}
    specs = tuple(dataclasses.replace(WHOLE, op=op, call=call) for op, call in calls.items())
    content = timed(monkeypatch, tmp_path, specs, ("both", "dequantize", "swizzle"))
    assert not [row for row in content["rows"] if row.get("note")]
    rows = of(content, "swizzle")
    assert [row["variant"] for row in rows] == ["whole", "groups M 32", "groups K 32"]
    assert [row["limit"] for row in rows] == ["cold"] * 3
    assert rows[1]["target"] == 0.85
    assert len(of(content, "both")) == 3
    assert {row["limit"] for row in of(content, "both")} == {"dual"}
    assert all("share_of_copy" in row for row in of(content, "both"))
    assert len(of(content, "dequantize")) == 9


def test_what_is_not_built_says_so(monkeypatch, tmp_path):
    monkeypatch.setattr(runner, "installed", lambda name: False)
    content = timed(monkeypatch, tmp_path, (), ("both", "linear"), variants=())
    assert [row["note"] for row in content["rows"]] == [
        "not built: both col plain", "not built: both col swizzle_32_4_4", "not built: linear",
    ]  # fmt: skip


def test_the_family_linear_is_run_group_by_group(monkeypatch, tmp_path):
    seen = []

    class Linear:
        @staticmethod
        def parser():
            parser = argparse.ArgumentParser()
            parser.add_argument("--device")
            for name in ("--quick", "--no-compile"):
                parser.add_argument(name, action="store_true")
            return parser

        @staticmethod
        def groups(options):
            seen.append((options.device, options.quick))
            return [(n, lambda n=n: [{"family": "linear", "size": n}]) for n in (32, 64)]

    monkeypatch.setattr(runner, "installed", lambda name: True)
    monkeypatch.setattr(runner, "import_module", lambda name: Linear)
    content = timed(monkeypatch, tmp_path, (), ("linear",))
    assert [row["size"] for row in content["rows"]] == [32, 64]
    timed(monkeypatch, tmp_path, (), ("linear", "both"), variants=())
    assert seen == [("cpu", False), ("cpu", True)]


def test_back_ends_can_be_named(monkeypatch, tmp_path):
    specs = (WHOLE, dataclasses.replace(WHOLE, name="second", backend="cuda"))
    changes = {"variants": ("dim0",), "backends": ("cuda",)}
    content = timed(monkeypatch, tmp_path, specs, ("cast3d",), **changes)
    assert [row["kernel"] for row in of(content, "cast3d")] == ["second"]


def test_the_limits_are_rows_and_a_budget_ends_the_run(monkeypatch, tmp_path):
    content = timed(monkeypatch, tmp_path, KERNELS, ("limits",), shapes=((32, 64),))
    names = [row["kernel"] for row in of(content, "limits") if row["remark"] != "candidate"]
    assert names == ["copy", "stream", "transpose", "dual"]
    content = timed(monkeypatch, tmp_path, KERNELS, ("cast3d",), variants=("dim0",), budget=0.0)
    assert [row["note"] for row in content["rows"]] == ["skipped: over 0 s"]
    assert content["rows"][0]["variant"] == "1x32 row plain n"


def test_a_pool_takes_turns_and_exceeds_the_cache():
    pool = Pool(["a", "b", "c"])
    assert [pool.next() for _ in range(4)] == ["b", "c", "a", "b"]
    assert sets_for(3 << 20, 60 << 20) * (3 << 20) >= 4 * (60 << 20)


class FakeWatch(timing.HostWatch):
    """A clock that each call moves on by what the call says."""

    now = 0.0

    def mark(self):
        return self.now


def fake_job(watch, seconds, wrong_after=10**9):
    calls = []

    def call(x):
        calls.append(x)
        watch.now += seconds * len(calls)
        return x + (len(calls) > wrong_after)

    made = Job({"name": seconds}, Pool([torch.zeros(4)]), call, lambda x: x, 32)
    return made, calls


def test_times_are_those_between_the_marks_of_a_call():
    watch = FakeWatch()
    (first, calls), (second, _) = (fake_job(watch, seconds) for seconds in (1.0, 100.0))
    timing.interleaved([first, second], 4, watch)
    # three calls to warm up, the fourth to the seventh are timed; each lasts as long as its number
    assert first.samples["events"] == [4e6, 5e6, 6e6, 7e6]
    assert second.samples["events"] == [400e6, 500e6, 600e6, 700e6]
    assert len(calls) == 7
    assert (first.note, second.note) == ("", "")


def test_what_goes_wrong_while_it_is_timed_is_found():
    watch = FakeWatch()
    job, _ = fake_job(watch, 1.0, wrong_after=6)
    timing.interleaved([job], 4, watch)
    assert job.note.startswith("WRONG")
    (row,) = runner.rows_of(job, None)
    assert "median_us" not in row
    right, _ = fake_job(watch, 1.0)
    timing.interleaved([right], 4, watch)
    assert runner.rows_of(right, None)[0]["samples"] == 4


def test_medians_and_their_spread():
    found = timing.summary([5.0, 1.0, 3.0, 2.0, 4.0])
    assert (found["min_us"], found["median_us"], found["max_us"]) == (1.0, 3.0, 5.0)
    assert (found["p20_us"], found["p80_us"]) == (2.0, 4.0)


def test_host_overhead_has_a_row_for_each_way_to_call(monkeypatch):
    kernels = tuple(spec for spec in KERNELS if spec.backend == "triton")
    monkeypatch.setattr(overhead, "KERNELS", kernels)
    rows = overhead.rows("cpu", batches=1, count=1)
    assert rows[0]["kernel"] == "mxkernels.quantize"
    assert rows[-1]["kernel"] == "x.to(float8_e4m3fn)"
    assert all(row["note"] == "" for row in rows)
    names = {row["kernel"] for row in rows}
    assert "quantize_triton launch, buffers given" in names
    judged = [row["kernel"] for row in rows if "beyond_launch_us" in row]
    assert "quantize_triton op" in judged
    assert all(name.endswith(" op") for name in judged)


def test_an_op_is_judged_by_what_it_costs_beyond_its_launch():
    samples = {"k op": [30.0, 31.0, 90.0], "k launch": [20.0, 18.0, 70.0]}
    assert overhead._beyond_launch("k op", samples)["beyond_launch_us"] == 13.0
    assert not overhead._beyond_launch("k op", samples)["reached"]
    assert overhead._beyond_launch("k launch", samples) == {}


def test_a_cold_start_is_a_process_of_its_own():
    (spec,) = (spec for spec in KERNELS if (spec.op, spec.backend) == ("swizzle", "triton"))
    (row,) = cold.rows("cpu", (spec,), (32, 32))
    assert row["note"] == ""
    parts = sum(row[name] for name in ("torch_s", "import_s", "device_s", "first_call_s"))
    assert 0 < row["seconds"] < parts < row["process_s"]


def test_a_process_that_fails_is_a_note(monkeypatch):
    monkeypatch.setattr(cold, "CHILD", "raise SystemExit('no such kernel')")
    row = cold.rows("cpu", (WHOLE,), (32, 32))[0]
    assert row["note"] == "error: no such kernel"
    assert "seconds" not in row


@pytest.mark.parametrize(("size", "groups"), [(131072, 32), (224, 32), (12, 32), (7, 1)])
def test_group_ends_rise_and_cover_all(size, groups):
    ends = others.group_ends(size, groups)
    assert ends == sorted(ends)
    assert (len(ends), ends[-1]) == (groups, size)
    assert ends[0] >= 0
