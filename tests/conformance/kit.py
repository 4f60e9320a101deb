"""A repository of an adopter in a new folder, and pytest run in it as a process."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import mxref

ROOT = Path(mxref.__file__).parents[1]

KERNEL = """
import torch, mxref

def quantize(x):  # the sign of zero is lost
    payload, scale = mxref.quantize(x, "rceil")
    codes = payload.view(torch.uint8)
    codes[codes == 0x80] = 0
    return payload, mxref.layouts.encode(scale, "swizzle_32_4_4")
"""

TEN_LINES = """
import torch
import mxref.testing
import acme

class Mine(mxref.testing.Adapter):
    recipe, block, scale_layout, dtypes = "rceil", (1, 32), "swizzle_32_4_4", (torch.bfloat16,)
    def quantize(self, x): return acme.quantize(x)

test_mine = mxref.testing.conformance_tests(Mine(), waivers="mx_waivers.toml")
"""


@dataclass
class Outcome:
    """What pytest said: `tests` maps a test's id to its outcome, `properties` to what it kept."""

    code: int
    text: str
    error: str
    tests: dict[str, str]
    messages: dict[str, str]
    properties: dict[str, dict[str, str]]


def pytest_in(folder: Path, *options: str, plugin: bool = True, **environment: str) -> Outcome:
    """Run pytest there, with nothing else loaded than the plugin."""
    junit = folder / "junit.xml"
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", f"--junitxml={junit}"]
    command += ["-p", "_mxref_pytest"] if plugin else []
    paths = os.pathsep.join([str(folder), str(ROOT)])
    ran = subprocess.run(
        [*command, *options],
        capture_output=True,
        text=True,
        cwd=folder,
        env={
            **{name: value for name, value in os.environ.items() if "PYTEST" not in name},
            "PYTHONPATH": paths,
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            **environment,
        },
    )
    cases = list(ElementTree.parse(junit).iter("testcase")) if junit.exists() else []
    return Outcome(
        ran.returncode,
        ran.stdout,
        ran.stderr,
        {case.get("name", ""): _kind(case) for case in cases},
        {case.get("name", ""): _message(case) for case in cases},
        {
            case.get("name", ""): {
                each.get("name", ""): each.get("value", "") for each in case.iter("property")
            }
            for case in cases
        },
    )


def _kind(case: ElementTree.Element) -> str:
    for kind in ("failure", "error"):
        if case.find(kind) is not None:
            return kind
    skipped = case.find("skipped")
    if skipped is None:
        return "passed"
    return "xfail" if skipped.get("type") == "pytest.xfail" else "skipped"


def _message(case: ElementTree.Element) -> str:
    found = [case.find(kind) for kind in ("failure", "error", "skipped")]
    return "".join(f"{e.get('message')}\n{e.text}" for e in found if e is not None)
