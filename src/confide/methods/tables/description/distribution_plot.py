"""Pictures of a distribution: boxes by group, steps with a band, a histogram with intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from confide.results.pages.words import LITERAL, clean, thousands

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from confide.methods.tables.cells.shape import Groups

__all__ = ["box", "cdf", "density"]

_COLOURS = ("#1f4e79", "#d1772e", "#4c8c4a", "#8a5a9c", "#7f7f7f", "#b23a48")
_BOX = (0.05, 0.25, 0.5, 0.75, 0.95)


def _label(ax: Axes, result: Groups) -> None:
    ax.set_xlabel(clean(result.response), **LITERAL)
    thousands(ax.xaxis)


def box(result: Groups, ax: Axes, alpha: float) -> None:
    """One box for each group: quartiles and median, whiskers at 5 % and 95 %, thin lines for the intervals of the three."""
    places = np.arange(len(result.groups))[::-1]
    for place, group in zip(places, result.groups, strict=True):
        found = group.quantiles(np.array(_BOX), alpha)
        least, first, median, third, most = found.estimates
        ax.hlines(place, least, first, color=_COLOURS[0])
        ax.hlines(place, third, most, color=_COLOURS[0])
        ax.vlines([least, most], place - 0.1, place + 0.1, color=_COLOURS[0])
        ax.fill_between([first, third], place - 0.25, place + 0.25, color=_COLOURS[0], alpha=0.25, linewidth=0)
        ax.vlines(median, place - 0.25, place + 0.25, color=_COLOURS[0], linewidth=2)
        for k, height in ((1, 0.33), (2, 0.38), (3, 0.33)):
            ax.hlines(place - height, found.low[k], found.high[k], color=_COLOURS[1], linewidth=2)
    ax.set_yticks(places, [clean(group.name or "all records") for group in result.groups], **LITERAL)
    ax.set_ylim(-0.7, len(result.groups) - 0.3)
    _label(ax, result)


def cdf(result: Groups, ax: Axes, alpha: float) -> None:
    """Steps with a band for each group; all records alone where there is no other group."""
    groups = result.groups[1:] or result.groups
    for colour, group in zip(_COLOURS * len(groups), groups, strict=False):
        frame = result.cdf(alpha, group.name or None)
        x = np.concatenate([[group.bins.edges[0]], frame["x"]])
        steps = {name: np.concatenate([[0.0], frame[name]]) for name in ("estimate", "band_low", "band_high")}
        ax.plot(x, steps["estimate"], color=colour, drawstyle="steps-post", label=clean(group.name) or None)
        # between edges the function is above the one below and beneath the one above
        above = np.append(steps["band_high"][1:], 1.0)
        ax.fill_between(x, steps["band_low"], above, step="post", color=colour, alpha=0.15, linewidth=0)
    ax.set_ylim(0.0, 1.02)
    ax.set_ylabel("share of records up to this value")
    _label(ax, result)


def density(result: Groups, ax: Axes, alpha: float) -> None:
    """A histogram for each group, with the interval of each bin; all records alone where there is no other group."""
    groups = result.groups[1:] or result.groups
    for colour, group in zip(_COLOURS * len(groups), groups, strict=False):
        frame = result.histogram(group=group.name or None, alpha=alpha)
        edges, size = np.append(frame["left"], frame["right"].iloc[-1]), max(group.size, 1.0)
        ax.stairs(frame["density"], edges, color=colour, label=clean(group.name) or None)
        middle, width = (edges[:-1] + edges[1:]) / 2, np.diff(edges)
        ax.vlines(
            middle, frame["low"] / size / width, frame["high"] / size / width, color=colour, alpha=0.5, linewidth=1
        )
    ax.set_ylim(bottom=0.0)
    ax.set_ylabel("share of records, for one unit")
    _label(ax, result)
