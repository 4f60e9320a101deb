"""Which ptxas makes machine code of Triton's kernels: one for a whole run.

Triton takes the ptxas it brings unless TRITON_PTXAS_PATH names another. torch's inductor sets that
variable once it compiles something, so that without `pin` the kernels before and after it come from
two assemblers, and bytes as well as times may differ.
"""

import os
import re
import subprocess
from importlib.util import find_spec
from pathlib import Path

VARIABLE = "TRITON_PTXAS_PATH"


def own() -> Path | None:
    """The ptxas that Triton brings, found without importing it; None where there is none."""
    found = find_spec("triton")
    places = found.submodule_search_locations if found else None
    for place in places or ():
        path = Path(place, "backends", "nvidia", "bin", "ptxas")
        if path.exists():
            return path
    return None


def pin() -> None:
    """Name Triton's own ptxas in TRITON_PTXAS_PATH, for a `conftest.py` before the first launch.

    What is named there already stays; without Triton nothing is set.
    """
    path = own()
    if path is not None:
        os.environ.setdefault(VARIABLE, str(path))


def described() -> str:
    """Versions and origin of what Triton takes, as "12.8.93, ptxas-blackwell 12.9.86 (Triton's
    own)"; where what is named does not run Triton falls back to its own, and this says so."""
    mine, named, origin = own(), os.environ.get(VARIABLE), "Triton's own"
    if named is not None and named != str(mine):
        if version := _version(Path(named)):
            return f"{version} ({VARIABLE})"
        origin += f"; {VARIABLE} names none that runs"
    if mine is None:
        return ""
    newer = mine.with_name("ptxas-blackwell")
    also = f", {newer.name} {_version(newer)}" if newer.exists() else ""
    return f"{_version(mine)}{also} ({origin})"


def _version(path: Path) -> str:
    """Empty where there is none, as Triton reads it."""
    try:
        told = subprocess.run([path, "--version"], capture_output=True, check=True, timeout=20)
    except (OSError, subprocess.SubprocessError):
        return ""
    found = re.search(rb"release \d+\.\d+, V(\d[\d.]*)", told.stdout)
    return found[1].decode() if found else ""
