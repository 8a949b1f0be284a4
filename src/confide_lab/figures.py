"""Figures of experiments from their records: lines over a setting, or dots with one row for each value of it."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from math import nan
from typing import TYPE_CHECKING, Any

from confide_lab.experiment import Block, Drawing, Record
from confide_lab.fits import METHODS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw", "svg"]

# Okabe, Ito 2008: colours that can be told apart by everybody; the library's methods are drawn in full, others dashed.
_COLOURS = (
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#7f7f7f", "#882255", "#117733", "#332288", "#999933"
)  # fmt: skip
_MARKS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*", "h", "p", "d")
#: Panels beside each other.
_ACROSS = 3
_DASHES = {"not private": ":", "literal": "--", "private": "-"}


def svg(block: Block, records: Sequence[Record]) -> str:
    """The figure as SVG text, the same bytes for the same records; "" when no record can be drawn."""
    import matplotlib

    with matplotlib.rc_context({"svg.hashsalt": block.name, "svg.fonttype": "path"}):
        figure = draw(block, records)
        if figure is None:
            return ""
        room = io.StringIO()
        figure.savefig(room, format="svg", metadata={"Date": None, "Creator": None}, bbox_inches="tight")
    text = room.getvalue()
    return re.sub(r"^.*?(?=<svg)", "", text, count=1, flags=re.DOTALL)


def draw(block: Block, records: Sequence[Record]) -> Figure | None:
    """The figure that the block's `drawing` asks for, None when there is nothing to draw."""
    drawing = block.drawing
    shown = [r for r in records if drawing is not None and r["quantity"] == drawing.quantity and r["value"] is not None]
    if drawing is None or not shown:
        return None
    from matplotlib.figure import Figure

    panels = list(dict.fromkeys(r["setting"].get(drawing.panels) for r in shown)) if drawing.panels else [None]
    rows = len({r["setting"].get(drawing.x) for r in shown})
    tall = 4.2 if drawing.kind == "lines" else 1.2 + 0.42 * rows
    across = min(len(panels), _ACROSS)
    down = -(-len(panels) // across)
    figure = Figure(figsize=(max(4.0 * across, 8.5) + 2.6, tall * down), layout="constrained")
    grid = figure.subplots(down, across, squeeze=False, sharey=drawing.kind == "lines")
    axes = list(grid.flat)[: len(panels)]
    for spare in list(grid.flat)[len(panels) :]:
        spare.set_visible(False)
    styles = {method: k for k, method in enumerate(m for m in block.methods if any(r["method"] == m for r in shown))}
    for axis, panel in zip(axes, panels, strict=True):
        part = [r for r in shown if panel is None or r["setting"].get(drawing.panels) == panel]
        (_lines if drawing.kind == "lines" else _dots)(axis, drawing, part, styles, block.titles)
        _dress(axis, drawing, "" if panel is None else f"{drawing.panels} = {panel}")
        if drawing.kind == "lines":
            ticks = sorted({float(r["setting"][drawing.x]) for r in part})
            axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
            axis.set_xticks([], minor=True)
    for axis in grid[:, 0]:
        axis.set_ylabel(drawing.y_label if drawing.kind == "lines" else "")
    if any("paper" in r for r in shown):
        axes[0].plot([], [], "x", color="#454b54", markersize=7, markeredgewidth=1.6, label="x: the paper, same colour")
    handles: dict[str, Any] = {}
    for axis in axes:
        handles.update({label: handle for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)})
    figure.legend(handles.values(), handles.keys(), loc="outside right upper", fontsize=8, frameon=False)
    return figure


def _lines(
    axis: Axes, drawing: Drawing, records: Sequence[Record], styles: dict[str, int], titles: Mapping[str, str]
) -> None:
    for method, place in styles.items():
        part = sorted((r for r in records if r["method"] == method), key=lambda r: float(r["setting"][drawing.x]))
        if not part:
            continue
        x = [float(r["setting"][drawing.x]) for r in part]
        y = [_kept(_drawn(r)[0], drawing) for r in part]
        colour, mark = _COLOURS[place % len(_COLOURS)], _MARKS[place % len(_MARKS)]
        axis.plot(
            x, y, _dash(method), color=colour, marker=mark, markersize=4.5, linewidth=1.3, label=_title(method, titles)
        )
        axis.fill_between(
            x,
            [_kept(value - 2 * error, drawing) for value, error in map(_drawn, part)],
            [_kept(value + 2 * error, drawing) for value, error in map(_drawn, part)],
            color=colour,
            alpha=0.12,
            linewidth=0,
        )
        printed = [(a, r.get("paper")) for a, r in zip(x, part, strict=True)]
        there = [(a, b) for a, b in printed if b is not None]
        if there:
            axis.plot(*zip(*there, strict=True), "x", color=colour, markersize=8, markeredgewidth=1.6)


def _dots(
    axis: Axes, drawing: Drawing, records: Sequence[Record], styles: dict[str, int], titles: Mapping[str, str]
) -> None:
    names = list(dict.fromkeys(str(r["setting"][drawing.x]) for r in records))
    heights = {name: len(names) - k for k, name in enumerate(names)}
    span = 0.7 / max(len(styles), 1)
    for method, place in styles.items():
        part = [r for r in records if r["method"] == method]
        colour, mark = _COLOURS[place % len(_COLOURS)], _MARKS[place % len(_MARKS)]
        y = [heights[str(r["setting"][drawing.x])] + 0.35 - span * (place + 0.5) for r in part]
        axis.errorbar(
            [_kept(_drawn(r)[0], drawing) for r in part],
            y,
            xerr=[2 * _drawn(r)[1] for r in part],
            fmt=mark,
            color=colour,
            markersize=4.5,
            linewidth=1,
            label=_title(method, titles),
        )
        there = [(r["paper"], b) for r, b in zip(part, y, strict=True) if "paper" in r]
        if there:
            axis.plot(*zip(*there, strict=True), "x", color=colour, markersize=7, markeredgewidth=1.6)
    axis.set_yticks(list(heights.values()), list(heights))
    axis.set_ylim(0.4, len(names) + 0.6)
    for height in heights.values():
        axis.axhline(height - 0.5, color="#dde1e6", linewidth=0.7, zorder=0)


def _dress(axis: Axes, drawing: Drawing, title: str) -> None:
    axis.set_title(title, fontsize=10)
    axis.set_xlabel(drawing.x_label or (drawing.x if drawing.kind == "lines" else drawing.quantity))
    if "x" in drawing.log:
        axis.set_xscale("log")
    if "y" in drawing.log:
        axis.set_yscale("log")
    if drawing.limits is not None:
        (axis.set_ylim if drawing.kind == "lines" else axis.set_xlim)(*drawing.limits)
    axis.grid(True, which="major", color="#eceff2", linewidth=0.8)
    axis.spines[["top", "right"]].set_visible(False)


def _drawn(r: Record) -> tuple[float, float]:
    """The value and its standard error; the median and its own where single runs make the mean."""
    value, error = (r["median"], r["median_error"]) if r.get("heavy") else (r["value"], r["error"])
    return float(value), float(error or 0.0)


def _kept(value: float, drawing: Drawing) -> float:
    """A log axis has no place for values of 0 and less."""
    log = ("y" if drawing.kind == "lines" else "x") in drawing.log
    if log and value <= 0:
        return nan if drawing.limits is None else drawing.limits[0]
    return value


def _dash(method: str) -> str:
    return _DASHES[METHODS[method].kind] if method in METHODS else "-"


def _title(method: str, titles: Mapping[str, str]) -> str:
    return titles.get(method) or (METHODS[method].title if method in METHODS else method)
