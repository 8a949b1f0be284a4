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

from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, sqrt

import numpy as np
from numpy.typing import NDArray

from confide.mechanisms.moments import WeightedRows
from confide.mechanisms.rows import BOUND
from confide.protocol.exact import digest, pack

__all__ = ["BallMinimiser"]

Array = NDArray[np.float64]

_STEPS = 1024
_BISECTIONS = 200


@dataclass(frozen=True)
class BallMinimiser:
    """The rounded minimiser lam phi in steps of `step`, shape (k,), from the exact Gram matrix of the weighted rows.

    rows: the record map (its g2 is g^2); start: shape (p,), basis: shape (p, k) as above, both as tuples of public numbers;
    radius: of the ball of phi. It is no sum: compute it from the Gram matrix by `integers`, and draw it from the meter.
    """

    rows: WeightedRows
    radius: float
    start: tuple[float, ...]
    basis: tuple[tuple[float, ...], ...]
    norm: str = field(default="l2", init=False)

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.basis[0]),)

    @property
    def map(self) -> _Digest:
        """What a spend writes down of the record map."""
        return _Digest(
            digest(["ball minimiser", self.rows.digest, pack(self.radius), pack(self.start), pack(self.basis)])
        )

    @property
    def slope(self) -> float:
        """G: how far one record added or removed moves lam phi, rounded up in its last digits."""
        squared = BOUND / self.rows.steps**2
        reach = self.radius**2 + sum(v * v for v in self.start)
        return squared * (sqrt(reach) + sqrt(reach + 1 / self.rows.g2)) / 2 * (1 + 2.0**-30)

    @property
    def step(self) -> float:
        """h: the size of one integer step in units of lam phi."""
        return self.slope / _STEPS

    def sensitivity_squared(self, relation: str) -> Fraction:
        """In steps: (1024 + 2 sqrt(k))^2 under add-remove, (2048 + 2 sqrt(k))^2 under substitute, the square root rounded up."""
        moved = _STEPS * (2 if relation == "substitute" else 1)
        room = Fraction(ceil(2 * sqrt(self.shape[0]) * 1024), 1024)
        return (moved + room) ** 2

    def integers(self, gram: NDArray[np.object_], lam: float) -> NDArray[np.object_]:
        """rint(lam phi / h) as Python integers, from the exact Gram matrix, shape (p + 1, p + 1), of the rows; lam > 0."""
        theta_0, basis = np.array(self.start), np.array(self.basis)
        unit, g = float(self.rows.steps) ** 2, sqrt(self.rows.g2)
        whole = np.array([[float(v) for v in row] for row in gram.tolist()]) / unit
        inner = basis.T @ whole[:-1, :-1] @ basis
        moment = basis.T @ (whole[:-1, -1] / g - whole[:-1, :-1] @ theta_0)
        phi = _in_ball((inner + inner.T) / 2, moment, lam, self.radius)
        return np.array([int(v) for v in np.rint(lam * phi / self.step)], dtype=object)

    def decode(self, values: Array, lam: float) -> Array:
        """theta, shape (p,), from released values in steps."""
        return np.asarray(np.array(self.start) + np.array(self.basis) @ (values * self.step / lam))


@dataclass(frozen=True)
class _Digest:
    digest: str


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
