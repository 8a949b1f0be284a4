"""Pictures of a table: grouped bars of counts and shares, points of means, a map of two crossed attributes.

No totals are drawn: next to them, the cells that they add up are small. A cell with a caution has an open mark, one with an alarm has none.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from confide._arrays import Array
from confide._helpers import clean
from confide.results.pages.content import LITERAL, folded, level_words, thousands
from confide.results.pages.table import cells_of as row_cells
from confide.sums.cells.cell_sums import Axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Picture


#: Cells that bars or points show; of two attributes more are a map.
MOST = 60
# A map of at most so many cells has their numbers in it.
_WRITTEN = 200
# Groups that stand side by side; more lie one below the other, where names have room.
_ACROSS = 8
_WIDE = 0.8  # of the room of a group: its bars
_ACROSS_INCHES = 5.3  # of all groups, side by side
_LETTER = 0.07  # inches of a digit above a bar


@dataclass(frozen=True)
class Cells:
    """The cells of a picture, one number each: a group on the axis, a series in the legend.

    rows: their places in the table; group, series: of each (a place in `groups`, in `levels`); across, of: what groups and series are of.
    """

    rows: NDArray[np.int_]
    group: NDArray[np.int_]
    series: NDArray[np.int_]
    groups: tuple[str, ...]
    levels: tuple[str, ...]
    across: str
    of: str


def cells_of(result: Any) -> Cells:
    """What is drawn of a table: the cells of its largest marginals, of one variable; the last attribute is the series."""
    shown = [axes for axes in result.marginals if not any(set(axes) < set(other) for other in result.marginals)]
    attributes = result.layout.crossing.attributes
    sizes = np.array([own.size for own in attributes], dtype=np.int64)
    inner = result.levels < sizes[:, None]
    wanted = np.ones(inner.shape[1], dtype=bool)
    if any(result.measured):
        wanted = np.asarray(result.index["variable"].cat.codes) == result.column(result.look.of)

    def rows_of(axes: Axes) -> NDArray[np.int_]:
        exactly = np.array([k in axes for k in range(len(sizes))])
        return np.flatnonzero(wanted & (inner == exactly[:, None]).all(axis=0))

    if len(shown) == 1 and len(shown[0]) > 1:
        axes = shown[0][::-1] if result.printed_across == 0 else shown[0]
        rows, last = rows_of(axes), axes[-1]
        keys = list(map(tuple, result.levels[list(axes[:-1])][:, rows].T.tolist()))
        order = {key: place for place, key in enumerate(dict.fromkeys(keys))}
        names = [", ".join(attributes[k].labels[level] for k, level in zip(axes, key, strict=False)) for key in order]
        across = ", ".join(attributes[k].name for k in axes[:-1])
        series = result.levels[last][rows]
        group = np.array([order[key] for key in keys], dtype=np.int64)
        return Cells(rows, group, series, tuple(names), tuple(attributes[last].labels), across, attributes[last].name)
    rows = np.concatenate([rows_of(axes) for axes in shown])[: max(MOST, 1)]
    names = [_named(result, place, len(shown) > 1) for place in rows]
    across = attributes[shown[0][0]].name if len(shown) == 1 and shown[0] else ""
    return Cells(rows, np.arange(len(rows)), np.zeros(len(rows), np.int64), tuple(names), ("",), across, "")


def _named(result: Any, place: int, several: bool) -> str:
    """A cell by its levels, with their attributes where there are several tables in one."""
    attributes = result.layout.crossing.attributes
    at = [(own, level) for own, level in zip(attributes, result.levels[:, place], strict=True) if level < own.size]
    return ", ".join(f"{own.name}: {own.labels[k]}" if several else own.labels[k] for own, k in at) or "all records"


def size_of(result: Any) -> tuple[float, float]:
    """Width and height of the picture, in inches."""
    if result.drawn_as == "map":
        rows, columns = result.layout.crossing.shape((0, 1))
        names = max(len(label) for label in result.layout.crossing.attributes[1].labels)
        return 2.6 + min(0.55 * columns, 9.0), 1.8 + min(0.35 * rows, 9.0) + min(0.05 * names, 1.5)
    cells = cells_of(result)
    lines = sum(max(folded(name).count("\n") + 1, 1.2) for name in cells.groups)
    if result.drawn_as == "bars" and (_edges(result) is not None or not _flat(result, cells)):
        return 6.4, 4.2
    return 6.4, 1.6 + max(0.17 * lines + 0.1 * len(cells.groups), 0.24 * len(cells.rows) + 0.1 * len(cells.groups))


def caption_of(result: Any, alpha: float) -> str:
    """What marks and whiskers are."""
    from confide.results.pages.plots import about, grave

    if result.drawn_as == "map":
        return "Color: the estimate of each cell. A cell with a caution has a dot in a corner, one with an alarm no number."
    mark = {"bars": "Bar", "points": "Point"}[result.drawn_as]
    cells, frame = cells_of(result), result.to_frame(alpha)
    said = f"{mark}s: estimates. Whiskers: {level_words(alpha)} confidence intervals{about(result)}"
    share = frame["privacy_share"].to_numpy()[cells.rows]
    if result.inference == "dataset":
        half = (frame["ci_high"] - frame["ci_low"]).to_numpy()[cells.rows] / 2
        told = np.isfinite(half)
        narrow = told.any() and result.whole
        said += "; they show privacy noise only" + (
            f", about {np.median(half[told]):,.0f} either way" if narrow else ""
        )
    elif result.drawn_as == "points" and (share < 1).any():
        said += "; thick part: sampling error only"
    marks = {grave(mark) for mark in result.marks[cells.rows]}
    said += (
        f". {'Pale bars' if _edges(result) is not None else 'Hatched bars' if mark == 'Bar' else 'Open points'}: a caution"
        if "caution" in marks
        else ""
    )
    said += ". Hatched: includes values clipped to the bounds" if _edges(result) is not None else ""
    said += ". n/a: an alarm, do not use the number" if "alarm" in marks else ""
    left = len(result.index) // len(result.measured) > MOST and len(cells.rows) == MOST
    return f"{said}.{f' The first {MOST} cells are drawn.' if left else ''}"


def draw_cells(result: Any, ax: Picture, alpha: float) -> None:
    """Draw the cells of one variable of a table, the first where none was chosen."""
    edges = _edges(result)
    if edges is not None:
        _histogram(result, ax, alpha, edges)
    else:
        {"bars": _bars, "points": _points, "map": _map}[result.drawn_as](result, ax, alpha)


def _edges(result: Any) -> Array | None:
    """The ends of the classes of one column of numbers, cut by a formula; None for any other bars."""
    own, *others = result.layout.crossing.attributes or (None,)
    if others or own is None or result.drawn_as != "bars" or not own.name.startswith("cut("):
        return None
    column = result.layout.crossing.schema.columns[own.column]
    points = [float(point) for point in re.findall(r", (-?\d[\d.e+-]*)(?=[,)])", own.name)]
    edges = np.unique([column.low, *points, column.high])
    return edges if len(edges) == own.size + 1 else None


def _histogram(result: Any, ax: Picture, alpha: float, edges: Array) -> None:
    """Bars that touch, of areas in proportion to the numbers of records; classes at a bound are hatched."""
    from confide.results.pages.plots import COLORS, HATCH, INK, pale, whiskers

    cells, width = cells_of(result), np.diff(edges)
    values, low, high, marks = _numbers(result, cells, alpha)
    even = bool(np.allclose(width, width[0], rtol=1e-6))
    unit = 10.0 ** round(np.log10(float(np.median(width))))
    part = np.ones_like(width) if even else unit / width
    heights, told = np.maximum(values, 0.0) * part, np.array([mark != "alarm" for mark in marks]) & np.isfinite(values)
    for k in np.flatnonzero(told):
        face = pale(COLORS[5]) if marks[k] else COLORS[5]
        hatch = HATCH if k in (0, len(width) - 1) else ""
        ax.bar(edges[k], heights[k], width[k], align="edge", linewidth=0.8, facecolor=face, edgecolor=INK, hatch=hatch)
    middle, low, high = (edges[:-1] + edges[1:]) / 2, np.maximum(low, 0.0) * part, high * part
    if result.has_intervals:
        whiskers(ax, middle[told], heights[told], low[told], high[told], size=min(4.0, 60 / len(width)))
    tops = np.where(told, np.fmax(high if result.has_intervals else heights, heights), 0.0)
    for place, top, text, known in zip(middle, tops, _said(result, cells, alpha), told, strict=True):
        # above bars whose areas are the shares, the number is no height that the axis has
        said, spot = f"{text}{'' if even or not _is_share(result) else '%'}" if known else "n/a", (place, top)
        ax.annotate(said, spot, (0, 3), textcoords="offset points", fontsize=8, ha="center", va="bottom")
    ax.set_xlim(float(edges[0]), float(edges[-1]))
    ax.set_ylim(0.0, 1.14 * float(tops.max() or 1.0))
    if len(edges) <= _ACROSS:
        ax.set_xticks(edges)
    thousands(ax.xaxis)
    ax.yaxis.set_major_formatter(lambda value, _: f"{100 * value if _is_share(result) else value:,.6g}")
    ax.set_xlabel(clean(result.layout.crossing.attributes[0].column), **LITERAL)
    ax.set_ylabel(measure_of(result) if even else f"{measure_of(result)}\nper {unit:,g}", **LITERAL)


def _numbers(result: Any, cells: Cells, alpha: float) -> tuple[Array, Array, Array, list[str]]:
    """Estimates and ends of the cells, and what their flags ask for."""
    from confide.results.pages.plots import grave

    frame = result.to_frame(alpha).iloc[cells.rows]
    found = (frame[name].to_numpy(dtype=np.float64) for name in ("estimate", "ci_low", "ci_high"))
    return (*found, [grave(mark) for mark in result.marks[cells.rows]])


def _places(cells: Cells) -> tuple[Array, float]:
    """Where each cell stands on the axis of groups, and how wide it is."""
    width = _WIDE / len(cells.levels)
    return cells.group + (cells.series - (len(cells.levels) - 1) / 2) * width, width


def _flat(result: Any, cells: Cells) -> bool:
    """Whether bars lie, because there are many of them, or names or numbers are too long to stand side by side."""
    many = len(cells.groups)
    width = max(60 // many, 6)
    lines = [folded(name, width) for name in cells.groups]
    broken = any(len(part) > width for name in cells.groups for part in name.split())
    wide = _LETTER * max(map(len, _said(result, cells, 0.05)), default=0) > _ACROSS_INCHES * _places(cells)[1] / many
    return many > _ACROSS or wide or broken or any(line.count("\n") > 2 for line in lines)


def _bars(result: Any, ax: Picture, alpha: float) -> None:
    """Bars from zero, side by side, or one below the other where names need the room; the estimate stands at the end of each."""
    from confide.results.pages.plots import COLORS, HATCH, INK, pale, whiskers

    cells = cells_of(result)
    values, low, high, marks = _numbers(result, cells, alpha)
    at, width = _places(cells)
    flat, ends = _flat(result, cells), result.has_intervals
    bar = ax.barh if flat else ax.bar
    for place, level in enumerate(cells.levels):
        color, label = COLORS[place % len(COLORS)], clean(level) or None
        ax.fill_between([], [], facecolor=color, edgecolor=INK, linewidth=0.8, label=label)  # the key of the series
        looks: dict[str, dict[str, Any]] = {
            "": {"facecolor": color},
            "caution": {"facecolor": pale(color), "hatch": HATCH},
        }
        for mark, face in looks.items():
            own = [k for k in np.flatnonzero(cells.series == place) if marks[k] == mark]
            bar(at[own], values[own], width, linewidth=0.8, edgecolor=INK, **face)
    told = np.array([mark != "alarm" for mark in marks]) & np.isfinite(values)
    if ends:
        whiskers(
            ax, at[told], values[told], low[told], high[told], flat=flat, size=min(4.0, 60 * width / len(cells.groups))
        )
    texts = _said(result, cells, alpha)
    tops = np.where(np.isfinite(high) & ends & told, high, np.nan_to_num(values))
    for place, top, text, known in zip(at, np.where(told, np.maximum(tops, 0.0), 0.0), texts, told, strict=True):
        spot, shift = ((top, place), (4, 0)) if flat else ((place, top), (0, 3))
        ax.annotate(
            text if known else "n/a", spot, shift, textcoords="offset points", fontsize=8,
            ha="left" if flat else "center", va="center" if flat else "bottom",
        )  # fmt: skip
    if flat:
        ax.invert_yaxis()
        ax.locator_params(axis="x", nbins=5)
    _axes(result, ax, cells, flat=flat)
    number = ax.xaxis if flat else ax.yaxis
    (ax.set_xlim if flat else ax.set_ylim)(*_from_zero(np.concatenate([values[told], low[told], high[told]])))
    if _is_share(result):
        number.set_major_formatter(lambda value, _: f"{100 * value:.6g}")
    else:
        thousands(number)


def _from_zero(shown: Array) -> tuple[float, float]:
    """Limits that hold all that is drawn, zero, and room for a number at the end of the longest bar."""
    finite = shown[np.isfinite(shown)]
    low, high = (min(float(finite.min()), 0.0), max(float(finite.max()), 0.0)) if len(finite) else (0.0, 1.0)
    room = 0.14 * ((high - low) or 1.0)
    return low - (room if low < 0 else 0.0), high + room


def _said(result: Any, cells: Cells, alpha: float) -> list[str]:
    """The estimates in the digits of the table; shares in percent."""
    if _is_share(result):
        return [f"{100 * value:.1f}" for value in result.to_frame(alpha)["estimate"].to_numpy()[cells.rows]]
    columns = [one for one in result.columns(alpha) if one.printed]
    place = [one.kind for one in columns].index("estimate")
    return [row_cells(result, columns, int(row))[place] for row in cells.rows]


def _is_share(result: Any) -> bool:
    return bool(result.quantity == "shares")


def measure_of(result: Any) -> str:
    """What is on the axis of numbers: "records", "mean income"."""
    name = result.measured[result.column(result.look.of)]
    if _is_share(result):
        return "share of records (%)" if not name else f"share of {clean(name)} (%)"
    if not name:
        return clean(result.rows_hold)
    said = {"means": "mean", "totals": "total", "counts": "number of"}.get(result.quantity, "")
    return clean(f"{said} {name}".strip())


def _axes(result: Any, ax: Picture, cells: Cells, *, flat: bool) -> None:
    """Names of the groups and of both axes, and what the series are of."""
    names, many = ax.yaxis if flat else ax.xaxis, len(cells.groups)
    names.set_ticks(range(many), [folded(name, 28 if flat else max(60 // many, 6)) for name in cells.groups], **LITERAL)
    names.set_tick_params(length=0)
    names.set_label_text(clean(cells.across), **LITERAL)
    (ax.xaxis if flat else ax.yaxis).set_label_text(folded(measure_of(result), 40), **LITERAL)
    ax.series = clean(cells.of)  # type: ignore[attr-defined]


def _points(result: Any, ax: Picture, alpha: float) -> None:
    """One row for each group, one point with a whisker for each cell, thick where sampling alone would reach."""
    from confide.results.pages.plots import INK, LINE_COLORS, MARKS, whiskers

    cells = cells_of(result)
    values, low, high, marks = _numbers(result, cells, alpha)
    share = result.to_frame(alpha)["privacy_share"].to_numpy(dtype=np.float64)[cells.rows]
    at, _ = _places(cells)
    single = len(cells.levels) == 1
    for place, level in enumerate(cells.levels):
        color = INK if single else LINE_COLORS[place % len(LINE_COLORS)]
        mine = cells.series == place
        told = mine & np.isfinite(values) & np.array([mark != "alarm" for mark in marks])
        if result.has_intervals and told.any():
            whiskers(ax, at[told], values[told], low[told], high[told], flat=True)
            if result.inference != "dataset":
                half = (high - low) / 2 * np.sqrt(np.clip(1 - np.nan_to_num(share, nan=1.0), 0.0, 1.0))
                ends = np.maximum(values - half, low)[told], np.minimum(values + half, high)[told]
                ax.hlines(
                    at[told], *ends, color=LINE_COLORS[0] if single else color, linewidth=5, zorder=5, label="_sampling"
                )
        for mark in ("", "caution"):
            own = [k for k in np.flatnonzero(told) if marks[k] == mark]
            if own or not mark:
                face = "#ffffff" if mark else color
                ax.scatter(
                    values[own], at[own], s=30, marker=MARKS[place % len(MARKS)], facecolor=face, edgecolor=INK, linewidths=1.0,
                    zorder=6, label=None if mark or single else clean(level),
                )  # fmt: skip
    for k in np.flatnonzero([mark == "alarm" for mark in marks]):
        ax.annotate("n/a", (0.5, at[k]), xycoords=("axes fraction", "data"), ha="center", va="center", fontsize=8)
    for one, other in pairwise(range(len(cells.groups))) if not single else ():
        ax.axhline((one + other) / 2, color="#dddddd", linewidth=0.8, zorder=0)
    _axes(result, ax, cells, flat=True)
    ax.set_ylim(len(cells.groups) - 0.4, -0.6)
    ax.locator_params(axis="x", nbins=6)
    if _is_share(result):
        ax.xaxis.set_major_formatter(lambda value, _: f"{100 * value:.6g}")
    else:
        thousands(ax.xaxis)


def _map(result: Any, ax: Picture, alpha: float) -> None:
    """The crossing of two attributes by color; cells with a caution have a dot in a corner, and small maps have the numbers in them."""
    from confide.results.pages.plots import grave

    attributes, cells = result.layout.crossing.attributes, cells_of(result)
    shape = result.layout.crossing.shape((0, 1))
    values = result.to_frame(alpha)["estimate"].to_numpy()[cells.rows].reshape(shape)
    marks = np.array([grave(mark) for mark in result.marks[cells.rows]], dtype=object).reshape(shape)
    values = np.where(marks == "alarm", np.nan, values)
    picture = ax.imshow(values, aspect="auto", cmap="viridis")
    figure = ax.get_figure(root=True)
    if figure is not None:
        words = (lambda value, _: f"{100 * value:.6g}") if _is_share(result) else (lambda value, _: f"{value:,.6g}")
        figure.colorbar(picture, ax=ax, label=measure_of(result), format=words)
    careful = np.argwhere(marks == "caution")
    if len(careful):
        ax.scatter(
            careful[:, 1] + 0.36, careful[:, 0] - 0.36, s=9, color="#ffffff", edgecolors="#000000", linewidths=0.6
        )
    if values.size <= _WRITTEN:
        texts: Sequence[str] = _said(result, cells, alpha)
        low, high = np.nanmin(values), np.nanmax(values)
        for (row, column), value in np.ndenumerate(values):
            light = not (value - low) / max(high - low, 1e-300) < 0.6
            text = "n/a" if np.isnan(value) else texts[row * shape[1] + column]
            ax.text(column, row, text, ha="center", va="center", fontsize=8, color="#111111" if light else "#ffffff")
    for own, axis in zip(attributes, (ax.yaxis, ax.xaxis), strict=True):
        every = max(1, own.size // 20)
        labels = [folded(label) for label in own.labels[::every]]
        axis.set_ticks(range(0, own.size, every), labels, **LITERAL)
        axis.set_label_text(clean(own.name), **LITERAL)
    if max(map(len, attributes[1].labels)) > 4:
        for text in ax.get_xticklabels():
            text.set(rotation=45, horizontalalignment="right", rotation_mode="anchor")
