"""Pictures of results: what all of them share, and that of rows with their intervals, with inside each what sampling alone would give."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from confide._helpers import clean
from confide.errors import PlanError
from confide.results.pages.content import (
    INTERCEPT,
    LITERAL,
    SIMULATED,
    STATUS_WORDS,
    WITHOUT_NUMBERS,
    level_words,
    short,
    thousands,
)
from confide.results.pages.table import view

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from confide.results.pages.content import Shown


# Told apart by width as well as by colour, in print and by colour-blind readers.
_WHOLE, _SAMPLING, _POINT = "#d1772e", "#1f4e79", "#ffffff"
_HIGHEST = 200.0  # inches; matplotlib cannot write much larger pictures
_FAR = 10.0  # widths of what is drawn
_UNLIKE = 8.0  # times as long as the shortest interval

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class _Rows:
    """The rows to draw: names, estimates, ends of intervals (None: there are none), the part of each variance that is noise.

    said: each row in numbers; own: whether each is drawn in half-lengths of its own interval, because their units are unlike.
    """

    names: tuple[str, ...]
    estimates: Vector
    low: Vector | None
    high: Vector | None
    share: Vector | None
    said: tuple[str, ...] = ()
    own: bool = False

    @property
    def scaled(self) -> _Rows:
        """On one scale where one shows all of them: else an interval that is a dot beside another says nothing."""
        if self.low is None or self.high is None:
            return self
        half = (self.high - self.low) / 2
        known = half[np.isfinite(half) & (half > 0)]
        if len(known) < 2 or known.max() <= _UNLIKE * known.min():
            return self
        half = np.where(np.isfinite(half) & (half > 0), half, 1.0)
        return replace(self, estimates=self.estimates / half, low=self.low / half, high=self.high / half, own=True)


def drawn(
    result: Shown, alpha: float, ax: Axes | None, names: str | Sequence[str] | None, *, width: float = 6.4
) -> Axes:
    """Draw on `ax`, or on a new figure that nothing else holds; `width` in inches, of a picture of rows."""
    picture = result._own_picture and names is None
    why = nothing(result, alpha)
    rows = None if picture or not _estimates(result, alpha) else _rows(result, alpha, names).scaled
    own = ax is None
    if ax is None:
        size = (
            result.picture_size
            if rows is None
            else (width, min(1.9 + (0.5 if rows.own else 0.36) * len(rows.names), _HIGHEST))
        )
        ax = Figure(figsize=size, layout="constrained").add_subplot()
    if why is not None:
        ax.text(0.5, 0.5, why, transform=ax.transAxes, ha="center", va="center", color="#555555", fontsize="small")
        ax.set_xticks([])
    if rows is not None:
        _draw(result, alpha, ax, rows, empty=why is not None)
    elif why is None:
        result.draw(ax, alpha)
    else:
        ax.set_yticks([])
    ax.spines[["top", "right"]].set_visible(False)
    _legend(ax, own)
    _title(ax, own, result)
    return ax


def nothing(result: Shown, alpha: float) -> str | None:
    """Why there is nothing to draw; None where there is something."""
    if result.status not in WITHOUT_NUMBERS:
        found = _estimates(result, alpha)
        if not found and not result._own_picture:
            return f"a {result.family} without an estimate:\nthe table has all of it"
        if not found or not np.isnan(np.asarray(found[0], dtype=np.float64)).all():
            return None
    return f"no estimates: status {result.status}\n{fill(STATUS_WORDS[result.status], 44)}"


def _estimates(result: Shown, alpha: float) -> list[Any]:
    return [column.values for column in result.columns(alpha) if column.kind == "estimate"]


def chosen(names: Sequence[str]) -> list[int]:
    """Positions of the rows that are drawn where nobody asks for others: all but the intercept when there are others."""
    others = [place for place, name in enumerate(names) if name != INTERCEPT]
    return others or list(range(len(names)))


def caption(result: Shown, alpha: float) -> str:
    """How to read a picture of rows."""
    if not result.has_intervals:
        why = "this method has none" if result.status == "valid" else "none is valid at this status"
        return f"No intervals are drawn, because {why}."
    kinds = [column.kind for column in result.columns(alpha)]
    if "share" not in kinds:
        return f"Bars: the {level_words(alpha)} interval; an arrow, where it has no end."
    said = f"Thin bars: the whole {level_words(alpha)} interval."
    if result.status != "imprecise":
        said += " Thick bars inside: the interval that sampling alone would give. What lies between their ends is the price of privacy."
    return said


def _rows(result: Shown, alpha: float, names: str | Sequence[str] | None) -> _Rows:
    seen = view(result, alpha)
    raw = tuple(map(str, seen.columns[0].values)) if seen.columns[0].kind == "name" else seen.names
    place = list(range(len(raw))) if result.shown is None else list(result.shown)
    raw = raw if len(raw) == len(place) else tuple(raw[k] for k in place)
    wanted = chosen(raw) if names is None else _asked(raw, names)

    def values(kind: str, skip: int = 0) -> Vector | None:
        found = [column for column in seen.columns if column.kind == kind]
        if len(found) <= skip:
            return None
        return np.asarray(found[skip].values, dtype=np.float64)[place][wanted]

    estimates = values("estimate")
    assert estimates is not None, "a family without estimates draws its own picture"
    low, high = (values("interval"), values("interval", 1)) if result.has_intervals else (None, None)
    said = tuple(map(seen.said, wanted))
    return _Rows(tuple(raw[k] for k in wanted), estimates, low, high, values("share"), said)


def _asked(known: Sequence[str], names: str | Sequence[str]) -> list[int]:
    wanted = [names] if isinstance(names, str) else list(names)
    unknown = [name for name in wanted if name not in known]
    if unknown or not wanted:
        raise PlanError(
            f"names must be among {', '.join(known)}, got {', '.join(map(repr, unknown)) or 'none'}; "
            f"write plot(names=[{known[0]!r}])"
        )
    return [known.index(name) for name in wanted]


def _draw(result: Shown, alpha: float, ax: Axes, rows: _Rows, *, empty: bool) -> None:
    places = np.arange(len(rows.names))[::-1]  # the first name on top
    if not empty:
        ax.locator_params(axis="x", nbins=6)
        both = rows.low is not None and rows.high is not None
        if result.zero_line:
            _zero_line(ax, np.concatenate([rows.low, rows.high]) if both else rows.estimates)
        if both:
            _bars(result, ax, rows, places)
        else:
            ax.scatter(rows.estimates, places, s=40, facecolors="none", edgecolors=_SAMPLING, linewidths=1.5, zorder=4)
        if 1e3 <= max(map(abs, ax.get_xlim())) < 1e9:
            thousands(ax.xaxis)
    names = (
        [f"{short(name)}\n{said}" for name, said in zip(rows.names, rows.said, strict=True)]
        if rows.own
        else map(short, rows.names)
    )
    ax.set_yticks(places, list(names), **LITERAL)
    ax.set_ylim(-0.7, len(rows.names) - 0.3)
    ax.set_ylabel(clean(result.rows_are) if result.response else "quantity")
    units = " in half-lengths of its own interval" if rows.own else clean(result.unit)
    ax.set_xlabel(
        f"estimate{units}, with {level_words(alpha)} interval"
        + ("; status partial: the others are not answered" if result.status == "partial" else "")
        if result.has_intervals
        else f"estimate{units}; no intervals" + ("" if result.status == "valid" else f": status {result.status}"),
        wrap=True,
        **LITERAL,
    )


def _zero_line(ax: Axes, shown: Vector) -> None:
    """A line at zero, unless all that is drawn lies so far from it that the line would squeeze it to a dot."""
    finite = shown[np.isfinite(shown)]
    if not len(finite):
        return
    low, high = float(finite.min()), float(finite.max())
    if max(low, -high) <= _FAR * (high - low) or low == high:
        ax.axvline(0.0, color="#555555", linewidth=1, linestyle=(0, (4, 3)), zorder=1)


def _bars(result: Shown, ax: Axes, rows: _Rows, places: NDArray[np.int_]) -> None:
    assert rows.low is not None and rows.high is not None
    low, high = _closed(ax, rows, places)
    whole: dict[str, Any] = {"color": _WHOLE, "linewidth": 2, "capsize": 5, "capthick": 2, "zorder": 2}
    sides = np.stack([rows.estimates - low, high - rows.estimates])
    label = "interval" if rows.share is None else "sampling and privacy noise"
    ax.errorbar(rows.estimates, places, xerr=np.maximum(sides, 0.0), fmt="none", label=label, **whole)
    # an interval that is not symmetric has no part that sampling alone would give
    if rows.share is not None and result.status != "imprecise":
        inner = sides[1] * np.sqrt(1 - np.nan_to_num(rows.share))
        ends = (rows.estimates - inner, rows.estimates + inner)
        ax.hlines(places, *ends, color=_SAMPLING, linewidth=5, zorder=3, capstyle="butt", label="sampling alone")
    ax.scatter(rows.estimates, places, s=18, color=_POINT, edgecolors="#111111", linewidths=1, zorder=4)


def _closed(ax: Axes, rows: _Rows, places: NDArray[np.int_]) -> tuple[Vector, Vector]:
    """The ends to draw: an open one runs to the edge, where an arrow stands."""
    assert rows.low is not None and rows.high is not None
    every = np.concatenate([rows.estimates, rows.low, rows.high])
    if not np.isinf(every).any():
        return rows.low, rows.high
    finite = every[np.isfinite(every)]
    room = 0.15 * (float(np.ptp(finite)) or 1.0)
    edges = float(finite.min()) - room, float(finite.max()) + room
    ax.set_xlim(*edges)
    for ends, edge, marker in ((rows.low, edges[0], "<"), (rows.high, edges[1], ">")):
        where = places[np.isinf(ends)]
        ax.plot(np.full(len(where), edge), where, marker=marker, color=_WHOLE, linestyle="none", clip_on=False)
    return np.maximum(rows.low, edges[0]), np.minimum(rows.high, edges[1])


def _legend(ax: Axes, own: bool) -> None:
    """Below the axes on a figure of ours; inside them on a figure whose other parts we do not know."""
    handles, labels = ax.get_legend_handles_labels()
    figure = ax.get_figure(root=True)
    if not handles:
        return
    if own and figure is not None:
        columns = min(len(handles), 4)
        figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False, fontsize="small")
    else:
        ax.legend(loc="best", framealpha=0.9, fontsize="small")


def _title(ax: Axes, own: bool, result: Shown) -> None:
    """Over the whole width of a figure of ours, where long names leave the axes little of it."""
    what = short(result.title.removesuffix(f": {result.heading}"), 60)
    what = f"{what}\n{clean(result.heading)}" if result.heading else what
    heading = f"{what}\n{SIMULATED if result.simulated else clean(str(result.guarantee))}"
    figure = ax.get_figure(root=True)
    if own and figure is not None:
        figure.suptitle(heading, x=0.02, ha="left", fontsize="medium", **LITERAL)
    else:
        ax.set_title(heading, loc="left", fontsize="medium", **LITERAL)
