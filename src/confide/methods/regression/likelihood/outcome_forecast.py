"""What a line of Fisher scoring can expect of practice records, before anything is spent: of an outcome of two values, and of counts.

For each shape of practice records (`methods.regression.practice`) the release's own rounds run on weighted records with seeded noise, and
the reading of a release decides what is answered: a forecast has no rules of its own. The outcomes of practice records follow a line of
the family that comes near the shape's least-squares line. The share of an outcome of two values is what the schema states, and else lies
between 5 % and 95 %, evenly. Of counts every second shape has events: their mean is that of the shape where the schema states what is
typical, else from a hundredth to half of the declared bound, and they vary as Poisson counts do, or more: a variance of mean + a mean^2 is
that of counts of which a/(1 + a) are zeros in excess, in these shapes none, a third, two thirds, nine tenths. The others have the shape's
own response, as least squares does: a quantity of any spread (hours, prices, scores), which fills more of its bounds and varies less.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import exp, log, nan
from typing import Any, cast

import numpy as np
from scipy.optimize import brentq

from confide._arrays import Array
from confide._lazy import later
from confide.aggregates.scores.fisher_families import LOGIT, Counts, Family
from confide.methods.regression.forecast import Expected
from confide.methods.regression.likelihood.fisher.answers.fisher_reading import FisherReading
from confide.methods.regression.likelihood.fisher.fisher_rounds import FisherRounds
from confide.methods.regression.likelihood.fisher.fisher_start import started
from confide.methods.regression.likelihood.logistic_design import log_odds
from confide.methods.regression.likelihood.simulated_draw import Plain, SimulatedMeter, SimulatedRelease, WeightedSource
from confide.methods.regression.practice import Shape
from confide.protocol import Event, Meter, Plan, Question, Release, Source, Spend, Statistic
from confide.protocol.events import leaves
from confide.schema import Design, Schema

__all__ = ["OutcomeForecast"]

stats = later("scipy.stats")


_SEED = 20261122
# Between which the outcome's share lies where the schema does not state it, and which shares are taken for a start.
_SHARES, _RAREST = (0.05, 0.95), 0.005
# Points, of equal weight, that a line is fitted to; and beyond which predictors no intercept is looked for.
_POINTS, _FAR = 1_000, 50.0
# Between which mean counts over their declared bound lie, evenly in their logarithms, where the schema states no typical range: a bound is
# made for the largest.
_MEAN_COUNTS = (0.01, 0.5)
# The variance of counts of events is mean + a mean^2, a from shape to shape. Each record stands for the counts in the middle of these
# cells of probability, of which the last ones are narrow: a few large counts are what noise is in proportion to.
_DISPERSIONS = (0.0, 0.5, 2.0, 9.0)
_CELLS = np.array([0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.96, 0.99, 0.999, 1.0])


@dataclass(frozen=True, eq=False)
class OutcomeForecast:
    """Expectations of one plan. plan: its statistics and the sds of their noise; share: of an outcome of two values, where it is stated;
    typical: the upper end of where counts lie, where it is stated; weighted: whether the target is the line of records as they count.
    """

    design: Design
    plan: Plain
    family: Family = LOGIT
    share: float | None = None
    typical: float | None = None
    weighted: bool = False
    # by identity, each beside the shape that it is of
    _made: dict[int, tuple[Shape, Array]] = field(default_factory=dict, repr=False)
    _drawn: dict[int, tuple[Array, Array]] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls, design: Design, schema: Schema, event: Event, statistics: Mapping[str, Statistic], **more: Any
    ) -> OutcomeForecast:
        """From the plan's events; more: the fields that are not."""
        noise = {leaf.name: float(leaf.noise_sd or nan) for leaf in leaves(event) if isinstance(leaf, Spend)}
        return cls(design, Plain(statistics, noise, schema.to_dict()), **more)

    def expect(self, shape: Shape, count: int) -> Expected:
        """What is expected of `count` records of one shape."""
        generator = np.random.Generator(np.random.PCG64([_SEED, shape.number, count]))
        meter = SimulatedMeter(self.plan, generator, f"{shape.number} {count}")
        rounds, source = FisherRounds(self.design, self.family), self._source(shape, count)
        public = rounds.draw(cast(Source, source), cast(Plan, self.plan), cast(Meter, meter))
        release = cast(Release, SimulatedRelease(self.plan, meter.statistics, public))
        levels = None if isinstance(self.family, Counts) else ("0", "1")
        found: Any = _Foreseen(release, Question(), self.design, levels, self.family, self.weighted).table()
        return cast(Expected, found)

    def bare(self, shape: Shape, count: int) -> Array:
        """Standard errors without privacy, robust, in the data's units."""
        eta = self._predictor(shape)
        slope = self.family.scale * self.family.information(eta)
        variance = slope
        if isinstance(self.family, Counts):
            values, chances = self._outcomes(shape)
            variance = (chances * (values - self.family.mean(eta)) ** 2).sum(axis=0)
        information, scores = (
            (shape.weighted * own[:, None]).T @ shape.scaled * (count / len(eta)) for own in (slope, variance)
        )
        matrix = log_odds(self.design) @ np.linalg.pinv(information)
        return np.asarray(np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", matrix, scores, matrix), 0.0)))

    def _source(self, shape: Shape, count: int) -> WeightedSource:
        """Each practice record with every outcome, as often as its chance says."""
        assert shape.codes is not None
        values, chances = self._outcomes(shape)
        response = self.design.response
        codes = np.repeat(shape.codes[:, None].astype(np.float64), len(values), axis=1)
        codes[self.design.columns.index(response.columns[0])] = values * ((response.steps - 1) / float(response.high))
        each = chances * (shape.weights * (count / len(shape.weights)))
        return WeightedSource(codes.reshape(len(codes), -1), each.ravel())

    def _outcomes(self, shape: Shape) -> tuple[Array, Array]:
        """Outcomes (kinds, rows) of each record, and the chance of each (kinds, rows): the same for every number of records."""
        eta = self._predictor(shape)  # which keeps the shape, so that its identity is its own
        if id(shape) not in self._drawn:
            self._drawn[id(shape)] = self._outcomes_along(shape, self.family.mean(eta))
        return self._drawn[id(shape)]

    def _outcomes_along(self, shape: Shape, mean: Array) -> tuple[Array, Array]:
        if not isinstance(self.family, Counts):
            return np.array([np.zeros_like(mean), np.ones_like(mean)]), np.array([1 - mean, mean])
        if not _events(shape):
            return self.family.high * (1 + shape.response[None, :]) / 2, np.ones((1, len(mean)))
        more = self._dispersion(shape, float(shape.weights @ mean) / len(mean))
        middles = (_CELLS[1:] + _CELLS[:-1])[:, None] / 2
        drawn = stats.nbinom.ppf(middles, 1 / more, 1 / (1 + more * mean)) if more else stats.poisson.ppf(middles, mean)
        chances = np.repeat(np.diff(_CELLS)[:, None], len(mean), axis=1)
        return np.clip(drawn, 0.0, self.family.high), chances

    def _dispersion(self, shape: Shape, mean: float) -> float:
        """a: no more than leaves counts where they are stated to lie."""
        drawn = _DISPERSIONS[shape.number // 2 % len(_DISPERSIONS)]
        if self.typical is None:
            return drawn
        most = ((self.typical - mean) / 2) ** 2 - mean
        return min(drawn, max(most, 0.0) / mean**2)

    def _predictor(self, shape: Shape) -> Array:
        """eta of the practice records, (rows,): the same for every number of records, and without privacy."""
        found = self._made.get(id(shape))
        if found is None:
            found = self._made[id(shape)] = shape, self._line(shape)
        return found[1]

    def _line(self, shape: Shape) -> Array:
        """eta along a line of the family that comes near the shape's least-squares line."""
        own = float(np.clip((1 + shape.weights @ shape.response / len(shape.response)) / 2, _RAREST, 1 - _RAREST))
        if not isinstance(self.family, Counts):
            own = float(np.clip(shape.weights @ (shape.response > 0) / len(shape.response), _RAREST, 1 - _RAREST))
        places = np.searchsorted(np.cumsum(shape.weights), (np.arange(_POINTS) + 0.5) / _POINTS * shape.weights.sum())
        theta = started(shape.scaled[np.minimum(places, len(shape.scaled) - 1)], shape.theta, own, self.family)
        slopes = shape.scaled[:, 1:] @ theta[1:]
        mean = self._mean(shape, own)

        def too_many(intercept: float) -> float:
            return float(shape.weights @ self.family.mean(intercept + slopes)) / len(slopes) - mean

        middle = float(slopes @ shape.weights) / len(slopes)
        return np.asarray(brentq(too_many, -_FAR - middle, _FAR - middle) + slopes)

    def _mean(self, shape: Shape, own: float) -> float:
        """Of the outcome. own: that of the shape, the largest outcome being 1."""
        generator = np.random.Generator(np.random.PCG64([_SEED, shape.number]))
        if isinstance(self.family, Counts):
            drawn = exp(generator.uniform(log(_MEAN_COUNTS[0]), log(_MEAN_COUNTS[1])))
            share = own if self.typical is not None or not _events(shape) else drawn
            return share * self.family.high
        drawn = float(generator.uniform(*_SHARES))
        return drawn if self.share is None else float(np.clip(self.share, _RAREST, 1 - _RAREST))


def _events(shape: Shape) -> bool:
    """Whether counts of this shape are events, rather than a quantity of any spread."""
    return shape.number % 2 == 0


@dataclass(frozen=True, eq=False)
class _Foreseen(FisherReading):
    """The reading of a simulated release: which coefficients it would answer, and their standard errors in place of a table."""

    @property
    def counting(self) -> None:
        """Forecasts are of units of one row."""

    def _intervals(self, hidden: list[int]) -> Any:
        errors = np.sqrt(np.diag(self._covariances[0]))
        errors[hidden] = nan
        return Expected(errors, not hidden)

    def _points(self, status: str, reason: str) -> Any:
        return Expected(np.full(len(self.design.names), nan), False)

    def _reasons(self, *, told: bool = True) -> str:
        return ""
