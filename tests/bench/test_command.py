"""The command line `mxkernels bench`: plans, sub-commands, wrong calls, no GPU."""

import contextlib
import dataclasses
import io
import json
import os
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

import pytest
import torch

import mxkernels
from mxkernels.bench import casts, choices, command, plan, records, site
from mxkernels.bench.plan import Plan, cases
from mxkernels.cli import main
from mxref.cli.errors import WrongCallError
from tests.bench.test_records import synthetic

ROOT = Path(mxkernels.__file__).parents[1]
COMMITTED = ROOT / "mxkernels" / "bench" / "results" / "2026-11-30-h200-quantize.json"


def call(*arguments):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(["bench", *map(str, arguments)])
    return code, out.getvalue(), err.getvalue()


@pytest.fixture
def results_file(tmp_path):
    path = tmp_path / "run.json"
    path.write_text(json.dumps(synthetic()))
    return path


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_without_a_gpu_one_line_and_exit_2(tmp_path):
    code, out, err = call("--json", tmp_path / "out.json")
    assert (code, out) == (2, "")
    assert err.startswith("mxkernels: no CUDA device: torch ")
    assert err.count("\n") == 1
    assert not (tmp_path / "out.json").exists()


def test_a_command_that_does_not_exist_is_met_with_those_that_do():
    code, _, err = call("nothing")
    allowed = "show, winners, plot, headline, compare"
    assert code == 2
    assert err == f"mxkernels: No such command 'nothing': expected one of {allowed}\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ("--families", "x"),
        ("--shapes", "12xa"),
        ("--shapes", "0x32"),
        ("--shapes", "64"),
        ("--recipes", "fast"),
        ("--layouts", "blocked"),
        ("--dtypes", "fp8"),
        ("--data", "zeros"),
        ("--peers", "cutlass"),
        ("--backends", "hip"),
        ("--peers", "none,torchao"),
        ("--variants", "33x1_n"),
        ("--configs", "best"),
        ("--rounds", "0"),
        ("--budget", "-1"),
        ("--compare", "none.json"),
        ("--fail-on-regression", "5"),
        ("--unknown", "1"),
        ("nothing",),
        ("--families", "cast", "--shapes", "2x64x64"),
        ("plot", "none.json", "--png", "x.png"),
        ("plot", COMMITTED),
        ("plot", COMMITTED, "--png", "x.png", "--recipe", "even"),
        ("plot", COMMITTED, "--png", "x.png", "--families", "host"),
        ("headline", "none.json"),
        ("headline", COMMITTED, "--recipe", "even"),
        ("headline", COMMITTED, "--recipe", "nope"),
        ("headline", COMMITTED, "--into", "none.md"),
        ("compare", COMMITTED, "none.json"),
        ("show", ROOT / "LICENSE"),
    ],
    ids=lambda arguments: " ".join(map(str, arguments[:4]))[-40:],
)
def test_a_wrong_call_is_one_line_and_exit_2(arguments, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = call(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("mxkernels: ")
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_written_is_found_before_the_run(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(command, "_measured", lambda *a: pytest.fail("it ran"))
    for option in ("--json", "--csv", "--png"):
        code, _, err = call(option, tmp_path)
        assert code == 2
        assert f"{option}=" in err


def test_without_matplotlib_the_extra_is_named(monkeypatch, results_file):
    monkeypatch.setattr(choices, "installed", lambda name: False)
    code, _, err = call("plot", results_file, "--png", "x.png")
    assert code == 2
    assert "mxref[bench]" in err


def test_the_default_run_has_the_shapes_of_the_literature():
    found = cases(Plan())
    assert len(found) == len(set(found)) == 193
    count = Counter((case.family, case.shape, case.data) for case in found)
    assert count["cast", (16384, 16384), "randn"] == 10
    for shape in plan.EXPERT_SHAPES + plan.ODD_SHAPES:
        assert count["cast3d", shape, "randn"] == 4 * 2
    for data in ("specials", "subnormals"):
        assert count["cast", (16384, 16384), data] > 0
        assert count["cast3d", (3, 96, 416), data] > 0
    assert found[0].family == "host"
    assert [case.family for case in found[-2:]] == ["cold", "linear"]


def test_cases_of_one_site_follow_one_another():
    for chosen in (Plan(), Plan(dtypes=("bfloat16", "float32"), data=plan.DATA)):
        sites = [case.site for case in cases(chosen) if case.shape]
        runs = [site for site, past in zip(sites, [None, *sites], strict=False) if site != past]
        assert len(runs) == len(set(runs))


@pytest.mark.parametrize(
    ("arguments", "number"),
    [((), 193), (("--quick",), 28), (("--families", "cast3d", "--recipes", "rceil"), 52)],
)
def test_a_dry_run_counts_the_cases(arguments, number):
    code, out, err = call("--dry-run", *arguments)
    assert (code, err) == (0, "")
    assert f"{number} cases" in out


def options(**given):
    return {"quick": False, "tune": False} | given


def test_quick_and_tune_plans():
    quick = choices.plan_of(options(quick=True))
    assert (quick.recipes, quick.budget) == (("rceil",), 85.0)
    assert "cold" not in quick.families
    tune = choices.plan_of(options(tune=True, shapes="1x64x32"))
    assert (tune.configs, tune.shapes, tune.peers) == ("all", ((1, 64, 32),), ())
    chosen = choices.plan_of(options(dtypes="fp32,bf16", peers="none", variants="32x1_t"))
    assert chosen.dtypes == ("float32", "bfloat16")
    assert {case.variant for case in cases(chosen) if case.family == "cast3d"} == {
        "32x1 col swizzle_32_4_4 t"
    }
    assert choices.plan_of(options()).peers == ("torch_compile", "two_stage", "torchao")


def test_results_are_shown_compared_and_put_into_a_readme(results_file, tmp_path):
    code, out, _ = call("show", results_file, "--csv", tmp_path / "out.csv")
    assert code == 0
    assert "1.26 x two stages" in out
    assert (tmp_path / "out.csv").read_text().startswith("family,shape")
    code, out, _ = call("winners", results_file)
    assert code == 0
    assert "1.053 x" in out
    code, out, _ = call("headline", results_file)
    assert code == 0
    assert out.startswith("| variant | shape |")
    readme = tmp_path / "README.md"
    readme.write_text("<!-- mxkernels bench headline x -->\n<!-- end of headline -->\n")
    assert call("headline", results_file, "--into", readme)[0] == 0
    assert out.strip() in readme.read_text()
    assert "<!-- mxkernels bench headline run.json -->" in readme.read_text()


def test_compare_fails_only_when_asked(results_file, tmp_path):
    slower = synthetic()
    slower["rows"][0] |= {"median_us": 1200.0, "p20_us": 1190.0, "p80_us": 1210.0}
    new = tmp_path / "new.json"
    new.write_text(json.dumps(slower))
    code, out, _ = call("compare", results_file, new)
    assert code == 0
    assert "1.200" in out
    assert "1 slower" in out
    assert call("compare", results_file, new, "--fail-on-regression", "10")[0] == 1
    assert call("compare", results_file, new, "--fail-on-regression", "30")[0] == 0


def test_a_plot_is_written(results_file, tmp_path):
    pytest.importorskip("matplotlib")
    png = tmp_path / "plot.png"
    assert call("plot", results_file, "--png", png, "--variants", "32x1_n") == (0, "", "")
    assert png.read_bytes().startswith(b"\x89PNG")


def test_a_run_writes_every_file_and_judges(tmp_path, monkeypatch, results_file):
    """The whole command; what is measured is one tiny shape on a CPU, by the reference's bytes."""
    pytest.importorskip("matplotlib")
    from tests.bench.test_runner import WHOLE

    monkeypatch.setattr(plan, "KERNELS", (WHOLE,))
    monkeypatch.setattr(casts, "KERNELS", (WHOLE,))
    monkeypatch.setattr(site, "CANDIDATE_ROUNDS", 1)
    usual = choices.plan_of
    on_cpu = lambda given: dataclasses.replace(usual(given), device="cpu")  # noqa: E731
    monkeypatch.setattr(choices, "plan_of", on_cpu)
    files = {name: tmp_path / "new" / f"out.{name}" for name in ("json", "csv", "png")}
    arguments = [f"--{name}={path}" for name, path in files.items()]
    arguments += ["--families=cast3d", "--shapes=2x64x96,1x32x64", "--variants=dim0,dim1"]
    arguments += ["--recipes=rceil", "--peers=torchao", "--rounds=2"]
    code, out, err = call(*arguments, f"--compare={results_file}")
    assert code == 0, (out, err)
    assert "0 of 4: cast3d 2x64x96 randn" in err
    assert "0 of ours wrong or failed" in out
    assert "torchao: torchao is not installed" in out
    assert "gpu: Fast -> none" in out
    assert "beyond the noise: " in out
    content = json.loads(files["json"].read_text())
    assert content["complete"]
    assert {"date", "torch", "triton", "spec"} <= set(content["environment"])
    assert len(files["csv"].read_text().splitlines()) == 1 + 4
    assert files["png"].read_bytes().startswith(b"\x89PNG")
    assert call("compare", files["json"], files["json"])[0] == 0


def test_a_run_goes_on_where_its_budget_ended_it(tmp_path, monkeypatch):
    from tests.bench.test_runner import WHOLE

    monkeypatch.setattr(plan, "KERNELS", (WHOLE,))
    monkeypatch.setattr(casts, "KERNELS", (WHOLE,))
    monkeypatch.setattr(site, "CANDIDATE_ROUNDS", 1)
    usual = choices.plan_of
    on_cpu = lambda given: dataclasses.replace(usual(given), device="cpu")  # noqa: E731
    monkeypatch.setattr(choices, "plan_of", on_cpu)
    path, again = tmp_path / "first.json", tmp_path / "second.json"
    arguments = ["--families=cast3d", "--shapes=2x64x96", "--recipes=rceil", "--peers=none"]
    arguments += ["--rounds=1"]
    assert call(*arguments, "--variants=dim0", f"--json={path}")[0] == 0
    arguments += ["--variants=dim0,dim1", f"--resume={path}", f"--json={again}"]
    assert call(*arguments, "--budget=0")[0] == 0
    notes = [row["note"] for row in json.loads(again.read_text())["rows"]]
    assert notes.count("skipped: over 0 s") == 1
    arguments[-2] = f"--resume={again}"
    assert call(*arguments)[0] == 0
    content = json.loads(again.read_text())
    timed = [row["name"] for row in content["rows"] if row["family"] == "cast3d"]
    assert timed == ["dim0", "dim1"]
    assert len(content["resumed"]) == 2
    monkeypatch.setattr(command, "environment", lambda: {"torch": "0"})
    code, _, err = call(*arguments)
    assert code == 2
    assert "not of this machine" in err


def test_the_console_script_and_python_m_are_the_same_command():
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert scripts["mxkernels"] == f"{main.__module__}:{main.__name__}"
    command = [sys.executable, "-m", "mxkernels", "bench", "--dry-run", "--quick"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    ran = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "28 cases" in ran.stdout


@pytest.mark.parametrize("name", ["typer", "rich"])
def test_without_the_extra_the_command_names_it(name):
    code = (
        "import sys\n"
        "class Blocked:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name.split('.')[0] == {name!r}:\n"
        "            raise ModuleNotFoundError(name, name=name)\n"
        "sys.meta_path.insert(0, Blocked())\n"
        "from mxkernels.cli import main\n"
        "sys.exit(main(['bench']))\n"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment
    )
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.count("\n") == 1
    assert "mxref[bench]" in ran.stderr


def test_json_replaces_results_and_nothing_else(tmp_path):
    old, notes = tmp_path / "old.json", tmp_path / "notes.json"
    old.write_text('{"environment": {}, "rows": []}')
    notes.write_text('{"mine": 1}')
    choices.results("--json", old)
    choices.results("--json", tmp_path / "new.json")
    with pytest.raises(WrongCallError, match=r"--json='.*notes.json': exists and is no results"):
        choices.results("--json", notes)
    assert notes.read_text() == '{"mine": 1}'
    assert not (tmp_path / "new.json").exists()


@pytest.mark.parametrize("check", [choices.output, choices.plotting])
def test_a_link_and_a_device_stay(check, tmp_path):
    pytest.importorskip("matplotlib")
    link, pipe = tmp_path / "link", tmp_path / "device"
    link.symlink_to("nowhere")
    pipe.symlink_to("/dev/null")
    check("--csv", link)
    check("--csv", pipe)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["device", "link"]
    assert Path("/dev/null").is_char_device()


def test_results_are_no_device():
    with pytest.raises(WrongCallError, match="--json='/dev/null': exists and is no results file"):
        choices.results("--json", Path("/dev/null"))


@pytest.mark.gpu
def test_the_benchmark_runs_on_a_gpu(tmp_path):
    path = tmp_path / "out.json"
    arguments = ["--shapes", "1024x1024,2x96x64", "--quick", "--families", "cast,cast3d,host"]
    code, out, err = call("--json", path, *arguments)
    content = json.loads(path.read_text())
    assert records.failures(content["rows"]) == []
    assert (code, err.count("error")) == (0, 0)
    methods = {row.get("method") for row in content["rows"] if row["family"] == "cast"}
    assert {"events", "graph"} <= methods
    assert "0 of ours wrong or failed" in out
