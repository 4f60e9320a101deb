"""The benchmark's README: its code gives the bytes, its commands and columns exist."""

import re
from pathlib import Path

import pytest
import torch

import mxkernels.bench
import mxref
from mxkernels.arch import triton_missing
from mxkernels.bench import choices, plan
from mxkernels.cli.app import app
from mxkernels.spec import KernelSpec

TEXT = (Path(mxkernels.bench.__file__).parent / "README.md").read_text()


@pytest.mark.skipif(triton_missing(interpret=True) is not None, reason="needs Triton")
def test_the_low_overhead_call_gives_the_bytes_of_the_reference():
    (code,) = re.findall(r"```python\n(.*?)```", TEXT, re.S)
    names: dict = {}
    exec(compile(code, "README.md", "exec"), names)
    wanted = mxref.quantize(names["x"], "rceil")
    assert torch.equal(names["payload"], wanted.payload.view(torch.uint8))
    assert torch.equal(names["scale"], wanted.scale.view(torch.uint8))
    assert "launch" in KernelSpec.__dataclass_fields__


def test_every_family_and_peer_is_described():
    rows = [line.split("|")[1] for line in TEXT.splitlines() if line.startswith("| ")]
    described = {word for row in rows for word in re.findall(r"\w+", row)}
    assert set(plan.FAMILIES) <= described
    for name in choices.PEERS:
        assert f"`{name}`" in TEXT


def test_options_that_are_named_exist():
    import typer

    command = typer.main.get_command(app).commands["bench"]
    known = {
        o for each in [command, *command.commands.values()] for p in each.params for o in p.opts
    }
    named = set(re.findall(r"--[a-z][a-z-]+", TEXT))
    assert named
    assert named <= known
    for each in re.findall(r"mxkernels bench ([a-z]+)", TEXT):
        assert each in command.commands
