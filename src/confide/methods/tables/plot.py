"""Pictures of a table: dots with intervals, or a heat map of a crossing of two attributes."""

from __future__ import annotations

from textwrap import shorten
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure

from confide.results.words import SIMULATED, STATUS_WORDS, WITHOUT_NUMBERS, clean, level_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from confide.methods.tables.result import CellTable

__all__ = ["draw"]

# More rows than this are drawn as a map where there are two attributes, else the first ones are.
_ROWS = 60
_LITERAL: dict[str, Any] = {"parse_math": False, "usetex": False}  # a name with "$" is a name, not mathematics


def draw(result: CellTable, alpha: float, ax: Axes | None, column: int) -> Axes:
    """Draw on `ax`, or on a new figure that nothing else holds."""
    frame = result.to_frame(alpha)
    if any(result.measured):
        frame = frame[frame["variable"] == result.measured[column]].drop(columns="variable")
    mapped = len(frame) > _ROWS and len(result.layout.crossing.attributes) == 2
    own = ax is None
    if ax is None:
        height = 4.8 if mapped else 1.6 + 0.3 * min(len(frame), _ROWS)
        ax = Figure(figsize=(6.4, height), layout="constrained").add_subplot()
    if result.status in WITHOUT_NUMBERS:
        ax.text(0.5, 0.5, STATUS_WORDS[result.status], transform=ax.transAxes, ha="center", wrap=True)
    elif mapped:
        _map(result, ax, column)
    else:
        _dots(result, frame, ax)
        ax.set_xlabel(f"{result.noun.lower()}, with {level_words(alpha)} intervals", **_LITERAL)
    if own:
        title = clean(result.title) + (f"\n{SIMULATED}" if result.simulated else "")
        ax.set_title(title, fontsize="medium", wrap=True, **_LITERAL)
    return ax


def _dots(result: CellTable, frame: Any, ax: Axes) -> None:
    shown = frame.iloc[:_ROWS]
    attributes = [own.name for own in result.layout.crossing.attributes]
    labels = [", ".join(str(part) for part in row) for row in shown[attributes].to_numpy()] or ["total"]
    places = np.arange(len(shown))[::-1]
    low, high = shown["low"].to_numpy(), shown["high"].to_numpy()
    ax.hlines(places, low, np.where(np.isfinite(high), high, shown["estimate"]), colors="#d1772e", linewidths=2)
    ax.scatter(shown["estimate"], places, s=28, color="#1f4e79", zorder=3)
    ax.set_yticks(places, [shorten(clean(label), 40, placeholder="...") for label in labels], **_LITERAL)
    ax.set_ylim(-0.7, len(shown) - 0.3)
    ax.spines[["top", "right"]].set_visible(False)


def _map(result: CellTable, ax: Axes, column: int) -> None:
    of = result.measured[column] if any(result.measured) else None
    wide = result.crosstab(of=of).iloc[:-1, :-1]
    picture = ax.imshow(wide.to_numpy(dtype=float), aspect="auto", cmap="viridis")
    ax.get_figure(root=True).colorbar(picture, ax=ax)  # type: ignore[union-attr]
    for place, names, axis in ((0, wide.index, ax.yaxis), (1, wide.columns, ax.xaxis)):
        every = max(1, len(names) // 20)
        axis.set_ticks(
            range(0, len(names), every),
            [shorten(clean(str(n)), 16, placeholder="...") for n in names[::every]],
            **_LITERAL,
        )
        axis.set_label_text(result.layout.crossing.attributes[place].name, **_LITERAL)
