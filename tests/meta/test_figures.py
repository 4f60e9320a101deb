"""Figures in the READMEs and the CHANGELOG are those of the results files beside the code."""

import json
import re
from pathlib import Path

import pytest

from mxkernels.bench import headline, records
from mxkernels.bench.limits import config_text
from mxkernels.swizzle import configs as swizzle_configs
from tests.meta import speed_tables

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "mxkernels" / "bench" / "results"


def page(*parts: str) -> str:
    """A page with every space and end of line as one space."""
    return " ".join(ROOT.joinpath(*parts).read_text().split())


SPEED = page("mxkernels", "quantize", "README.md")
README = (ROOT / "README.md").read_text()
CHANGELOG = (ROOT / "CHANGELOG.md").read_text()


def result(name: str) -> dict:
    (path,) = RESULTS.glob(f"????-??-??-{name}.json")
    return json.loads(path.read_text())


def timed(name: str) -> list[dict]:
    return [
        row
        for row in result(name)["rows"]
        if row.get("method") == "events" and row.get("target") and "share" in row
    ]


@pytest.mark.parametrize("line", list(speed_tables.variants(result("h200-kernels"))))
def test_the_speed_table_is_the_measured_one(line):
    assert line in SPEED


@pytest.mark.parametrize(
    ("part", "name"),
    [
        ("both", "both"),
        ("both_of_copy", "both"),
        ("both_swizzled", "kernels"),
        ("plain_formula", "bench"),
        ("small", "small"),
        ("small_torch", "small"),
        ("host", "kernels"),
        ("cold", "kernels"),
    ],
)
def test_the_other_speeds_are_the_measured_ones(part, name):
    assert getattr(speed_tables, part)(result(f"h200-{name}")) in SPEED


@pytest.mark.parametrize(
    ("backend", "usual"), list(zip(speed_tables.OURS, speed_tables.DEFAULTS, strict=True))
)
def test_both_directions_take_the_configuration_whose_slower_rule_is_the_fastest(backend, usual):
    rows = speed_tables.timed(result("h200-both"), ("both",))
    won = []
    for shape in speed_tables.LARGE:
        shares: dict[str, float] = {}
        for row in rows:
            if tuple(row["shape"]) == shape and row["backend"] == backend:
                shares[row["config"]] = min(row["share"], shares.get(row["config"], 1.0))
        won.append(max(shares, key=shares.__getitem__))
    assert won.count(config_text(usual)) >= 2


def test_no_variant_is_below_its_target():
    rows = speed_tables.timed(result("h200-kernels"), ("cast", "cast3d", "dequantize"))
    rows += [
        row
        for row in speed_tables.timed(result("h200-both"), ("both",))
        if row["config"] in map(config_text, speed_tables.DEFAULTS)
    ]
    rows = [row for row in rows if row["backend"] in speed_tables.OURS]
    judged = [r for r in rows if r.get("target") and tuple(r["shape"]) in speed_tables.LARGE]
    assert len(judged) > 60
    assert all(row["share"] >= row["target"] for row in judged)


def test_dequantize_and_swizzle_figures():
    usual = [config_text(swizzle_configs.SWIZZLES[index]) for index in (0, 1)]
    rows = [r for r in timed("h200-kernels") if r["family"] == "dequantize"]
    rows = [r for r in rows if r["shape"] == [16384, 16384]]
    for kind, config in zip(("groups M 32", "groups K 32"), usual, strict=True):
        found = [r for r in timed("h200-swizzle") if (r["variant"], r["config"]) == (kind, config)]
        rows += found
        assert found
    for row in rows:
        text = page("mxkernels", row["family"], "README.md")
        line = f"{row['variant']}: {row['median_us']:.1f} us, {row['share']:.3f}"
        assert line in text
        assert line in SPEED


def test_the_figures_of_the_decode():
    text = page("mxkernels", "matmul", "README.md")
    rows = result("h200-matmul")["rows"]
    plain = {r["size"]: r["us"] for r in rows if r.get("backend") == "dequantize"}
    fast = [r for r in rows if r.get("backend") == "triton" and r["config"] == "default"]
    assert [row["size"] for row in fast] == [1, 4, 16, 32, 64]
    for row in fast:
        size, us = row["size"], row["us"]
        assert f"| {size} | {us:.1f} | {plain[size]:.1f} | {row['ratio']:.2f} |" in text
    auto = next(r for r in rows if r["family"] == "matmul")
    assert f"{auto['us']:.0f} us, {auto['ratio']:.2f} of the speed" in text
    assert f"({auto['bf16_us']:.0f} us; target {auto['target']:.2f})" in text


def test_the_figures_of_a_layer():
    text = page("mxkernels", "linear", "README.md")
    rows = [r for r in result("h200-linear")["rows"] if r["layer"] == "linear"]
    rows = sorted(rows, key=lambda r: (r["size"], r["compiled"]))
    eager, compiled = (row for row in rows if row["size"] == 8192)
    over = [f"{row['cast_times_limit']:.2f} at {row['size']}" for row in rows[::2]]
    times = [f"{r[key]:.1f}" for key in ("end_to_end_us", "bf16_us") for r in (eager, compiled)]
    assert "end to end {} us in eager mode, {} compiled, bf16 {} and {}".format(*times) in text
    casts = f"{eager['measured_cast_us']:.1f} us beside {eager['roofline_cast_us']:.1f} us"
    assert casts in text
    assert ", ".join(over) in text


def test_the_figures_of_the_training_task():
    text = (ROOT / "docs" / "training.md").read_text()
    for name, row in result("h200-training")["summary"].items():
        loss, accuracy = row["final_loss"], row["accuracy"]
        cells = [f"{each['mean']:.4f} ± {each['deviation']:.4f}" for each in (loss, accuracy)]
        assert f"| {name} | {' | '.join(cells)} |" in text
        assert row.get("within_two_deviations", True)


def test_the_rates_of_the_mutants():
    found = result("mutants")
    total, counts, held = found["mutants"], found["counts"], found["held_out"]
    for key, name in (
        ("full", "`mxref.testing`, level full"),
        ("smoke", "`mxref.testing`, level smoke"),
        ("randn_default", "randn and `assert_close`, default tolerances"),
        ("randn_atol", "randn and `assert_close`, atol=1e-2, rtol=0"),
    ):
        share = f"{100 * counts[key] / total:.1f} %"
        assert f"| {name} | {counts[key]} of {total} | {share} |" in README
    assert f"names the true cause of {counts['named']} of {total}" in README
    assert f"{held['counts']['named']} of {held['mutants']} that were written after it" in README
    assert f"{found['right']} right quantizers" in README


HEADLINES = [
    (path, file, table)
    for path in (ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "mxkernels").rglob("*.md"))
    for file, table in headline.marked(path.read_text())
]


@pytest.mark.parametrize(("name", "file", "table"), HEADLINES)
def test_a_headline_is_the_table_of_the_results_it_names(name, file, table):
    recipe = re.search(r", (\w+)\n", table)[1]
    assert table == headline.table(records.load(ROOT / file), recipe)


def test_a_figure_that_is_changed_by_hand_is_found():
    file = "mxkernels/bench/results/2026-11-30-h200-quantize.json"
    content = records.load(ROOT / file)
    empty = f"{headline.BEGIN}{file} -->\n{headline.END}"
    text = headline.write(empty, file, content)
    assert headline.marked(text) == [(file, headline.table(content))]
    assert headline.marked(text.replace("187.6", "177.6")) != [(file, headline.table(content))]


def test_a_plot_in_a_readme_lies_among_the_results():
    for path in (ROOT / "README.md", *(ROOT / "mxkernels").rglob("*.md")):
        for image in re.findall(r"!\[[^\]]*\]\(([^)]+\.png)\)", path.read_text()):
            found = (path.parent / image).resolve()
            assert found.parent == RESULTS.resolve(), image
            assert found.read_bytes().startswith(b"\x89PNG"), image


def reference_times(found: dict) -> tuple[float, float]:
    """Milliseconds of mxref and of torchao, bf16 and (1, 32); older files name them otherwise."""
    if "times" in found:
        ours, theirs = (found["times"][name]["median_ms"] for name in ("bf16 1x32", "torchao"))
        return ours, theirs
    rows = [r for r in found["rows"] if (r["operation"], r["dtype"]) == ("quantize", "bf16")]
    times = {r["implementation"]: r["median_ms"] for r in rows if r["block"] == [1, 32]}
    return times["mxref"], times["torchao"]


def test_the_figures_of_the_reference():
    found = result("cpu")
    ours, theirs = reference_times(found)
    extra, large = found["memory"][0]["extra_bytes"], found["memory"][1]["peak_bytes"]
    text = (
        f"{ours:.0f} ms, {theirs / ours:.2f} times as fast as torchao's eager `to_mx` "
        f"({theirs:.0f} ms)"
    )
    assert text in CHANGELOG
    assert f"{extra / 2**20:.1f} MiB beyond the outputs" in CHANGELOG
    assert f"{large / 2**30:.2f} GiB in all" in CHANGELOG


def test_the_elements_compared_on_the_gpu():
    for block in ("1x32", "32x1", "32x32"):
        content = result(f"h200-verify-{block}-rceil")
        assert content["passed"]
        total = sum(r["elements"] for report in content["reports"] for r in report["results"])
        backends = {report["target"] for report in content["reports"]}
        assert {"quantize_triton", "quantize_cuda"} <= {name.split(" ")[0] for name in backends}
        assert f"{total:,}" in README


def test_the_figures_of_the_checkpoint():
    content = result("checkpoint")
    verdicts = {
        (name, each["verdict"])
        for tensor in content["tensors"]["tensors"]
        for name, each in tensor["targets"].items()
    }
    assert {verdict for _, verdict in verdicts} == {"equal"}
    assert len(verdicts) == 4, "triton and compile, floor and rceil"
    totals = content["tensors"]["totals"]
    assert f"{totals['floor']['elements']:,} elements" in README
    for rule in ("floor", "rceil"):
        assert f"{totals[rule]['sqnr_db']:.2f} dB" in README
    assert f"{totals['floor']['saturated_share']:.2%}".replace("%", " %") in README
    assert totals["rceil"]["saturated"] == 0
