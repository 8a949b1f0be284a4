"""Pictures of results: what all of them share, and the forest plot of rows with their intervals."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import TYPE_CHECKING, Any, cast

import matplotlib
import matplotlib.style
import numpy as np
from matplotlib import patheffects
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, MaxNLocator, NullLocator
from numpy.typing import ArrayLike, NDArray

from confide._helpers import clean, severity
from confide.core.plan import INTERVALS_FOR
from confide.errors import PlanError
from confide.results.pages.content import (
    INTERCEPT,
    LITERAL,
    STATUS_WORDS,
    WITHOUT_NUMBERS,
    folded,
    level_words,
    privacy_line,
    thousands,
)
from confide.results.pages.table import DOMINATES, cells_of, dominated, view
from confide.schema.formulas.names import level_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from confide.results.pages.content import Column, Shown


#: Colors that color-blind readers tell apart (Okabe and Ito, 2008), in an order that gray print tells apart, too.
COLORS = ("#0072B2", "#E69F00", "#F0E442", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#999999")
#: Those of lines and points: yellow is for bars alone, it is too pale on white.
LINE_COLORS = tuple(color for color in COLORS if color != "#F0E442")
#: Marks of points, one for each color, so that color is never the only sign.
MARKS = ("o", "s", "^", "D", "v", "P", "X", "h")
#: What text, whiskers and outlines are drawn with.
INK = "#222222"
HATCH = "////"
_ON_WHITE = [patheffects.withStroke(linewidth=3.5, foreground="#ffffff")]

_HIGHEST = 200.0  # inches; matplotlib cannot write much larger pictures
_FAR = 10.0  # widths of what is drawn
_LEAST = 1 / 25  # of a panel's width: an interval that is shorter is a dot
_LINE = 0.17  # inches of a line of text
_TICKS = 0.42  # inches below a panel

Vector = NDArray[np.float64]


# what all pictures share ----------------------------------------------------------------------------------------------


def drawn(
    result: Shown,
    alpha: float,
    ax: Axes | None,
    names: str | Sequence[str] | None,
    *,
    width: float = 6.4,
    captioned: bool = True,
) -> Axes:
    """Draw as `result.look` says, on `ax`, or on a new figure that nothing else holds, with a caption below it.

    width: in inches, of a picture of rows; captioned: False where the caption is outside the picture.
    """
    picture = result._own_picture and names is None
    why = nothing(result, alpha)
    rows = None if picture or not _estimates(result, alpha) else _rows(result, alpha, names)
    own = ax is None
    said = f"{caption(result, alpha, names)} {_stands(result)}" if own and captioned else ""
    if ax is None:
        wide, high = result.picture_size if rows is None else (width, rows.height)
        lines = _filled(said, wide).count("\n") + 1 if said else 0
        ax = Figure(figsize=(wide, min(high + 0.15 * lines, _HIGHEST)), layout="constrained").add_subplot()
    if why is not None:
        ax.text(0.5, 0.5, why, transform=ax.transAxes, ha="center", va="center", color="#555555", fontsize="small")
        ax.set_xticks([])
    if rows is not None:
        _forest(result, alpha, ax, rows, empty=why is not None)
    elif why is None:
        result.draw(ax, alpha)
    else:
        ax.set_yticks([])
    for one in (ax, *ax.child_axes):
        one.spines[["top", "right"]].set_visible(False)
    _legend(ax, own)
    for panel in ax.child_axes[:1]:  # panels have one legend
        _legend(cast("Axes", panel), own)
    _labeled(ax, result.look.labels)
    _title(ax, own, result)
    if said:
        figure: Any = ax.get_figure(root=True)
        figure.supxlabel(
            _filled(said, figure.get_figwidth()),
            x=0.01,
            ha="left",
            fontsize=8,
            color="#444444",
            linespacing=1.25,
            **LITERAL,
        )
    return ax


def _filled(said: str, width: float) -> str:
    """A caption in lines; width: of the picture, in inches."""
    return fill(said, int(17 * width), break_on_hyphens=False)


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
    """Positions of the rows that are drawn where none are asked for: all but the intercept when there are others."""
    others = [place for place, name in enumerate(names) if name != INTERCEPT]
    return others or list(range(len(names)))


def caption(result: Shown, alpha: float, names: str | Sequence[str] | None = None) -> str:
    """What a mark and a whisker of the picture are: the one text below it, wherever it stands."""
    if nothing(result, alpha) is not None:
        return ""
    if result._own_picture and names is None:
        return clean(result.picture(alpha))
    if not result.has_intervals:
        why = "this method has none" if result.status == "valid" else "none is valid at this status"
        return f"Points: estimates. No intervals are drawn, because {why}."
    rows = _rows(result, alpha, names)
    said = "Points: estimates."
    if rows.low is not None and rows.high is not None:
        said += f" Lines: {level_words(alpha)} confidence intervals{about(result)}"
        said += "; thick part: sampling error only." if _thick(result, rows) else "."
        said += " An arrow: no end." if np.isinf([rows.low, rows.high]).any() else ""
    said += " Open points: a caution." if "caution" in rows.grave else ""
    said += " n/a: not answered." if np.isnan(rows.estimates).any() else ""
    said += " n/a: an alarm, do not use the number." if "alarm" in rows.grave else ""
    said += "".join(
        f" Reference: {clean(text)}." for label, text in (*result.facts, *result.legend) if label == "Compared with"
    )
    return said + (" Intercept not shown." if names is None and INTERCEPT in _all_names(result, alpha) else "")


def about(result: Shown) -> str:
    """What intervals are about, to follow "95% confidence intervals", where it is known."""
    found = INTERVALS_FOR.get(result.inference, "")
    return f" for {found.partition(':')[0]}" if found else ""


def _stands(result: Shown) -> str:
    """What must stand with a picture that is shown alone."""
    return f"Privacy: {clean(privacy_line(result))}. Release {clean(result.release_sha256[:8])}."


def alternative(result: Shown, alpha: float) -> str:
    """The picture for those who do not see it: its title, the smallest and the largest estimate, and what marks are."""
    title, said = clean(result.look.title or result.picture_title), caption(result, alpha)
    columns = [one for one in result.columns(alpha) if one.printed]
    values = _estimates(result, alpha)
    if not values or nothing(result, alpha) is not None:
        return f"{title}. {said}".strip()
    drawn_rows = chosen(_all_names(result, alpha)) if result.in_picture is None else list(result.in_picture)
    numbers = np.asarray(values[0], dtype=np.float64)
    known = [place for place in drawn_rows if np.isfinite(numbers[place])]
    if not known:
        return f"{title}. {said}".strip()
    ends = [min(known, key=numbers.__getitem__), max(known, key=numbers.__getitem__)]
    least, most = (_told(result, alpha, columns, place) for place in ends)
    return f"{title}. " + (f"Smallest: {least}; largest: {most}. " if len(known) > 1 else f"{least}. ") + said


def _told(result: Shown, alpha: float, columns: Sequence[Column], place: int) -> str:
    """A row by its name, with its estimate and interval in the digits of the table; of a ratio the ratio."""
    cells, kinds = cells_of(result, columns, place), [one.kind for one in columns]
    at = kinds.index("estimate")
    labels = [(one, cell) for one, cell in zip(columns[:at], cells, strict=False) if one.kind in ("name", "text")]
    labels = [(one, cell) for one, cell in labels if one.name != "variable" or len(set(one.values)) > 1]
    name = ", ".join(level_name(cell) if one.kind == "name" else f"{one.name}: {cell}" for one, cell in labels)
    name = clean(name)
    if result.ratio_name:
        return f"{name}, {np.exp(float(columns[at].values[place])):.3g}"
    low = kinds.index("interval") if "interval" in kinds and result.has_intervals else None
    return f"{name}, {cells[at]}" + ("" if low is None else f" [{cells[low]}, {cells[low + 1]}]")


def png(result: Shown, alpha: float) -> tuple[bytes, str, str] | None:
    """The picture as a PNG for a document, what it is for those who do not see it, and its caption; None where there is none."""
    if nothing(result, alpha) is not None:
        return None
    held = io.BytesIO()
    with warnings.catch_warnings(), matplotlib.style.context("default"):
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        figure: Any = drawn(result, alpha, None, None, captioned=False).get_figure(root=True)
        figure.savefig(held, format="png", dpi=200, metadata={"Software": None})
    return held.getvalue(), alternative(result, alpha), caption(result, alpha)


def _legend(ax: Axes, own: bool) -> None:
    """Above the axes on a figure of ours; inside them on a figure whose other parts we do not know. None for one series."""
    handles, labels = ax.get_legend_handles_labels()
    if len(handles) < 2:
        return
    title = getattr(ax, "series", None)
    columns = max(1, min(len(handles), 4, 64 // (min(max(map(len, labels)), 28) + 6)))
    place: dict[str, Any] = (
        {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "ncols": columns, "frameon": False}
        if own
        else {"loc": "best", "framealpha": 0.9}
    )
    legend = ax.legend(handles, [folded(label) for label in labels], fontsize="small", borderaxespad=0.2, **place)
    if title:
        legend.set_title(title)
        legend.get_title().set(parse_math=False, fontsize="small")
        legend.set_alignment("left")
    for text in legend.get_texts():
        text.set_parse_math(False)


def _labeled(ax: Axes, labels: Mapping[str, str]) -> None:
    """Put the reader's own words in the place of names, in all texts of the picture. `PlanError` for a name that is in none of them."""
    if not labels:
        return
    known = {level_name(str(key)): str(value) for key, value in labels.items()}
    pattern = re.compile(
        r"(?<!\w)(?:" + "|".join(re.escape(key) for key in sorted(known, key=len, reverse=True)) + r")(?!\w)"
    )
    used: set[str] = set()

    def told(text: str, width: int = 28) -> str:
        plain = re.sub(r"(?<=\w[_.:*/,=-])\n", "", text).replace("\n", " ")
        found = pattern.findall(plain)
        if not found:
            return text
        used.update(found)
        return folded(pattern.sub(lambda match: known[match[0]], plain), width)

    seen = []
    for one in (ax, *ax.child_axes):
        legend = one.get_legend()
        texts = [
            one.xaxis.label,
            one.yaxis.label,
            *(legend.get_texts() if legend else ()),
            *([legend.get_title()] if legend else ()),
        ]
        for text in texts:
            seen.append(text.get_text())
            text.set_text(told(text.get_text(), 50 if text in (one.xaxis.label, one.yaxis.label) else 28))
        for axis in (one.xaxis, one.yaxis):
            ticks = [tick.get_text() for tick in axis.get_ticklabels()]
            if any(re.search(r"[^\W\d]", tick) for tick in ticks):
                seen += ticks
                axis.set_ticks(axis.get_ticklocs(), [told(tick) for tick in ticks], **LITERAL)
    unknown = [key for key in known if key not in used]
    if unknown:
        there = ", ".join(dict.fromkeys(" ".join(text.split()) for text in seen if text))
        raise PlanError(f"labels must name texts of the picture, got {unknown[0]!r}; there are: {there}")


def _title(ax: Axes, own: bool, result: Shown) -> None:
    """Over the whole width of a figure of ours, where long names leave the axes little of it."""
    what = clean(
        result.look.title or (f"{result.picture_title}; {result.kept}" if result.kept else result.picture_title)
    )
    figure: Any = ax.get_figure(root=True)
    if own:
        heading = f"{folded(what, int(11 * figure.get_figwidth()))}\n{result.published}"
        figure.suptitle(heading, x=0.01, ha="left", fontsize="medium", **LITERAL)
    else:
        ax.set_title(f"{folded(what, 60)}\n{result.published}", loc="left", fontsize="medium", **LITERAL)


def panels(ax: Axes, heights: Sequence[float], gap: float) -> list[Axes]:
    """Panels one above the other in the room of one, of these heights and with that room below each, all in inches."""
    if len(heights) == 1:
        return [ax]
    ax.set_axis_off()
    total, top, found = sum(heights) + gap * (len(heights) - 1), 1.0, []
    for height in heights:
        top -= height / total
        found.append(ax.inset_axes((0.0, top, 1.0, height / total)))
        top -= gap / total
    return found


def whiskers(
    ax: Axes,
    at: ArrayLike,
    values: ArrayLike,
    low: ArrayLike,
    high: ArrayLike,
    *,
    flat: bool = False,
    color: str = INK,
    size: float = 4,
) -> None:
    """Intervals with caps, on a white ground so that they show on any bar. flat: from left to right."""
    values, low, high = (np.asarray(one, dtype=np.float64) for one in (values, low, high))
    sides = np.nan_to_num(np.maximum(np.stack([values - low, high - values]), 0.0), posinf=0.0)
    ends: dict[str, Any] = {"xerr" if flat else "yerr": sides}
    x, y = (values, at) if flat else (at, values)
    made = ax.errorbar(x, y, fmt="none", ecolor=color, elinewidth=1.3, capsize=size, capthick=1.3, zorder=4, **ends)
    for part in (*made.lines[1], *made.lines[2]):
        part.set_path_effects([*_ON_WHITE, patheffects.Normal()])


def pale(color: str) -> str:
    """A color in a third of its strength, below a hatch."""
    parts = (int(color[k : k + 2], 16) for k in (1, 3, 5))
    return "#" + "".join(f"{255 - (255 - part) // 3:02x}" for part in parts)


def grave(flags: str) -> str:
    """What the flags of a row ask for: "alarm", "caution" or nothing."""
    found = {severity(flag) for flag in str(flags).split()}
    return "alarm" if "alarm" in found else "caution" if "caution" in found else ""


# rows with their intervals --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Rows:
    """The rows to draw: names, estimates, ends of intervals (None: there are none), the privacy share of each.

    grave: what the flags of each row ask for; ratio: what exp of an estimate is, where that is drawn; zero: whether zero is marked.
    """

    names: tuple[str, ...]
    estimates: Vector
    low: Vector | None
    high: Vector | None
    share: Vector | None
    grave: tuple[str, ...] = ()
    ratio: str = ""
    zero: bool = True

    def pick(self, places: Sequence[int]) -> _Rows:
        """Some of them."""
        low, high, share = (None if one is None else one[list(places)] for one in (self.low, self.high, self.share))
        names, marks = tuple(self.names[k] for k in places), tuple(self.grave[k] for k in places)
        return _Rows(names, self.estimates[list(places)], low, high, share, marks, self.ratio, self.zero)

    @property
    def panels(self) -> list[list[int]]:
        """Rows that one scale shows: in no panel an interval is a dot beside another."""
        if self.low is None or self.high is None:
            return [list(range(len(self.names)))]
        width = self.high - self.low
        known = [int(k) for k in np.argsort(-width) if np.isfinite(width[k]) and width[k] > 0]
        found: list[list[int]] = []
        for k in known:
            own = [*found[-1], k] if found else [k]
            low, high = float(self.low[own].min()), float(self.high[own].max())
            low, high = (low, high) if not self.zero or _is_far(low, high) else (min(low, 0.0), max(high, 0.0))
            if found and width[k] >= _LEAST * (high - low):
                found[-1].append(k)
            else:
                found.append([k])
        rest = [k for k in range(len(self.names)) if k not in known]
        if not found:
            return [rest]
        found[-1] += rest
        return sorted(map(sorted, found))

    @property
    def labels(self) -> list[str]:
        """The names as they stand on the axis."""
        return [folded(level_name(clean(name))) for name in self.names]

    @property
    def heights(self) -> list[float]:
        """Of each panel, in inches."""
        lines = [label.count("\n") + 1 for label in self.labels]
        return [sum(0.16 + _LINE * lines[k] for k in panel) + 0.1 for panel in self.panels]

    @property
    def height(self) -> float:
        """Of the picture, in inches."""
        return 1.3 + sum(self.heights) + _TICKS * (len(self.heights) - 1)


def _all_names(result: Shown, alpha: float) -> tuple[str, ...]:
    first = result.columns(alpha)[0]
    return tuple(map(str, first.values)) if first.kind == "name" else view(result, alpha, every=True).names


def _rows(result: Shown, alpha: float, names: str | Sequence[str] | None) -> _Rows:
    columns = result.columns(alpha)
    raw = _all_names(result, alpha)
    wanted = chosen(raw) if names is None else _asked(raw, names)
    if names is None and result.shown is not None and raw and len(columns[0].values) > len(result.shown):
        wanted = [place for place in result.shown if place in set(wanted)]

    def values(kind: str, skip: int = 0) -> Vector | None:
        found = [column for column in columns if column.kind == kind]
        return None if len(found) <= skip else np.asarray(found[skip].values, dtype=np.float64)[wanted]

    estimates, share = values("estimate"), values("share")
    assert estimates is not None, "a family without estimates draws its own picture"
    low, high = (values("interval"), values("interval", 1)) if result.has_intervals else (None, None)
    flags = next((column.values for column in columns if column.name == "flags"), None)
    ruled = dominated(share) if share is not None else np.zeros(len(wanted), dtype=bool)
    marks = tuple(
        grave(f"{'' if flags is None else flags[k]} {DOMINATES if noisy else ''}")
        for k, noisy in zip(wanted, ruled, strict=True)
    )
    return _Rows(tuple(raw[k] for k in wanted), estimates, low, high, share, marks, result.ratio_name, result.zero_line)


def _asked(known: Sequence[str], names: str | Sequence[str]) -> list[int]:
    wanted = [names] if isinstance(names, str) else list(names)
    unknown = [name for name in wanted if name not in known]
    if unknown or not wanted:
        raise PlanError(
            f"names must be among {', '.join(known)}, got {', '.join(map(repr, unknown)) or 'none'}",
            f"write plot(names=[{known[0]!r}])",
        )
    return [known.index(name) for name in wanted]


def _thick(result: Shown, rows: _Rows) -> bool:
    """Whether the part that sampling alone would give is drawn: some is there, and an interval is known well enough to say so."""
    return (
        rows.low is not None
        and rows.share is not None
        and result.status != "imprecise"
        and bool((rows.share < 1).any())
    )


def _forest(result: Shown, alpha: float, ax: Axes, rows: _Rows, *, empty: bool) -> None:
    places = [list(range(len(rows.names)))] if empty else rows.panels
    every = panels(ax, rows.heights if len(places) > 1 else [1.0], _TICKS)
    for panel, some in zip(every, map(rows.pick, places), strict=True):
        at = np.arange(len(some.names))[::-1]  # the first name on top
        if not empty:
            _marks(result, panel, some, at)
        panel.set_yticks(at, some.labels, **LITERAL)
        panel.set_ylim(-0.7, len(some.names) - 0.3)
        panel.tick_params(axis="y", length=0)
    units = f"{rows.ratio} (log scale)" if rows.ratio else clean(result.axis)
    if result.status != "valid":
        units += f" (status {result.status})"
    every[-1].set_xlabel(folded(units, 60), **LITERAL)


def _marks(result: Shown, ax: Axes, rows: _Rows, at: NDArray[np.int_]) -> None:
    """The points, whiskers and the line of no difference of one panel."""
    scale = np.exp if rows.ratio else np.asarray
    alarm = np.array([mark == "alarm" for mark in rows.grave])
    if rows.ratio:
        ax.set_xscale("log")
    with np.errstate(over="ignore", invalid="ignore"):
        if rows.low is not None and rows.high is not None:
            low, high = _closed(ax, rows, at)
            told = ~alarm & np.isfinite(rows.estimates)
            whole = (scale(one[told]) for one in (rows.estimates, low, high))
            whiskers(ax, at[told], *whole, flat=True)
            if _thick(result, rows) and rows.share is not None:
                inner = (high - low) / 2 * np.sqrt(np.clip(1 - np.nan_to_num(rows.share, nan=1.0), 0.0, 1.0))
                ends = (
                    scale(np.maximum(rows.estimates - inner, low))[told],
                    scale(np.minimum(rows.estimates + inner, high))[told],
                )
                ax.hlines(at[told], *ends, color=COLORS[0], linewidth=5, zorder=5, capstyle="butt", label="_sampling")
            shown = np.concatenate([low[told], high[told]])
        else:
            shown = rows.estimates
        for open_ in (False, True):
            where = np.array([(mark == "caution" or not result.has_intervals) == open_ for mark in rows.grave]) & ~alarm
            if where.any():
                face = "#ffffff" if open_ else INK
                ax.scatter(
                    scale(rows.estimates)[where], at[where], s=26, color=face, edgecolors=INK, linewidths=1.3, zorder=6
                )
    for place in at[alarm | ~np.isfinite(rows.estimates)]:
        ax.annotate("n/a", (0.5, place), xycoords=("axes fraction", "data"), ha="center", va="center", fontsize="small")
    if rows.zero or rows.ratio:
        _zero_line(ax, shown, 1.0 if rows.ratio else 0.0)
    if rows.ratio:
        _ratio_ticks(ax)
    else:
        ax.locator_params(axis="x", nbins=6)
        if 1e3 <= max(map(abs, ax.get_xlim())) < 1e9:
            thousands(ax.xaxis)


def _is_far(low: float, high: float) -> bool:
    """Whether a line at zero would squeeze what is drawn to a dot."""
    return max(low, -high) > _FAR * (high - low)


def _zero_line(ax: Axes, shown: Vector, place: float) -> None:
    """A line at no difference, unless all that is drawn lies so far from it that the line would squeeze it to a dot."""
    finite = shown[np.isfinite(shown)]
    if not len(finite):
        return
    low, high = float(finite.min()), float(finite.max())
    if low == high or not _is_far(low, high):
        ax.axvline(place, color="#555555", linewidth=1, linestyle=(0, (4, 3)), zorder=1)


def _ratio_ticks(ax: Axes) -> None:
    """Round numbers on an axis of ratios, which are few where it is short."""
    low, high = ax.get_xlim()
    if high / low > 5:
        powers = 10.0 ** np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)) + 1)
        steps = (1.0,) if high / low > 1e3 else (1.0, 2.0, 5.0)
        ticks = np.concatenate([powers * step for step in steps])
    else:
        ticks = np.asarray(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high))
    ticks = np.sort(ticks[(ticks >= low) & (ticks <= high)])
    ax.xaxis.set_major_locator(FixedLocator(ticks.tolist()))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:,.6g}")


def _closed(ax: Axes, rows: _Rows, at: NDArray[np.int_]) -> tuple[Vector, Vector]:
    """The ends to draw: an open one runs to the edge, where an arrow stands."""
    assert rows.low is not None and rows.high is not None
    every = np.concatenate([rows.estimates, rows.low, rows.high])
    if not np.isinf(every).any():
        return rows.low, rows.high
    finite = every[np.isfinite(every)]
    room = 0.15 * (float(np.ptp(finite)) or 1.0)
    edges = float(finite.min()) - room, float(finite.max()) + room
    scale = np.exp if rows.ratio else np.asarray
    ax.set_xlim(*map(float, scale(np.array(edges))))
    for ends, edge, marker in ((rows.low, edges[0], "<"), (rows.high, edges[1], ">")):
        where = at[np.isinf(ends)]
        ax.plot(np.full(len(where), scale(edge)), where, marker=marker, color=INK, linestyle="none", clip_on=False)
    return np.maximum(rows.low, edges[0]), np.minimum(rows.high, edges[1])
