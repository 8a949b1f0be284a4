"""From a released theta and a noisy Hessian to log-odds in the data's units, without the ridge's bias, with intervals.

Released: t = theta + e, theta the minimiser with ridge lam and tilt b ~ N(0, s^2 I), e ~ N(0, o^2 I); V = A + E with A = sum w p (1-p) z z'
at t and E symmetric noise, variance v^2 on the diagonal, v^2/2 off it. The gradient is 0 at theta: score(theta) + lam theta + b = 0, and
score(theta) = score(theta_0) + A (theta - theta_0) to first order. So

    t + lam V^(-1) t  =  theta_0 - A^(-1) (score(theta_0) + b) + (I + lam A^(-1)) e - lam A^(-1) E A^(-1) t  + second order,

which is free of the ridge to first order. score(theta_0) has covariance sum w^2 p (1-p) z z' <= A where the model holds (weights are at
most 1), E u has v^2 (|u|^2 I + u u')/2. With u = V^(-1) t the covariance is

    V^(-1) (V + s^2 I + lam^2 v^2 (|u|^2 I + u u')/2) V^(-1) + o^2 (I + lam V^(-1))^2.

First order holds while V stands above its noise and above lam; `LEAST` says how far, found by simulation.
V may stand there by luck of its noise, and then its inverse is too small: the covariance takes V less three quarters of the norm of its
noise, the estimate V itself. Otherwise there is no interval (status "imprecise") and the coefficients are those of t, with the ridge in
them. The rule looks at V alone: one that looked at t would choose among estimates, and intervals that are chosen so do not cover.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

__all__ = ["LEAST", "Reading", "read"]

Array = NDArray[np.float64]

#: The least eigenvalue of V over the operator norm of its noise, and over the ridge, from which on there are intervals.
LEAST = (1.5, 8.0)
# What is taken off V for the covariance, in norms of its noise: below LEAST[0], so that the inverse exists.
_LUCK = 0.75


@dataclass(frozen=True)
class Reading:
    """theta in scaled units with its covariance and the part of it that is privacy noise; weak: why there is no interval."""

    theta: Array
    covariance: Array
    noise: Array
    weak: str


_WEAK = (
    "the records' curvature does not stand above the privacy noise and the ridge in some direction; ask for fewer terms, more records or a "
    "larger budget"
)


def read(released: Array, bent: Array, *, ridge: float, tilt: float, output: float, spread: float) -> Reading:
    """released: t (p,); bent: V (p, p), symmetric; tilt: s, output: o, spread: v, the sds of the noise."""
    p = len(released)
    least = float(np.linalg.eigvalsh(bent)[0])
    nothing = np.full((p, p), np.nan)
    if least < LEAST[0] * spread * sqrt(2 * p) or least < LEAST[1] * ridge:
        return Reading(released, nothing, nothing, _WEAK)
    inverse = np.linalg.inv(bent)
    inverse = (inverse + inverse.T) / 2
    pull = inverse @ released
    low = np.linalg.inv(bent - _LUCK * spread * sqrt(2 * p) * np.eye(p))
    low = (low + low.T) / 2
    far = low @ released
    moved = ridge**2 * spread**2 / 2 * (float(far @ far) * np.eye(p) + np.outer(far, far))
    grown = np.eye(p) + ridge * low
    noise = low @ (tilt**2 * np.eye(p) + moved) @ low + output**2 * grown @ grown
    noise = (noise + noise.T) / 2
    return Reading(released + ridge * pull, low + noise, noise, "")
