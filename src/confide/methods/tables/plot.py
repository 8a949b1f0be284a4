"""Pictures of a table: dots with intervals, or a heat map of a crossing of two attributes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from confide.results.words import LITERAL, clean, level_words, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from confide.methods.tables.result import CellTable

__all__ = ["draw_cells"]

# More rows than this are drawn as a map where there are two attributes, else the first ones are.
_ROWS = 60


def draw_cells(result: CellTable, ax: Axes, alpha: float) -> None:
    """Draw the cells of the first column of a table."""
    frame = result.to_frame(alpha)
    if any(result.measured):
        frame = frame[frame["variable"] == result.measured[0]].drop(columns="variable")
    if len(frame) > _ROWS and len(result.layout.crossing.attributes) == 2:
        _map(result, ax)
    else:
        _dots(result, frame, ax)
        ax.set_xlabel(f"{result.noun.lower()}, with {level_words(alpha)} intervals", **LITERAL)


def _dots(result: CellTable, frame: Any, ax: Axes) -> None:
    rows = frame.iloc[:_ROWS]
    attributes = [own.name for own in result.layout.crossing.attributes]
    labels = [", ".join(str(part) for part in row) or "total" for row in rows[attributes].astype(object).to_numpy()]
    places = np.arange(len(rows))[::-1]
    low, high = rows["low"].to_numpy(), rows["high"].to_numpy()
    ax.hlines(places, low, np.where(np.isfinite(high), high, rows["estimate"]), colors="#d1772e", linewidths=2)
    ax.scatter(rows["estimate"], places, s=28, color="#1f4e79", zorder=3)
    ax.set_yticks(places, [short(clean(label)) for label in labels], **LITERAL)
    ax.set_ylim(-0.7, len(rows) - 0.3)


def _map(result: CellTable, ax: Axes) -> None:
    wide = result.crosstab(of=result.measured[0] if any(result.measured) else None).iloc[:-1, :-1]
    picture = ax.imshow(wide.to_numpy(dtype=float), aspect="auto", cmap="viridis")
    figure = ax.get_figure(root=True)
    if figure is not None:
        figure.colorbar(picture, ax=ax)
    for place, names, axis in ((0, wide.index, ax.yaxis), (1, wide.columns, ax.xaxis)):
        every = max(1, len(names) // 20)
        axis.set_ticks(range(0, len(names), every), [short(clean(str(n))) for n in names[::every]], **LITERAL)
        axis.set_label_text(result.layout.crossing.attributes[place].name, **LITERAL)
