"""The curve of objective perturbation of a logistic regression, with Gaussian releases that may follow it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from confide.guarantees.curves.curve import Curve, Floats
from confide.guarantees.mechanisms.objective_perturbation import FLOOR, logistic_delta

__all__ = ["Objective"]

_LADDER = 24
# the same where two neighbours are chained
_CHAINED = 1e-12


@dataclass(frozen=True, repr=False)
class Objective(Curve):
    """`logistic_delta` at every epsilon: the "sharp" curve of `guarantees.objective_perturbation`, for both orders.

    mu: m = slope / sd of the tilt; ratio: curvature / ridge; after: mu of Gaussian releases that follow; replaced: whether a record is
    replaced ("substitute") or added or removed. Values are bounds with an absolute error of `FLOOR`, which delta never falls below.
    """

    mu: float
    ratio: float
    after: float = 0.0
    replaced: bool = False

    @property
    def mass_at_infinity(self) -> float:
        return _CHAINED if self.replaced else FLOOR

    @property
    def least_leak(self) -> Fraction:
        """The delta that a remainder price pays by default for what the numbers may be wrong by: 2^-40, chained 2^-38."""
        return Fraction(1, 2**38 if self.replaced else 2**40)

    def _profile(self, epsilons: Floats) -> Floats:
        values = np.array([self._delta(float(e)) for e in epsilons])
        if self.replaced:
            # chaining two neighbours multiplies what the numbers may be wrong by; a profile falls, so a smaller epsilon bounds it
            steps = np.arange(1, _LADDER + 1) * (self.mu + self.after)
            least = np.minimum.accumulate([self._delta(float(e)) for e in steps])
            reached = np.searchsorted(steps, epsilons, side="right")
            values = np.where(reached > 0, np.minimum(values, least[np.maximum(reached - 1, 0)]), values)
        return values

    def _delta(self, epsilon: float) -> float:
        relation = "substitute" if self.replaced else "add-remove"
        return logistic_delta(epsilon, 1 / self.mu, 1.0, 1.0, self.ratio, after=self.after, relation=relation)

    def _data(self) -> dict[str, Any]:
        numbers = {name: getattr(self, name).hex() for name in ("mu", "ratio", "after")}
        return {"curve": "objective", **numbers, "replaced": self.replaced}

    def __repr__(self) -> str:
        relation = ", replaced=True" if self.replaced else ""
        return f"objective({self.mu!r}, {self.ratio!r}, after={self.after!r}{relation})"
