"""How likely a reply may be, as a function of how safe the data are: the release laws of propose-test-release.

A mechanism replies with probability p(g), g >= 0 a safety that neighbors change by at most 1, and then releases a
vector with Gaussian noise of SD alpha/mu. Where one of two neighbors has g > 0 their vectors lie within alpha; where
neither has, p(0) = 0 and nothing is released. "Declined with probability 1 - p, else N(mu, 1)" against "declined with
probability 1 - q, else N(0, 1)" has the exact divergence

    H(p, q; mu, e) = [(1 - p) - e^e (1 - q)]_+ + p delta_G(e + log(q/p); mu),

delta_G the Gaussian curve at every real argument; a p of 0 leaves the first term, a q of 0 makes the second term p. So a law is
(e, delta)-private exactly when H(p(g), p(g'); mu, e) <= delta for all |g - g'| <= 1, in both directions.

Gaussian law (`GaussianReply`): p(g) = Phi(mu_t (g - 1)_+ + z_delta) for g > 0, and `mu^2 = mu_t^2 + mu_r^2`. Where
both are safe the reply is a threshold of N((g - 1)_+, 1/mu_t^2) beside N(theta, alpha^2/mu_r^2): mu-GDP. Where one is
unsafe the other has g <= 1 and replies with probability delta at most. So each pair has the trade-off of G_mu or of
(0, delta): `GDP(mu, delta)`, and (e, max(delta, delta_G(e; mu))). The shift by 1 is needed because p(0) = 0: without
it data with 0 < g <= 1 reply with more than delta next to data that never do. The test is the best mu_t-GDP one: p ->
1 - G_{mu_t}(p), again and again from delta, gives Phi(k mu_t + z_delta).

Exact law (`ExactReply`): the largest p_0 = 0 <= p_1 <= ... with H(p_{k+1}, p_k) <= delta >= H(p_k, p_{k+1}), release with p_{ceil(g)}. Each
step is checked again in both directions, with the accurate curve, before the law is given out. (e, delta) alone, no GDP.

Source: Shen, Tong, Wang 2026 (logistic test); the divergence and both laws are derived here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from math import ceil, erfc, exp, expm1, inf, log, sqrt

import numpy as np
from numpy.typing import ArrayLike

from confide._arrays import Array
from confide._special import log_ndtr, ndtr, ndtri
from confide.errors import PlanError, PrivacyError
from confide.guarantees.calibration import calibrate_gaussian
from confide.guarantees.mechanisms.gaussian import gaussian_delta
from confide.guarantees.validation import SLACK, level, share
from confide.guarantees.values import ApproxDP

# Shares of mu^2 that a test spends exactly: millionths, at most a half.
_PARTS, _HALF = 10**6, Fraction(1, 2)
# Below this planned probability of a reply, intervals are marked as conditional on it.
_SURE = 0.95

# At most half of mu^2 goes to the test.
_MOST = sqrt(0.5)
# Steps of an exact law; a longer plan has nothing to gain over the Gaussian law, whose test is then cheap.
_LONGEST = 1000
# Room below delta that the table leaves for the verification with the accurate curve: relative, and for the rounding of 1 - p.
_ROOM, _DUST = 1e-9, 1e-15
# Below this the rounding of probabilities near 1 is no longer small against delta.
_SMALLEST = 1e-12
# e^epsilon is a float up to here.
_LARGEST = 700.0
# Relative width at which the search for the largest mu of a table stops; the table is made again at its lower end.
_CLOSE = 1e-7


def delta_at(t: float, mu: float) -> float:
    """delta_G(t; mu) = Phi(mu/2 - t/mu) - e^t Phi(-mu/2 - t/mu) at every real t, 1 at -inf and 0 at inf.

    >>> delta_at(-inf, 1.0), round(delta_at(-1.0, 1.0), 6), round(delta_at(1.0, 1.0), 6)
    (1.0, 0.678818, 0.126937)
    """
    if abs(t) == inf:
        return 1.0 if t < 0 else 0.0
    return gaussian_delta(t, mu)


def hockey_stick(p: float, q: float, mu: float, epsilon: float) -> float:
    """H(p, q; mu, epsilon) of the module docstring, exact but for the last digits.

    >>> hockey_stick(0.01, 0.0, 1.0, 1.0), hockey_stick(0.0, 0.01, 1.0, 1.0)
    (0.01, 0.0)
    """
    silent = max((1 - p) - exp(epsilon) * (1 - q), 0.0)
    if p <= 0:
        return silent
    return silent + (p if q <= 0 else p * delta_at(epsilon + log(q / p), mu))


def hockey_sticks(p: ArrayLike, q: ArrayLike, mu: float, epsilon: float) -> Array:
    """`hockey_stick` of arrays of p and q, for audits over grids: to about 1e-14 absolutely."""
    p, q = np.asarray(p, dtype=np.float64), np.asarray(q, dtype=np.float64)
    silent = np.maximum((1 - p) - np.exp(epsilon) * (1 - q), 0.0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        t = epsilon + np.log(q) - np.log(p)
        curve = ndtr(mu / 2 - t / mu) - np.exp(t + log_ndtr(-mu / 2 - t / mu))
    curve = np.where(q <= 0, 1.0, np.maximum(curve, 0.0))
    spoken = np.where(p <= 0, 0.0, p * np.where(p <= 0, 0.0, curve))
    return np.asarray(silent + spoken, dtype=np.float64)


def worst_delta(
    probability: Callable[[Array], ArrayLike],
    mu: float,
    epsilon: float,
    *,
    largest: float,
    step: float = 1.0,
    far: bool = False,
) -> float:
    """The largest H over all pairs of safeties on a grid of [0, largest] that differ by at most 1, both directions: an exact audit.

    `probability`: of a reply, of an array of safeties. `mu`: alpha over the SD of the released vector's noise. `far`:
    also two datasets of safety 0 that both reply, whose vectors lie arbitrarily far apart: then H is p(0).

    >>> law = GaussianReply(0.5, 0.01, 50.0)
    >>> worst_delta(law.probabilities, law.mu_release, 1.0, largest=60, step=0.25) <= 0.01
    True
    """
    safeties = np.arange(ceil(largest / step) + 1) * step
    p: Array = np.asarray(probability(np.asarray(safeties, dtype=np.float64)), dtype=np.float64)
    found = float(hockey_sticks(p, p, mu, epsilon).max())
    for apart in range(1, int(1 / step + 1e-9) + 1):
        found = max(
            found,
            float(hockey_sticks(p[apart:], p[:-apart], mu, epsilon).max()),
            float(hockey_sticks(p[:-apart], p[apart:], mu, epsilon).max()),
        )
    return max(found, float(p[0])) if far else found


@dataclass(frozen=True)
class GaussianReply:
    """The Gaussian test that meets `GDP(mu, delta)` and replies with probability 1 - beta at the planned safety.

    gamma_plan: above 1, public; beta: in (0, 1). `capped`: the plan asks for more than half of the cost for the test,
    gets half, and replies with probability `planned` there. All are public facts.

    >>> law = GaussianReply(0.5, 0.01, 50.0)
    >>> round(law.mu_test, 4), round(law.mu_release, 4), law.capped, round(law.planned, 6)
    (0.1105, 0.4876, False, 0.999)
    """

    mu: float
    delta: float
    gamma_plan: float
    beta: float = 1e-3

    def __post_init__(self) -> None:
        call = "GaussianReply(0.5, 1e-6, gamma_plan=50.0)"
        level(self.mu, "mu", call)
        share(self.delta, "delta", call, zero=False)
        if not 0 < self.beta < 1:
            raise PlanError(f"beta must lie between 0 and 1, got {self.beta!r}; 0.001 is the default")
        if not 1 < self.gamma_plan < inf:
            raise PlanError(
                f"gamma_plan must be above 1, got {self.gamma_plan!r}",
                "give the safety that such data will have, from public facts",
            )

    @property
    def sure(self) -> float:
        """z_(1 - beta) - z_delta: how far above 1, in SDs of the test's noise, a safety passes with probability 1 - beta."""
        return max(float(-ndtri(self.beta) - ndtri(self.delta)), 0.0)

    @property
    def _wanted(self) -> float:
        """z_(1 - beta) - z_delta over the planned safety less 1."""
        return self.sure / (self.gamma_plan - 1)

    @property
    def capped(self) -> bool:
        """Whether half of the cost is not enough for the planned safety."""
        return self._wanted > self.mu * _MOST

    @property
    def mu_test(self) -> float:
        """mu of the test."""
        # a test of no cost would need noise of infinite size
        return max(min(self._wanted, self.mu * _MOST), self.mu * 2.0**-10)

    @property
    def mu_release(self) -> float:
        """mu of the released vector: alpha over its noise's SD."""
        return sqrt((self.mu - self.mu_test) * (self.mu + self.mu_test))

    @property
    def share(self) -> float:
        """The test's share of the cost, at most 1/2."""
        return min((self.mu_test / self.mu) ** 2, 0.5)

    @property
    def spent(self) -> Fraction:
        """The test's share of the cost to a millionth, from a millionth to a half: what a plan spends exactly."""
        return min(max(Fraction((self._wanted / self.mu) ** 2).limit_denominator(_PARTS), Fraction(1, _PARTS)), _HALF)

    @property
    def promised(self) -> float:
        """The public probability of a reply at the planned safety, of a test that spends `spent`."""
        return float(ndtr(sqrt(float(self.spent)) * self.mu * (self.gamma_plan - 1) + ndtri(self.delta)))

    def remarks(self, instead: str) -> tuple[str, ...]:
        """What a plan that spends `spent` says where half of the cost is not enough; instead: the way out."""
        if self.spent < _HALF:
            return ()
        return (
            f"gamma_plan is small for this budget: half of the cost for the test gives an answer with probability {self.promised:.2f} "
            f"there; {instead}",
        )

    @property
    def planned(self) -> float:
        """The public probability of a reply at the planned safety."""
        return self.probability(self.gamma_plan)

    def probability(self, gamma: float) -> float:
        """p(g); 0 for g <= 0."""
        return float(ndtr(self.mu_test * max(gamma - 1, 0.0) + ndtri(self.delta))) if gamma > 0 else 0.0

    def probabilities(self, gammas: ArrayLike) -> Array:
        """p(g) of an array."""
        g = np.asarray(gammas, dtype=np.float64)
        return np.where(g > 0, ndtr(self.mu_test * np.maximum(g - 1, 0.0) + ndtri(self.delta)), 0.0)


def reply_flags(promised: float) -> tuple[str, ...]:
    """The flag of a table whose intervals are conditional on an answer, where that is not nearly sure. `promised`: its
    planned probability.
    """
    return ("conditional_on_reply",) if promised < _SURE else ()


@dataclass(frozen=True)
class ExactReply:
    """A table p_0 = 0 <= p_1 <= ...; p_k is the reply's probability at the safety k, and the last one holds beyond. mu: of the vector.

    Every step is checked in both directions when it is made; `PrivacyError` names the step that is not private.
    """

    epsilon: float
    delta: float
    mu: float
    table: tuple[float, ...]

    def __post_init__(self) -> None:
        p = self.table
        if not p or p[0] != 0.0 or any(not a <= b <= 1 for a, b in pairwise(p)):
            raise PrivacyError("a table of replies begins at 0, does not fall, and stays within 1")
        for k, (low, high) in enumerate(zip(p, (*p[1:], p[-1]), strict=True)):
            for one, other in ((high, low), (low, high), (low, low)):
                if hockey_stick(one, other, self.mu, self.epsilon) * (1 + SLACK) + _DUST > self.delta:
                    raise PrivacyError(
                        f"the replies at safeties {k} and {k + 1} differ by more than the guarantee allows"
                    )

    def probability(self, gamma: float) -> float:
        """p_{ceil(g)}."""
        return self.table[min(max(ceil(gamma), 0), len(self.table) - 1)]

    def probabilities(self, gammas: ArrayLike) -> Array:
        """p_{ceil(g)} of an array."""
        places = np.clip(np.ceil(np.asarray(gammas, dtype=np.float64)).astype(np.int64), 0, len(self.table) - 1)
        return np.asarray(self.table)[places]


@lru_cache(maxsize=256)
def exact_reply(epsilon: float, delta: float, gamma_plan: int, beta: float = 1e-3) -> ExactReply:
    """The exact law with the largest mu whose table reaches 1 - beta at the integer gamma_plan, rounded to the safe side.

    Raises `PlanError` for a plan that no mu reaches, one beyond 1,000 steps, and parameters out of range.

    >>> law = exact_reply(1.0, 0.01, 50)
    >>> round(1 / law.mu, 3), round(law.table[3], 4), law.table[-1] >= 0.999
    (1.878, 0.0739, True)
    """
    if isinstance(gamma_plan, bool) or not isinstance(gamma_plan, int) or not 1 < gamma_plan <= _LONGEST:
        raise PlanError(
            f"gamma_plan must be a whole number from 2 to {_LONGEST} for an exact law, got {gamma_plan!r}",
            "take the Gaussian law for larger ones, which loses little there",
        )
    if not 0 < beta < 1:
        raise PlanError(f"beta must lie between 0 and 1, got {beta!r}; 0.001 is the default")
    if epsilon > _LARGEST:
        raise PlanError(
            f"an exact law is computed for an epsilon of at most {_LARGEST:g}, got {epsilon!r}", "take the Gaussian law"
        )
    if delta < _SMALLEST:
        raise PlanError(
            f"an exact law is computed for a delta of at least {_SMALLEST:g}, got {delta!r}", "take the Gaussian law"
        )
    most = calibrate_gaussian(ApproxDP(epsilon, delta))

    def reaches(mu: float) -> bool:
        return _table(epsilon, delta, mu, gamma_plan)[-1] >= 1 - beta

    low, high = most * _CLOSE, most
    if not reaches(low):
        raise PlanError(
            f"no test of (epsilon, delta) = ({epsilon:g}, {delta:g}) replies with probability {1 - beta:g} at a safety of {gamma_plan}",
            "plan on a larger safety, or ask for a larger epsilon or delta",
        )
    if reaches(high):
        low = high
    while high > low * (1 + _CLOSE):
        middle = sqrt(low * high)
        low, high = (middle, high) if reaches(middle) else (low, middle)
    return ExactReply(epsilon, delta, low, _table(epsilon, delta, low, gamma_plan))


def _table(epsilon: float, delta: float, mu: float, steps: int) -> tuple[float, ...]:
    """p_0 = 0, p_1, ... up to `steps` entries after the first, fewer when 1 is reached."""
    goal = delta * (1 - _ROOM) - 2 * _DUST
    p = [0.0]
    while len(p) <= steps and p[-1] < 1.0:
        p.append(_next(p[-1], goal, mu, epsilon))
    return tuple(p)


def _next(p: float, goal: float, mu: float, epsilon: float) -> float:
    """The largest r in [p, 1] with H(r, p) <= goal and H(p, r) <= goal: Newton on two convex functions, from the right."""
    grown = exp(epsilon)
    if p <= 0:
        return min(goal, -expm1(-epsilon) + goal / grown)
    # r = e^epsilon p + delta and 1 - r = e^-epsilon (1 - p - delta) bound any (epsilon, delta)-private bit
    most = min(1.0, grown * p + goal)

    def upward(r: float) -> tuple[float, float]:
        low, high = _tails(epsilon + log(p / r), mu)
        return r * low - p * grown * high, low

    def downward(r: float) -> tuple[float, float]:
        t = epsilon + log(r / p)
        low, high = _tails(t, mu)
        silent = (1 - p) - grown * (1 - r)
        return max(silent, 0.0) + p * low - grown * r * high, (grown if silent > 0 else 0.0) - grown * high

    return max(p, min(_root(upward, goal, p, most), _root(downward, goal, p, min(1.0, 1 - (1 - p - goal) / grown))))


def _root(function: Callable[[float], tuple[float, float]], goal: float, least: float, most: float) -> float:
    """The largest x in [least, most] where a convex function with its slope is at most `goal`, or `least`."""
    x = most
    for _ in range(60):
        value, slope = function(x)
        if value <= goal or slope <= 0:
            break
        step = (value - goal) / slope
        x -= step
        if x <= least:
            return least
        if step < 1e-15 * x:
            break
    return x * (1 - 4e-16)


def _tails(t: float, mu: float) -> tuple[float, float]:
    """Phi(mu/2 - t/mu) and Phi(-mu/2 - t/mu): delta_G(t) is the first less e^t times the second."""
    return erfc((t / mu - mu / 2) / _ROOT) / 2, erfc((t / mu + mu / 2) / _ROOT) / 2


_ROOT = sqrt(2.0)
