"""The picture of a curve: the estimate over its feature, the pointwise band, and around it the band that holds the whole curve."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from confide.results.pages.words import LITERAL, level_words, short, thousands

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_curve"]

_LINE, _POINTWISE, _WHOLE = "#1f4e79", "#e7b58a", "#d1772e"


class Banded(Protocol):
    """What the picture needs of a curve (`results.curve.Curve` has it)."""

    @property
    def features(self) -> Any: ...
    @property
    def points(self) -> Any: ...
    @property
    def estimates(self) -> Any: ...
    @property
    def dense(self) -> bool: ...
    @property
    def response(self) -> str: ...
    @property
    def crossings(self) -> float: ...
    @property
    def has_intervals(self) -> bool: ...
    def conf_int(self, alpha: float = ..., *, simultaneous: bool = ...) -> Any: ...


def draw_curve(result: Banded, ax: Axes, alpha: float) -> None:
    """Draw on `ax`. Points of several features stand one beside the other."""
    single = len(result.features) == 1
    x = result.points[:, 0] if single else np.arange(len(result.points)) + 1.0
    (_band if result.dense else _points)(result, alpha, ax, x)
    name = short(result.features[0], 40) if single else f"point of {short(', '.join(result.features), 40)}"
    ax.set_xlabel(name, **LITERAL)
    ax.set_ylabel(short(result.response, 40), **LITERAL)
    thousands(ax.yaxis)


def _band(result: Banded, alpha: float, ax: Axes, x: Any) -> None:
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


def _points(result: Banded, alpha: float, ax: Axes, x: Any) -> None:
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
