"""What a probit or a regression of counts can expect of practice records, before anything is spent: a formula.

With H the mean information of a record (probit .8 f(q)^2/(s (1 - s)), counts their mean), s the outcome's share and q
its normal quantile, R the scale of the family (`fisher_families`), k coefficients and mu_last the last round's level,

    width over that without privacy = sqrt(1 + c k R^2/(mu_last^2 n H)),   margin = f n H 4.5 mu_last/(R k^1.5 sqrt(2 c)),

c = D^2/k: 4 for records without long tails, 64 for wide boxes and rare levels, between which a forecast is a range; f = .4, with c = 64
and a factor of more than three levels .1. An interval is likely from a margin of 1.5 on. Found by simulation, for the logit, whose own
forecast runs its rounds (`outcome_forecast`). Counts are taken to be cut nowhere, so that R is their declared bound, as it is
in most releases (`fisher_counts`); their mean is from half to a hundredth of it where the schema does not state what is
typical.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from confide.aggregates.rows import BOUND
from confide.aggregates.scores.fisher_families import Counts, Family
from confide.methods.regression.forecast import Expected
from confide.methods.regression.likelihood.logistic_design import log_odds
from confide.methods.regression.practice import Shape
from confide.methods.regression.scaling import factor_name
from confide.protocol import Event, Spend
from confide.protocol.events import leaves
from confide.schema import Design

__all__ = ["FisherForecast"]

Array = NDArray[np.float64]

_ROOMS = (4.0, 64.0)
_PART, _PART_OF_FACTORS, _MANY = 0.4, 0.1, 3
_LIKELY = 1.5
_RAREST = 0.005
# Mean counts over their declared bound, from shape to shape, where the schema states no typical range: a bound is made for the largest.
_MEAN_COUNTS = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01)


@dataclass(frozen=True)
class FisherForecast:
    """Expectations of one plan. mu: of its last round for one record; told: whether the schema states where counts lie."""

    design: Design
    mu: float
    family: Family
    told: bool = False

    @classmethod
    def of(cls, design: Design, event: Event, family: Family, *, told: bool = False) -> FisherForecast:
        """From the plan's events."""
        sd = next(leaf.noise_sd for leaf in leaves(event) if isinstance(leaf, Spend) and leaf.name == "last")
        assert sd is not None
        return cls(design, BOUND / sd, family, told)

    def expect(self, shape: Shape, count: int) -> Expected:
        """What is expected of one shape; of every other one with long tails."""
        k, room = len(self.design.terms) + 1, _ROOMS[shape.number % len(_ROOMS)]
        own, scale = self._information(shape)
        information = count * own / scale
        levels = Counter(factor_name(term) for term in self.design.terms if term.binary)
        rare = room > _ROOMS[0] and max(levels.values(), default=0) >= _MANY
        part = _PART_OF_FACTORS if rare else _PART
        margin = part * information * 4.5 * self.mu / (k**1.5 * sqrt(2 * room))
        wider = sqrt(1 + scale * room * k / (self.mu**2 * information))
        errors = self.bare(shape, count) * wider
        return Expected(errors if margin >= _LIKELY else np.full(len(errors), np.nan), margin >= _LIKELY)

    def bare(self, shape: Shape, count: int) -> Array:
        """Standard errors without privacy, in the data's units."""
        matrix = log_odds(self.design)
        variances = np.einsum("ij,jk,ik->i", matrix, shape.bread, matrix) / (count * self._information(shape)[0])
        return np.asarray(np.sqrt(np.maximum(variances, 0.0)))

    def _information(self, shape: Shape) -> tuple[float, float]:
        """H and R."""
        if isinstance(self.family, Counts):
            weights = shape.weights / len(shape.response)
            share = max(float(weights @ (1 + shape.response)) / 2, _RAREST)
            if not self.told:
                share = min(share, _MEAN_COUNTS[shape.number // len(_ROOMS) % len(_MEAN_COUNTS)])
            return share * self.family.high, self.family.high
        share = float(np.clip(shape.weights @ (shape.response > 0) / len(shape.response), _RAREST, 1 - _RAREST))
        density = float(self.family.slope(np.array([self.family.link(share)]))[0])
        return 0.8 * density**2 / (share * (1 - share)), self.family.scale
