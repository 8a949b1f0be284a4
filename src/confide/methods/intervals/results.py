"""Results of intervals for one parameter: posteriors to plot, draw from and save, and confidence intervals at any level.

The picture of posteriors: a density for each parameter, its credible interval shaded, its median a line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

import numpy as np

from confide._arrays import Array
from confide._helpers import later
from confide.errors import PlanError
from confide.methods.intervals.marginals import Marginal
from confide.noise import keyed_generator
from confide.results.base import BaseResult
from confide.results.pages.content import (
    LITERAL,
    Column,
    Flag,
    check_alpha,
    check_simultaneous,
    folded,
    level_words,
    thousands,
)
from confide.results.pages.table import marked, noise_share

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
else:
    pd = later("pandas")

Draw = Callable[[np.random.Generator, int], Array]
Reached = Callable[[float], Sequence[tuple[bool, bool]]]
Limits = Callable[[float], tuple[Sequence[float], Sequence[float]]]

PRIOR_DOMINATES = Flag(
    "prior_dominates",
    "at this size and budget the interval is wider than half of what the bounds allow, or below a third of that with a flat prior. "
    "The prior says as much as the records; kind='confidence' of the same release needs no prior",
)
BOX_ACTIVE = Flag("at_parameter_bound", "the parameter may lie at an edge of what the bounds allow, or beyond")

_PICTURED = 201
# Joint draws from which a simultaneous region is found.
_JOINT_DRAWS = 10_000
# Of the range that is allowed: a credible interval that is wider says little that the prior does not.
_WIDE = 0.5
# An interval that a flat prior makes more than so many times as wide is the prior's.
_OWN = 3.0


class _Inferred(BaseResult):
    """Common base of posteriors and confidence intervals."""

    names: tuple[str, ...]
    bounds: tuple[tuple[float, float], ...]
    alone: Sequence[float] | None

    rows_called: ClassVar[str] = "parameters"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.alone is not None and self.has_intervals:
            low, high = self._ends(0.05)
            self._put("flags", marked(self.flags, self.names, noise_share(high - low, self.alone)))

    def notes(self) -> tuple[tuple[str, str], ...]:
        """The guarantee in words."""
        return (("In words", self.guarantee.describe()),)

    @property
    def params(self) -> pd.Series[float]:
        """The estimates, indexed by name."""
        return pd.Series(self._estimates(), index=list(self.names), dtype="float64")

    def _estimates(self) -> Array:
        raise NotImplementedError

    def _ends(self, alpha: float) -> tuple[Array, Array]:
        raise NotImplementedError

    def conf_int(self, alpha: float = 0.05, *, simultaneous: bool = False) -> pd.DataFrame:
        """Intervals at level 1 - alpha, with equal tails.

        Parameters
        ----------
        alpha : float, default 0.05
            One minus the level.
        simultaneous : bool, default False
            Whether all parameters together lie within their intervals at this
            level. A posterior takes the same tail for each, which its joint draws
            give; confidence intervals divide alpha by their number.

        Returns
        -------
        DataFrame
            Columns 0 (low) and 1 (high), one row for each name.

        References
        ----------
        Besag, Green, Higdon, Mengersen 1995, section 6.3 (simultaneous credible
        regions).
        """
        level = check_alpha(alpha)
        low, high = self._ends(self._together(level) if check_simultaneous(simultaneous) else level)
        return pd.DataFrame({0: low, 1: high}, index=list(self.names))

    def _together(self, alpha: float) -> float:
        """The alpha of each interval at which all hold together at level 1 - alpha, for any dependence (Bonferroni)."""
        return alpha / len(self.names)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Posterior(_Inferred):
    """Posterior distributions: estimates, credible intervals, quantiles, draws.

    Parameters
    ----------
    marginals : tuple of Marginal
        Distribution of each parameter.
    bounds : tuple of (float, float)
        Bounds of each parameter, infinite where nothing bounds it.
    joint : callable
        Draws of all parameters at once, (size, p).
    prior : str
        Prior, in words.
    reached : callable, optional
        From alpha to whether the least and the greatest value of each parameter
        are not rejected at alpha/2. Intervals then reach them, and cover at more
        than their level.
    alone : sequence of float, optional
        Widths of 95% intervals by sampling alone, where they are known.
    """

    names: tuple[str, ...]
    marginals: tuple[Marginal, ...]
    bounds: tuple[tuple[float, float], ...]
    joint: Draw
    prior: str
    reached: Reached | None = None
    alone: Sequence[float] | None = None

    family: ClassVar[str] = "posterior"

    @classmethod
    def read(
        cls,
        release: Any,
        *,
        names: Sequence[str],
        marginals: Sequence[Marginal],
        bounds: Sequence[tuple[float, float]],
        flags: Sequence[str] = (),
        flat: Callable[[], Sequence[Marginal]] | None = None,
        middle: Sequence[Marginal] = (),
        **others: Any,
    ) -> Posterior:
        """The result of a release; its status is "imprecise" where the prior says as much as the records.

        flat: the marginals of a flat prior, where another prior was asked for.

        middle: of a release that is halfway between what it may be, in the order of the bounds. Where that is too wide, all releases of the
        same size and budget are weak. Only those that noise moved to an end, where intervals are narrow, would remain "valid". They cover
        less often the fewer they are.
        """
        wide = [
            high - low < inf and _width(one) > _WIDE * (high - low)
            for one, (low, high) in (*zip(marginals, bounds, strict=True), *zip(middle, bounds, strict=False))
        ]
        if flat is not None:
            wide += [_width(other) > _OWN * _width(one) for one, other in zip(marginals, flat(), strict=True)]
        marks = (*flags, PRIOR_DOMINATES) if any(wide) else tuple(flags)
        reason = "the prior says as much as the records; ask the same release for kind='confidence', or spend more on a new one"
        weak = {"status": "imprecise", "reason": reason} if any(wide) else {}
        return cls.of(
            release,
            names=tuple(names),
            marginals=tuple(marginals),
            bounds=tuple((float(a), float(b)) for a, b in bounds),
            flags=marks,
            **{**others, **weak},
        )

    @property
    def estimates(self) -> Array:
        """The medians, (p,)."""
        return self._estimates()

    def _estimates(self) -> Array:
        return np.array([float(one.quantile(np.array(0.5))) for one in self.marginals])

    def _ends(self, alpha: float) -> tuple[Array, Array]:
        found = np.array([one.quantile(np.array([alpha / 2, 1 - alpha / 2])) for one in self.marginals])
        if self.reached is None:
            return found[:, 0], found[:, 1]
        least, most = np.array(self.reached(alpha)).T
        low, high = np.array(self.bounds).T
        return np.where(least, low, found[:, 0]), np.where(most, high, found[:, 1])

    def _together(self, alpha: float) -> float:
        """By the ranks of joint draws: the smallest tail that a share alpha of the draws reaches in some parameter."""
        least = super()._together(alpha)
        if len(self.names) < 2:
            return least
        drawn = self.joint(keyed_generator(self.drawn_sha256, "simultaneous"), _JOINT_DRAWS)
        if not np.isfinite(drawn).all():
            return least
        ranks = (np.argsort(np.argsort(drawn, axis=0), axis=0) + 0.5) / len(drawn)
        reached = np.sort(np.minimum(ranks, 1 - ranks).min(axis=1))
        # a place less than the share, so that the error of the draws is on the safe side
        place = max(int(alpha * len(drawn)) - int(np.sqrt(alpha * (1 - alpha) * len(drawn))) - 1, 0)
        return float(np.clip(2 * reached[place], least, alpha))

    def quantile(self, q: float | Sequence[float]) -> pd.DataFrame:
        """Quantiles of each posterior.

        Parameters
        ----------
        q : float or sequence of float
            Probabilities, strictly between 0 and 1.

        Returns
        -------
        DataFrame
            One row for each name, one column for each probability.

        Raises
        ------
        PlanError
            A probability is not between 0 and 1.
        """
        qs = np.atleast_1d(np.asarray(q, dtype=np.float64))
        if not ((qs > 0) & (qs < 1)).all():
            raise PlanError(f"q must lie strictly between 0 and 1, got {q!r}", "write quantile([0.25, 0.5, 0.75])")
        return pd.DataFrame([one.quantile(qs) for one in self.marginals], index=list(self.names), columns=qs.tolist())

    def density(self, name: str | None = None, points: int = _PICTURED) -> pd.DataFrame:
        """Density of one posterior, where nearly all of it lies.

        Parameters
        ----------
        name : str, optional
            Parameter. By default the first one.
        points : int, default 201
            Number of points.

        Returns
        -------
        DataFrame
            Columns theta and density.
        """
        marginal = self.marginals[self._place(name)]
        theta = np.linspace(*marginal.span, points)
        return pd.DataFrame({"theta": theta, "density": marginal.density(theta)})

    def sample(self, size: int = 1_000, seed: int = 0) -> pd.DataFrame:
        """Joint draws from the posterior.

        Parameters
        ----------
        size : int, default 1000
            Number of draws.
        seed : int, default 0
            Seed. The same release, size and seed give the same draws.

        Returns
        -------
        DataFrame
            One column for each name.
        """
        generator = keyed_generator(self.drawn_sha256, "posterior", str(seed))
        return pd.DataFrame(self.joint(generator, size), columns=list(self.names))

    def save(self, path: str | Path) -> Path:
        """Write `to_json`, which holds every density on a grid.

        Parameters
        ----------
        path : str or Path
            File to write.

        Returns
        -------
        Path
            The path of the file.
        """
        Path(path).write_text(self.to_json(), encoding="utf-8")
        return Path(path)

    def _place(self, name: str | None) -> int:
        if name is None:
            return 0
        if name not in self.names:
            raise PlanError(f"there is no parameter {name!r}; there are: {', '.join(self.names)}")
        return self.names.index(name)

    def columns(self, alpha: float) -> tuple[Column, ...]:
        """median, posterior SD, and the credible interval."""
        low, high = self._ends(alpha)
        return (
            Column("term", self.names, "name"),
            Column("estimate", self._estimates(), head="median"),
            Column("posterior_sd", [one.sd for one in self.marginals], "std_err"),
            Column("ci_low", low, "interval"),
            Column("ci_high", high, "interval"),
        )

    def head(self) -> tuple[tuple[str, str], ...]:
        """Kind and prior."""
        return (("Kind", "credible"), ("Prior", self.prior))

    def more(self, alpha: float) -> Mapping[str, Any]:
        """The densities, for anyone who draws or computes with them elsewhere."""
        held = {name: self.density(name) for name in self.names}
        own = {name: {"theta": one["theta"].tolist(), "density": one["density"].tolist()} for name, one in held.items()}
        return {"kind": "credible", "prior": self.prior, "posterior": own}

    def draw(self, ax: Axes, alpha: float) -> None:
        """The densities with their intervals."""

        draw_posterior(self, ax, alpha)

    def picture(self, alpha: float) -> str:
        """How to read the picture."""

        scale = (
            " All curves have one scale, so that their places can be compared; their heights cannot."
            if one_scale(self)
            else ""
        )
        rest = f" The first {PANELS} of {len(self.names)} are drawn." if len(self.names) > PANELS else ""
        return (
            f"Curve: the posterior density. Shaded: {level_words(alpha)} of it, with equal tails. Line: the "
            f"median.{scale}{rest}"
        )

    @property
    def picture_size(self) -> tuple[float, float]:
        """A panel for each parameter."""

        return 6.4, 1.6 + 1.9 * min(len(self.names), PANELS)


def _width(marginal: Marginal) -> float:
    """Of the 95% interval."""
    low, high = marginal.quantile(np.array([0.025, 0.975]))
    return float(high - low)


_HALF_WAY = (
    "a release of this size that is halfway between what it may be would rule nothing out. The privacy noise is as large as what "
    "it hides; more records or a larger budget would do"
)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ConfidenceIntervals(_Inferred):
    """Confidence intervals by inversion of the distribution of a noisy statistic, at any level.

    Parameters
    ----------
    estimates : sequence of float
        Values at which both tails are alike.
    limits : callable
        From alpha to lows and highs.
    bounds : sequence of (float, float)
        Bounds of each parameter.
    effects : bool
        Whether zero has a meaning, as of a difference.
    shares : bool
        Whether the parameters have no unit.
    alone : array of float, optional
        Widths of 95% intervals by sampling alone, where they are known.
    """

    names: tuple[str, ...]
    estimates: Sequence[float]
    limits: Limits
    bounds: tuple[tuple[float, float], ...]
    effects: bool = True
    shares: bool = False
    alone: Sequence[float] | None = None

    family: ClassVar[str] = "confidence intervals"

    @classmethod
    def read(
        cls,
        release: Any,
        *,
        names: Sequence[str],
        limits: Limits,
        bounds: Sequence[tuple[float, float]],
        estimates: Sequence[float] | None = None,
        middle: Limits | None = None,
        **others: Any,
    ) -> Self:
        """The result of a release; "no_information" where every interval is all that is allowed.

        middle: the limits of a release of the same size that is halfway between what it may be. Where one of those is all that is allowed,
        all releases of this size and budget are weak. Only those that noise moved to an end would remain "valid", and they cover less often
        the fewer they are.
        """
        limits = cache(limits)
        low, high = (np.array(end) for end in limits(0.05))
        whole = all(a <= least and b >= most for a, b, (least, most) in zip(low, high, bounds, strict=True))
        point = np.array([(a + b) / 2 for a, b in zip(*limits(0.999), strict=True)] if estimates is None else estimates)
        reason = "privacy noise allows every value within the bounds; more records or a larger budget would not"
        status = {"status": "no_information", "reason": reason} if whole else {}
        if not whole and middle is not None:
            ends = zip(*middle(0.05), bounds, strict=True)
            if any(a <= least and b >= most for a, b, (least, most) in ends):
                status = {"status": "imprecise", "reason": _HALF_WAY}
        return cls.of(
            release,
            names=tuple(names),
            estimates=np.clip(point, low, high),
            limits=limits,
            bounds=tuple((float(a), float(b)) for a, b in bounds),
            **{**others, **status},
        )

    def _estimates(self) -> Array:
        return np.array(self.estimates)

    def _ends(self, alpha: float) -> tuple[Array, Array]:
        low, high = self.limits(alpha)
        return np.array(low, dtype=np.float64), np.array(high, dtype=np.float64)

    def columns(self, alpha: float) -> tuple[Column, ...]:
        """estimate and interval."""
        low, high = self._ends(alpha)
        return (
            Column("term", self.names, "name", head=self.rows_are or None),
            Column("estimate", self._estimates()),
            Column("ci_low", low, "interval"),
            Column("ci_high", high, "interval"),
        )

    @property
    def axis(self) -> str:
        """A share is not counted in the units of the column."""
        return "share" if self.shares else super().axis

    @property
    def zero_line(self) -> bool:
        """Of effects."""
        return self.effects

    def head(self) -> tuple[tuple[str, str], ...]:
        """The kind."""
        return (("Kind", "confidence"),)

    def more(self, alpha: float) -> Mapping[str, Any]:
        """The kind."""
        return {"kind": "confidence"}


_LINE, _SHADE = "#0072B2", "#F3CF8C"
#: Parameters that are drawn: the first ones.
PANELS = 24


class PosteriorSource(Protocol):
    """What a picture reads of posteriors."""

    @property
    def names(self) -> tuple[str, ...]: ...
    @property
    def bounds(self) -> tuple[tuple[float, float], ...]: ...
    @property
    def params(self) -> pd.Series[float]: ...
    def conf_int(self, alpha: float = 0.05) -> pd.DataFrame: ...
    def density(self, name: str) -> pd.DataFrame: ...


def draw_posterior(result: PosteriorSource, ax: Axes, alpha: float) -> None:
    """Draw on `ax`; several parameters are drawn one above the other, each on a separate scale, or all on one (`one_scale`)."""
    from confide.results.pages.plots import panels

    names = result.names[:PANELS]
    every = panels(ax, [1.3] * len(names), 0.6)
    low, high = result.conf_int(alpha).to_numpy().T
    ends: list[float] = []
    for panel, name, a, b, middle in zip(every, names, low, high, result.params, strict=False):
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
        panel.set_xlabel(folded(name, 60), **LITERAL)
        thousands(panel.xaxis)
        panel.spines[["top", "right", "left"]].set_visible(False)
    if one_scale(result):
        room = 0.02 * (max(ends) - min(ends))
        for panel in every:
            panel.set_xlim(min(ends) - room, max(ends) + room)


def one_scale(result: PosteriorSource) -> bool:
    """Whether parameters are alike, shares of one column's levels, and are compared: their panels then have one scale."""
    return len(result.names) > 1 and len(set(result.bounds)) == 1 and bool(np.isfinite(result.bounds[0]).all())
