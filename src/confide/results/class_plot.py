"""The picture of class means: one row for each feature, its public range from left to right, one mark with an interval for each class."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from confide.results.plot import LITERAL
from confide.results.words import clean, level_words, short, status_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from confide.results.classes import ClassModel

__all__ = ["draw_classes"]

# Told apart by shape as well as by colour, in print and by colour-blind readers.
_COLOURS = ("#1f4e79", "#d1772e", "#3a7d44", "#8a4f9e", "#b8860b", "#555555")
_MARKS = "osD^vP"


def draw_classes(result: ClassModel, ax: Axes, alpha: float) -> None:
    """Draw on `ax`."""
    assert result.design is not None
    terms, k = result.design.terms, len(result.classes)
    low = np.array([float(term.low) for term in terms])
    width = np.array([float(term.high) for term in terms]) - low
    means = (result.estimates[k:].reshape(len(terms), k) - low[:, None]) / width[:, None]
    limits = result.conf_int(alpha).to_numpy()[k:].reshape(len(terms), k, 2) if result.has_intervals else None
    rows = np.arange(len(terms))[::-1].astype(float)
    for c, label in enumerate(result.classes):
        places = rows + 0.6 * ((k - 1) / 2 - c) / max(k, 2)
        colour, mark = _COLOURS[c % len(_COLOURS)], _MARKS[c % len(_MARKS)]
        if limits is not None:
            ends = (limits[:, c] - low[:, None]) / width[:, None]
            sides = np.stack([means[:, c] - ends[:, 0], ends[:, 1] - means[:, c]])
            ax.errorbar(means[:, c], places, xerr=sides, fmt="none", ecolor=colour, elinewidth=2, capsize=4, zorder=2)
        name = clean(f"{label}: {result.proportions.iloc[c]:.1%}")
        ax.scatter(
            means[:, c],
            places,
            s=30,
            marker=mark,
            color=colour,
            label=name,
            zorder=3,
            edgecolors="#ffffff",
            linewidths=0.6,
        )
    for between in rows[1:] + 0.5:
        ax.axhline(between, color="#dddddd", linewidth=1, zorder=1)
    names = [f"{short(term.name, 24)}\n{_number(term.low)} to {_number(term.high)}" for term in terms]
    ax.set_yticks(rows, names, **LITERAL)
    ax.set_ylim(-0.6, len(terms) - 0.4)
    ax.set_xlim(min(-0.02, *means.ravel()), max(1.02, *means.ravel()))
    none = status_words(result) if result.status == "ok" else f"no intervals: status {result.status}"
    words = none if limits is None else f"{level_words(alpha)} intervals"
    ax.set_xlabel(f"class mean as a place within the public bounds; {words}", wrap=True)


def _number(value: float) -> str:
    return f"{float(value):.4g}"
