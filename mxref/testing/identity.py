"""Identity: what `identify` found. Data and text only."""

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from mxref.testing.report import BlockBytes


@dataclass(frozen=True)
class Departure:
    """A block on which the target is not as the recipe says; 32 elements of it."""

    probe: str
    dtype: str
    input_bits: tuple[int, ...]
    expected: BlockBytes
    actual: BlockBytes

    def __str__(self) -> str:
        lines = f"{self.probe} [{self.dtype}]", f"    expected  {self.expected}"
        return "\n".join([*lines, f"    actual    {self.actual}"])


@dataclass(frozen=True)
class Refusal:
    """Inputs for which the target raised, or gave no MX tensor."""

    inputs: str
    dtype: str
    reason: str

    def __str__(self) -> str:
        return f"{self.inputs} [{self.dtype}]: {self.reason}"


@dataclass(frozen=True)
class Identity:
    """The dialect of a target: str() is text for people, to_json() for machines.

    Where the nearest recipe predicts less than half of the blocks, the verdict is "unknown".

    `exact`: the recipe predicts every byte answered, and `alike` names the recipes that do so too.
    Else it is the nearest, and `departures` are the first blocks on which the target departs.
    """

    recipe: str
    known_by: str
    exact: bool
    alike: tuple[str, ...]
    block: tuple[int, int]
    scale_layout: str
    contract: int | None
    element: str
    dtypes: tuple[str, ...]
    blocks: int
    equal_blocks: int
    special_values: dict[str, str] = field(default_factory=dict)
    departures: tuple[Departure, ...] = ()
    refused: tuple[Refusal, ...] = ()

    @classmethod
    def unknown(cls, refused: tuple[Refusal, ...], block: tuple[int, int]) -> "Identity":
        """The answer where no input was answered."""
        return cls("unknown", "", False, (), block, "", None, "", (), 0, 0, refused=refused)

    @property
    def known(self) -> bool:
        """Whether any input was answered."""
        return self.blocks > 0

    @property
    def verdict(self) -> str:
        """One line: the recipe, how well it fits, block and layout."""
        if not self.known:
            reason = f" ({self.refused[0]})" if self.refused else ""
            return f"unknown: no input was answered by an MX tensor{reason}"
        mark = "" if self.known_by == "run" else " (unverified)"
        where = f"{self.element}, block {self.block[0]}x{self.block[1]}, {self.scale_layout} scales"
        if self.contract is not None:
            where += f", contract {self.contract}"
        of = f"{self.blocks:,} blocks of {', '.join(self.dtypes)}"
        if self.exact:
            return f"{self.recipe}{mark}: every byte of {of}; {where}"
        share = f"{min(1000 * self.equal_blocks // self.blocks, 999) / 10:.1f} %"
        if 2 * self.equal_blocks < self.blocks:
            return f"unknown: {self.recipe}{mark} is the nearest, {share} of {of}; {where}"
        return f"{self.recipe}{mark}: the nearest, {share} of {of}; {where}"

    def __str__(self) -> str:
        lines = [self.verdict]
        if self.alike:
            names = ", ".join(self.alike)
            lines.append(f"cannot be told apart from it on the inputs answered: {names}")
        lines += [f"  {name}: {found}" for name, found in self.special_values.items()]
        if self.departures:
            lines.append("departs on:")
            lines += [f"  {each}" for each in self.departures]
        if self.refused:
            lines.append("left out, refused:")
            for (dtype, reason), inputs in self._refusals().items():
                lines.append(f"  {', '.join(inputs)} [{dtype}]: {reason}")
        return "\n".join(lines)

    def _refusals(self) -> dict[tuple[str, str], list[str]]:
        """The inputs refused, by dtype and reason."""
        found: dict[tuple[str, str], list[str]] = {}
        for each in self.refused:
            found.setdefault((each.dtype, each.reason), []).append(each.inputs)
        return found

    def to_json(self) -> str:
        """The same as JSON text."""
        return json.dumps(self.as_dict(), indent=2)

    def as_dict(self) -> dict[str, Any]:
        """The same as JSON can hold it."""
        return {"verdict": self.verdict, "unverified": self.known_by != "run", **asdict(self)}


SPECIAL = {
    "zeros": "all +0",
    "minus zeros": "all -0",
    "NaN at 17": "a NaN among ones",
    "Inf at 17": "an Inf among ones",
    "smallest subnormals": "smallest subnormals",
    "largest finite": "largest finite",
}
"""The probes whose bytes say what a target makes of special values."""


def described(found: dict[str, BlockBytes]) -> dict[str, str]:
    """Scale byte and codes of the special probes: `FF / 7F, the others 00`."""
    return {text: _codes(found[name]) for name, text in SPECIAL.items() if name in found}


def _codes(block: BlockBytes) -> str:
    own = block.payload[17]
    rest = sorted({code for i, code in enumerate(block.payload) if i != 17})
    others = "" if rest == [own] else f", the others {' '.join(f'{code:02X}' for code in rest)}"
    return f"scale {block.scale:02X}, payload {own:02X}{others}"
