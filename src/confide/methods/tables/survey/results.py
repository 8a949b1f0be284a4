"""A survey's table: estimates of the population, with intervals from the meat of persons or PSUs.

Of one estimate theta = k Y/X (or k Y) the variance is k^2/X^2 times the noise of Y - theta X, and M C/(C - 1) in the steps of its scores,
C the number of PSUs, or of persons; the centered form has the factor within. M has noise, too: the degrees of freedom are those of

    2 V^2/(2 V_M^2/f + noise variance of V_M),

f the degrees of freedom that PSUs allow: PSUs less strata, C - H, and at most the PSUs that hold records of the cell, by a lower bound of
their number, less one (Satterthwaite 1946); a small draw of M leaves few. Below 5, at about 1.6 SDs of its noise, M is taken at its upper
95% bound, with f. Below f = 2.5 a cell has the flag few_psus, as PSUs do not show how much they differ; one alone has a sum of scores of
0. With normal errors and a normal noise of M, intervals of 95% cover 0.948 or more, whatever V_M, its noise and that of the estimates are
(computed in the tests). Intervals solve (Y - theta X)^2 <= t^2 (variance at theta), and are widened for the worst bias of the cut of
weights (`cells/weighted_cells.allowed`). Where scores were cut short, for means, M is taken up by the part of the squares that the cut
left out,
which the released moments tell.

Calibration after the release: estimates moved to public totals of the population, at no further cost.

Post-stratification. With public numbers N_g of persons in the cells g of one attribute, sum_g (N_g/N) theta_g of the released means
of the cells has the covariance of these, p'Vp, p = N_g/N: linearized about the cells' own means, as R's `postStratify` has it.
A person is in one cell, and PSUs in several: V holds the covariances between cells. The noise of p'Mp is that of M's entries, |p|^4 times
one entry's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from confide import _special as special
from confide._arrays import Array
from confide._helpers import later
from confide.errors import NoResult, PlanError
from confide.methods.tables.intervals import MeanSums
from confide.methods.tables.layout import both_sides
from confide.methods.tables.results import CellTable
from confide.methods.tables.survey.estimand import Sums
from confide.results import check_alpha
from confide.results.inference import simulated_null
from confide.results.pages.content import WITHOUT_NUMBERS
from confide.results.population_totals import CALL, public_totals
from confide.schema import SurveyDesign
from confide.schema.survey import ASSUMPTION, NOT_COVERED
from confide.sums.cells.cell_sums import Axes
from confide.sums.cells.weighted_cells import DISTANCE, allowed
from confide.sums.clusters.cluster_covariance import LEAST_DF, TruncationBias

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = later("pandas")


def poststratified(table: Any, totals: Any, over: str, of: str | None, alpha: float) -> pd.DataFrame:
    """One row: the estimate of all persons, its standard error, degrees of freedom and interval. table: a `SurveyTable`."""
    if table.verb != "means":
        raise PlanError(
            f"means are post-stratified, got {table.verb}",
            "plan cf.tables.Means: N times it is a total, and that of a 0/1 column a share",
        )
    if not isinstance(over, str):
        raise PlanError(
            f"public totals are of the levels of one attribute, got {over!r}",
            "write poststratify({'f': 51_000, 'm': 49_000}, 'sex'), or calibrate() of a line on several columns",
        )
    numbers = public_totals(totals)
    (axis,) = axes = table.layout.axes(over)
    labels = table.layout.crossing.attributes[axis].labels
    if set(numbers) != set(labels):
        raise PlanError(
            f"public totals of {over!r} name its levels, {', '.join(labels)}, each once, got {', '.join(numbers)}",
            f"{CALL}",
        )
    column = table.column(of)
    if (axes, column) not in table.estimated or table.estimated[axes, column].sums.of.base != axes:
        raise PlanError(
            f"post-stratification takes the means of each level of {over!r}, which this table has not",
            f"plan 'y ~ {over}'",
        )
    own = table.estimated[axes, column]
    if table.status in WITHOUT_NUMBERS:
        raise NoResult(f"the status is {table.status!r}, and nothing is moved to public totals: {table.reason}")
    p = np.array([numbers[label] for label in labels])
    p = p / p.sum()
    weights = p / own.x
    sampling = np.maximum(weights @ own.sampling @ weights, 0.0)
    # entries of M in steps have one noise sd, those off the diagonal 1/sqrt(2) of it and twice in the sum
    error = weights**2 @ own.error
    cells = range(len(p))
    noise = sum(weights[i] * weights[j] * own.sums.noise_between(own.theta, i, j) for i in cells for j in cells)
    most = own.most_of_sum(p, weights**2 * np.maximum(np.diag(own.sampling), 0.0))
    sampling, df = (float(part) for part in own.freedom(sampling, error, np.asarray(noise), np.asarray(most)))
    if own.weak_sum(p):
        raise NoResult(
            f"a post-stratified mean needs every level of {over!r}, and the records or PSUs are too few for an interval of their sum. Use "
            "a larger budget, or join rare levels with others before the release"
        )
    variance = sampling + noise
    estimate = float(p @ own.theta)
    # the worst bias of the cut of weights, in full
    bias, unsure = own.moved(p)
    whole = float(own.widened(np.array([sqrt(variance)]), np.array([bias]), np.array([unsure]), check_alpha(alpha))[0])
    half = whole * float(simulated_null.quantile(alpha / 2, df) / simulated_null.quantile(alpha / 2, np.inf))
    low, high = own.sums.of.bounds
    return pd.DataFrame(
        {
            "estimate": [estimate],
            "std_err": [sqrt(variance)],
            "df": [df],
            "ci_low": [max(estimate - half, low)],
            "ci_high": [min(estimate + half, high)],
        },
        index=[f"{table.names_of[column]}, post-stratified by {over}"],
    )


_FEW, _ONE_SIDED = 5.0, 1.645
# Fewer persons above noise than this and an interval is not to be relied on.
_THIN = 10.0
_HIDDEN = (
    "in some cells the sampling variance is not above its noise, and its upper 95% bound is used. Standard errors are larger for it, and "
    "the privacy share includes it. More PSUs, fewer cells or a larger mu narrow them"
)


def no_tests(design: SurveyDesign) -> str:
    """Why a sample of a design has no tests by name, and what answers instead."""
    return (
        f"these tests assume records that are drawn independently, and these are a sample ({design.words or 'of a design'}); "
        'write cf.linear_regression("income ~ sex", data, ...), with t and p for the design, or '
        'cf.tables.means("income ~ sex", ...), with differences and their intervals in .diff("sex")'
    )


@dataclass(frozen=True, eq=False)
class Estimated:
    """One estimand's numbers by cell. sampling: the covariance of Y - theta X, noise in it and all; error: the SD of its diagonal's noise;
    independent, strata: C and H; most: the degrees of freedom that PSUs, or all persons, allow each cell; part: of the sampling variance
    that counts; bias: what the cut of weights may move an estimate by, noise and all, unsure: the SD of that noise, in units of Y/X; over:
    the sum of omega that the cut leaves out; beyond: what the cut of PSU sums does;
    alone: the sampling variance of Y - theta X without what is allowed for because of noise, None where nothing but M tells of it.
    """

    sums: Sums
    sampling: Array
    error: Array
    independent: float
    strata: int
    most: Array
    part: float
    bias: Array
    moments: MeanSums | None = None
    unsure: Array | float = 0.0
    over: float = 0.0
    beyond: TruncationBias | None = None
    alone: Array | None = None

    def widened(self, error: Array, bias: Array, unsure: Array, alpha: float) -> Array:
        """Margins of error of intervals at level 1 - alpha, of these standard errors, with what the cut of weights may do."""
        return allowed(error, bias, unsure, alpha)

    @cached_property
    def y(self) -> Array:
        return self.sums.y

    @cached_property
    def x(self) -> Array:
        return np.asarray(np.maximum(self.sums.x, 1e-9))

    @property
    def factor(self) -> float:
        return self.sums.of.factor

    @cached_property
    def theta(self) -> Array:
        """Y/X within the public bounds."""
        if self.sums.of.base is None:
            return self.y
        return np.asarray(np.clip(self.y / self.x, *self.sums.of.bounds))

    @cached_property
    def noise(self) -> tuple[Array, Array, Array]:
        return self.sums.noise()

    @cached_property
    def noise_variance(self) -> Array:
        """Of Y - theta X."""
        vy, vyx, vx = self.noise
        slope = self.theta if self.sums.of.base is not None else 0.0 * self.theta
        return np.asarray(np.maximum(vy - 2 * slope * vyx + slope**2 * vx, 0.0))

    @cached_property
    def _freedom(self) -> tuple[Array, Array]:
        """(sampling variance of Y - theta X, degrees of freedom)."""
        return self.freedom(np.maximum(np.diag(self.sampling), 0.0), self.error, self.noise_variance, self.most)

    def freedom(self, sampling: Array, error: Array, noise: Array, most: Array) -> tuple[Array, Array]:
        """(the sampling variance that counts, degrees of freedom). error: the SD of its noise; noise: the estimates' own variance; most:
        degrees of freedom without either.
        """
        most = np.maximum(most, 1.0)
        if not self.part:
            return np.zeros_like(noise), np.full_like(noise, np.inf)
        own, error = self.part * sampling, self.part * error
        whole = own + noise
        with np.errstate(all="ignore"):
            df = 2 * whole**2 / (2 * own**2 / most + error**2)
        df = np.where(np.isfinite(df), df, most)
        short = df < np.minimum(_FEW, most)
        # a small variance of few PSUs is no sign that noise is all there is
        return np.where(short, own + _ONE_SIDED * error, own), np.where(
            short | (most < LEAST_DF), most, np.maximum(df, 1.0)
        )

    @property
    def hidden(self) -> NDArray[np.bool_]:
        """Where the noise of M leaves so little that its upper bound counts."""
        return np.asarray(self._freedom[0] > self.part * np.maximum(np.diag(self.sampling), 0.0))

    @property
    def variance(self) -> Array:
        """Of Y - theta X: sampling and noise."""
        return self._freedom[0] + self.noise_variance

    @property
    def df(self) -> Array:
        return self._freedom[1]

    @cached_property
    def std_err(self) -> Array:
        return np.asarray(self.factor * np.sqrt(self.variance) / self.x)

    def sampled(self, z: float) -> tuple[Array, Array]:
        """Ends that sampling alone would give: without noise, the cut of weights, and what is allowed for because M has noise."""
        own = self._freedom[0]
        # by chance M may be far too small, and what an interval counts with it
        sampling = own if self.alone is None else np.minimum(self.part * self.alone, own)
        q = simulated_null.quantile(float(special.ndtr(-z)), np.maximum(self.most, 1.0))
        half = q * self.factor * np.sqrt(sampling) / self.x
        return self._cut(self.factor * self.theta - half, self.factor * self.theta + half)

    def _cut(self, low: Array, high: Array) -> tuple[Array, Array]:
        least, most = self.sums.of.bounds
        return np.clip(low, self.factor * least, most), np.clip(high, low, self.factor * most)

    def ends(self, z: float) -> tuple[Array, Array]:
        """At the normal quantile z, taken to Student's t."""
        tail = float(special.ndtr(-z))
        q = simulated_null.quantile(tail, self.df)
        low, high = self._roots(q)
        if self.bias.any() or np.any(self.unsure):
            unsure = np.broadcast_to(self.unsure, self.bias.shape)
            whole = self.widened(self.std_err, self.factor * self.bias, self.factor * unsure, 2 * tail)
            more = q * (whole / z - self.std_err)
            low, high = low - np.maximum(more, 0.0), high + np.maximum(more, 0.0)
        return self._cut(low, high)

    def _roots(self, q: Array) -> tuple[Array, Array]:
        if self.sums.of.base is None:
            half = q * self.std_err
            return self.factor * self.theta - half, self.factor * self.theta + half
        vy, vyx, vx = self.noise
        y, x, sampling = self.y, self.sums.x, self._freedom[0]
        lead, middle = x**2 - q**2 * vx, y * x - q**2 * vyx
        rest = y**2 - q**2 * (vy + sampling)
        root = middle**2 - lead * rest
        open_ = ~((lead > 0) & (root >= 0) & (x > 0))
        with np.errstate(all="ignore"):
            half = np.sqrt(np.maximum(root, 0.0))
            low, high = (middle - half) / lead, (middle + half) / lead
        low, high = np.where(open_, -np.inf, low), np.where(open_, np.inf, high)
        return self.factor * low, self.factor * high

    def moved(self, p: Array) -> tuple[float, float]:
        """(bias, SD) of the cut for the sum of p theta over cells: what is lost is lost once, in one cell or shared out among them."""
        by_cell = p * (1.0 + self.over / self.x)
        # less than nothing was seen: all cells are off by the same number, each times its own
        least = -float(np.max(-by_cell * self.bias))
        once = float(np.max(by_cell * self.bias)) if least >= 0 else least, float(np.max(by_cell * self.unsure))
        return min(once[0], float(p @ self.bias)) if least >= 0 else least, once[1]

    @cached_property
    def weak(self) -> NDArray[np.bool_]:
        """A denominator near its noise, or too skewed a column, or a cut of PSU sums that hides how large they are."""
        found = self.thin
        if self.moments is not None and self.part:
            found = found | self.moments.skewed
        if self.beyond is not None and not self.beyond.whole:
            found = np.ones_like(found)
        return np.asarray(found)

    @property
    def thin(self) -> NDArray[np.bool_]:
        """A denominator near its noise."""
        near = self.sums.x < _THIN * np.sqrt(self.noise[2])
        return np.asarray(near if self.sums.of.base is not None else np.zeros_like(near))

    @property
    def few(self) -> NDArray[np.bool_]:
        """Too few PSUs, or persons, for the sampling variance to show."""
        return np.asarray((self.most < LEAST_DF) & (self.part > 0))

    def most_of_sum(self, p: Array, parts: Array) -> float:
        """The degrees of freedom that PSUs allow the sum of p theta over cells, with these parts of its variance: as if the variances
        of all cells erred together, as those of the same PSUs do (Satterthwaite 1946).
        """
        own = p > 0
        whole = float((parts[own] / np.sqrt(np.maximum(self.most[own], 1.0))).sum()) ** 2
        return float(parts[own].sum()) ** 2 / whole if whole > 0 else float(self.most[own].min())

    def weak_sum(self, p: Array) -> bool:
        """Whether the sum of p theta over cells is weak, for the same reasons. Of its skewness counts what the cells' add up to at most."""
        if self.few[p > 0].any() or self.thin[p > 0].any() or (self.beyond is not None and not self.beyond.whole):
            return True
        if self.moments is None or not self.part:
            return False
        squares = (p / self.x) ** 2 * self.moments.variance * self.moments.size
        return bool(3 * float(squares**1.5 @ self.moments.bend) ** 2 > float(squares.sum()) ** 3)

    def covariance(self, one: int, other: int) -> float:
        """Between two estimates."""
        slope = self.theta if self.sums.of.base is not None else 0.0 * self.theta
        found = self.sums.noise_between(slope, one, other) + self.part * float(self.sampling[one, other])
        return float(self.factor**2 * found / (self.x[one] * self.x[other]))


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SurveyTable(CellTable):
    """Estimates of a population from a sample with a design. estimated: by (marginal, column); names_of: of the columns.

    design: as the schema states it; lost: the share of all weight that the cap leaves out; alone: variance of each overall estimate if as
    many persons of equal weight were independent, by column, for design effects; NaN where it is not known.
    """

    estimated: Mapping[tuple[Axes, int], Estimated]
    names_of: tuple[str, ...]
    verb: str
    design: SurveyDesign
    one: float
    lost: float = 0.0
    persons: float = 0.0
    alone: tuple[float, ...] = ()
    shown_marginals: tuple[Axes, ...] = ()

    own_columns: ClassVar[tuple[str, ...]] = ("variable", "n", *CellTable.own_columns)
    noun: ClassVar[str] = "Estimates"

    @property
    def rows_hold(self) -> str:  # type: ignore[override]
        return {"means": "mean", "totals": "total", "shares": "share", "counts": "records"}.get(self.verb, "estimate")

    @property
    def percent(self) -> bool:  # type: ignore[override]
        return self.verb == "shares"

    @property
    def whole(self) -> bool:  # type: ignore[override]
        return self.verb == "counts"

    @property
    def title(self) -> str:
        what = f" of {', '.join(name for name in self.names_of if name)}" if any(self.names_of) else ""
        right = both_sides(self.layout.formula)[1].strip()
        by = f" by {right}" if right != "1" else ""
        words = "" if self.design.plain else f", {self.design.words}"
        return f"{self.verb.capitalize()}{what}{by}{words}"

    @property
    def measured(self) -> tuple[str, ...]:
        return self.names_of

    @property
    def marginals(self) -> tuple[Axes, ...]:
        return self.shown_marginals

    def _counts_of_rows(self) -> Mapping[str, Array]:
        """n of each row of means, where records have no weights, so that the sums are counts."""
        if self.verb != "means" or self.layout.weight is not None:
            return {}
        return {"n": np.concatenate([self.estimated[place].sums.persons for place in self._places])}

    def counts(self, axes: Axes) -> Array:
        return super().counts(axes) / self.one

    def count_variance(self, axes: Axes) -> float:
        return super().count_variance(axes) / self.one**2

    @cached_property
    def size(self) -> float:
        return float(self.counts(())[0])

    @property
    def part(self) -> float:
        return 0.0 if self.inference == "dataset" else 1.0

    def bounds(self, column: int) -> tuple[float, float]:
        return self.estimated[self.marginals[0], column].sums.of.bounds

    def points(self, axes: Axes, column: int) -> tuple[Array, Array]:
        own = self.estimated[axes, column]
        return own.factor * own.theta, own.std_err

    def sampled(self, axes: Axes, column: int, z: float, *, apart: bool = False) -> tuple[Array, Array]:
        return self.estimated[axes, column].sampled(z)

    def ends(self, axes: Axes, column: int, z: float) -> tuple[Array, Array]:
        return self.estimated[axes, column].ends(z)

    def weak(self, axes: Axes, column: int) -> NDArray[np.bool_]:
        return self.estimated[axes, column].weak

    def few_psus(self, axes: Axes, column: int) -> NDArray[np.bool_]:
        return self.estimated[axes, column].few

    def covariance(self, axes: Axes, column: int, one: int, other: int) -> float:
        """Between two cells of a marginal: PSUs that both lie in, and noise that margins share."""
        return self.estimated[axes, column].covariance(one, other)

    @property
    def df(self) -> pd.Series[float]:
        """Degrees of freedom by name."""
        parts = [self.estimated[axes, column].df for axes, column in self._places]
        return pd.Series(np.concatenate(parts), index=list(self.names), dtype="float64")

    def design_effect(self, of: str | None = None) -> float:
        """The sampling variance of the overall estimate over that of as many persons drawn independently; NaN if it is not known."""
        column = self.column(of)
        if () not in self.marginals or not self.alone:
            return float("nan")
        own = self.estimated[(), column]
        sampling = float(own.factor**2 * own._freedom[0][0] / own.x[0] ** 2)
        return sampling / self.alone[column] if self.alone[column] > 0 else float("nan")

    def poststratify(self, totals: Any, over: str, *, of: str | None = None, alpha: float = 0.05) -> pd.DataFrame:
        """The estimate of all persons at public numbers of the levels of an attribute, in the frame: estimate, std_err, df, low, high.

        totals: level -> number of persons, or a CSV file of two columns. Raises `PlanError` for other levels, and a table without means of
        each of them; `NoResult` where one of these is weak.
        """
        return poststratified(self, totals, over, of, alpha)

    def test(self, *_: Any, **__: Any) -> Any:
        """No test: tests assume records that are drawn independently. Raises `PlanError` with what answers instead."""
        raise PlanError(no_tests(self.design))

    def head(self) -> Sequence[tuple[str, str]]:
        """The design, the persons, the cap, the design effect."""
        sd, unit = sqrt(self.count_variance(())), self.layout.crossing.schema.protects
        told = [("Intervals for", self.inference)]
        if self.layout.weight is None:
            told += [("n", f"{self.size:,.0f} (SD of the noise {sd:,.3g})")]
        else:
            told += [
                ("Persons (noisy)" if unit == "record" else f"Values of {unit} (noisy)", f"{self.persons:,.0f}"),
                (
                    "Sum of weights",
                    f"{self.layout.heaviest * self.size:,.0f} (SD of the noise {self.layout.heaviest * sd:,.3g})",
                ),
                ("Largest weight", self._cap_words),
            ]
        own = self.estimated[self._places[0]]
        if self.design.psu is not None:
            kind = "within strata" if own.strata > 1 else "together"
            told += [("PSUs", f"{own.independent:,.0f} of {self.design.psu}, {kind}; {own.strata} strata")]
        if self.design.deff is not None and self.design.deff > 1:
            told += [("Design effect", f"{self.design.deff:g} (declared)")]
        elif self.part:
            found = self.design_effect()
            told += [("Design effect", f"{found:.2f} of {self.names_of[0] or 'the total'}")] if found == found else []
        if self.design.fraction is not None:
            told += [("Sampling fraction", f"{self.design.fraction:g} (public)")]
        if self.design.population is not None:
            told += [("Population size", f"{self.design.population:,} (public)")]
        return tuple(told)

    @property
    def _cap_words(self) -> str:
        most = f"{self.layout.heaviest:.4g}"
        if not self.lost:
            return f"{most}, the bound of the schema; nothing assumed"
        told = f"{most}; larger ones count as that, {self.lost:.2%} of all weight with an allowance for noise"
        if self.verb in ("shares", "counts"):
            return f"{told}; intervals allow for it, whatever cell it is of"
        return f"{told}; intervals are valid if the records with larger weights are within {DISTANCE:g} SDs of the mean of their cell"

    def notes(self) -> Sequence[tuple[str, str]]:
        own = tuple(super().notes())
        if any(one.hidden.any() for one in self.estimated.values()):
            own = (*own, ("Sampling", _HIDDEN))
        if self.design.weight is not None:
            own = (*own, ("Assumed", ASSUMPTION))
        if self.design.psu is not None and self.part:
            cut = [one.beyond for one in self.estimated.values() if one.beyond is not None]
            told = f"assumed to be {self.design.alike}; sums of larger or closer ones are clipped"
            if cut:
                told += f", which the intervals allow for{max(cut, key=lambda one: one.factor).words}"
            told += "; a cell has the degrees of freedom of the PSUs with records of it, by a DP count"
            own = (*own, ("PSUs", told))
        return own if self.design.plain else (*own, ("Design", NOT_COVERED))

    def more(self, alpha: float) -> Mapping[str, Any]:
        return {
            **{k: v for k, v in super().more(alpha).items() if k not in ("weights", "effective_size")},
            "kind": self.verb,
            "design": self.design.to_dict(),
            "largest_weight": self.layout.heaviest if self.design.weight else None,
            "weight_lost": self.lost,
            "design_effect": [self.design_effect(name or None) for name in self.names_of],
        }
