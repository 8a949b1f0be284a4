"""What intervals for one parameter give back: posteriors to plot, draw from and save, and confidence intervals at any level.

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
from confide.results.base import BaseResult, marked, noise_share
from confide.results.pages.content import LITERAL, Column, Flag, check_alpha, level_heads, level_words, short

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


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
    "at this size and budget the interval is wider than half of what the bounds allow, or under a third of what it is with a flat prior: "
    "the prior says as much as the records; kind='confidence' of the same release holds without a prior",
)
BOX_ACTIVE = Flag("at_parameter_bound", "the parameter may lie at an edge of what the bounds allow, or beyond")

_PICTURED = 201
# Of the range that is allowed: a credible interval that is wider says little that the prior does not.
_WIDE = 0.5
# An interval that a flat prior makes more than so many times as wide is the prior's.
_OWN = 3.0


class _Inferred(BaseResult):
    """What both kinds share."""

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

    def conf_int(self, alpha: float = 0.05) -> pd.DataFrame:
        """Intervals at level 1 - alpha, with equal tails: columns 0 (low) and 1 (high), one row for each name."""
        low, high = self._ends(check_alpha(alpha))
        return pd.DataFrame({0: low, 1: high}, index=list(self.names))


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Posterior(_Inferred):
    """Posterior distributions given a release: medians, standard deviations, credible intervals, quantiles, densities, draws.

    names; marginals: the distribution of each; bounds: what each may be at all, infinite where nothing bounds it; joint: draws of all of
    them at once, (size, p); prior: in words; reached: alpha -> of each, whether its least and its greatest value are not rejected at
    alpha/2. Equal tails of a density leave out a share of 0 whatever is released: intervals reach what is not rejected, and then hold more
    than they say. alone: how wide 95 % intervals would be by sampling alone, where that is known.
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

        flat: the marginals of a flat prior, asked for where the prior is one's own; middle: of a release that is half-way between
        what it may be, in the order of the bounds. Where that is too wide all releases of the same size and budget are weak: those
        alone that noise moved to an end, where intervals are narrow, would be left as "valid", and hold what they say the more rarely
        the fewer they are.
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

    def quantile(self, q: float | Sequence[float]) -> pd.DataFrame:
        """Quantiles of each posterior, one row for each name, one column for each q in (0, 1)."""
        qs = np.atleast_1d(np.asarray(q, dtype=np.float64))
        if not ((qs > 0) & (qs < 1)).all():
            raise PlanError(f"q must lie strictly between 0 and 1, got {q!r}; write quantile([0.025, 0.5, 0.975])")
        return pd.DataFrame([one.quantile(qs) for one in self.marginals], index=list(self.names), columns=qs.tolist())

    def density(self, name: str | None = None, points: int = _PICTURED) -> pd.DataFrame:
        """The density of one posterior over where nearly all of it lies: columns theta, density. name: the first one when left out."""
        marginal = self.marginals[self._place(name)]
        theta = np.linspace(*marginal.span, points)
        return pd.DataFrame({"theta": theta, "density": marginal.density(theta)})

    def sample(self, size: int = 1_000, seed: int = 0) -> pd.DataFrame:
        """Joint draws from the posterior, one column for each name; the same ones for one release, size and seed."""
        generator = keyed_generator(self.drawn_sha256, "posterior", str(seed))
        return pd.DataFrame(self.joint(generator, size), columns=list(self.names))

    def save(self, path: str | Path) -> Path:
        """Write `to_json`, which holds every density on a grid; returns the path."""
        Path(path).write_text(self.to_json(), encoding="utf-8")
        return Path(path)

    def _place(self, name: str | None) -> int:
        if name is None:
            return 0
        if name not in self.names:
            raise PlanError(f"there is no parameter {name!r}; there are: {', '.join(self.names)}")
        return self.names.index(name)

    def columns(self, alpha: float) -> tuple[Column, ...]:
        """median, posterior sd, and the credible interval."""
        (low, high), heads = self._ends(alpha), level_heads(alpha)
        return (
            Column("term", self.names, "name"),
            Column("estimate", self._estimates(), head="median"),
            Column("posterior_sd", [one.sd for one in self.marginals], "std_err", head="posterior SD"),
            Column("ci_low", low, "interval", head=heads[0]),
            Column("ci_high", high, "interval", head=heads[1]),
        )

    def head(self) -> tuple[tuple[str, str], ...]:
        """Kind and prior."""
        return (("Kind", "credible"), ("Prior", self.prior))

    def more(self, alpha: float) -> Mapping[str, Any]:
        """The densities, for whoever draws or computes with them elsewhere."""
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
            f"Each curve is a posterior density; the shaded part holds {level_words(alpha)} of it, with equal tails, and the line in "
            f"it is the median.{scale}{rest}"
        )

    @property
    def picture_size(self) -> tuple[float, float]:
        """A panel for each parameter."""

        return 6.4, 1.2 + 2.2 * min(len(self.names), 4) + 1.5 * min(max(len(self.names) - 4, 0), PANELS - 4)


def _width(marginal: Marginal) -> float:
    """Of the 95 % interval."""
    low, high = marginal.quantile(np.array([0.025, 0.975]))
    return float(high - low)


_HALF_WAY = (
    "a release of this size that is half-way between what it may be would leave everything possible: the privacy noise is as large as what "
    "it hides; more records or a larger budget would do"
)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ConfidenceIntervals(_Inferred):
    """Confidence intervals by inversion of the distribution of a noisy statistic, at any level.

    limits: alpha -> (lows, highs); estimates: where both tails are alike; effects: whether zero says something of them, as of a
    difference; shares: whether they have no unit; alone: how wide 95 % intervals would be by sampling alone, where that is known.
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

        middle: the limits of a release of the same size that is half-way between what it may be. Where one of those is all that is allowed
        all releases of this size and budget are weak: those alone that noise moved to an end would be left as "valid", and hold what they
        say the more rarely the fewer they are.
        """
        limits = cache(limits)
        low, high = (np.array(end) for end in limits(0.05))
        whole = all(a <= least and b >= most for a, b, (least, most) in zip(low, high, bounds, strict=True))
        point = np.array([(a + b) / 2 for a, b in zip(*limits(0.999), strict=True)] if estimates is None else estimates)
        reason = (
            "the privacy noise leaves every value within the bounds possible; more records or a larger budget would not"
        )
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
        (low, high), heads = self._ends(alpha), level_heads(alpha)
        return (
            Column("term", self.names, "name", head=self.rows_are or None),
            Column("estimate", self._estimates()),
            Column("ci_low", low, "interval", head=heads[0]),
            Column("ci_high", high, "interval", head=heads[1]),
        )

    @property
    def unit(self) -> str:
        """None of a share: it is not counted in the column's."""
        return "" if self.shares else super().unit

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


_LINE, _SHADE = "#1f4e79", "#e7b58a"
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


def one_scale(result: PosteriorSource) -> bool:
    """Whether parameters are alike, shares of one column's levels, and are compared: their panels then have one scale."""
    return len(result.names) > 1 and len(set(result.bounds)) == 1 and bool(np.isfinite(result.bounds[0]).all())


def _panels(ax: Axes, count: int) -> list[Axes]:
    """Panels inside the room of one."""
    ax.set_axis_off()
    height = 1.0 / count
    return [ax.inset_axes((0.0, 1 - (k + 1) * height + 0.35 * height, 1.0, 0.6 * height)) for k in range(count)]
