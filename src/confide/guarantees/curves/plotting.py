"""Pictures of guarantees."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from confide.errors import PrivacyError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_curves"]

# Okabe and Ito's colours, which people with any colour vision can tell apart, and line styles for paper.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_STYLES = ("-", "--", "-.", ":")
_POINTS = 101
_WIDEST = 20.0


class Drawable(Protocol):
    """What a picture needs of a curve (`Curve` has it)."""

    @property
    def mass_at_infinity(self) -> float: ...
    def f(self, alpha: Any) -> Any: ...
    def delta(self, epsilon: Any) -> Any: ...
    def epsilon(self, delta: float) -> float: ...


def plot_curves(curves: Mapping[str, Drawable], *, kind: str = "tradeoff", ax: Axes | None = None) -> Any:
    """Draw several curves in one picture and return the matplotlib figure.

    curves: label -> curve; kind: "tradeoff", missed detections against false alarms, or "profile", delta against epsilon on a
    logarithmic axis. Raises `PrivacyError` for another kind or no curve.
    """
    if kind not in ("tradeoff", "profile"):
        raise PrivacyError(
            f'kind must be "tradeoff" or "profile", got {kind!r}; write plot_curves(curves, kind="profile")'
        )
    if not curves:
        raise PrivacyError('there is no curve to draw; write plot_curves({"one": gaussian(1.0)})')
    from matplotlib.figure import Figure

    if ax is None:
        figure: Any = Figure(figsize=(7.0, 5.0), layout="constrained")
        ax = figure.add_subplot()
    else:
        figure = ax.figure
    draw = _tradeoff if kind == "tradeoff" else _profile
    draw(ax, curves)
    ax.grid(alpha=0.25)
    ax.legend(
        loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=1 if len(curves) < 3 else 2, frameon=False, fontsize=9
    )
    return figure


def _look(place: int) -> dict[str, Any]:
    return {
        "color": _COLOURS[place % len(_COLOURS)],
        "linestyle": _STYLES[place % len(_STYLES)],
        "linewidth": 1.8,
    }


def _tradeoff(ax: Axes, curves: Mapping[str, Drawable]) -> None:
    alphas = np.sort(np.concatenate([np.linspace(0, 1, _POINTS), np.geomspace(1e-4, 0.02, 20)]))
    ax.plot([0, 1], [1, 0], color="0.6", linewidth=1.0, linestyle=(0, (1, 2)), label="nothing can be learnt")
    for place, (label, curve) in enumerate(curves.items()):
        ax.plot(alphas, curve.f(alphas), label=label, **_look(place))
    ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    ax.set_xlabel("false alarms (type I error)")
    ax.set_ylabel("missed detections (type II error)")


def _profile(ax: Axes, curves: Mapping[str, Drawable]) -> None:
    reach = [curve.epsilon(max(1e-9, min(1.01 * curve.mass_at_infinity + 1e-9, 0.99))) for curve in curves.values()]
    top = min(max((end for end in reach if np.isfinite(end)), default=_WIDEST) * 1.05 + 0.1, _WIDEST)
    epsilons = np.unique(np.concatenate([np.linspace(0, top, _POINTS), np.linspace(0, top / 8, _POINTS)]))
    for place, (label, curve) in enumerate(curves.items()):
        # where delta is 0 the line leaves the picture at the bottom
        ax.plot(epsilons, np.maximum(curve.delta(epsilons), 1e-30), label=label, **_look(place))
    ax.set_yscale("log")
    ax.set(xlim=(0, top), ylim=(1e-10, 1.2))
    ax.set_xlabel("epsilon")
    ax.set_ylabel("delta")
