"""A correlation matrix with its intervals, and its picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import nan, sqrt
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from confide import _special as special
from confide._arrays import Array
from confide._lazy import later
from confide.aggregates.cells.free_moments import Measure
from confide.aggregates.moments.joint_moments import JointMoments
from confide.protocol import Release
from confide.results.base import BaseResult, Column, check_alpha, level_heads
from confide.results.noise_share import marked, noise_share
from confide.results.pages.spreads import hidden_words
from confide.results.pages.words import LITERAL, short

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
else:
    pd = later("pandas")

__all__ = ["CorrelationMatrix", "pair_names", "unclear"]


# A map of at most so many columns has its numbers in it.
_WRITTEN = 15
# Times the variance of a normal distribution: where r is near 1, fourth moments less squares of second ones are noise.
_MOST = 20.0


def pair_names(columns: Sequence[str]) -> tuple[str, ...]:
    """ "r(a, b)" of all pairs, as in the upper triangle."""
    return tuple(f"r({a}, {b})" for a, b in combinations(columns, 2))


def unclear(own: JointMoments, measures: Sequence[Measure]) -> str:
    """Why columns are left out, "" where none is."""
    hidden = [measure for measure, clear in zip(measures, own.clear, strict=True) if not clear]
    if not hidden:
        return ""
    rest = "ask for a larger budget, more records or fewer columns"
    return (
        f"{hidden_words(hidden)}, or {rest}" if own.counted else f"the records do not stand above their noise; {rest}"
    )


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CorrelationMatrix(BaseResult):
    """Correlations of all pairs. columns_of (p,); names of the pairs; estimates (pairs,); sampling (pairs,): k, where (1 - r^2)^2 k is the
    sampling variance; noise (pairs,): the variance by noise, which does not depend on r; bias (pairs,): what r may be off
    by since its columns were asked to be clear."""

    columns_of: tuple[str, ...]
    names: tuple[str, ...]
    estimates: Array
    sampling: Array
    noise: Array
    bias: Array

    family: ClassVar[str] = "correlations"
    rows_are: ClassVar[str] = "pair"
    rows_called: ClassVar[str] = "correlations"

    @property
    def biased(self) -> bool:
        return bool((self.bias > 0).any())

    @classmethod
    def read(cls, release: Release, own: JointMoments, measures: Sequence[Measure]) -> CorrelationMatrix:
        """From noisy moments; pairs of a column that does not stand above the noise are left out."""
        columns, pairs = tuple(measure.name for measure in measures), list(combinations(range(own.p), 2))
        r, kappa, noise = (np.full(len(pairs), nan) for _ in range(3))
        for i, (k, l) in enumerate(pairs):  # noqa: E741
            if own.clear[k] and own.clear[l]:
                r[i], own_sampling, noise[i] = own.pair(k, l).correlation()
                kappa[i] = own_sampling / (1 - r[i] ** 2) ** 2
        known = np.isfinite(r)
        status = "ok" if known.all() else "partial" if known.any() else "weak"
        return cls.of(
            release,
            response=", ".join(columns),
            target=f"correlations of {', '.join(columns)}",
            columns_of=columns,
            names=pair_names(columns),
            estimates=r,
            sampling=np.minimum(kappa, _MOST / own.size),
            noise=noise,
            bias=np.array([abs(x) * float(own.chosen[list(pair)].mean()) for x, pair in zip(r, pairs, strict=True)]),
            status=status,
            reason=unclear(own, measures),
            facts=(("Records", f"{own.gram[0, 0]:,.0f} (noise sd {sqrt(own.variance):,.3g})"),),
        )

    @property
    def params(self) -> pd.Series[float]:
        """The correlations, indexed by pair."""
        return pd.Series(self.estimates, index=list(self.names), dtype="float64")

    @property
    def bse(self) -> pd.Series[float]:
        """Standard errors at the estimates."""
        return pd.Series(np.sqrt(self._variance(self.estimates)), index=list(self.names), dtype="float64")

    def __post_init__(self) -> None:
        super().__post_init__()
        self._put("flags", marked(self.flags, self.names, self._share))

    def _variance(self, r: Array) -> Array:
        return np.asarray((1 - r * r) ** 2 * self.sampling + self.noise)

    @property
    def _share(self) -> Array:
        low, high = self._ends(0.05, self.noise, self.bias)
        alone = self._ends(0.05, 0.0 * self.noise, 0.0 * self.bias)
        return noise_share(high - low, alone[1] - alone[0])

    def conf_int(self, alpha: float = 0.05) -> pd.DataFrame:
        """All r that lie within z standard errors of the estimate, the standard error as it is at r: columns 0 and 1."""
        low, high = self._ends(alpha, self.noise, self.bias)
        return pd.DataFrame({0: low, 1: high}, index=list(self.names))

    def _ends(self, alpha: float, noise: Array, bias: Array) -> tuple[Array, Array]:
        z = -float(special.ndtri(check_alpha(alpha) / 2))
        ends = []
        for far in (-1.0, 1.0):
            inner, outer = self.estimates.copy(), np.full(len(self.estimates), far)
            for _ in range(50):
                middle = (inner + outer) / 2
                spread = np.sqrt((1 - middle * middle) ** 2 * self.sampling + noise)
                within = np.abs(middle - self.estimates) - bias <= z * spread
                inner, outer = np.where(within, middle, inner), np.where(within, outer, middle)
            ends.append(np.where(np.isnan(self.estimates), nan, outer))
        return ends[0], ends[1]

    def matrix(self) -> pd.DataFrame:
        """The whole matrix, (p, p), 1 on the diagonal. Noise may leave it without being positive definite."""
        p = len(self.columns_of)
        whole = np.eye(p)
        whole[np.triu_indices(p, 1)] = self.estimates
        return pd.DataFrame(
            np.triu(whole) + np.triu(whole, 1).T, index=list(self.columns_of), columns=list(self.columns_of)
        )

    def columns(self, alpha: float) -> tuple[Column, ...]:
        """estimate, low, high, p, privacy_share."""
        limits, (low, high) = self.conf_int(alpha), level_heads(alpha)
        with np.errstate(all="ignore"):
            z = self.estimates / np.sqrt(self.sampling + self.noise)
        return (
            Column("name", self.names, "name"),
            Column("estimate", self.estimates, head="r"),
            Column("low", limits[0].to_numpy(), "interval", head=low),
            Column("high", limits[1].to_numpy(), "interval", head=high),
            Column("p", 2 * special.ndtr(-np.abs(z)), "p", head="P>|z|"),
            Column("privacy_share", self._share, "share", head="noise share"),
        )

    def more(self, alpha: float) -> dict[str, Any]:
        return {"columns": self.columns_of, "matrix": self.matrix().to_numpy()}

    @property
    def unit(self) -> str:
        return ""

    @property
    def picture_size(self) -> tuple[float, float]:
        side = min(4.0 + 0.3 * len(self.columns_of), 12.0)
        return side + 1, side

    def draw(self, ax: Axes, alpha: float) -> None:
        """A heat map; pairs whose interval holds 0 are pale in print: their number stands in brackets."""
        values, limits = self.matrix().to_numpy(), self.conf_int(alpha)
        picture = ax.imshow(values, cmap="RdBu_r", vmin=-1, vmax=1)
        figure = ax.get_figure(root=True)
        if figure is not None:
            figure.colorbar(picture, ax=ax, label="correlation")
        p = len(self.columns_of)
        names = [short(name) for name in self.columns_of]
        ax.set_xticks(range(p), names, rotation=45, ha="right", **LITERAL)
        ax.set_yticks(range(p), names, **LITERAL)
        if p > _WRITTEN:
            return
        for (k, l), low, high in zip(combinations(range(p), 2), limits[0], limits[1], strict=True):  # noqa: E741
            text = f"{values[k, l]:.2f}" if low > 0 or high < 0 else f"({values[k, l]:.2f})"
            for at in ((k, l), (l, k)):
                ax.text(
                    at[1],
                    at[0],
                    text,
                    ha="center",
                    va="center",
                    fontsize=7,
                    color="white" if abs(values[k, l]) > 0.6 else "black",
                )

    def picture(self, alpha: float) -> str:
        return f"Correlations by colour; in brackets where the {1 - alpha:.0%} interval holds 0."
