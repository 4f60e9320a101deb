"""The options of `mxref verify`, checked: what the call asks for, before anything runs."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import torch
import typer

from mxref import layouts
from mxref.cli.errors import WrongCallError, one_line, unknown
from mxref.formats import BLOCKS, INPUTS
from mxref.recipes import RECIPES
from mxref.testing.claims import LEVELS as LEVELS
from mxref.tiles import Block

Contract = Annotated[str | None, typer.Option("--contract", help="-1 or -2, for a swizzled 32x32.")]
Device = Annotated[str, typer.Option("--device", help="cpu, cuda or cuda:N.")]
Dtypes = Annotated[
    list[str] | None,
    typer.Option("--dtype", metavar="NAME", help="bf16, fp16 or fp32; may be repeated."),
]

CONTRACTS = ("-1", "-2")
_BLOCK_NAMES = {f"{rows}x{columns}": (rows, columns) for rows, columns in BLOCKS}


@dataclass(frozen=True)
class Choice:
    """What the call asks for; None where it says nothing."""

    target: str | None = None
    recipe: str | None = None
    block: Block | None = None
    scale_layout: str | None = None
    contract: int | None = None
    device: str = "cpu"
    dtypes: tuple[torch.dtype, ...] | None = None
    level: str | None = None
    multiple_of: int | None = None
    seed: int = 0
    timeout: int = 300
    fuzz_seconds: int = 60
    waivers: str | None = None


def one_of(option: str, value: str | None, allowed: Sequence[str]) -> str | None:
    """The value, if it is allowed or None."""
    if value is not None and value not in allowed:
        raise unknown(option, value, allowed)
    return value


def recipe(value: str | None) -> str | None:
    """A recipe's name."""
    return one_of("--recipe", value, tuple(RECIPES))


def scale_layout(value: str | None) -> str | None:
    """A layout's name."""
    return one_of("--scale-layout", value, tuple(layouts.LAYOUTS))


def block(value: str | None) -> Block | None:
    """A block geometry: `1x32`, also written `1,32` or `(1, 32)`."""
    if value is None:
        return None
    name = "x".join(re.findall(r"\d+", value))
    if name not in _BLOCK_NAMES or not re.fullmatch(r"\(?\s*\d+\s*[xX,]\s*\d+\s*\)?", value):
        raise unknown("--block", value, tuple(_BLOCK_NAMES))
    return _BLOCK_NAMES[name]


def block_name(value: Sequence[int]) -> str:
    """`1x32`: the block as the command line writes it."""
    return "x".join(map(str, value))


def dtypes(values: Sequence[str] | None) -> tuple[torch.dtype, ...] | None:
    """The dtypes that the names mean, each once."""
    if not values:
        return None
    for value in values:
        one_of("--dtype", value, tuple(INPUTS))
    return tuple(getattr(torch, INPUTS[value].torch_dtype) for value in dict.fromkeys(values))


def dtype_name(dtype: torch.dtype) -> str:
    """`bf16`: the dtype as the command line writes it."""
    named = {row.torch_dtype: name for name, row in INPUTS.items()}
    return named.get(str(dtype).removeprefix("torch."), str(dtype))


def contract(value: str | None) -> int | None:
    """The contracted dimension."""
    one_of("--contract", value, CONTRACTS)
    return None if value is None else int(value)


def require_contract_applies(value: int | None, layout: str | None) -> None:
    """Refuse a contracted dimension for a layout in which no byte depends on it."""
    if value is not None and layout is not None and not layouts.LAYOUTS[layout].needs_contract:
        able = ", ".join(name for name, each in layouts.LAYOUTS.items() if each.needs_contract)
        raise WrongCallError(
            f"--contract={value}: without effect on scale layout {layout!r}; it applies to "
            f"--scale-layout {able}, where --block 32x32 needs it"
        )


def device(value: str) -> str:
    """A device that is here: cpu, cuda or cuda:N."""
    if not re.fullmatch(r"cpu|cuda(:\d{1,3})?", value):
        raise unknown("--device", value, ("cpu", "cuda", "cuda:N"))
    if value != "cpu":
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if not count:
            raise WrongCallError(
                f"--device={value!r}: torch {torch.__version__} sees no CUDA device"
            )
        if int(value.partition(":")[2] or 0) >= count:
            raise WrongCallError(f"--device={value!r}: torch sees {count} CUDA device(s)")
    return value


def integer(option: str, value: str | None, *, least: int) -> int | None:
    """An integer of at least `least`."""
    if value is None:
        return None
    if not re.fullmatch(r"\d{1,18}", value) or int(value) < least:
        raise WrongCallError(f"{option}={value!r}: expected an integer of at least {least}")
    return int(value)


RESULTS = ({"version", "spec"}, {"environment", "rows"})
"""What verify and identify write has the first keys, what either bench writes the second."""


def holds_results(path: Path) -> bool:
    """Whether a file is empty or holds what a command of mxref wrote."""
    try:
        with path.open(encoding="utf-8") as file:
            # a checkpoint of many GB is not read in order to learn that it is none
            if file.read(1) not in ("{", ""):
                return False
        text = path.read_text(encoding="utf-8")
        content = json.loads(text) if text else dict.fromkeys(RESULTS[0])
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(content, dict) and any(keys <= content.keys() for keys in RESULTS)


def require_writable(option: str, path: Path) -> None:
    """WrongCallError where a file cannot be written. What is there already stays, and so does a
    link or a device: only an empty file that this made is removed."""
    try:
        target = path.resolve()
        existed = target.exists()
        with target.open("a"):
            pass
        if not existed:
            target.unlink()
    except (OSError, ValueError, RuntimeError) as error:  # RuntimeError: a link to itself
        raise WrongCallError(f"{option}={str(path)!r}: {reason_of(error)}") from error


def reason_of(error: Exception) -> str:
    """What an error of the file system says, in one line."""
    known = error.strerror if isinstance(error, OSError) else None
    return one_line(known or error)


class JsonFile:
    """The file that `--json` names, found writable before the run and written after it.

    POLICY: it replaces an older results file, and no other file.
    """

    def __init__(self, path: str | None, tensors: str | None = None) -> None:
        self._path = Path(path).absolute() if path else None
        if path == "":
            raise WrongCallError("--json='': expected the name of a file")
        if self._path is None:
            return
        if tensors is not None and self._path == Path(tensors).absolute():
            raise WrongCallError(f"--json={path!r}: the file that --tensors reads")
        require_writable("--json", self._path)
        if self._path.is_file() and not holds_results(self._path):
            raise WrongCallError(
                f"--json={path!r}: exists and is no results file of mxref, which alone is replaced"
            )

    def write(self, content: dict[str, Any]) -> None:
        """Write the content, if a file was named."""
        if self._path is not None:
            try:
                self._path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
            except OSError as error:
                raise WrongCallError(f"--json={str(self._path)!r}: {reason_of(error)}") from error
