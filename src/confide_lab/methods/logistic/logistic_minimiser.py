"""The minimiser of a weighted logistic loss with a ridge and a tilt: found to a gradient that is checked, in a fixed number of steps.

    J(theta) = sum_i w_i log(1 + exp(-y_i z_i'theta)) + lam |theta|^2/2 + b'theta

over labelled rows in their canonical order (`aggregates.collected`), so that the same records give the same bits. J is lam-strongly
convex: a point with a gradient of length g lies within g/lam of the minimiser.

Newton's method. A step D is tried in full and, with r = R |D|, as t = log(1 + r)/r of it, which lowers J for every data set, because the
loss is self-concordant with the constant R = longest |z| (Bach 2010; Sun, Tran-Dinh 2019). The full step is taken where it does not pass
the minimum along D by so far that the slope there is above half of what it was. The number of steps follows from lam and the number of
rows, which the time of reading them shows anyway, and all are taken whatever the data are: their time tells nothing more. Where there are
many rows, all but the last steps take D from the second derivative of an eighth of them: it need not be exact. They are enough for each
data set that was tried (tests/methods/regression/test_perturbed_logistic.py). A data set that needs more gets more, all of the second
kind, which converge from anywhere: what is released meets the tolerance, on which the guarantee rests, for every data set.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, floor, isqrt, log, log1p, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from confide.core.allowance import SAFETY_STEPS
from confide.errors import PlanError
from confide.sums.integer_functions import OfRecords
from confide_lab.methods.logistic.labelled_rows import LabelledRows, record_weights

__all__ = ["LeastCurvature", "PenalizedLoss", "RoundedMinimiser", "newton_steps"]

Array = NDArray[np.float64]

# Steps that no data set does without, and those beyond the fixed ones, so that a run ends where doubles cannot reach the tolerance.
_LEAST, _MORE = 10, 40
# From here on all but the last steps look at the curvature of an eighth of the rows.
_MANY, _PART, _WHOLE = 1 << 15, 8, 5
_GRID = 1024


def newton_steps(rows: int, ratio: float) -> int:
    """Newton steps for a number of rows and lam = K/ratio: separable outcomes have margins up to log(rows ratio), one for each step.

    >>> newton_steps(100, 1.0), newton_steps(100_000, 1.0), newton_steps(10_000_000, 1.0)
    (10, 15, 20)
    """
    return max(_LEAST, ceil(3 + log(max(rows * ratio, 1.0))))


@dataclass(frozen=True)
class PenalizedLoss:
    """J over labelled rows with S steps in one unit ("unit"), weights min(1, cut/|z|) and the ridge lam > 0."""

    unit: float
    cut: float
    ridge: float

    def minimiser(self, rows: Array, tilt: Array, tolerance: float) -> Array:
        """theta, shape (p,), with a gradient of at most `tolerance`. rows: (p, n) integers; tilt: b, shape (p,)."""
        search, n = _Search(self, rows, tilt), rows.shape[1]
        fixed = newton_steps(n, self.cut * _longest(self.unit) / self.ridge)
        for step in range(fixed):
            search.advance(part=_PART if n >= _MANY and step < fixed - _WHOLE else 1)
        for _ in range(_MORE):
            if float(np.linalg.norm(search.gradient(pairwise=True))) <= tolerance:
                break
            search.advance(careful=True)
        return search.theta

    def hessian(self, rows: Array, theta: Array) -> Array:
        """The second derivative of J, shape (p, p)."""
        search = _Search(self, rows, np.zeros(len(rows)))
        search.move(theta)
        return search.hessian()


class _Search:
    """A point, the margins and the slopes of the records there."""

    def __init__(self, objective: PenalizedLoss, rows: Array, tilt: Array) -> None:
        self.objective, self.rows, self.tilt = objective, rows, tilt
        self.weights = record_weights(rows, objective.unit, objective.cut)
        self.theta = np.zeros(len(rows))
        self.move(self.theta)

    def move(self, theta: Array) -> None:
        self.theta = theta
        self.margins = (theta / self.objective.unit) @ self.rows
        self.slopes = _slope(self.margins)

    def gradient(self, *, pairwise: bool = False) -> Array:
        """The first derivative of J. pairwise: sums of halves of halves, whose rounding does not grow with duplicated records."""
        pulls = self.weights * self.slopes
        inner = (self.rows * pulls).sum(axis=1) if pairwise else self.rows @ pulls
        return np.asarray(self.objective.ridge * self.theta + self.tilt - inner / self.objective.unit)

    def hessian(self, part: int = 1) -> Array:
        """From the first 1/part of the rows, which stand in no order that means anything, part times."""
        some = slice(0, len(self.weights) // part)
        slopes = self.slopes[some]
        root = np.sqrt(self.weights[some] * slopes * (1 - slopes))
        root *= sqrt(part) / self.objective.unit
        bent = self.rows[:, some] * root
        return np.asarray(bent @ bent.T + self.objective.ridge * np.eye(len(bent)))

    def advance(self, *, part: int = 1, careful: bool = False) -> None:
        """One Newton step, never the full one where it shall be careful."""
        gradient = self.gradient(pairwise=careful)
        matrix = self.hessian(part)
        step = -np.asarray(linalg.solve(matrix, gradient, assume_a="sym", check_finite=False))
        along = (step / self.objective.unit) @ self.rows
        start = float(gradient @ step)
        reach = float(np.linalg.norm(step)) * _longest(self.objective.unit)
        damped = log1p(reach) / reach if reach > 1e-8 else 1.0
        beyond = _slope(self.margins + along)
        end = float(step @ (self.objective.ridge * (self.theta + step) + self.tilt) - along @ (self.weights * beyond))
        # both points are computed in any case, so that the time does not say which one is taken
        near = _slope(self.margins + damped * along)
        if not careful and end <= abs(start) / 2:
            self.theta, self.slopes = self.theta + step, beyond
            self.margins += along
        else:
            self.theta, self.slopes = self.theta + damped * step, near
            self.margins += damped * along


def _slope(margins: Array) -> Array:
    """1/(1 + exp(margin)): how far the record pulls, in [0, 1]."""
    with np.errstate(over="ignore"):
        return np.asarray(1.0 / (1.0 + np.exp(margins)))


def _longest(unit: float) -> float:
    return 2.0**20 / unit


@dataclass(frozen=True)
class _OverRows(OfRecords):
    """What the statistics here share: they are functions of all labelled rows."""

    map: LabelledRows
    cut: float
    ridge: float

    @property
    def objective(self) -> PenalizedLoss:
        return PenalizedLoss(float(self.map.steps), self.cut, self.ridge)

    @property
    def slope(self) -> float:
        """The largest gradient of a record, rounded up in its last digits."""
        return self.cut * (1 + 2.0**-30)

    def sensitivity_l1(self, relation: str) -> Fraction:
        """At most sqrt(p) times the Euclidean one, rounded up."""
        return Fraction(isqrt(ceil(self.sensitivity_squared(relation) * self.shape[0])) + 1)

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.map.width,)

    def sensitivity_squared(self, relation: str) -> Fraction:
        raise NotImplementedError


@dataclass(frozen=True)
class RoundedMinimiser(_OverRows):
    """rint(theta/h), h = (how far one record moves theta)/1024: the minimiser without a tilt, in integer steps.

    moved: bound on that way, default B/lam; a smaller one from an earlier noisy certificate (`moving`), of which the sensitivity in
    steps does not depend: 1024 steps, or 2048 under substitute, and 2 sqrt(p) for the rounding and the solver.
    """

    moved: float = 0.0

    def moving(self, moved: float) -> RoundedMinimiser:
        """The statistic with another bound on the way."""
        return replace(self, moved=moved)

    @property
    def step(self) -> float:
        return (self.moved or self.slope / self.ridge) / _GRID

    def sensitivity_squared(self, relation: str) -> Fraction:
        whole = _GRID * (2 if relation == "substitute" else 1)
        return (whole + Fraction(ceil(2 * sqrt(self.map.width) * 1024), 1024)) ** 2

    def moved_squared(self, own: Any, rows: Any) -> Any:
        """Squared bounds, in steps: each record pulls at most its weighted length."""
        both = self._pulls(np.asarray(own, dtype=np.float64)[:, None])[0] + self._pulls(
            np.asarray(rows, dtype=np.float64)
        )
        return np.asarray((both / self.slope * _GRID + 2 * sqrt(self.map.width)) ** 2)

    def _pulls(self, rows: Array) -> Array:
        unit = float(self.map.steps)
        return np.asarray(record_weights(rows, unit, self.cut) * np.sqrt((rows**2).sum(axis=0)) / unit)

    def of(self, rows: Array) -> NDArray[Any]:
        # the solver's error is a small part of half a step
        theta = self.objective.minimiser(rows, np.zeros(len(rows)), self.step * self.ridge / 64)
        return np.array([int(v) for v in np.rint(theta / self.step)], dtype=object)


@dataclass(frozen=True)
class LeastCurvature(_OverRows):
    """The least eigenvalue of the Hessian at the minimiser, as floor(1024 lambda/S): one record moves it by at most S = K/4 + 2 R B.

    Needs lam >= 2 R B, R the longest |z|. With D the way of the minimiser, m the smaller of the two eigenvalues: the Hessians at both
    points are within exp(+-R D) of each other, and (1 - exp(-R D)) m/R <= B, so that (exp(R D) - 1) m <= R B/(1 - R B/m) <= 2 R B; the
    record's own curvature is at most K/4. Two steps are added for the rounding and the solver.
    """

    def __post_init__(self) -> None:
        if self.ridge < 2 * self.map.longest * self.slope:
            raise PlanError(
                f"the least eigenvalue is stable for ridge >= {2 * self.map.longest * self.slope:.6g} (twice the slope times the length "
                f"of the longest row), got {self.ridge:.6g}; give a larger ridge or leave it out"
            )

    @property
    def shape(self) -> tuple[int, ...]:
        return (1,)

    @property
    def reach(self) -> float:
        """S: how far one record moves the eigenvalue."""
        return self.map.longest * self.slope * (1 / 4 + 2)

    def sensitivity_squared(self, relation: str) -> Fraction:
        # replaced: over the data set without the record
        return Fraction((SAFETY_STEPS + 2) * (2 if relation == "substitute" else 1)) ** 2

    def moved_squared(self, own: Any, rows: Any) -> Any:
        """The bound for any company: a record that is there and one that is not differ by the whole of it."""
        present = [(np.asarray(part, dtype=np.float64) ** 2).sum(axis=0) > 0 for part in (own, rows)]
        return ((SAFETY_STEPS + 2) * (present[0] * 1.0 + present[1] * 1.0)) ** 2

    def of(self, rows: Array) -> NDArray[Any]:
        objective = self.objective
        theta = objective.minimiser(rows, np.zeros(len(rows)), self.ridge * 2.0**-34)
        least = float(np.linalg.eigvalsh(objective.hessian(rows, theta))[0])
        return np.array([floor(max(least, self.ridge) / self.reach * SAFETY_STEPS)], dtype=object)
