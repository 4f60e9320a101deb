"""Going on with a run that its budget ended: which cases a results file already has."""

from collections.abc import Iterable
from typing import Any

from mxkernels.bench.plan import WHOLE
from mxkernels.bench.records import LINEAR, Row

SAME = (
    *("gpu", "driver", "torch", "triton", "ptxas", "cuda", "cuda-core", "torchao"),
    *("mxref", "spec"),
)
"""What two runs have to share so that their rows may stand in one file."""


def place(row: Row) -> tuple[Any, ...]:
    """The case that a row, or the labels of a case, belong to.

    >>> place({"family": "tokens", "size": 4}) == place({"family": "linear"})
    True
    """
    family = "linear" if row["family"] in LINEAR else row["family"]
    if family in WHOLE:
        return (family,)
    names = ("dtype", "data") if family == "limits" else ("dtype", "data", "variant", "recipe")
    return (family, tuple(row["shape"]), *(row.get(name, "") for name in names))


def kept(rows: Iterable[Row]) -> tuple[list[Row], set[tuple[Any, ...]]]:
    """The rows of the cases that were run to their end, and those cases."""
    rows = [row for row in rows if row["family"]]
    left = {place(row) for row in rows if row.get("note", "").startswith("skipped")}
    stay = [row for row in rows if row.get("remark") == "candidate" or place(row) not in left]
    return stay, {place(row) for row in stay if row.get("remark") != "candidate"}


def difference(old: dict[str, Any], new: dict[str, Any]) -> str:
    """What two environments must share and do not, in words; empty if they may be one file."""
    return ", ".join(
        f"{name} {old.get(name) or 'none'} -> {new.get(name) or 'none'}"
        for name in SAME
        if (old.get(name) or "") != (new.get(name) or "")
    )
