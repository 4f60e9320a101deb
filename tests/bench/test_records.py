"""Results files: one row a comparison, CSV, changes beyond the noise, headline, plot, tables."""

import copy
import csv
import json
from pathlib import Path

import pytest

import mxkernels.bench
from mxkernels.bench import changes, headline, plots, records, tables

FOLDER = Path(mxkernels.bench.__file__).parent / "results"
COMMITTED = [
    FOLDER / f"2026-11-30-h200-{name}.json" for name in ("quantize", "tune", "dequantize-swizzle")
]

ENVIRONMENT = {
    "date": "2026-12-01 10:00:00",
    "gpu": "Fast",
    "driver": "1",
    "torch": "2.11",
    "triton": "3.6",
}


def row(who, us, **changes):
    made = {
        "family": "cast3d",
        "shape": [32, 8192, 5120],
        "dtype": "bfloat16",
        "data": "randn",
        "variant": "32x1 col swizzle_32_4_4 n",
        "recipe": "rceil",
        "implementation": who,
        "kernel": f"quantize_{who}",
        "config": "",
        "method": "events",
        "bytes": 4_000_000_000,
        "verified": "1 of 1 sets",
        "note": "",
        "remark": "",
        "median_us": us,
        "p20_us": us * 0.99,
        "p80_us": us * 1.01,
        "gbps": round(4_000_000 / us, 1),
        "limit": "transpose",
        "limit_us": 900.0,
        "limit_gbps": 4444.4,
        "share": round(900 / us, 4),
    }
    return made | changes


def failed(who, note, **changes):
    timing = ("median_us", "p20_us", "p80_us", "gbps", "share", "method", "limit_us", "limit_gbps")
    kept = {k: v for k, v in row(who, 1.0).items() if k not in timing}
    return kept | {"note": note, "verified": ""} | changes


def synthetic():
    small = {"shape": [1, 8192, 5120], "bytes": 125_000_000}
    rows = [
        row("triton", 1000.0, target=0.95, reached=False),
        row("cuda", 950.0, target=0.95, reached=True),
        row("torch_compile", 9500.0),
        row("two_stage", 1200.0),
        failed("torchao", "not built: torchao refuses: SM 10.x"),
        row("triton", 40.0, **small),
        failed("cuda", "WRONG: output 1: 3 of 9 elements differ, the first at 0", **small),
        {
            "family": "host",
            "kernel": "k op",
            "method": "host",
            "median_us": 30.0,
            "p20_us": 29.0,
            "p80_us": 31.0,
            "note": "",
            "reached": False,
            "target_text": "<= 12 us over launch",
            "remark": "13.0 us beyond its launch",
        },
        {"family": "cold", "kernel": "k", "seconds": 3.25, "reached": True, "note": ""},
        {
            "family": "limits",
            "shape": [32, 8192, 5120],
            "kernel": "copy",
            "method": "events",
            "median_us": 800.0,
            "gbps": 5000.0,
            "note": "",
        },
        {"family": "linear", "kernel": "", "note": "not built: linear"},
        {"family": "linear", "size": 8192, "layer": "linear", "speed_up": 0.75, "note": ""},
    ]
    return {"environment": ENVIRONMENT, "plan": {}, "seconds": 1.0, "rows": rows}


@pytest.fixture
def content(tmp_path):
    path = tmp_path / "run.json"
    path.write_text(json.dumps(synthetic()))
    return records.load(path)


def test_what_was_timed_in_turns_is_one_row(content):
    large, small = records.pivot(content["rows"])
    assert (large["triton_us"], large["cuda_us"], large["torch_compile_us"]) == (1000, 950, 9500)
    assert (large["limit"], large["limit_gbps"], large["name"]) == ("transpose", 4444.4, "32x1_n")
    assert large["cuda_spread"] == 0.01
    assert large["torchao_note"].startswith("not built: torchao refuses")
    assert (large["best"], large["speedup"], large["speedup_over"]) == ("cuda", 1.263, "two_stage")
    assert small["cuda_note"].startswith("WRONG")
    assert "cuda_us" not in small
    assert small["best"] == "triton"
    assert "speedup" not in small


def test_a_figure_whose_bytes_were_wrong_is_never_the_best(content):
    rows = [row("triton", 10.0), row("cuda", 1.0, note="WRONG: output 0"), row("two_stage", 20.0)]
    (found,) = records.pivot(map(records.today, rows))
    assert (found["best"], found["speedup"]) == ("triton", 2.0)


def test_the_fastest_configuration_stands_for_a_kernel():
    rows = [row("triton", us, config=name) for us, name in ((3.0, "a"), (1.0, "b"), (2.0, "c"))]
    (found,) = records.pivot(map(records.today, rows))
    assert (found["triton_us"], found["triton_config"]) == (1.0, "b")


def test_winners_are_named_over_all_shapes(content):
    small = {"shape": [1, 8192, 5120]}
    rows = [row("triton", 4.0), row("cuda", 2.0), row("triton", 3.0, **small)]
    rows += [row("cuda", 6.0, **small), row("triton", 1.0, data="specials")]
    rows += [row("triton", 9.0, recipe="floor"), row("torch_compile", 0.1)]
    (found,) = records.winners(records.pivot(map(records.today, rows)))
    # over the two rows that both were timed in: sqrt(4 * 3) and sqrt(2 * 6)
    assert (found["rows"], found["over_next"]) == (2, 1.0)
    rows[3]["median_us"] = 24.0
    (found,) = records.winners(records.pivot(map(records.today, rows)))
    assert (found["best"], found["next"], found["over_next"]) == ("triton", "cuda", 2.0)


def test_failures_are_those_of_our_own(content):
    assert [each["implementation"] for each in records.failures(content["rows"])] == ["cuda"]
    peer = failed("torch_compile", "WRONG: output 0")
    assert records.failures([peer, {"family": "limits", "note": "WRONG: x"}]) == []


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: path.stem)
def test_older_files_are_read_in_todays_words(path):
    rows = records.load(path)["rows"]
    assert not any(each["family"] == "quantize" for each in rows)
    wide = records.pivot(rows)
    assert wide
    assert all("triton_us" in each or "torch_compile_us" in each for each in wide)


def test_csv_has_the_columns_of_the_literature(content, tmp_path):
    path = tmp_path / "out.csv"
    tables.write_csv(path, records.pivot(content["rows"]))
    with path.open() as file:
        first, second = csv.DictReader(file)
    assert (first["shape"], first["triton_us"], first["cuda_gbps"]) == (
        "32x8192x5120", "1000.0", "4210.5",
    )  # fmt: skip
    assert first["torchao_us"] == ""
    assert second["cuda_note"].startswith("WRONG")


def test_tables_show_figures_failures_and_notes(content, capsys):
    tables.show(content)
    text = capsys.readouterr().out
    for part in (
        "1000.0 4000 0.900 ±1.0%",
        "1.26 x two stages",
        "CUDA: WRONG",
        "cast3d 32x8192x5120 bf16 randn",
        "torchao: not built: torchao refuses: SM 10.x (32x8192x5120 32x1 col swizzle_32_4_4 n)",
        "13.0 us beyond its launch",
        "3.25 s",
        "not built: linear",
        "8192",
        "0.75",
    ):
        assert part in text
    tables.show(content | {"rows": []})
    assert capsys.readouterr().out == ""


def again(content, index, **changed):
    new = copy.deepcopy(content)
    new["rows"][index] |= changed
    return new


def times(us, spread=0.01):
    return {"median_us": us, "p20_us": us * (1 - spread), "p80_us": us * (1 + spread)}


def verdicts(old, new):
    found = changes.changes(old["rows"], new["rows"])
    return [change.verdict for change in found if change.verdict != "same"]


def test_a_run_against_itself_has_no_change(content):
    assert verdicts(content, content) == ["still wrong"]
    assert changes.regressions(changes.changes(content["rows"], content["rows"]), 0.0) == []


@pytest.mark.parametrize(
    ("us", "spread", "verdict"),
    [
        (1040.0, 0.01, None),  # 3 combined spreads are 4.2 %
        (1050.0, 0.01, "slower"),
        (1050.0, 0.05, None),
        (960.0, 0.01, None),
        (950.0, 0.01, "faster"),
    ],
)
def test_a_change_counts_beyond_the_noise_of_both(content, us, spread, verdict):
    found = verdicts(content, again(content, 0, **times(us, spread)))
    assert [each for each in found if each != "still wrong"] == ([verdict] if verdict else [])


def test_two_quiet_runs_need_two_percent(content):
    old = again(content, 0, **times(1000.0, 0.0))
    assert "slower" not in verdicts(old, again(content, 0, **times(1019.0, 0.0)))
    assert "slower" in verdicts(old, again(content, 0, **times(1021.0, 0.0)))


def test_regressions_are_ours_and_beyond_what_is_allowed(content):
    slower = again(content, 0, **times(1100.0))
    found = changes.changes(content["rows"], slower["rows"])
    assert len(changes.regressions(found, 5.0)) == 1
    assert changes.regressions(found, 10.1) == []
    peer = again(content, 2, **times(19000.0))
    assert changes.regressions(changes.changes(content["rows"], peer["rows"]), 0.0) == []
    wrong = again(content, 0, note="WRONG: output 0")
    assert len(changes.regressions(changes.changes(content["rows"], wrong["rows"]), 99.0)) == 1


def test_new_and_gone_rows_and_another_machine_are_named(content):
    fewer = content | {"rows": content["rows"][1:]}
    assert "gone" in verdicts(content, fewer)
    assert "new" in verdicts(fewer, content)
    other = content | {"environment": ENVIRONMENT | {"driver": "2"}}
    assert changes.machines(content, other) == ["driver: 1 -> 2"]
    assert changes.machines(content, content) == []


def test_the_headline_is_a_table_and_its_machine(content):
    text = headline.table(content)
    assert "| 32x1_n | 32 x 8192 x 5120 | CUDA | 950.0 | 4.21 | 0.947 | 10.00 | 1.26 |" in text
    assert "One Fast, driver 1, torch 2.11, Triton 3.6, 2026-12-01, bf16, rceil" in text
    with pytest.raises(ValueError, match="recipe='floor'"):
        headline.table(content, "floor")


def test_the_headline_is_replaced_between_its_comments(content):
    text = f"before\n{headline.BEGIN}old.json -->\n| old |\n{headline.END}\nafter\n"
    new = headline.write(text, "new.json", content)
    assert new.startswith("before\n")
    assert new.endswith("\nafter\n")
    assert headline.marked(new) == [("new.json", headline.table(content))]
    assert headline.write(new, "new.json", content) == new
    with pytest.raises(ValueError, match="two comments"):
        headline.write("nothing", "new.json", content)


def test_the_plot_is_a_png_of_the_rows(content, tmp_path):
    pytest.importorskip("matplotlib")
    found = plots.panels(content, ("cast", "cast3d"), (), "rceil")
    assert list(found) == [("cast3d", "32x1_n")]
    assert [each["bytes"] for each in found["cast3d", "32x1_n"]] == [125_000_000, 4_000_000_000]
    path = tmp_path / "plot.png"
    plots.draw(path, content)
    assert path.read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ValueError, match="recipe=floor"):
        plots.draw(path, content, recipe="floor")


def test_a_committed_file_is_plotted(tmp_path):
    pytest.importorskip("matplotlib")
    content = records.load(COMMITTED[0])
    assert len(plots.panels(content, ("cast", "cast3d"), ("32x1_n", "dim0"), "rceil")) == 4
    plots.draw(tmp_path / "plot.png", content, variants=("32x1_n", "dim0"))
    assert (tmp_path / "plot.png").stat().st_size > 10_000


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"rows": [1]}', '{"rows": [{}]}'])
def test_what_is_no_results_file_is_named(tmp_path, text):
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"results='.*x\.json': "):
        records.load(path)
