"""Plots of a results file by matplotlib: bandwidth over size, the limit as a line."""

import math
from pathlib import Path
from typing import Any

from mxkernels.bench import records
from mxkernels.bench.headline import machine
from mxkernels.bench.records import Row
from mxkernels.bench.tables import WORDS

STYLES = {
    who: (mark, f"C{index}")
    for index, (who, mark) in enumerate(zip(records.IMPLEMENTATIONS, "osxD^v", strict=True))
}
"""Mark and colour, the same in every panel."""
Panel = tuple[str, str]


def panels(
    content: dict[str, Any], families: tuple[str, ...], variants: tuple[str, ...], recipe: str
) -> dict[Panel, list[Row]]:
    """The rows of each panel, by family and variant, from the smallest shape to the largest.

    Inputs are bf16 and randn, times those of single calls; no `variants` means all. ValueError if
    there is nothing to show.
    """
    found: dict[Panel, list[Row]] = {}
    for row in records.pivot(content["rows"]):
        fits = (row["dtype"], row["data"], row["method"]) == ("bfloat16", "randn", "events")
        fits = fits and row["family"] in families and row["recipe"] in (recipe, "")
        if fits and (not variants or {row["name"], row["variant"]} & set(variants)):
            name = row["name"] or row["variant"]
            found.setdefault((row["family"], name), []).append(row)
    if not found:
        raise ValueError(
            f"families={','.join(families)}, variants={','.join(variants) or 'all'}, "
            f"recipe={recipe}: these results hold no timed row of them"
        )
    return {panel: sorted(rows, key=lambda r: r["bytes"]) for panel, rows in found.items()}


def draw(
    path: Path,
    content: dict[str, Any],
    families: tuple[str, ...] = ("cast", "cast3d"),
    variants: tuple[str, ...] = (),
    recipe: str = "rceil",
) -> None:
    """Write the panels as one PNG file."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    found = panels(content, families, variants, recipe)
    across = 2 if len(found) == 4 else min(3, len(found))
    down = math.ceil(len(found) / across)
    figure = Figure(figsize=(4.6 * across, 3.4 * down + 0.5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(down, across, squeeze=False, sharey=True).ravel()
    for axis, (panel, rows) in zip(axes, found.items(), strict=False):
        _panel(axis, panel, rows)
    for axis in axes[len(found) :]:
        axis.set_axis_off()
    handles = {
        label: handle
        for axis in figure.axes
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)
    }
    figure.legend(handles.values(), handles, loc="outside lower center", ncols=len(handles))
    figure.suptitle(f"{machine(content)}, {recipe}", fontsize=10)
    figure.savefig(path, dpi=110, metadata={"Software": None})


def _panel(axis: Any, panel: Panel, rows: list[Row]) -> None:
    family, name = panel
    for who in records.present(rows):
        points = [
            (row["bytes"] / 2**20, row[f"{who}_gbps"] / 1e3)
            for row in rows
            if f"{who}_gbps" in row and records.sound(row, who)
        ]
        if points:
            mark, colour = STYLES[who]
            style = {"marker": mark, "color": colour, "markersize": 4, "label": WORDS[who]}
            axis.plot(*zip(*points, strict=True), **style)
    limit = [(row["bytes"] / 2**20, row["limit_gbps"] / 1e3) for row in rows if "limit_us" in row]
    if limit:
        axis.plot(*zip(*limit, strict=True), "k--", linewidth=1, label="limit, same run")
    axis.set_title(f"{family} {name}", fontsize=9)
    axis.set_xscale("log", base=2)
    axis.set_ylim(bottom=0)
    axis.set_xlabel("MiB read and written")
    axis.set_ylabel("TB/s")
    axis.grid(alpha=0.3)
