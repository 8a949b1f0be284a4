"""How private a minimizer is whose objective was perturbed: theta = argmin sum_i w_i l(y_i z_i'theta) + lam |theta|^2/2 + b'theta.

b is N(0, s^2 I). One record has slope w |z| |l'| <= B ("slope") and curvature w |z|^2 l'' <= K l''("curvature": K = B
max|z|, B^2 for rows that are clipped to length B). b = -(gradient at theta) is one to one, so that theta has the
density phi_s(b(theta)) det H(theta). Adding a record with gradient g and curvature k z z' at theta gives, with the
standard normal Z = -y z'b/(|z| s) of the larger dataset,

    log(density with / density without) = log(1 + k z'H^(-1) z) + p r Z + p^2 r^2 / 2,   r = w|z|/s <= m = B/s,   p = |l'| in [0, 1].

For the logistic loss l' has one sign and l'' = p (1 - p): the slope and the curvature of a record are not extreme together. Hence

    log ratio <= h(Z) = max over p in [0, 1] of log(1 + p (1 - p) K/lam) + p m Z + p^2 m^2/2                               (sharp)

for every record: one with w|z| = q B, q < 1, is dominated with p q in the place of p, because p (1-p) q B |z| <= q p
(1 - q p) K. The other direction has the log term negated: log ratio <= max(0, m Z + m^2/2), which is m-GDP at every
epsilon >= 0. So delta(epsilon) = E (1 - exp(epsilon - h(Z)))_+, and with a release of Gaussian DP with parameter mu
after it, adaptively, E delta_mu(epsilon - h(Z)).

Any loss with |l'| <= 1, l'' <= 1/4 has, with c = log(1 + K/(4 lam)), the coarser curves "general" (both signs of l') and, for one sign,
"closed" delta_GDP(epsilon - c; m). Replacing a record is adding one and removing one, over the dataset without either:
H_(e + f)(P, R) <= H_e(P, Q) + exp(e) H_f(Q, R) for hockey-stick divergences H.

Numbers are bounds: Z in equal cells, each at its upper end; p on a grid, plus what h may rise between (its second derivative in p is
at least -(2 k + k^2), k = K/lam, so that a maximum between two points of a grid of step t is at most (2 k + k^2) t^2/8 higher).
Sources: Chaudhuri, Monteleoni, Sarwate 2011; Kifer, Smith, Thakurta 2012; Redberg, Koskela, Wang 2023 ("general", with a larger c).

The curve of objective perturbation of a logistic regression, with Gaussian releases that may follow it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil, exp, expm1, inf, log1p, sqrt
from typing import Any

import numpy as np

from confide import _special as special
from confide._arrays import Array
from confide.errors import PrivacyError
from confide.guarantees.curves.curve import Curve, Floats
from confide.guarantees.mechanisms.gaussian import gaussian_delta, gaussian_mu

# Z in cells of equal width between +-_REACH; below counts as the first end, above as a loss without bound.
_REACH = 9.5
_CELLS = 4000
_POINTS = 301
# Shares of epsilon for the record that is added, where one is replaced: any is valid.
_SPLITS = (0.5, 0.53, 0.57, 0.62, 0.7)
# exp of more is no double; an sd beyond which there is nothing to gain.
_FAR, _MUCH = 700.0, 1e9
# What the sums of doubles may be wrong by, relative and absolute.
_ACCURACY = 1e-9
_LEAST = 1e-15
#: What `logistic_delta` never falls below: that, and what is beyond the cells.
FLOOR = 1.1e-15


def general_delta(epsilon: float, sd: float, ridge: float, slope: float = 1.0, curvature: float = 1.0) -> float:
    """delta of any loss with |l'| <= 1 and l'' <= 1/4, when one record is added or removed.

    >>> round(1e6 * general_delta(1.0, 4.91, 2.0), 2)
    0.98
    """
    left, m = epsilon - log1p(curvature / (4 * ridge)), slope / sd
    if left <= 0:
        return 1.0
    if left >= m * m / 2:
        return min(2 * gaussian_delta(left, m), 1.0)
    # |N| m with no point at which the loss is negative
    return float(1 - 2 * exp(left + float(special.log_ndtr(-m))))


def closed_delta(epsilon: float, sd: float, ridge: float, slope: float = 1.0, curvature: float = 1.0) -> float:
    """delta of a loss whose slope has one sign, as the logistic: without the factor 2 of `general_delta`. 1 for epsilon below c.

    >>> round(1e6 * closed_delta(1.0, 4.75, 2.0), 2)
    0.98
    """
    left = epsilon - log1p(curvature / (4 * ridge))
    return gaussian_delta(left, slope / sd) if left > 0 else 1.0


def logistic_delta(
    epsilon: float,
    sd: float,
    ridge: float,
    slope: float = 1.0,
    curvature: float = 1.0,
    *,
    after: float = 0.0,
    relation: str = "add-remove",
) -> float:
    """delta of logistic regression by the sharp curve, an upper bound. after: mu of Gaussian releases that follow it.

    >>> 0.8 < 1e6 * logistic_delta(1.0, 4.25, 2.0) < 1.0
    True
    """
    added = _losses(slope / sd, curvature / ridge)
    if relation == "add-remove":
        return _expected(epsilon, added, after)
    m = slope / sd
    removed = np.maximum(0.0, m * _ends()[0] + m * m / 2)
    splits = [min(epsilon * share, _FAR) for share in _SPLITS]
    return min(_expected(e, added, after) + exp(e) * _expected(epsilon - e, removed, after) for e in splits)


def logistic_sd(
    epsilon: float,
    delta: float,
    ridge: float,
    slope: float = 1.0,
    curvature: float = 1.0,
    *,
    after: float = 0.0,
    relation: str = "add-remove",
) -> float:
    """The least SD s of b at which the sharp curve meets (epsilon, delta), rounded up. `PrivacyError` where there is none.

    >>> round(logistic_sd(0.2, 1e-6, 10.0), 1)
    19.0
    """
    return slope * _unit_sd(epsilon, delta, curvature / ridge, after, relation)


@lru_cache(maxsize=512)
def _unit_sd(epsilon: float, delta: float, ratio: float, after: float, relation: str) -> float:
    share = epsilon if relation == "add-remove" else epsilon / 2

    def much(sd: float) -> bool:
        return logistic_delta(epsilon, sd, 1.0, 1.0, ratio, after=after, relation=relation) > delta

    low = 0.9 / gaussian_mu(share, delta)
    high = 4 * low
    while much(high):
        low, high = high, 4 * high
        if high > _MUCH:
            needed = least_ridge(epsilon, delta=delta, after=after, relation=relation)
            raise PrivacyError(
                f"objective perturbation at epsilon = {epsilon:g} needs a ridge above {_up(needed)} times the curvature bound "
                f"of a record, got {1 / ratio:.4g} times",
                "give a larger ridge or leave it out",
            )
    return _least(much, low, high, 1e-6)


def general_sd(epsilon: float, delta: float, ridge: float, slope: float = 1.0, curvature: float = 1.0) -> float:
    """The least SD at which `general_delta` meets (epsilon, delta). `PrivacyError` for a ridge that is too small.

    >>> round(general_sd(1.0, 1e-6, 2.0), 2)
    4.91
    """
    _check_ridge(epsilon, ridge, curvature)

    def much(sd: float) -> bool:
        return general_delta(epsilon, sd, ridge, slope, curvature) > delta

    low, high = slope * 1e-9, slope / gaussian_mu(epsilon, delta)
    while much(high):
        low, high = high, 2 * high
    return _least(much, low, high, 1e-9)


def closed_sd(epsilon: float, delta: float, ridge: float, slope: float = 1.0, curvature: float = 1.0) -> float:
    """The least SD at which `closed_delta` meets (epsilon, delta). `PrivacyError` for a ridge that is too small.

    >>> round(closed_sd(1.0, 1e-6, 2.0), 2)
    4.75
    """
    _check_ridge(epsilon, ridge, curvature)
    return slope / gaussian_mu(epsilon - log1p(curvature / (4 * ridge)), delta)


def least_ridge(
    epsilon: float, curvature: float = 1.0, *, delta: float = 0.0, after: float = 0.0, relation: str = "add-remove"
) -> float:
    """No ridge at or below this one meets epsilon, whatever the noise: log(1 + K/(4 lam)) must stay below epsilon.

    delta, after: with Gaussian releases that follow; relation: a replaced record is chained over the dataset without it. Both are
    found by bisection, rounded up.

    >>> round(least_ridge(1.0), 4), round(least_ridge(1.0, delta=1e-6, after=0.1), 4)
    (0.1455, 0.302)
    """
    if after == 0 and relation == "add-remove":
        return curvature / (4 * expm1(min(epsilon, _FAR)))

    def short(ridge: float) -> bool:
        return not logistic_delta(epsilon, _MUCH, ridge, after=after, relation=relation) <= max(delta, 1e-12)

    return _least(short, 1e-9, 1e9, 1e-6) * curvature


def stable_sensitivity(certified: float, ridge: float, slope: float, longest: float) -> float:
    """How far a record moves the minimizer: min(B/lam, -log(1 - R B/m)/R).

    B/lam because the objective is lam-strongly convex; the other from a lower bound m >= lam on the least eigenvalue of the Hessian there.

    `certified`: m. `longest`: R = max |z|, the constant of self-concordance. Proof: the Hessian at distance D is at
    least exp(-R D) times that at the minimizer. So the gradient grows to at least m (1 - exp(-R D))/R, which the
    record's gradient, at most B, must balance.
    """
    share = longest * slope / certified
    return min(slope / ridge, -log1p(-share) / longest) if share < 1 else slope / ridge


def _least(short: Callable[[float], bool], low: float, high: float, close: float) -> float:
    """The least number that is not short of its goal, between one that is and one that is not; rounded up by at most `close` of it."""
    while high > low * (1 + close):
        middle = sqrt(low * high)
        low, high = (middle, high) if short(middle) else (low, middle)
    return high


def _check_ridge(epsilon: float, ridge: float, curvature: float) -> None:
    least = least_ridge(epsilon, curvature)
    if ridge <= least:
        raise PrivacyError(
            f"at epsilon = {epsilon:g} objective perturbation needs a ridge above {_up(least)}, got {ridge:g}",
            "give a larger ridge or a larger epsilon",
        )


def _up(value: float) -> str:
    """A number with four digits, rounded up."""
    scale = 10.0 ** (3 - int(np.floor(np.log10(value))))
    return f"{ceil(value * scale) / scale:.6g}"


@lru_cache(maxsize=1)
def _ends() -> tuple[Array, Array]:
    """Upper ends of the cells of Z, the first one reaching to -inf, and their probabilities."""
    edges = np.linspace(-_REACH, _REACH, _CELLS + 1)
    below = special.ndtr(edges)
    # on the right from the other side, where the doubles are fine
    above = special.ndtr(-edges)
    mass = np.where(edges[1:] <= 0, np.diff(below), -np.diff(above))
    return edges, np.concatenate([below[:1], mass])


@lru_cache(maxsize=64)
def _losses(m: float, ratio: float) -> Array:
    """h at the upper ends of the cells, rounded up: the maximum over the grid of p and what it may miss."""
    p = np.linspace(0.0, 1.0, _POINTS)
    fixed = np.log1p(p * (1 - p) * ratio) + p * p * m * m / 2
    values = _ends()[0]
    best = np.full(len(values), -inf)
    for own, share in zip(fixed, p, strict=True):
        np.maximum(best, own + share * m * values, out=best)
    step = 1 / (_POINTS - 1)
    # by the slope in p, or by the curvature in p where the maximum is inside
    missed = min((2 * ratio + ratio**2) * step**2 / 8, (ratio + m * _REACH + m * m) * step / 2)
    return np.asarray(best + missed)


def _expected(epsilon: float, losses: Array, after: float) -> float:
    """E delta_after(epsilon - loss), the loss of each cell at its upper end, rounded up."""
    left = epsilon - losses
    if after > 0:
        rest = special.ndtr(after / 2 - left / after)
        with np.errstate(over="ignore", invalid="ignore"):
            taken = np.exp(left + special.log_ndtr(-after / 2 - left / after))
        rest = np.clip(rest - np.where(np.isfinite(taken), taken, 0.0), 0.0, 1.0)
    else:
        rest = -np.expm1(np.minimum(left, 0.0))
    total = float(_ends()[1] @ rest) + float(special.ndtr(-_REACH))
    return min(total * (1 + _ACCURACY) + _LEAST, 1.0)


_LADDER = 24
# the same where two neighbors are chained
_CHAINED = 1e-12


@dataclass(frozen=True, repr=False)
class Objective(Curve):
    """`logistic_delta` at every epsilon: the "sharp" curve of `guarantees.objective_perturbation`, for both orders.

    mu: m = slope / SD of the tilt; ratio: curvature / ridge; after: mu of Gaussian releases that follow; replaced: whether a record is
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
            # chaining two neighbors multiplies what the numbers may be wrong by; a profile falls, so a smaller epsilon bounds it
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
