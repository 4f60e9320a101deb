"""Of one or two samples no spread is told; three and more have one."""

import io

import pytest
from rich.console import Console

from mxkernels.bench import changes, records, tables, timing
from mxkernels.bench.jobs import Job
from mxkernels.bench.linear_rows import spread
from mxref.cli import bench, oracle

SAMPLES = ([10.0], [10.0, 10.0], [10.0, 10.0, 10.0])
SUBJECT = oracle.Subject("mxref", "quantize", "bf16", (1, 32), 64, 128, list)


def shown(table) -> str:
    out = io.StringIO()
    Console(file=out, width=200).print(table)
    return out.getvalue()


def row(samples):
    labels = {"implementation": "cuda", "recipe": "rceil", "dtype": "bfloat16", "variant": "dim0"}
    labels |= {"shape": [64, 64], "data": "randn", "method": "events", "gbps": 1.0, "kernel": "k"}
    return records.today({"family": "cast", "note": "", **labels} | timing.summary(samples))


@pytest.mark.parametrize("samples", SAMPLES, ids=len)
def test_the_tables_of_kernels_tell_a_spread_of_three_samples(samples, tmp_path):
    told = len(samples) > 2
    assert records.spread(row(samples)) == (0.0 if told else None)
    wide = records.pivot([row(samples)])
    assert ("cuda_spread" in wide[0]) == told
    host = row(samples) | {"family": "host"}
    for table in (*tables.comparisons(wide), tables.single([host])):
        text = shown(table)
        assert "10.0" in text
        assert ("±0.0%" in text) == told
    tables.write_csv(tmp_path / "rows.csv", wide)
    assert (",0.0," in (tmp_path / "rows.csv").read_text()) == told
    assert changes.noise(row(samples), row(samples)) == changes.LEAST
    job = Job({}, None, None, None, 0, samples={"events": samples})
    assert spread(job) == (0.0 if told else None)


def test_rows_of_older_files_have_the_spread_of_their_quantiles():
    assert records.spread({"median_us": 10.0, "p20_us": 9.0, "p80_us": 11.0}) == 0.1


@pytest.mark.parametrize("samples", SAMPLES, ids=len)
def test_the_table_of_the_reference_tells_a_spread_of_three_samples(samples):
    found = oracle._row(SUBJECT, samples)
    assert found["spread"] == (0.0 if len(samples) > 2 else None)
    text = shown(bench.times([found]))
    assert "10.00" in text
    assert ("10.00 ±0%" in text) == (len(samples) > 2)
