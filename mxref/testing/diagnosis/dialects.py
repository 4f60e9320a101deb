"""Another recipe explains every byte: a named one, or the one claimed with another choice."""

from collections.abc import Iterator
from dataclasses import replace

from mxref.formats import ELEMENTS
from mxref.recipes import AXES, RECIPES, Recipe
from mxref.testing.diagnosis.evidence import Evidence, Finding

PHRASES = {
    ("nan_scale", "dropped"): "NaN is dropped from amax",
    ("minus_zero", "plus"): "-0 is lost: it becomes +0",
    ("element_round", "half_away"): "elements are rounded half away from zero",
    ("overflow", "nan_above_464"): "saturation is missing: overflow becomes NaN",
    ("poison", "element"): "NaN poisons its element only, not the block",
    ("flush", "inputs"): "subnormal inputs are flushed to zero",
    ("flush", "ratio"): "a subnormal ratio is flushed to zero",
    ("flush", "both"): "subnormal inputs and ratios are flushed to zero",
}
"""What some choices mean, in words."""


def findings(evidence: Evidence) -> Iterator[Finding]:
    """Every named recipe, and every change of one axis of the recipe claimed."""
    claimed = evidence.recipe
    for name, row in RECIPES.items():
        unverified = "" if row.known_by == "run" else " (unverified)"
        cause = f"the bytes are those of recipe {name!r}{unverified}, not {claimed.label!r}"
        rank = 10 if name == row.round else 45
        for found in _predicted(evidence, row, {"element": claimed.element}, cause, rank):
            yield replace(found, recipe=f"{name!r}{unverified}")
    for axis, values in AXES.items():
        for value in values if axis not in ("round", "ratio") else ():
            phrase = PHRASES.get((axis, value))
            choice = f"{axis}={value!r} instead of {getattr(claimed, axis)!r}"
            cause = f"{phrase} ({choice})" if phrase else f"the bytes are those of {choice}"
            yield from _predicted(evidence, claimed, {"name": "", axis: value}, cause, 40)
    for element in ELEMENTS:
        cause = f"the element format is {element}, not {claimed.element}"
        yield from _predicted(evidence, claimed, {"name": "", "element": element}, cause, 30)


def _predicted(
    evidence: Evidence, row: Recipe, changes: dict[str, str], cause: str, rank: int
) -> Iterator[Finding]:
    """The finding for a changed recipe; none where the change makes none, or is not built."""
    try:
        recipe = replace(row, **changes)
        if recipe != evidence.recipe:
            yield evidence.local(cause, rank, recipe=recipe)
    except (NotImplementedError, ValueError):
        return  # ValueError: choices that do not go together, as overflow to NaN in e5m2
