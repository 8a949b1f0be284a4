"""What a logistic regression by Fisher scoring can expect of practice records, before anything is spent.

For each shape of practice records (`practice`) the release's own rounds run on weighted records with seeded noise, and the
reading of a release decides what is answered: a forecast has no rules of its own. The outcomes of practice records follow a logistic line
that comes near the shape's least-squares line; the outcome's share is what the schema states, and else lies between 5 % and 95 %, evenly.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import nan
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from confide._special import expit
from confide.methods.regression.forecast import Expected
from confide.methods.regression.likelihood.fisher.fisher_reading import FisherReading
from confide.methods.regression.likelihood.fisher.fisher_rounds import FisherRounds
from confide.methods.regression.likelihood.fisher.fisher_start import started
from confide.methods.regression.likelihood.logistic_design import log_odds
from confide.methods.regression.likelihood.simulated_draw import Plain, SimulatedMeter, SimulatedRelease, WeightedSource
from confide.methods.regression.practice import Shape
from confide.protocol import Event, Meter, Plan, Question, Release, Source, Spend, Statistic
from confide.protocol.events import leaves
from confide.schema import Design, Schema

__all__ = ["OutcomeForecast"]

Array = NDArray[np.float64]

_SEED = 20261122
# Between which the outcome's share lies where the schema does not state it, and which shares are taken for a start.
_SHARES, _RAREST = (0.05, 0.95), 0.005
# Points, of equal weight, that a line is fitted to; and beyond which log-odds no intercept is looked for.
_POINTS, _FAR = 1_000, 50.0


@dataclass(frozen=True, eq=False)
class OutcomeForecast:
    """Expectations of one plan. plan: its statistics and the sds of their noise; share: of the outcome, where the schema states it."""

    design: Design
    plan: Plain
    share: float | None = None

    @classmethod
    def of(
        cls,
        design: Design,
        schema: Schema,
        event: Event,
        statistics: Mapping[str, Statistic],
        share: float | None = None,
    ) -> OutcomeForecast:
        """From the plan's events."""
        noise = {leaf.name: float(leaf.noise_sd or nan) for leaf in leaves(event) if isinstance(leaf, Spend)}
        return cls(design, Plain(statistics, noise, schema.to_dict()), share)

    def expect(self, shape: Shape, count: int) -> Expected:
        """What is expected of `count` records of one shape."""
        generator = np.random.Generator(np.random.PCG64([_SEED, shape.number, count]))
        meter = SimulatedMeter(self.plan, generator, f"{shape.number} {count}")
        source = self._source(shape, count)
        public = FisherRounds(self.design).draw(cast(Source, source), cast(Plan, self.plan), cast(Meter, meter))
        release = SimulatedRelease(self.plan, meter.statistics, public)
        found: Any = _Foreseen(cast(Release, release), Question(), self.design, ("0", "1")).table()
        return cast(Expected, found)

    def bare(self, shape: Shape, count: int) -> Array:
        """Standard errors without privacy where the model holds, in the data's units."""
        p = self._probabilities(shape)
        information = (shape.weighted * (p * (1 - p))[:, None]).T @ shape.scaled * (count / len(p))
        matrix = log_odds(self.design)
        variances = np.einsum("ij,jk,ik->i", matrix, np.linalg.pinv(information), matrix)
        return np.asarray(np.sqrt(np.maximum(variances, 0.0)))

    def _source(self, shape: Shape, count: int) -> WeightedSource:
        """Each practice record with either outcome, as often as its probability says."""
        assert shape.codes is not None
        place = self.design.columns.index(self.design.response.columns[0])
        p, each = self._probabilities(shape), shape.weights * (count / len(shape.weights))
        both = []
        for outcome in (0.0, 1.0):
            codes = np.array(shape.codes, dtype=np.float64)
            codes[place] = outcome
            both.append(codes)
        return WeightedSource(np.concatenate(both, axis=1), np.concatenate([each * (1 - p), each * p]))

    def _probabilities(self, shape: Shape) -> Array:
        """Of the outcome, (rows,)."""
        own = float(np.clip(shape.weights @ (shape.response > 0) / len(shape.response), _RAREST, 1 - _RAREST))
        places = np.searchsorted(np.cumsum(shape.weights), (np.arange(_POINTS) + 0.5) / _POINTS * shape.weights.sum())
        theta = started(shape.scaled[np.minimum(places, len(shape.scaled) - 1)], shape.theta, own)
        slopes = shape.scaled[:, 1:] @ theta[1:]
        drawn = np.random.Generator(np.random.PCG64([_SEED, shape.number])).uniform(*_SHARES)
        share = drawn if self.share is None else float(np.clip(self.share, _RAREST, 1 - _RAREST))

        def too_many(intercept: float) -> float:
            return float(shape.weights @ expit(intercept + slopes)) / len(slopes) - share

        middle = float(slopes @ shape.weights) / len(slopes)
        return np.asarray(expit(brentq(too_many, -_FAR - middle, _FAR - middle) + slopes))


@dataclass(frozen=True, eq=False)
class _Foreseen(FisherReading):
    """The reading of a simulated release: which coefficients it would answer, and their standard errors in place of a table."""

    def _intervals(self, hidden: list[int]) -> Any:
        errors = np.sqrt(np.diag(self.sandwich.covariance))
        errors[hidden] = nan
        return Expected(errors, not hidden)

    def _points(self, status: str, reason: str) -> Any:
        return Expected(np.full(len(self.design.names), nan), False)

    def _reasons(self, *, told: bool = True) -> str:
        return ""
