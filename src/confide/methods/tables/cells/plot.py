"""Pictures of a table: dots with intervals, or a heat map of a crossing of two attributes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from confide.results.pages.words import LITERAL, clean, level_words, short, thousands

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from confide.methods.tables.cells.shape import Cells

__all__ = ["draw_cells"]

# Rows that are drawn as dots, the first ones.
_ROWS = 60
# A map of at most so many cells has their numbers in it.
_WRITTEN = 200


def draw_cells(result: Cells, ax: Axes, alpha: float) -> None:
    """Draw the cells of one column of a table, the first where none was chosen."""
    frame, levels = result.to_frame(alpha), result.levels
    place = result.column(result.drawn_column)
    name = result.measured[place]
    if any(result.measured):
        own = (frame["variable"].cat.codes == place).to_numpy()
        frame, levels = frame[own], levels[:, own]
    if result.as_map:
        _map(result, frame, levels, ax)
    else:
        _dots(result, frame, levels, ax)
        what = f"{result.noun.lower()} of {name}" if name else result.noun.lower()
        ax.set_xlabel(f"{what}, with {level_words(alpha)} intervals", **LITERAL)


def _dots(result: Cells, frame: Any, levels: NDArray[np.int64], ax: Axes) -> None:
    rows = frame.iloc[:_ROWS]
    labels = [_label(result, row) for row in levels[:, :_ROWS].T]
    places = np.arange(len(rows))[::-1]
    low, high = rows["low"].to_numpy(), rows["high"].to_numpy()
    ax.hlines(places, low, np.where(np.isfinite(high), high, rows["estimate"]), colors="#d1772e", linewidths=2)
    ax.scatter(rows["estimate"], places, s=28, color="#1f4e79", zorder=3)
    ax.set_yticks(places, [short(clean(label)) for label in labels], **LITERAL)
    ax.set_ylim(-0.7, len(rows) - 0.3)
    thousands(ax.xaxis)


def _label(result: Cells, row: NDArray[np.int64]) -> str:
    """What a cell is called: the levels that it is of; a margin is not said to be of all the rest."""
    attributes = result.layout.crossing.attributes
    named = [own.labels[level] for own, level in zip(attributes, row, strict=True) if level < own.size]
    return ", ".join(named) or "total"


def _map(result: Cells, frame: Any, levels: NDArray[np.int64], ax: Axes) -> None:
    """The crossing of two attributes by colour; flagged cells have a dot in a corner, and small maps have the numbers in them."""
    shape = result.layout.crossing.shape((0, 1))
    attributes = result.layout.crossing.attributes
    inner = frame[(levels < np.array(shape)[:, None]).all(axis=0)]
    values, flags = inner["estimate"].to_numpy().reshape(shape), inner["flag"].to_numpy().reshape(shape)
    picture = ax.imshow(values, aspect="auto", cmap="viridis")
    figure = ax.get_figure(root=True)
    if figure is not None:
        figure.colorbar(picture, ax=ax, label=result.noun.lower())
    flagged = np.argwhere(flags != "")
    if len(flagged):
        ax.scatter(flagged[:, 1] + 0.36, flagged[:, 0] - 0.36, s=7, color="#d1772e")
    if values.size <= _WRITTEN:
        low, high = np.nanmin(values), np.nanmax(values)
        for (row, column), value in np.ndenumerate(values):
            light = (value - low) / max(high - low, 1e-300) > 0.6
            ax.text(
                column,
                row,
                f"{value:,.3g}",
                ha="center",
                va="center",
                fontsize=8,
                color="#111111" if light else "#ffffff",
            )
    for own, axis in zip(attributes, (ax.yaxis, ax.xaxis), strict=True):
        every = max(1, own.size // 20)
        labels = [short(clean(label)) for label in own.labels[::every]]
        axis.set_ticks(range(0, own.size, every), labels, **LITERAL)
        axis.set_label_text(clean(own.name), **LITERAL)
    if max(map(len, attributes[1].labels)) > 4:
        ax.tick_params(axis="x", rotation=60)
