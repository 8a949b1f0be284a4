"""What selection costs: bounds on the privacy of the best of K runs of a base mechanism that is mu-GDP up to a slack d0.

The base Q gives an output and a score, its profile is at most delta(e; mu) + d0 at every e, in both directions. K does not depend on the
records, ties are broken by fresh randomness inside Q. Where q is Q's density, s the probability of a score above the one at hand, the
output's density is q F(1 - s), F the derivative of K's generating function.

(b) `tradeoff_delta`, the default. The other data set has s' <= min(1, Phi(Phi^-1(s) + mu) + d0), hence with l = log q/q'

    delta(eps) <= E_l [ max_s (F(1-s) - e^(eps-l) F(1-s'))_+ ] + E[K] d0,     l ~ N(mu^2/2, mu^2):

the bracket is a convex decreasing function of q'/q with value at most E[K] at 0, so its expectation is largest for the dominating pair, and
slack adds at most E[K] d0. Computed from above: s in cells, the lower end in F(1-s) and the upper end in s'; l in cells at their upper end,
since the bracket rises with l; the mass beyond 9 standard deviations counts with the largest value.

(a) `profile_epsilon`: (e1 + pen, E[K] delta_Q(e1)) for any e1, pen = sup_s log F(1-s)/F(1-s'), s' = min(1, e^eh s + delta_Q(eh)), any eh.

(c) `renyi_epsilon`: Renyi divergences of a Gaussian base (TNB with eta >= 0: Theorem 2; Poisson: Theorem 6 of Papernot, Steinke).

Sources: Papernot, Steinke 2022 (arXiv 2110.03620), Koskela, Redberg, Wang 2024 (a); (b) is proved above.
"""

from __future__ import annotations

from functools import lru_cache
from math import exp, log

import numpy as np
from numpy.typing import NDArray

from confide import _special as special
from confide._arrays import Array
from confide.errors import PrivacyError
from confide.guarantees.mechanisms.gaussian import gaussian_delta, gaussian_epsilon
from confide.guarantees.selection.laws import Poisson, RunLaw, TruncatedNegativeBinomial

__all__ = ["profile_delta", "profile_epsilon", "renyi_epsilon", "tradeoff_delta"]


_REACH = 9.0
_LOSSES = 1500
# Float64 of normal distribution functions, exponentials and the sum: far below this, relative.
_UP = 1 + 1e-9
_ORDERS = np.concatenate([np.geomspace(1.05, 2, 20), np.geomspace(2.1, 4096, 120)])


@lru_cache(maxsize=1)
def _cells() -> tuple[Array, Array]:
    """Lower and upper ends of the cells of s: one from 0, 60 up to 1e-6, 3,500 up to 1, and finer ones near 1, where F may reach 0."""
    ends = np.concatenate([np.geomspace(1e-14, 1e-6, 61), np.geomspace(1e-6, 1.0, 3501)[1:]])
    ends = np.union1d(ends, 1 - np.geomspace(1e-9, 0.25, 1500))
    return np.concatenate([[0.0], ends[:-1]]), ends


@lru_cache(maxsize=1)
def _losses() -> tuple[Array, Array]:
    """Upper ends of the cells of the standardised loss, and their probabilities."""
    ends = np.linspace(-_REACH, _REACH, _LOSSES + 1)
    return ends[1:], np.diff(special.ndtr(ends))


def tradeoff_delta(epsilon: float, mu: float, law: RunLaw, slack: float = 0.0) -> float:
    """delta at `epsilon` of the best of K runs of a mu-GDP base with slack d0, from above; at most 1.

    >>> one = tradeoff_delta(1.0, 0.1077, TruncatedNegativeBinomial(1.0, 600.0))
    >>> 0.9e-6 < one < 1.1e-6
    True
    """
    low, high = _cells()
    own = law.derivative(low)
    other = law.derivative(np.minimum(1.0, special.ndtr(special.ndtri(high) + mu) + slack))
    upper, mass = _losses()
    bracket = _largest(own, other, np.exp(epsilon - (mu * mu / 2 + mu * upper)))
    tail = float(special.ndtr(-_REACH))
    total = float(mass @ bracket) + tail * (law.mean + float(bracket[0])) + law.mean * slack
    return min(1.0, total * _UP + (1 + exp(min(epsilon, 700.0))) * law.weights().distance)


def _largest(own: Array, other: Array, times: Array) -> Array:
    """max(0, max over cells of own - t other) at each t, t > 0 falling: lines of which those on the upper envelope matter."""
    keep = _envelope(own, other)
    own, other = own[keep], other[keep]
    with np.errstate(divide="ignore", invalid="ignore"):
        # own and other both fall along the cells; line i is above i + 1 where t < gap_own/gap_other
        crossing = (own[:-1] - own[1:]) / (other[:-1] - other[1:])
    place = np.searchsorted(crossing, times, side="left")
    near = np.stack([np.clip(place + shift, 0, len(own) - 1) for shift in (-1, 0, 1)])
    return np.asarray(np.maximum(0.0, (own[near] - times * other[near]).max(axis=0)))


def _envelope(lines: Array, falls: Array) -> NDArray[np.int64]:
    """The lines own - t other that are the largest for some t >= 0: the upper left hull of the points (other, own)."""
    hull: list[int] = []
    own, other = lines.tolist(), falls.tolist()  # plain numbers: one by one those of an array are slow
    for i in range(len(own) - 1, -1, -1):  # other rises
        while hull and other[hull[-1]] >= other[i] and own[hull[-1]] <= own[i]:
            hull.pop()
        if hull and own[i] <= own[hull[-1]]:
            continue
        while len(hull) > 1:
            a, b = hull[-2], hull[-1]
            if (own[b] - own[a]) * (other[i] - other[b]) <= (own[i] - own[b]) * (other[b] - other[a]):
                hull.pop()
            else:
                break
        hull.append(i)
    return np.array(hull[::-1])


def profile_epsilon(delta: float, mu: float, law: RunLaw) -> float:
    """epsilon at `delta` of the best of K runs of a mu-GDP base, by bound (a); infinite for a fixed number of runs.

    >>> profile_epsilon(1e-6, 0.0976, TruncatedNegativeBinomial(1.0, 600.0)) < 1.01
    True
    """
    first = max(gaussian_epsilon(delta / law.mean, mu), 0.0) if delta < law.mean else 0.0
    grid = np.linspace(0.0, max(2 * first, 8 * mu), 150)
    for _ in range(2):
        values = [law.penalty(float(e), gaussian_delta(float(e), mu)) for e in grid]
        best = int(np.argmin(values))
        found = values[best]
        grid = np.linspace(grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)], 40)
    return first + found


def profile_delta(epsilon: float, mu: float, law: RunLaw) -> float:
    """delta at `epsilon` by bound (a), at most 1."""
    low, high = log(1e-300), 0.0
    if profile_epsilon(1.0 - 1e-12, mu, law) > epsilon:
        return 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if profile_epsilon(exp(middle), mu, law) > epsilon else (low, middle)
    return exp(high)


def renyi_epsilon(delta: float, mu: float, law: RunLaw) -> float:
    """epsilon at `delta` of the best of K runs of a mu-GDP base, by bound (c).

    Raises `PrivacyError` for a law that the theorems do not cover: TNB with eta below 0, binomial, fixed.
    """
    a = _ORDERS
    own = a * mu * mu / 2
    if isinstance(law, TruncatedNegativeBinomial) and law.eta >= 0:
        factor, other = 1 + law.eta, np.concatenate([[1.0], _ORDERS])
        extra = factor * ((1 - 1 / other) * other * mu * mu / 2 + log(1 / law.g) / other)
        value = own + float(extra.min()) + log(law.mean) / (a - 1)
    elif isinstance(law, Poisson):
        losses = np.log1p(1 / (a - 1))
        value = own + law.mean * np.array([gaussian_delta(float(e), mu) for e in losses]) + log(law.mean) / (a - 1)
    else:
        raise PrivacyError(
            f"no Renyi bound is proved for {law}; use TruncatedNegativeBinomial with eta of at least 0, or Poisson"
        )
    return float(max((value + np.log1p(-1 / a) - (log(delta) + np.log(a)) / (a - 1)).min(), 0.0))
