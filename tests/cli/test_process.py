"""The command as a process: entry, version, missing extra, current directory, interrupts."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import mxref
from tests.cli.cli_call import call

ROOT = Path(mxref.__file__).parents[1]

BLOCKED = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == {name!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Blocked())
from {package}.cli import main
sys.exit(main({arguments!r}))
"""


def process(*arguments, cwd=None):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "80"}
    command = [sys.executable, *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=environment)


@pytest.mark.parametrize(
    ("package", "name", "extra"),
    [
        ("mxref", "typer", "verify"),
        ("mxref", "rich", "verify"),
        ("mxref", "safetensors", "verify"),
        ("mxkernels", "typer", "bench"),
    ],
)
def test_without_the_extra_the_command_names_it_in_one_line(package, name, extra):
    ran = process("-c", BLOCKED.format(package=package, name=name, arguments=[extra]))
    assert (ran.returncode, ran.stdout) == (2, "")
    wanted = f"the command line needs pip install 'mxref[{extra}]'"
    assert ran.stderr == f"{package}: {name} is not installed: {wanted}\n"


def test_an_import_that_fails_for_another_reason_is_not_blamed_on_the_extra():
    ran = process("-c", BLOCKED.format(package="mxref", name="zipfile", arguments=["env"]))
    assert "mxref[verify]" not in ran.stderr


def test_importing_the_package_loads_none_of_the_extra():
    code = "import sys, mxref.cli; print({'typer', 'rich', 'safetensors'} & set(sys.modules))"
    assert process("-c", code).stdout == "set()\n"


def test_python_m_and_version_in_any_directory(tmp_path):
    ran = process("-m", "mxref", "--version", cwd=tmp_path)
    assert (ran.returncode, ran.stdout) == (0, f"mxref {mxref.__version__} (SPEC {mxref.SPEC})\n")


def test_a_module_of_the_current_directory_and_a_pipe_keep_the_snippet_whole(tmp_path):
    (tmp_path / "mine.py").write_text(
        "import mxref\ndef quantize(x):\n    return mxref.quantize(x, 'floor')\n"
    )
    arguments = ("verify", "mine:quantize", "--level", "smoke", "--dtype", "bf16")
    ran = process("-m", "mxref", *arguments, cwd=tmp_path)
    assert ran.returncode == 1, ran.stderr
    assert ran.stderr == ""
    assert "from mine import quantize as target" in ran.stdout
    snippet = ran.stdout.split("reproducer:\n")[1].split("\nmore failures")[0]
    again = process("-c", snippet, cwd=tmp_path)
    assert "bytes differ" in again.stderr


def test_control_c_ends_the_process_with_130(tmp_path):
    (tmp_path / "slow.py").write_text(
        "import pathlib, time\n"
        "def quantize(x):\n    pathlib.Path('started').touch()\n    time.sleep(60)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "mxref", "verify", "slow:quantize"]
    child = subprocess.Popen(
        command,
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # what runs in the background of a shell script ignores the signal, and so would the child
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    end = time.monotonic() + 60
    while not (tmp_path / "started").exists() and time.monotonic() < end:
        time.sleep(0.05)
    child.send_signal(signal.SIGINT)
    _, errors = child.communicate(timeout=60)
    assert (child.returncode, errors) == (130, b"mxref: interrupted\n")


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ((), "verify, identify, explain, vectors, bench, env"),
        (("verfy",), "verfy"),
        (("--nope",), "--nope"),
        (("env", "extra"), "extra"),
        (("env", "--nope"), "--nope"),
    ],
)
def test_a_wrong_call_is_one_line_and_exit_2(arguments, part):
    assert part in call(*arguments).wrong


@pytest.mark.parametrize("command", [(), ("verify",), ("explain",), ("env",), ("vectors",)])
def test_help_is_there(command):
    assert "Usage: mxref" in call(*command, "--help").ok


def test_env_names_versions_devices_and_kernels(registry):
    registry("tests.cli.stub_targets:GOOD")
    out = call("env").ok
    for part in (
        mxref.__version__,
        mxref.SPEC,
        "python",
        "torch",
        "triton",
        "numpy",
        "cpu",
        "cuda",
    ):
        assert part in out
    assert "good on cpu" in out
    assert "no such machine here" in out


def test_env_survives_a_registry_that_does_not_load(registry):
    registry("tests.cli.stub_targets:missing")
    assert "entry point 'k0'" in call("env").ok
