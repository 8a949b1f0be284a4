"""The minimiser of a ridge objective over a ball, rounded to a public grid: how far one record moves it.

Rows m = S (u, g r) with |m|^2 <= 2^40, so |u|^2 + g^2 r^2 <= beta^2 = 2^40/S^2, give the objective

    F(phi) = sum (r - u'theta)^2 / 2 + lam |phi|^2 / 2,   theta = start + basis phi,   |phi| <= radius,

with orthonormal columns of the basis, start orthogonal to them, and lam > 0 public. One record's gradient in phi is at most
|u| (|r| + |u| R) with R^2 = |start|^2 + radius^2, hence at most G = beta^2 (R + sqrt(R^2 + 1/g^2))/2, the largest value of
|u||r| + |u|^2 R on the sphere. If phi_1 minimises F on the ball and phi_2 minimises F + f, the two variational inequalities add up to
lam |phi_1 - phi_2|^2 <= |grad f(phi_2)| |phi_1 - phi_2|: F is lam-strongly convex. So lam phi moves by at most G when a record is added or
removed, and by 2 G when one is replaced (f is then the difference of two records' parts). The bound does not see lam, which may
therefore follow from an earlier noisy output, and holds for any number of records.

Released is rint(lam phi / h) on a grid with step h = G/1024. Rounding moves each coordinate by at most half a step either way, sqrt(k)
steps in all for k coordinates; as many again are left for the error of the solver, whose size is 2^-52 times the sum of the records'
squared rows: far below half a step up to 10^10 records.

Source: Chaudhuri, Monteleoni, Sarwate 2011 (output perturbation, Corollary 8 for the argument), which asks for a loss of bounded slope and
divides by a public number of records; the ball bounds the slope of squared error, and a sum needs no number.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import ceil, isqrt, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.core import Gram, Statistic
from confide.methods.regression.sums.linear_rows import LinearRows
from confide.sums.coding import BOUND

__all__ = ["BallMinimiser"]

Array = NDArray[np.float64]

_STEPS = 1024
_BISECTIONS = 200


@dataclass(frozen=True)
class BallMinimiser(Statistic):
    """The rounded minimiser lam phi in steps of `step`, shape (k,): a function of the exact Gram matrix of weighted rows.

    map: the rows (their g2 is g^2); radius: of the ball of phi; start: shape (p,), basis: shape (p, k) as above, public numbers; lam:
    the penalty, public or from an earlier noisy output, of which the sensitivity does not depend (`at`).
    """

    map: LinearRows
    radius: float
    start: tuple[float, ...]
    basis: tuple[tuple[float, ...], ...]
    lam: float = 1.0
    norm: str = field(default="l2", init=False)

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.basis[0]),)

    def at(self, lam: float) -> BallMinimiser:
        """The minimiser at a penalty above 0."""
        return replace(self, lam=lam)

    def zero(self) -> Any:
        return Gram(self.map).zero()

    def update(self, state: Any, codes: Array) -> Any:
        return Gram(self.map).update(state, codes)

    def merge(self, a: Any, b: Any) -> Any:
        return Gram(self.map).merge(a, b)

    def value(self, state: Any) -> NDArray[Any]:
        return self.integers(Gram(self.map).value(state))

    @property
    def slope(self) -> float:
        """G: how far one record added or removed moves lam phi, rounded up in its last digits."""
        squared = BOUND / self.map.steps**2
        reach = self.radius**2 + sum(v * v for v in self.start)
        return squared * (sqrt(reach) + sqrt(reach + 1 / self.map.g2)) / 2 * (1 + 2.0**-30)

    @property
    def step(self) -> float:
        """h: the size of one integer step in units of lam phi."""
        return self.slope / _STEPS

    def sensitivity_squared(self, relation: str) -> Fraction:
        """In steps: (1024 + 2 sqrt(k))^2 under add-remove, (2048 + 2 sqrt(k))^2 under substitute, the square root rounded up."""
        moved = _STEPS * (2 if relation == "substitute" else 1)
        room = Fraction(ceil(2 * sqrt(self.shape[0]) * 1024), 1024)
        return (moved + room) ** 2

    def sensitivity_l1(self, relation: str) -> Fraction:
        """At most sqrt(k) times the Euclidean one, rounded up."""
        return Fraction(isqrt(ceil(self.sensitivity_squared(relation) * self.shape[0])) + 1)

    def moved_squared(self, own: Any, rows: Any) -> Any:
        """Squared bounds, in steps, on how far the minimiser moves when `own` gives way to each of `rows`: from the slopes of both."""
        both = self._slopes(np.asarray(own, dtype=np.float64)[:, None])[0] + self._slopes(
            np.asarray(rows, dtype=np.float64)
        )
        return np.asarray((both / self.step + 2 * sqrt(self.shape[0])) ** 2)

    def _slopes(self, rows: Array) -> Array:
        """|u||r| + |u|^2 R of coded rows, shape (m,)."""
        long = np.sqrt((rows[:-1] ** 2).sum(axis=0)) / self.map.steps
        reach = sqrt(self.radius**2 + sum(v * v for v in self.start))
        return np.asarray(long * (np.abs(rows[-1]) / self.map.steps / sqrt(self.map.g2) + long * reach))

    def integers(self, gram: NDArray[Any]) -> NDArray[Any]:
        """rint(lam phi / h) as Python integers, from the exact Gram matrix of the rows, shape (p + 1, p + 1)."""
        theta_0, basis = np.array(self.start), np.array(self.basis)
        unit, g = float(self.map.steps) ** 2, sqrt(self.map.g2)
        whole = np.array([[float(v) for v in row] for row in gram.tolist()]) / unit
        inner = basis.T @ whole[:-1, :-1] @ basis
        moment = basis.T @ (whole[:-1, -1] / g - whole[:-1, :-1] @ theta_0)
        phi = _in_ball((inner + inner.T) / 2, moment, self.lam, self.radius)
        return np.array([int(v) for v in np.rint(self.lam * phi / self.step)], dtype=object)

    def decode(self, values: Array) -> Array:
        """theta, shape (p,), from released values in steps."""
        return np.asarray(np.array(self.start) + np.array(self.basis) @ (values * self.step / self.lam))


def _in_ball(gram: Array, moment: Array, lam: float, radius: float) -> Array:
    """argmin of phi'A phi/2 - b'phi + lam |phi|^2/2 over |phi| <= radius: the ridge of the ball's multiplier nu >= 0."""
    values, vectors = np.linalg.eigh(gram)
    # sums of squares have no negative eigenvalues but for rounding
    values, turned = np.maximum(values, 0.0) + lam, vectors.T @ moment

    def at(nu: float) -> Array:
        return np.asarray(turned / (values + nu))

    low, high = 0.0, float(np.linalg.norm(turned)) / radius
    if np.linalg.norm(at(low)) > radius:
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            if not low < middle < high:
                break
            low, high = (middle, high) if np.linalg.norm(at(middle)) > radius else (low, middle)
        low = high
    phi = vectors @ at(low)
    return np.asarray(phi * min(1.0, radius / max(float(np.linalg.norm(phi)), radius)))
