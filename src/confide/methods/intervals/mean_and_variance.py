"""Mean and variance of a numeric column, of counts among them, from one release of four sums.

Guarantee: PureDP(epsilon) or mu-GDP, substitution, with a public n. Released are (sum z, a sum q, b sum z q, c sum z^2 q), q = 1 - z^2,
z in [-1, 1] by public bounds. One replaced record moves all four together by 2 in l1 and in l2, which is what the first sum alone costs
(`rows.MomentRows`).

Estimand: of="column" (default): mean and variance of the column as declared, its values clipped to their bounds, whatever it is
distributed as; of="normal": of the normal before that, clipping modeled. Where the bounds are wide and the column is normal the two agree.

kind="credible": posterior on a grid in (mean, SD). The sums of z and z^2 are normal (central limit theorem) with the released third and
fourth moments, or of a normal that is clipped. The noise is exact (`normal_posterior`). Prior: uniform in (mean, SD) over the
bounds. The variance's interval reaches 0 where the release does not reject records that are all alike. Equal tails would exclude a
variance far below what noise hides.

kind="confidence": the noisy sums inverted, of any distribution (`sums`). With of="normal" it is the shadow of a region that covers at its
level or above (`confidence_region`), conservative.

kind="poisson": posterior of the rate of Poisson counts, from the sum of z alone. It is another estimand under an assumption that its title
names: the variance equals the mean, and the largest count means so many or more (`count_posteriors`). Exact under both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import inf, sqrt
from typing import Any, ClassVar

import numpy as np

from confide._arrays import Array
from confide.core import Release, ResultOptions
from confide.errors import PlanError
from confide.guarantees.validation import is_finite
from confide.methods.intervals.count_posteriors import ClippedPoisson, PoissonSum, rate_posterior
from confide.methods.intervals.marginals import Marginal, NoiseLaw
from confide.methods.intervals.method import KINDS, IntervalMethod, parsed_prior
from confide.methods.intervals.normal_posteriors import (
    PRIORS,
    NormalGrid,
    NormalSums,
    confidence_region,
    normal_posterior,
)
from confide.methods.intervals.results import BOX_ACTIVE, ConfidenceIntervals, Limits, Posterior
from confide.methods.intervals.sums import STEP, ColumnSums, MomentRows, numeric, whole_frame
from confide.results.pages.content import Flag
from confide.schema import CodedFrame, Integer, Schema

_SHOWN = ("mean", "variance")
# Half of a 95 % interval in standard errors.
_Z = 1.959963984540054
_OF = ("column", "normal")
# Of the half-range: the smallest standard deviation in the box; the largest is the half-range, where a clipped normal is two atoms.
_LEAST_SD = 1e-3
_POISSON, _POISSON_PRIORS = "poisson", {"uniform": 0, "gamma": 2, "jeffreys": 0}
# The chance of as small a Poisson sum at the largest rate that the bounds allow, from which on larger rates are not ruled out.
_BEYOND = 0.025
_FOR_POISSON = (
    "the interval assumes Poisson counts, whose variance is their mean: visits, drinks and days of real people vary more, or less; leave "
    "kind out for the mean of any counts"
)
_SKEWED = Flag(
    "skewed_few_records",
    "too few records for so skewed a column: the interval may be short on one side; more records would do",
)


@dataclass(frozen=True)
class MeanAndVariance(IntervalMethod):
    """Estimate mean and variance of a numeric column, whatever its distribution.

    The estimand is mean and variance in the population, of the column clipped to
    its bounds. With ``of="normal"`` it is those of the normal distribution before
    clipping.

    Parameters
    ----------
    column : str
        Numeric column.
    show : {"mean", "variance"} or tuple of both, default ("mean", "variance")
        Parameters in the printed table.
    of : {"column", "normal"}, default "column"
        Estimand where values lie at the bounds: of the clipped column, or of the
        normal distribution before clipping.
    least_sd : float, optional
        Smallest standard deviation that is thought possible, in the units of the
        column. By default a thousandth of the half-range.
    kind : {"credible", "confidence", "poisson"}, default "credible"
        Kind of interval. "poisson" is the rate of an integer column from 0, for
        counts whose variance is their mean.
    prior : str, default ""
        Prior: "uniform", "reference" (1/variance) or "jeffreys". Of a rate:
        "uniform", ``"gamma(shape, rate)"`` or "jeffreys". Empty for the default.

    See Also
    --------
    confide.tables.Means : Means by group, under either relation.

    Notes
    -----
    Guarantee: PureDP(epsilon) or mu-GDP under substitution, with a public n. One
    replaced record moves the four released sums together by 2 in l1 and in l2,
    the same as the first sum alone.

    Examples
    --------
    >>> import confide as cf, numpy as np
    >>> schema = cf.Schema({"x": cf.Numeric(-4, 4, on_missing="midpoint")})
    >>> x = np.random.default_rng(1).normal(size=1000)
    >>> data = cf.read({"x": x}, schema)
    >>> method = cf.intervals.MeanAndVariance("x")
    >>> release = cf.release(method, data, cf.GDP(1.0), ledger=None,
    ...                      noise=cf.noise.SimulatedNoise(1))
    >>> result = cf.infer(release)
    >>> list(result.names), result.status
    (['mean of x', 'variance of x'], 'valid')
    """

    column: str
    show: tuple[str, ...] | str = _SHOWN
    of: str = "column"
    least_sd: float | None = None
    kind: str = "credible"
    prior: str = ""

    name: ClassVar[str] = "mean_and_variance"
    intervals: ClassVar[str] = "population mean and variance; sampling and privacy noise; any distribution"
    kinds: ClassVar[tuple[str, ...]] = (*KINDS, _POISSON)

    def __post_init__(self) -> None:
        shown = tuple(self.show) if isinstance(self.show, (list, tuple)) else (self.show,)
        object.__setattr__(self, "show", shown)
        if not shown or any(one not in _SHOWN for one in shown):
            raise PlanError(f'show must be "mean", "variance" or both, got {self.show!r}')
        if self.of not in _OF:
            raise PlanError(
                f'of must be "column" (values clipped to their bounds) or "normal" (before that), got {self.of!r}'
            )
        if self.least_sd is not None and not (is_finite(self.least_sd) and self.least_sd > 0):
            raise PlanError(
                f"least_sd must be above 0, in the units of the column, got {self.least_sd!r}", "leave it out"
            )
        super().__post_init__()

    def rows(self, schema: Schema, pure: bool) -> MomentRows:
        own = numeric(schema, self.column, "a mean")
        if self.least_sd is not None and self.least_sd >= (own.high - own.low) / 2:
            raise PlanError(
                f"least_sd must be below half the range of {self.column!r}, got {self.least_sd!r}", "leave it out"
            )
        if self.kind == _POISSON:
            self._most(schema)
        return MomentRows(schema, self.column, pure)

    def _most(self, schema: Schema) -> int:
        """The largest count; `PlanError` where a rate cannot be asked for."""
        own = schema[self.column]
        if not isinstance(own, Integer) or own.low != 0:
            raise PlanError(
                f"a rate is of counts from 0 on, and {self.column!r} is none",
                "declare it as cf.Integer(0, most, on_missing=0) with the largest count that is to matter",
            )
        return own.steps - 1

    def facts(self, about: MomentRows) -> Mapping[str, Any]:
        return self._said(about.schema) | ({"warnings": (_FOR_POISSON,)} if self.kind == _POISSON else {})

    def _said(self, schema: Schema) -> dict[str, Any]:
        """Estimand, and what the intervals account for."""
        what = " and ".join(self.show)
        if self.kind == _POISSON:
            most = self._most(schema)
            return {
                "target": f"rate of {self.column}, Poisson counts assumed: variance equal to the mean, {most:,} read as {most:,} or more",
                "intervals_for": "rate of Poisson counts; sampling and privacy noise; of counts that are not Poisson it is not the mean",
            }
        if self.of == "normal":
            return {
                "target": f"{what} of {self.column}, a normal column assumed, before its values are clipped to their bounds",
                "intervals_for": f"{what} of a normal; sampling and privacy noise",
            }
        return {
            "target": f"{what} of {self.column}, clipped to its bounds",
            "intervals_for": f"population {what}; sampling and privacy noise; any distribution",
        }

    def _prior(self, text: str) -> Any:
        if self.kind == _POISSON:
            if "mean" not in self.show:
                raise PlanError('a Poisson rate is a mean, got show="variance"', 'write show="mean"')
            name, numbers = parsed_prior(text, _POISSON_PRIORS, PRIORS[0], "a rate")
            return numbers or name
        prior = text or PRIORS[0]
        if prior not in PRIORS:
            raise PlanError(
                f"the prior of {self.name} must be one of {', '.join(PRIORS)}, got {text!r}", "write prior='uniform'"
            )
        return prior

    def _released(self, release: Release, rows: MomentRows, n: int) -> ColumnSums:
        values = [float(value) / STEP / own for value, own in zip(self.sums(release), rows.weights, strict=True)]
        laws = [self.law(release, STEP * own) for own in rows.weights]
        return ColumnSums(max(n, 1), tuple(values), tuple(laws))  # type: ignore[arg-type]

    def _sums(self, found: ColumnSums, rows: MomentRows) -> NormalSums:
        low = _LEAST_SD if self.least_sd is None else self.least_sd / self._half(rows)
        shape = found.shape if self.of == "column" else None
        return NormalSums(found.n, found.sums[0], found.n - found.sums[1], *found.laws[:2], low, 1.0, shape)

    def _weak(self, found: ColumnSums) -> dict[str, Any]:
        """Flag and status of a column that is too skewed for so many records."""
        shown = {"mean": found.skewed, "variance": found.extreme}
        if self.of == "normal" or not any(shown[one] for one in self.show):
            return {}
        return {"flags": (_SKEWED,), "status": "imprecise", "reason": _SKEWED.words}

    def _half(self, rows: MomentRows) -> float:
        own = numeric(rows.schema, self.column, "a mean")
        return float(own.high - own.low) / 2

    def _middle(self, rows: MomentRows) -> float:
        own = numeric(rows.schema, self.column, "a mean")
        return float(own.low) + self._half(rows)

    def _named(self, rows: MomentRows) -> tuple[tuple[str, ...], list[tuple[float, float]]]:
        half, middle = self._half(rows), self._middle(rows)
        box = {"mean": (middle - half, middle + half), "variance": (0.0, half**2)}
        return tuple(f"{one} of {self.column}" for one in self.show), [box[one] for one in self.show]

    def infer(self, release: Release, options: ResultOptions | None = None) -> Any:
        """The answer of a kind. Another kind than the plan's is answered by a method of that kind, with its title and priors."""
        kind = (options or ResultOptions()).kind or self.kind
        if kind == self.kind or kind not in self.kinds:
            return super().infer(release, options)
        return replace(self, kind=kind, prior="" if _POISSON in (kind, self.kind) else self.prior).infer(
            release, options
        )

    def credible(self, release: Release, rows: MomentRows, n: int, prior: Any) -> Posterior:
        if self.kind == _POISSON:
            return self._poisson(release, rows, n, prior)
        found = self._released(release, rows, n)
        sums = self._sums(found, rows)
        grid = normal_posterior(sums, prior)
        half, middle = self._half(rows), self._middle(rows)
        names, bounds = self._named(rows)
        weak = self._weak(found)
        flags = (*weak.pop("flags", ()), *((BOX_ACTIVE,) if grid.edge else ()))
        said: dict[str, Any] = {**self._said(rows.schema), **weak}
        return Posterior.read(
            release,
            response=self.column,
            names=names,
            marginals=self._marginals(grid, half, middle),
            bounds=bounds,
            alone=self._alone(found, half),
            flat=(lambda: self._marginals(normal_posterior(sums, PRIORS[0]), half, middle))
            if prior != PRIORS[0]
            else None,
            flags=flags,
            joint=lambda generator, size: self._draws(grid, generator, size, half, middle),
            reached=lambda alpha: self._reached(sums, alpha),
            prior={"uniform": "uniform in (mean, SD) over the bounds", "reference": "1/SD^2"}.get(
                prior, "Jeffreys of the release"
            ),
            facts=(("n", f"{n:,} (public)"), ("Noise", f"of the sum, in half-ranges: {sums.law1.words()}")),
            **said,
        )

    def _marginals(self, grid: NormalGrid, half: float, middle: float) -> list[Marginal]:
        """Of the parameters shown, in the column's units."""
        found: dict[str, Marginal] = {}
        if "mean" in self.show:
            found["mean"] = _moved(grid.of(lambda m, s: m, "m"), half, middle)
        if "variance" in self.show:
            found["variance"] = _moved(grid.of(lambda m, s: s * s, "s"), half**2, 0.0)
        return [found[one] for one in self.show]

    def _reached(self, sums: NormalSums, alpha: float) -> list[tuple[bool, bool]]:
        """The mean of a column is at a bound where every record is; the variance is 0 where all are alike."""
        whole = self.of == "column"
        mean = sums.law1.allows(sums.first, -sums.n, sums.n, alpha) if whole else (False, False)
        return [mean if one == "mean" else (sums.may_be_alike(alpha), False) for one in self.show]

    def _draws(self, grid: NormalGrid, generator: np.random.Generator, size: int, half: float, middle: float) -> Array:
        m, s = grid.draws(generator, size)
        column = {"mean": middle + half * m, "variance": half**2 * s * s}
        return np.column_stack([column[one] for one in self.show])

    def confidence(self, release: Release, rows: MomentRows, n: int) -> ConfidenceIntervals:
        found = self._released(release, rows, n)
        half, middle = self._half(rows), self._middle(rows)
        names, bounds = self._named(rows)
        if self.of == "normal":
            sums = self._sums(found, rows)
            limits, estimates = self._region(sums, bounds, half, middle), self._likeliest(sums, half, middle)
        else:
            limits = partial(self._limits, found, half, middle)
            point = {"mean": middle + half * found.mean, "variance": half**2 * found.variance(0.0)}
            estimates = [point[one] for one in self.show]
        return ConfidenceIntervals.read(
            release,
            effects=False,
            response=self.column,
            names=names,
            limits=limits,
            bounds=bounds,
            alone=self._alone(found, half),
            estimates=estimates,
            facts=(("n", f"{n:,} (public)"), ("Noise", f"of the sum, in half-ranges: {found.laws[0].words()}")),
            **self._said(rows.schema),
            **self._weak(found),
        )

    def _alone(self, found: ColumnSums, half: float) -> list[float]:
        """How wide the intervals in the table would be by sampling alone."""
        width = 2 * _Z * np.sqrt(found.alone / found.n) * [half, half**2]
        return [float(width[_SHOWN.index(one)]) for one in self.show]

    def _limits(self, found: ColumnSums, half: float, middle: float, alpha: float) -> tuple[list[float], list[float]]:
        """Of a column of any distribution."""
        ends = {
            "mean": lambda: tuple(middle + half * end for end in found.mean_interval(alpha)),
            "variance": lambda: tuple(half**2 * end for end in found.variance_interval(alpha)),
        }
        shown = [ends[one]() for one in self.show]
        return [low for low, _ in shown], [high for _, high in shown]

    def _region(self, sums: NormalSums, bounds: Sequence[tuple[float, float]], half: float, middle: float) -> Limits:
        """Of a normal before its values are clipped to their bounds."""

        def limits(alpha: float) -> tuple[list[float], list[float]]:
            m, s, inside = confidence_region(sums, alpha)
            if not inside.any():
                return [low for low, _ in bounds], [high for _, high in bounds]
            at_m, at_s = np.nonzero(inside)
            mean, variance = m[at_m], s[at_s] ** 2
            ends = {
                "mean": (middle + half * mean.min(), middle + half * mean.max()),
                # smaller ones than the least in the box are not ruled out where that is not
                "variance": (
                    half**2 * variance.min() * bool(s[at_s].min() > sums.low * (1 + 1e-9)),
                    half**2 * variance.max(),
                ),
            }
            return [float(ends[one][0]) for one in self.show], [float(ends[one][1]) for one in self.show]

        return limits

    def _poisson(self, release: Release, rows: MomentRows, n: int, prior: str | tuple[float, float]) -> Posterior:
        """The posterior of the rate of Poisson counts."""
        most = self._most(rows.schema)
        total = (float(self.sums(release)[0]) / STEP + n) * most / 2  # of counts, from that of their places in [-1, 1]
        own = PoissonSum(max(n, 1), total, self.law(release, 2 * STEP / most), most)
        found = rate_posterior(own, prior)
        said = f"gamma({prior[0]:g}, {prior[1]:g})" if isinstance(prior, tuple) else prior
        beyond = own.tail(float(most), -1.0) >= _BEYOND
        reason = (
            f"rates beyond the largest count, {most}, are not ruled out, and the interval ends before them. Declare a larger "
            "one, or leave kind out for the mean of the counts as they are declared"
        )
        weak: dict[str, Any] = {"flags": (BOX_ACTIVE,), "status": "imprecise", "reason": reason} if beyond else {}
        return Posterior.read(
            release,
            response=self.column,
            names=(f"rate of {self.column}",),
            marginals=(found,),
            bounds=((0.0, float(most)),),
            alone=[2 * _Z * sqrt(max(total, 0.0)) / max(n, 1)],
            joint=lambda generator, size: found.draws(generator, size)[:, None],
            reached=lambda alpha: [(own.law.allows(own.y, 0.0, inf, alpha)[0], False)],
            prior=f"{said} on (0, {most}]",
            flat=(lambda: [rate_posterior(own)]) if prior != PRIORS[0] else None,
            facts=(("n", f"{n:,} (public)"), ("Noise", own.law.words())),
            **self._said(rows.schema),
            **weak,
        )

    def _likeliest(self, sums: NormalSums, half: float, middle: float) -> list[float]:
        """The estimates of largest likelihood."""
        grid = normal_posterior(sums, "flat")
        at_m, at_s = np.unravel_index(int(np.argmax(grid.weights)), grid.weights.shape)
        m, s = grid.m[at_m], np.exp(grid.log_s[at_s])
        found = {"mean": middle + half * float(m), "variance": half**2 * float(s * s)}
        return [found[one] for one in self.show]

    def reference(self, frame: Any) -> Mapping[str, float]:
        """Mean and variance of the clipped column.

        With of="normal" they belong to the normal that has them after clipping. With kind="poisson" it is the rate at which the mean of
        clipped Poisson counts is the records' mean.
        """
        practice = whole_frame(frame, (self.column,))
        if self.kind == _POISSON:
            return {f"rate of {self.column}": self._rate(practice)}
        values = practice.present(self.column)
        found = {"mean": float(values.mean()), "variance": float(values.var())}
        if self.of == "normal":
            found = self._unclipped(practice.schema, found)
        return {f"{one} of {self.column}": found[one] for one in self.show}

    def _rate(self, practice: CodedFrame) -> float:
        from scipy.optimize import brentq  # slow to load

        most, mean = self._most(practice.schema), float(np.mean(practice.codes[self.column]))

        def off(rate: float) -> float:
            return float(ClippedPoisson(np.array([rate]), most).moments[0][0]) - mean

        top = 1e3 * most
        found = 0.0 if mean <= 0 else top if off(top) < 0 else brentq(off, 0.0, top)
        return min(float(found), float(most))

    def _unclipped(self, schema: Schema, found: Mapping[str, float]) -> dict[str, float]:
        rows = MomentRows(schema, self.column, False)
        half, middle = self._half(rows), self._middle(rows)
        m0 = (found["mean"] - middle) / half
        exact = NoiseLaw("normal", 1e-9)
        square = found["variance"] / half**2 + m0**2
        grid = normal_posterior(NormalSums(10**12, m0 * 1e12, square * 1e12, exact, exact, _LEAST_SD, 1.0))
        return {"mean": middle + half * grid.mean.mean, "variance": half**2 * grid.sd.mean**2}

    def worst_pairs(self, schema: Any = None) -> Iterable[tuple[Mapping[str, Any], ...]]:
        """Opposite bounds, and a bound against the middle, where the square moves most."""
        if isinstance(schema, Schema):
            own = numeric(schema, self.column, "a mean")
            yield {self.column: own.low}, {self.column: own.high}
            yield {self.column: own.high}, {self.column: (own.low + own.high) / 2}


def _moved(marginal: Any, factor: float, shift: float) -> Marginal:
    """The distribution of shift + factor times the number."""
    return replace(marginal, points=shift + factor * marginal.points)  # type: ignore[no-any-return]
