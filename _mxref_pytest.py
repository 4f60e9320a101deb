"""The pytest plugin of mxref: the options of conformance tests, and nothing else.

Loading it imports the standard library and pytest only, so that it costs nothing where no
conformance test is collected. `mxref.testing.conformance_tests` reads the options from here.
"""

import re
from importlib.util import find_spec
from typing import Any

import pytest

LEVELS = ("smoke", "full", "exhaustive", "fuzz")

OPTIONS: dict[str, Any] = {}
"""The options of the session that is running: level, device, seed, timeout, fuzz_seconds; each
only if it was given."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options; their values are checked by `pytest_configure`, which says it in one line."""
    group = parser.getgroup("mxref", "mxref conformance tests")
    group.addoption("--mx-level", metavar="LEVEL", help=f"{', '.join(LEVELS)} (default: smoke)")
    group.addoption("--mx-device", metavar="DEVICE", help="cpu, cuda or cuda:N (the adapter's own)")
    group.addoption("--mx-seed", metavar="N", help="seed of the inputs (0; level fuzz: the clock)")
    group.addoption(
        "--mx-timeout",
        metavar="SECONDS",
        help="time limit of a test, 0 for none (300; none at level exhaustive)",
    )
    group.addoption(
        "--mx-fuzz-seconds", metavar="SECONDS", help="budget of each fuzz test (default: 60)"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Check the options and keep those that were given; UsageError, one line, for a wrong one."""
    found = {
        "level": _level(config.getoption("--mx-level")),
        "device": _device(config.getoption("--mx-device")),
        "seed": _integer("--mx-seed", config.getoption("--mx-seed"), least=0),
        "timeout": _integer("--mx-timeout", config.getoption("--mx-timeout"), least=0),
        "fuzz_seconds": _integer(
            "--mx-fuzz-seconds", config.getoption("--mx-fuzz-seconds"), least=1
        ),
    }
    OPTIONS.update({name: value for name, value in found.items() if value is not None})


def pytest_unconfigure() -> None:
    """Forget the options: another session may follow in this process."""
    OPTIONS.clear()


def _level(value: str | None) -> str | None:
    if value is not None and value not in LEVELS:
        raise pytest.UsageError(f"--mx-level={value!r}: expected one of {', '.join(LEVELS)}")
    if value == "fuzz" and find_spec("hypothesis") is None:
        raise pytest.UsageError("--mx-level=fuzz needs Hypothesis: pip install 'mxref[verify]'")
    return value


def _device(value: str | None) -> str | None:
    if value is not None and not re.fullmatch(r"cpu|cuda(:\d{1,3})?", value):
        raise pytest.UsageError(f"--mx-device={value!r}: expected cpu, cuda or cuda:N")
    return value


def _integer(option: str, value: str | None, *, least: int) -> int | None:
    if value is None:
        return None
    if not re.fullmatch(r"\d{1,12}", value) or int(value) < least:
        raise pytest.UsageError(f"{option}={value!r}: expected an integer of at least {least}")
    return int(value)
