"""The coefficient plot: each estimate with its interval, and inside it the part that sampling alone would give."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from confide.errors import PlanError
from confide.results.words import SIMULATED, STATUS_WORDS, WITHOUT_NUMBERS, clean, level_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from confide.results.estimates import Estimates

__all__ = ["draw", "shown"]

INTERCEPTS = ("Intercept", "const")

# Told apart by width as well as by colour, in print and by colour-blind readers.
_WHOLE, _SAMPLING, _POINT = "#d1772e", "#1f4e79", "#ffffff"
_HIGHEST = 200.0  # inches; matplotlib cannot write much larger pictures
_FAR = 10.0  # widths of what is drawn
_LITERAL: dict[str, Any] = {"parse_math": False, "usetex": False}  # a name with "$" is a name, not mathematics


def draw(result: Estimates, alpha: float, ax: Axes | None, names: Sequence[str] | None, *, width: float = 6.4) -> Axes:
    """Draw on `ax`, or on a new figure of that width in inches that nothing else holds."""
    chosen = shown(result, names)
    own = ax is None
    if ax is None:
        height = min(1.9 + 0.36 * len(chosen), _HIGHEST)
        ax = Figure(figsize=(width, height), layout="constrained").add_subplot()
    places = np.arange(len(chosen))[::-1]  # the first name on top
    hidden = result.status in WITHOUT_NUMBERS
    if hidden or np.isnan(result.estimates[chosen]).all():
        why = f"no estimates: status {result.status}\n{fill(STATUS_WORDS[result.status], 44)}"
        ax.text(0.5, 0.5, why, transform=ax.transAxes, ha="center", va="center", color="#555555", fontsize="small")
        ax.set_xticks([])
    else:
        ax.locator_params(axis="x", nbins=6)
        _zero_line(ax, result.conf_int(alpha).to_numpy()[chosen] if result.has_intervals else result.estimates[chosen])
    if result.has_intervals and not hidden:
        _bars(result, alpha, ax, chosen, places)
        _legend(ax, own)
    elif not hidden:
        ax.scatter(
            result.estimates[chosen], places, s=40, facecolors="none", edgecolors=_SAMPLING, linewidths=1.5, zorder=4
        )
    ax.set_yticks(places, [_short(result.names[index]) for index in chosen], **_LITERAL)
    ax.set_ylim(-0.7, len(chosen) - 0.3)
    ax.set_ylabel("coefficient" if result.response else "quantity")
    # log-odds and the like have no unit of the response; its name is in the title
    unit = "" if result._per.startswith(" of ") else f" of {_short(result.response)}"
    units = f" in units{unit}{result._per}" if result.response else ""
    ax.set_xlabel(
        f"estimate{units}, with {level_words(alpha)} interval"
        + ("; status partial: the others are not answered" if result.status == "partial" else "")
        if result.has_intervals
        else f"estimate{units}; no intervals" + ("" if result.status == "ok" else f": status {result.status}"),
        wrap=True,
        **_LITERAL,
    )
    _title(ax, own, result)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def shown(result: Estimates, names: Sequence[str] | None = None) -> list[int]:
    """Positions of the names to draw: those asked for, else all but the intercept when there are others."""
    if names is None:
        others = [index for index, name in enumerate(result.names) if name not in INTERCEPTS]
        return others or list(range(len(result.names)))
    wanted = [names] if isinstance(names, str) else list(names)
    unknown = [name for name in wanted if name not in result.names]
    if unknown or not wanted:
        raise PlanError(
            f"names must be among {', '.join(result.names)}, got {', '.join(map(repr, unknown)) or 'none'}; "
            f"write plot(names=[{result.names[0]!r}])"
        )
    return [result.names.index(name) for name in wanted]


def _zero_line(ax: Axes, drawn: NDArray[np.float64]) -> None:
    """A line at zero, unless all that is drawn lies so far from it that the line would squeeze it to a dot."""
    finite = drawn[np.isfinite(drawn)]
    low, high = float(finite.min()), float(finite.max())
    if max(low, -high) <= _FAR * (high - low) or low == high:
        ax.axvline(0.0, color="#555555", linewidth=1, linestyle=(0, (4, 3)), zorder=1)


def _bars(result: Estimates, alpha: float, ax: Axes, chosen: list[int], places: NDArray[np.int_]) -> None:
    centre = result.estimates[chosen]
    limits = result.conf_int(alpha).to_numpy()[chosen]
    whole: dict[str, Any] = {"color": _WHOLE, "linewidth": 2, "capsize": 5, "capthick": 2, "zorder": 2}
    sides = np.stack([centre - limits[:, 0], limits[:, 1] - centre])
    ax.errorbar(centre, places, xerr=sides, fmt="none", label="sampling and privacy noise", **whole)
    if result.status != "weak":  # an interval that is not symmetric has no part that sampling alone would give
        inner = sides[1] * np.sqrt(1 - result.privacy_share.fillna(0.0).to_numpy()[chosen])
        ax.hlines(
            places,
            centre - inner,
            centre + inner,
            color=_SAMPLING,
            linewidth=5,
            zorder=3,
            capstyle="butt",
            label="sampling alone",
        )
    ax.scatter(centre, places, s=18, color=_POINT, edgecolors="#111111", linewidths=1, zorder=4)


def _legend(ax: Axes, own: bool) -> None:
    """Below the axes on a figure of ours; inside them on a figure whose other parts we do not know."""
    figure = ax.get_figure(root=True)
    if own and figure is not None:
        figure.legend(
            *ax.get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False, fontsize="small"
        )
    else:
        ax.legend(loc="best", framealpha=0.9, fontsize="small")


def _title(ax: Axes, own: bool, result: Estimates) -> None:
    """Over the whole width of a figure of ours, where long names leave the axes little of it."""
    what = f"Private estimates of {_short(result.response, 36)}" if result.response else "Private estimates"
    what = f"{what}\n{clean(result.heading)}" if result.heading else what
    heading = f"{what}\n{SIMULATED if result.simulated else clean(str(result.guarantee))}"
    figure = ax.get_figure(root=True)
    if own and figure is not None:
        figure.suptitle(heading, x=0.02, ha="left", fontsize="medium", **_LITERAL)
    else:
        ax.set_title(heading, loc="left", fontsize="medium", **_LITERAL)


def _short(name: str, most: int = 28) -> str:
    """A name for an axis; a longer one is cut in the middle, where names of one family differ least."""
    name = clean(name)
    return name if len(name) <= most else f"{name[: most // 2 - 1]}...{name[-(most // 2 - 2) :]}"
