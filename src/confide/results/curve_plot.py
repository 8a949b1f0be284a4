"""The plot of a curve: the estimate over its feature, the pointwise band, and around it the band that holds the whole curve."""

from __future__ import annotations

from math import isfinite
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure

from confide.results.words import SIMULATED, STATUS_WORDS, WITHOUT_NUMBERS, clean, level_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from confide.results.curve import Curve

__all__ = ["draw_curve"]

_LINE, _POINTWISE, _WHOLE = "#1f4e79", "#e7b58a", "#d1772e"
_LITERAL: dict[str, Any] = {"parse_math": False, "usetex": False}


def draw_curve(result: Curve, alpha: float, ax: Axes | None) -> Axes:
    """Draw on `ax`, or on a new figure that nothing else holds. Points of several features stand one beside the other."""
    own = ax is None
    if ax is None:
        ax = Figure(figsize=(6.4, 4.4), layout="constrained").add_subplot()
    single = len(result.features) == 1
    x = result.points[:, 0] if single else np.arange(len(result.points)) + 1.0
    hidden = result.status in WITHOUT_NUMBERS
    if hidden or np.isnan(result.estimates).all():
        why = f"no estimates: status {result.status}\n{fill(STATUS_WORDS[result.status], 44)}"
        ax.text(0.5, 0.5, why, transform=ax.transAxes, ha="center", va="center", color="#555555", fontsize="small")
        ax.set_xticks([])
        ax.set_yticks([])
    elif result.dense:
        _band(result, alpha, ax, x)
    else:
        _points(result, alpha, ax, x)
    name = _short(result.features[0]) if single else f"point of {_short(', '.join(result.features))}"
    ax.set_xlabel(name, **_LITERAL)
    ax.set_ylabel(_short(result.label), **_LITERAL)
    ax.spines[["top", "right"]].set_visible(False)
    heading = (
        f"Private curve of {_short(result.label)}\n{SIMULATED if result.simulated else clean(str(result.guarantee))}"
    )
    figure = ax.get_figure(root=True)
    handles, labels = ax.get_legend_handles_labels()
    if own and figure is not None:
        figure.suptitle(heading, x=0.02, ha="left", fontsize="medium", **_LITERAL)
        if handles:
            figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize="small")
    else:
        ax.set_title(heading, loc="left", fontsize="medium", **_LITERAL)
        if handles:
            ax.legend(loc="best", framealpha=0.9, fontsize="small")
    return ax


def _band(result: Curve, alpha: float, ax: Axes, x: Any) -> None:
    level = level_words(alpha)
    if result.has_intervals:
        low, high = result.conf_int(alpha).to_numpy().T
        ax.fill_between(
            x, low, high, color=_POINTWISE, alpha=0.7, linewidth=0, label=f"{level} at each point", zorder=1
        )
        if isfinite(result.crossings):
            for end, label in zip(
                result.conf_int(alpha, simultaneous=True).to_numpy().T, (f"{level} whole curve", None), strict=True
            ):
                ax.plot(x, end, color=_WHOLE, linewidth=1.2, linestyle=(0, (4, 2)), label=label, zorder=2)
    ax.plot(x, result.estimates, color=_LINE, linewidth=2, label="estimate", zorder=3)


def _points(result: Curve, alpha: float, ax: Axes, x: Any) -> None:
    if result.has_intervals:
        low, high = result.conf_int(alpha).to_numpy().T
        sides = np.stack([np.maximum(result.estimates - low, 0.0), np.maximum(high - result.estimates, 0.0)])
        ax.errorbar(
            x,
            result.estimates,
            yerr=sides,
            fmt="none",
            ecolor=_WHOLE,
            elinewidth=2,
            capsize=4,
            label=f"{level_words(alpha)} interval",
        )
    ax.scatter(x, result.estimates, s=30, color=_LINE, label="estimate", zorder=3)


def _short(name: str, most: int = 40) -> str:
    name = clean(name)
    return name if len(name) <= most else f"{name[: most // 2 - 1]}...{name[-(most // 2 - 2) :]}"
