"""Logistic and probit maximum likelihood over a ball, without a ridge.

A record (x, y), |x| <= r_x after shortening, y in {0, 1} (a level above 1/2 counts as 1). theta minimises F = sum l(y, x'theta) over
|theta| <= r_theta; it is the minimiser over the ball, not the projection of a free one. With a = r_theta |x_i|, weights w_i = min of l''
over
|u| <= a, L = least eigenvalue of sum w_i x_i x_i': F is L-strongly convex on the ball. w_i = s (1 - s), s = 1/(1 + e^a) (logistic), and
r (r + a), r = phi(a)/Phi(a) (probit); its largest value W, at x = 0, is 1/4 and 2/pi. Scores |l'| are at most c = 1/(1 + e^-a), and
phi(a)/Phi(-a), at a = r_theta r_x.

Proof. C1: one record changes the sum by a difference of PSD matrices of norm at most W r_x^2, and so L. C2: theta and theta' minimise F
and F' over the ball, so <grad F(theta), theta' - theta> >= 0 and <grad F'(theta'), theta - theta'> >= 0. Added up,

    L |theta' - theta|^2 <= <grad F(theta') - grad F(theta), theta' - theta> <= |grad F(theta') - grad F'(theta')| |theta' - theta|,

and the last gradient is the difference of two records' at theta': at most 2 r_x c. It needs L of X alone: no offset.
Rounding: L is a float sum, `error` as for least squares, in units of W r_x^2. The solver stops where its step is below 1e-13 of r_theta.
Source: derived here; the variational inequality is that of Chaudhuri, Monteleoni, Sarwate 2011, who have a ridge for L.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, pi, sqrt
from typing import Any, ClassVar

import numpy as np

from confide._arrays import Array
from confide._special import expit, log_ndtr
from confide.aggregates.safety_formulas import eigenvalue_error, minimiser_alpha
from confide.errors import PlanError
from confide.guarantees.validation import is_whole
from confide.methods.ptr.safety import CertifiedBound
from confide.methods.ptr.safety_bounds.eigenvector import shortened

__all__ = ["BallLikelihood"]


_NEWTON = 100
_HALVINGS = 60
_BISECTIONS = 100


@dataclass(frozen=True)
class BallLikelihood(CertifiedBound):
    """p: columns of x (give a constant column for an intercept); r_x, r_theta: public; lam0: eigenvalue planned on, or None ("adaptive").

    link: "logistic" or "probit". Data: columns x_1..x_p, y.

    >>> bound = BallLikelihood(1, 1.0, 2.0, lam0=5.0)
    >>> data = bound.prepare(np.array([[1.0, 1.0]] * 60 + [[1.0, 0.0]] * 40))
    >>> round(bound.gamma(data), 3), bound.estimate(data).round(6).tolist()  # log(60/40)
    (21.997, [0.405465])
    """

    p: int
    r_x: float
    r_theta: float
    lam0: float | None = None
    link: str = "logistic"

    name: ClassVar[str] = "BallLikelihood"

    def __post_init__(self) -> None:
        if not is_whole(self.p, 1):
            raise PlanError(f"p must be a whole number of at least 1, got {self.p!r}")
        if self.link not in ("logistic", "probit"):
            raise PlanError(f"link must be 'logistic' or 'probit', got {self.link!r}")
        if not 0 < self.r_theta < float("inf"):
            raise PlanError(f"r_theta must be a finite number above 0, got {self.r_theta!r}")
        minimiser_alpha(self.r_x, self.score, 1.0 if self.lam0 is None else self.lam0)

    @property
    def dim(self) -> int:  # type: ignore[override]
        return self.p

    @property
    def names(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(f"x{j + 1}" for j in range(self.p))

    @property
    def most(self) -> float:
        """W, the largest weight."""
        return 0.25 if self.link == "logistic" else 2 / pi * (1 + 2.0**-50)

    @property
    def score(self) -> float:
        """c, the largest score on the ball."""
        a = self.r_theta * self.r_x
        if self.link == "logistic":
            return 1 / (1 + exp(-min(a, 700.0)))
        return exp(-a * a / 2 - float(log_ndtr(-a))) / sqrt(2 * pi)

    @property
    def moves(self) -> float:  # type: ignore[override]
        return self.most * self.r_x**2 * (1 + 2.0**-40)

    @property
    def least(self) -> float:  # type: ignore[override]
        return 1e-9 * self.moves

    @property
    def level0(self) -> float | None:  # type: ignore[override]
        return None if self.lam0 is None else self.lam0 - self.moves

    def alpha_at(self, t: float) -> float:
        return minimiser_alpha(self.r_x, self.score, t + self.moves)

    def prepare(self, data: Any) -> Array:
        rows = np.array(data, dtype=np.float64)
        rows[:, : self.p] = shortened(rows[:, : self.p], self.r_x)
        rows[:, self.p] = np.nan_to_num(rows[:, self.p]) > 0.5
        return rows

    def level(self, prepared: Array) -> float:
        x = prepared[:, : self.p]
        if not len(x):
            return 0.0
        weighted = x * self._weights(self.r_theta * np.linalg.norm(x, axis=1))[:, None]
        gram = weighted.T @ x
        return float(np.linalg.eigvalsh((gram + gram.T) / 2)[0])

    def error(self, prepared: Array) -> float:
        return eigenvalue_error(self.p, len(prepared))

    def _weights(self, a: Array) -> Array:
        """min of l'' over |u| <= a."""
        if self.link == "logistic":
            return np.asarray(expit(a) * expit(-a))
        r = np.exp(-a * a / 2 - log_ndtr(a)) / sqrt(2 * pi)
        return np.asarray(r * (r + a))

    def _curves(self, u: Array, sign: Array) -> tuple[float, Array, Array]:
        """Sum of losses, slopes and curvatures at u = x'theta; sign: 2 y - 1."""
        t = sign * u
        if self.link == "logistic":
            return float(np.logaddexp(0.0, -t).sum()), -sign * expit(-t), expit(t) * expit(-t)
        log_tail = log_ndtr(t)
        r = np.exp(-t * t / 2 - log_tail) / sqrt(2 * pi)
        return -float(log_tail.sum()), -sign * r, r * (r + t)

    def estimate(self, prepared: Array) -> Array:
        x, sign = prepared[:, : self.p], 2 * prepared[:, self.p] - 1
        theta = np.zeros(self.p)
        value, slope, curve = self._curves(x @ theta, sign)
        for _ in range(_NEWTON):
            hessian = (x * curve[:, None]).T @ x
            gradient = x.T @ slope
            move = _ball_model(hessian, hessian @ theta - gradient, self.r_theta) - theta
            downhill = float(gradient @ move)
            if np.linalg.norm(move) <= 1e-13 * self.r_theta or not downhill < 0:
                break
            step = 1.0
            for _ in range(_HALVINGS):
                now, new_slope, new_curve = self._curves(x @ (theta + step * move), sign)
                # within rounding of the sum a full step is taken: there Newton is at its best
                if now <= value + 1e-4 * step * downhill + 1e-13 * abs(value):
                    break
                step /= 2
            theta, value, slope, curve = theta + step * move, now, new_slope, new_curve
        return theta


def _ball_model(hessian: Array, moment: Array, radius: float) -> Array:
    """argmin of theta'H theta/2 - moment'theta over |theta| <= radius."""
    values, vectors = np.linalg.eigh((hessian + hessian.T) / 2)
    values, turned = np.maximum(values, 1e-300), vectors.T @ moment
    low, high = 0.0, float(np.linalg.norm(turned)) / radius
    if np.linalg.norm(turned / values) > radius:
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            if not low < middle < high:
                break  # nothing lies between
            at = turned / (values + middle)
            # as NumPy's norm of a vector, without its questions
            low, high = (middle, high) if sqrt(at @ at) > radius else (low, middle)
        low = high
    theta = vectors @ (turned / (values + low))
    return np.asarray(theta * min(1.0, radius / max(float(np.linalg.norm(theta)), 1e-300)))
