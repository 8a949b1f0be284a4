"""The picture of posteriors: a density for each parameter, its credible interval shaded, its median a line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from confide.results.pages.words import LITERAL, level_words, short

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["PANELS", "draw_posterior", "one_scale"]

_LINE, _SHADE = "#1f4e79", "#e7b58a"
#: Parameters that are drawn: the first ones.
PANELS = 24


class Drawn(Protocol):
    """What a picture reads of posteriors."""

    @property
    def names(self) -> tuple[str, ...]: ...
    @property
    def bounds(self) -> tuple[tuple[float, float], ...]: ...
    @property
    def params(self) -> pd.Series[float]: ...
    def conf_int(self, alpha: float = 0.05) -> pd.DataFrame: ...
    def density(self, name: str) -> pd.DataFrame: ...


def draw_posterior(result: Drawn, ax: Axes, alpha: float) -> None:
    """Draw on `ax`; several parameters stand one above the other, each on a scale of its own, or all on one (`one_scale`)."""
    names = result.names[:PANELS]
    panels = [ax] if len(names) == 1 else _panels(ax, len(names))
    low, high = result.conf_int(alpha).to_numpy().T
    ends: list[float] = []
    for panel, name, a, b, middle in zip(panels, names, low, high, result.params, strict=False):
        curve = result.density(name)
        theta, density = curve["theta"].to_numpy(), curve["density"].to_numpy()
        ends += [a, b, float(theta[0]), float(theta[-1])]
        inside = np.linspace(a, b, 200)
        panel.fill_between(
            inside,
            np.interp(inside, theta, density),
            color=_SHADE,
            linewidth=0,
            label=f"{level_words(alpha)} credible interval",
        )
        panel.plot(theta, density, color=_LINE, linewidth=2, label="posterior density")
        panel.plot(
            [middle, middle], [0, float(np.interp(middle, theta, density))], color=_LINE, linewidth=1, label="median"
        )
        panel.set_ylim(bottom=0)
        panel.set_yticks([])
        panel.set_xlabel(short(name, 60), **LITERAL)
        panel.spines[["top", "right", "left"]].set_visible(False)
    if one_scale(result):
        room = 0.02 * (max(ends) - min(ends))
        for panel in panels:
            panel.set_xlim(min(ends) - room, max(ends) + room)


def one_scale(result: Drawn) -> bool:
    """Whether parameters are alike, shares of one column's levels, and are compared: their panels then have one scale."""
    return len(result.names) > 1 and len(set(result.bounds)) == 1 and bool(np.isfinite(result.bounds[0]).all())


def _panels(ax: Axes, count: int) -> list[Axes]:
    """Panels inside the room of one."""
    ax.set_axis_off()
    height = 1.0 / count
    return [ax.inset_axes((0.0, 1 - (k + 1) * height + 0.35 * height, 1.0, 0.6 * height)) for k in range(count)]
