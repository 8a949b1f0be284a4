"""Objective perturbation for logistic regression, and after it, if wanted, a noisy Hessian: one release with an exact (epsilon, delta).

Released: theta~ in steps h, then V. With s from `guarantees.objective_perturbation.logistic_sd`,

    b ~ N(0, s^2 I) rounded to s 2^-40;  theta = a point where the gradient of the tilted objective is at most tau;
    theta~ = rint(theta/h) + N(0, sigma^2 I) rounded;  V = the exact integer Gram matrix of the curvature rows at theta~ + symmetric noise.

Rounding b is moving the gradient by at most sqrt(p) s 2^-41, so theta lies within r = (tau + sqrt(p) s 2^-40)/lam of the exact minimiser
for b before rounding, whose privacy curve is exact. Given that minimiser, rint(theta/h) is a function of the records which on two
neighbours differs by at most 2 r/h + sqrt(p) steps: a Gaussian mechanism of mu_o = (2 r/h + sqrt(p))/sigma follows it, then one of
mu_V = 2^40/sigma_V on V. The curve is E delta_mu(epsilon - h(Z)) with mu^2 = mu_o^2 + mu_V^2. mu_o is 1/32 of what the whole would have
as a Gaussian, which costs 5e-4 of s. That tau is met is checked in doubles ("float64 solver").
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import floor, hypot, log2, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide._arrays import Array
from confide.core import Gram, Noise, RecordMap
from confide.guarantees.curves import Curve, objective
from confide.guarantees.mechanisms.gaussian import gaussian_mu
from confide.guarantees.mechanisms.objective_perturbation import least_ridge, logistic_sd
from confide.sums.coding import BOUND
from confide_lab.methods.logistic.labelled_rows import CurvatureRows, LabelledRows
from confide_lab.methods.logistic.logistic_minimiser import PenalizedLoss

__all__ = ["PerturbedObjective", "gram_of"]


# Standard normal numbers as integers of the exact sampler.
_FINE = 1 << 40
# The tolerance of the solver in units of s, and the share of mu that hides what it leaves.
_TOLERANCE = 2.0**-24
_HIDING = 1 / 32
# Of the row bound, for what rounding adds to a row.
_ABOVE = 1 + 2.0**-30


@dataclass(frozen=True)
class PerturbedObjective:
    """All public numbers of a release. sd: s; step: h, a power of two; variance: sigma^2 in squared steps; bent: sigma_V^2 in the
    squared integers of the Gram matrix, None without one. after: a bound on the mu of both Gaussian mechanisms that follow.
    """

    labelled: LabelledRows
    cut: float
    ridge: float
    sd: float
    tolerance: float
    step: Fraction
    variance: Fraction
    bent: Fraction | None
    after: float

    @classmethod
    def of(
        cls,
        labelled: LabelledRows,
        cut: float,
        ridge: float,
        epsilon: float,
        delta: float,
        relation: str,
        share: Fraction,
    ) -> PerturbedObjective:
        """Calibrated to (epsilon, delta). share: of mu^2 for the Hessian, 0 for none. `PrivacyError` for a ridge that is too small."""
        p, slope = labelled.width, cut * _ABOVE
        hiding, bending, after = _followers(epsilon, delta, relation, share)
        sd = logistic_sd(epsilon, delta, ridge, slope, slope * labelled.longest, after=after, relation=relation)
        tolerance = sd * _TOLERANCE
        radius = (tolerance + sqrt(p) * sd / _FINE) / ridge
        step = Fraction(2) ** floor(log2(radius))
        # radius < 2 step, so that 5 + sqrt(p) is above 2 radius/step + sqrt(p), with room
        variance = (Fraction(sqrt(p) + 5) / hiding) ** 2
        bent = None if not share else (Fraction(BOUND) / bending) ** 2
        return cls(labelled, cut, ridge, sd, tolerance, step, variance, bent, after)

    @staticmethod
    def least_ridge(curvature: float, epsilon: float, delta: float, relation: str, share: Fraction) -> float:
        """`of` refuses a ridge at or below this one."""
        after = _followers(epsilon, delta, relation, share)[2]
        return least_ridge(epsilon, curvature, delta=delta, after=after, relation=relation)

    def curve(self, relation: str) -> Curve:
        """The curve of the whole release, to which s was calibrated at one point: all its others are proved, too."""
        slope = self.cut * _ABOVE
        return objective(
            slope / self.sd * (1 + 2.0**-50),
            slope * self.labelled.longest / self.ridge * (1 + 2.0**-50),
            after=self.after,
            replaced=relation == "substitute",
        )

    @property
    def curvature(self) -> CurvatureRows:
        return CurvatureRows(self.labelled, self.cut)

    @property
    def output_sd(self) -> float:
        """The sd of what is added to theta."""
        return sqrt(self.variance) * float(self.step)

    @property
    def curvature_sd(self) -> float:
        """The sd of the noise on the diagonal of V, in units of z z'; off it the variance is half."""
        return 0.0 if self.bent is None else sqrt(self.bent) / self.curvature.unit**2

    def draw(self, rows: Array, noise: Noise) -> Array:
        """theta~ (p,) and, where it is planned, the upper triangle of V in units of z z': what may leave. rows: labelled, collected."""
        p = len(rows)
        tilt = np.asarray(noise.grid_gaussian(Fraction(_FINE**2), p), dtype=np.float64) / _FINE * self.sd
        objective = PenalizedLoss(float(self.labelled.steps), self.cut, self.ridge)
        theta = objective.minimiser(rows, tilt, self.tolerance)
        hidden = np.asarray(noise.grid_gaussian(self.variance, p), dtype=np.float64)
        theta = (np.rint(theta / float(self.step)) + hidden) * float(self.step)
        if self.bent is None:
            return np.asarray(theta)
        gram = gram_of(self.curvature.at(theta), rows)
        above = np.triu_indices(p)
        diagonal = noise.grid_gaussian(self.bent, p)
        others = noise.grid_gaussian(self.bent / 2, p * (p - 1) // 2)
        added = np.zeros((p, p), dtype=object)
        added[np.diag_indices(p)] = diagonal.tolist()
        added[np.triu_indices(p, 1)] = others.tolist()
        bent = np.array([float(v) for v in (gram + added)[above]]) / self.curvature.unit**2
        return np.concatenate([theta, bent])

    def steps(self, drawn: Array) -> NDArray[Any]:
        """What was drawn in whole steps: theta~ is integers of it, V a function of exact integers and their noise, rounded again."""
        flat = np.nan_to_num(drawn, nan=0.0, posinf=0.0, neginf=0.0)
        return np.array([round(Fraction(float(v)) / self.step) for v in flat], dtype=object)


def _followers(epsilon: float, delta: float, relation: str, share: Fraction) -> tuple[Fraction, Fraction, float]:
    """mu_o and mu_V, exact, and a bound on the mu of both."""
    whole = gaussian_mu(epsilon if relation == "add-remove" else epsilon / 2, delta)
    hiding, bending = Fraction(whole * _HIDING), Fraction(whole * sqrt(share))
    return hiding, bending, hypot(float(hiding), float(bending)) * (1 + 2.0**-40)


@dataclass(frozen=True)
class _Held(RecordMap):
    """A curvature map that is handed labelled rows in the place of codes."""

    curvature: CurvatureRows
    l2_squared: int = BOUND
    l1: int = BOUND
    columns: tuple[str, ...] = ()
    digest: str = ""

    @property
    def width(self) -> int:
        return self.curvature.width

    def __call__(self, rows: Array) -> Array:
        return self.curvature.of(rows)


def gram_of(curvature: CurvatureRows, rows: Array) -> NDArray[Any]:
    """The exact Gram matrix of the curvature rows of labelled rows that are at hand."""
    gram = Gram(_Held(curvature))
    return gram.value(gram.update(gram.zero(), rows))
