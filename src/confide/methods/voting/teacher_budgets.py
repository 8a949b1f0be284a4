"""Noise and test of teachers' votes, chosen from public facts alone: the budget, the sizes, and how much teachers are expected to agree.

Votes are simulated under that expectation, by teachers none of which fails; no private vote is looked at. Less noise with a certificate
is taken where it gets more labels right than the plain Gaussian mechanism of the same (epsilon, delta), and its test would pass.

How many ballots must change before the labels of noisy votes cost more than proposed: an integer that one ballot moves by at most 1.

Votes are integers (queries, options), every row adds up to K; winners are y_i = argmax_j (n_ij + sigma N_ij). The options are the
classes and "failed", for a teacher that gives no class, so that every teacher has one ballot on each query whatever becomes of it. One
record changes one teacher, and so one ballot of each query, from any option to any other. Below all options are alike: a query that
"failed" leads by far is certified to be won by "failed", and a reader of the winners gives it no label.

D is the least number d of ballots whose change may bring the loss of all winners together above the proposed (epsilon, delta). It moves
by at most 1 because its every step is exact and monotone:

- tails: P(g), integers in units of 2^-b, is at least Phibar((g - h)/(sqrt(2) sigma)), h the grid of the noise. It is rounded up and
  then raised until it is convex in the gap g. q_i(d) is the most that sum_j P(n_1 - n_j) can be within d changes, at least 1/2 from a
  tie on. All d go from the top to the runner-up. Moves between others leave all gaps larger, and a sum of convex functions is largest
  at an extreme point, of which the smallest gap gains most. So the ball is searched exactly: q_i(d; X) <= q_i(d + 1; X').
- levels: the quantile of q_i is taken down to a public grid, by comparing integers. From q = 1/2 on the level is 0.
- costs: the collapsed-Gaussian Renyi bound (`confide.guarantees.mechanisms.noisy_max`) of each level and order, in units of 2^-32. It
  is rounded up, made to rise with q, and added up over queries as integers. The loss is within the proposal if at one of the public
  orders at least the sum is within what converts to the proposed epsilon at delta (Canonne, Kamath, Steinke 2020).

The proof holds for any number of options, which enters by the sum over j alone. The grid, the orders and all tables depend on K, sigma,
epsilon and delta alone. A composition on a grid of privacy losses would be tighter. But its transforms and windows round in ways that
depend on the votes, and no sensitivity of 1 would be proved of it. Source: derived in confide; the test is that of Redberg, Zhu, Wang
2023 (Theorem 4.3).
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import ceil, floor, log, log1p, nextafter, sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide import _special as special
from confide._arrays import Whole
from confide.errors import PlanError
from confide.guarantees import gaussian_mu
from confide.guarantees.mechanisms.noisy_max import GNMAX_ORDERS, collapsed_rdp
from confide.guarantees.validation import is_finite, is_whole
from confide.methods.ptr.classic import StableRelease

#: Steps of one ballot on which noise is drawn.
NOISE_GRID = 1 << 10
# Levels of the quantile of q, and units of a cost.
_LEVELS = 0.01
_UNIT = 1 << 32
_ROOM = 1e-10


def checked_votes(votes: ArrayLike, teachers: int) -> Whole:
    """Votes as integers (queries, options); `PlanError` where rows do not add up to the number of teachers.

    >>> checked_votes([[3, 1], [0, 4]], 4).tolist()
    [[3, 1], [0, 4]]
    """
    found = np.asarray(votes)
    if found.ndim != 2 or found.shape[1] < 2 or found.dtype.kind not in "iu" or found.min(initial=0) < 0:
        raise PlanError(
            "votes must be integers of at least 0 of the shape (queries, classes), with at least two classes"
        )
    if (found.sum(axis=1) != teachers).any():
        raise PlanError("row sums differ from the number of teachers; every teacher has one vote for each query")
    return found.astype(np.int64)


@dataclass(frozen=True)
class BallotDistance:
    """D of votes, for a proposed loss of the labels.

    teachers: K; sigma: standard deviation of the noise on each count; epsilon, delta: proposed for all labels together; most: D is cut
    there.

    >>> far = BallotDistance(400, 40.0, 1.0, 1e-5, 100)
    >>> far(np.tile([390, 10], (50, 1))), far(np.tile([210, 190], (1000, 1)))
    (100, 0)
    """

    teachers: int
    sigma: float
    epsilon: float
    delta: float
    most: int

    def __post_init__(self) -> None:
        if not is_whole(self.teachers, 2) or not is_whole(self.most, 1):
            raise PlanError(
                f"teachers must be a whole number of at least 2, and most of at least 1, got {self.teachers!r}, {self.most!r}"
            )
        if not (
            is_finite(self.sigma)
            and self.sigma > 0
            and is_finite(self.epsilon)
            and self.epsilon > 0
            and 0 < self.delta < 1
        ):
            raise PlanError(
                f"sigma and epsilon must be above 0 and delta in (0, 1), got {self.sigma!r}, {self.epsilon!r}, {self.delta!r}"
            )

    def __call__(self, votes: ArrayLike) -> int:
        """D, by a fixed number of looks whatever the votes are."""
        counts = np.sort(checked_votes(votes, self.teachers), axis=1)[:, ::-1]
        gaps = counts[:, :1] - counts[:, 1:]
        low, high = 0, self.most + 1  # D lies in low..high - 1
        for _ in range((self.most + 1).bit_length()):
            middle = min((low + high) // 2, self.most)
            # d = middle - 1 changes are within the proposal: D is at least middle
            if self.within(gaps, middle - 1):
                low = max(low, middle)
            else:
                high = min(high, middle)
        return low

    def within(self, gaps: Whole, changes: int) -> bool:
        """Whether the loss is within the proposal at all votes that so many changes reach; gaps: (queries, options - 1), sorted."""
        sums = self.costs[self.levels(gaps, max(changes, 0))].sum(axis=0)
        return changes < 0 or bool((sums <= self.limits).any())

    def levels(self, gaps: Whole, changes: int) -> Whole:
        """The level of the largest q_i within the ball, by query; 0 is the plain Gaussian."""
        first = gaps[:, 0]
        moved = np.maximum(gaps - changes, 0)
        moved[:, 0] = np.maximum(first - 2 * changes, 0)
        sums = self.tails[moved].sum(axis=1)
        return np.array([self._level(int(q)) for q in sums], dtype=np.int64)

    def _level(self, q: int) -> int:
        """The highest level whose q is at least this one."""
        # falling thresholds, searched as rising negatives
        return max(bisect_right(self._negated, -q) - 1, 0)

    @property
    def tails(self) -> NDArray[Any]:
        """P(g) for g = 0..K, Python integers."""
        return _Tables.of(self.teachers, self.sigma).tails

    @property
    def costs(self) -> Whole:
        """(levels, orders): the Renyi bound of one query, in 2^-32, falling with the level."""
        return _Tables.of(self.teachers, self.sigma).costs

    @property
    def _negated(self) -> list[int]:
        return _Tables.of(self.teachers, self.sigma).negated

    @cached_property
    def limits(self) -> Whole:
        """By order: the largest sum that converts to the proposal."""
        found = []
        for a in GNMAX_ORDERS:
            most = self.epsilon - log1p(-1 / a) + (log(self.delta) + log(a)) / (a - 1)
            found.append(floor(most * (1 - _ROOM) * _UNIT) - 1 if most > 0 else -1)
        return np.array(found, dtype=np.int64)


@dataclass(frozen=True)
class _Tables:
    """What depends on the number of teachers and the noise alone."""

    teachers: int
    sigma: float

    @staticmethod
    @lru_cache(maxsize=32)
    def of(teachers: int, sigma: float) -> _Tables:
        return _Tables(teachers, sigma)

    @cached_property
    def tails(self) -> NDArray[Any]:
        """P(g) for g = 0..K, Python integers."""
        g = np.arange(self.teachers + 1)
        logs = special.log_ndtr(-(g - 1 / NOISE_GRID) / (sqrt(2) * self.sigma))
        whole = [_up(float(one), self._bits) for one in logs]
        slope = 0
        for k in range(self.teachers - 1, -1, -1):
            slope = max(slope, whole[k] - whole[k + 1])
            whole[k] = whole[k + 1] + slope
        return np.array(whole, dtype=object)

    @cached_property
    def _bits(self) -> int:
        far = float(special.log_ndtr(-(self.teachers + 1) / (sqrt(2) * self.sigma)))
        return ceil(-far / log(2)) + 64

    @cached_property
    def negated(self) -> list[int]:
        """-Phi(-z) at the levels z, in units of the tails, rounded so that no level is reached too early."""
        count = floor((self.teachers + 1) / (sqrt(2) * self.sigma) / _LEVELS) + 2
        logs = special.log_ndtr(-_LEVELS * np.arange(count))
        return [-_down(float(one), self._bits) for one in logs]

    @cached_property
    def costs(self) -> Whole:
        """(levels, orders): the Renyi bound of one query, in 2^-32, falling with the level."""
        z = _LEVELS * np.arange(len(self.negated))
        own = collapsed_rdp(special.log_ndtr(-z)[:, None], np.array(GNMAX_ORDERS)[None, :], self.sigma)
        whole = np.ceil(own * (1 + _ROOM) * _UNIT + 1)
        return np.asarray(np.maximum.accumulate(whole[::-1], axis=0)[::-1], dtype=np.int64)


def _up(logarithm: float, bits: int) -> int:
    """exp(logarithm) 2^bits, rounded up."""
    whole, rest = divmod(logarithm / log(2) + bits, 1.0)
    mantissa: int = ceil(2.0**rest * (1 + _ROOM) * (1 << 40)) + 1
    shift = int(whole) - 40
    return mantissa << shift if shift >= 0 else -(-mantissa >> -shift)


def _down(logarithm: float, bits: int) -> int:
    """exp(logarithm) 2^bits, rounded down."""
    whole, rest = divmod(logarithm / log(2) + bits, 1.0)
    mantissa: int = floor(2.0**rest * (1 - _ROOM) * (1 << 40)) - 1
    shift = int(whole) - 40
    return mantissa << shift if shift >= 0 else mantissa >> -shift


Agreement = str | tuple[float, float]

#: Chance of passing that is planned for, in all simulations.
_PASS = 0.99
_SEEDS = 3
_SIGMAS = (3.0, 5.0, 8.0, 12.0, 16.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0, 80.0, 100.0, 150.0, 200.0, 300.0)
# Of the test, the usual ones first.
_SHARES = (0.3, 0.25, 0.4, 0.2, 0.5, 0.15, 0.6, 0.1)


@dataclass(frozen=True)
class VoteBudget:
    """sigma: of the noise on counts; test: epsilon of the certificate, 0 for the plain Gaussian mechanism; right: of labels, in
    simulations."""

    sigma: float
    test: float
    right: float

    def distance(self, epsilon: float, delta: float, teachers: int) -> BallotDistance:
        """The distance behind the test, cut where it passes all but surely."""
        most = StableRelease(self.test, delta).threshold + ceil(log(1e12) / self.test) + 1
        return BallotDistance(teachers, self.sigma, left(epsilon, self.test), delta, most)


def left(epsilon: float, test: float) -> float:
    """epsilon - test, rounded down."""
    return nextafter(epsilon - test, 0.0)


def checked_agreement(agreement: object) -> Agreement:
    """ "even", or the two numbers of a Beta law; `PlanError` otherwise."""
    if agreement == "even":
        return "even"
    if isinstance(agreement, tuple | list) and len(agreement) == 2 and all(is_finite(v) and v > 0 for v in agreement):
        return float(agreement[0]), float(agreement[1])
    raise PlanError(
        "agreement must be 'even' or two numbers above 0 of a Beta law of the most frequent label's share, "
        f"got {agreement!r}",
        "write (12, 1.5)",
    )


@lru_cache(maxsize=16)
def simulated_votes(agreement: Agreement, teachers: int, classes: int, queries: int, seed: int) -> NDArray[np.int64]:
    """Votes (queries, classes) under an expectation: the most frequent label has a share of the teachers, the others split the rest.

    "even": a share evenly distributed from 38% to 100%. (a, b): Beta(a, b), of what lies above 38%. The rest is multinomial with
    shares of a Dirichlet law of parameter 1/2; draws in which another label leads are drawn again.

    >>> simulated_votes("even", 400, 10, 3, 0).sum(axis=1).tolist()
    [400, 400, 400]
    """
    generator = np.random.default_rng([seed, teachers, classes])
    rows: list[list[int]] = []
    while len(rows) < queries:
        if agreement == "even":
            top = int(generator.integers(ceil(0.3775 * teachers), teachers + 1))
        else:
            top = int(generator.binomial(teachers, generator.beta(*agreement)))
        rest = generator.multinomial(teachers - top, generator.dirichlet(np.full(classes - 1, 0.5)))
        if rest.max(initial=0) < top and top > 0.375 * teachers:
            rows.append([top, *rest])
    found = np.array(rows)
    found.flags.writeable = False
    return found


def _right(votes: NDArray[np.int64], sigma: float) -> float:
    """The share of labels that noise leaves as they are."""
    generator = np.random.default_rng(1)
    noisy = votes[None] + sigma * generator.standard_normal((10, *votes.shape))
    return float((noisy.argmax(axis=2) == 0).mean())


@lru_cache(maxsize=32)
def budget_of(
    epsilon: float,
    delta: float,
    teachers: int,
    classes: int,
    queries: int,
    agreement: Agreement = "even",
    sigma: float | None = None,
    certificate: str = "auto",
) -> VoteBudget:
    """The budget for (epsilon, delta). sigma: given, or chosen; certificate: "auto", "distance" or "gaussian".

    Raises `PlanError` where a certificate is asked for and would not pass under the expectation.

    >>> budget_of(1.7, 1e-5, 400, 10, 200).test > 0, budget_of(1.0, 1e-5, 10, 10, 200).test
    (True, 0.0)
    """
    plain = sqrt(2 * queries) / gaussian_mu(epsilon, delta)
    if sigma is not None and sigma < plain and certificate == "gaussian":
        raise PlanError(
            f"the plain Gaussian mechanism needs sigma of at least {plain:.4g} for {queries} queries at ({epsilon:g}, {delta:g}), "
            f"got {sigma:g}",
            "leave sigma out, or take certificate='distance'",
        )
    # nobody votes "failed", which noise can make the winner all the same
    simulated = [
        np.pad(simulated_votes(agreement, teachers, classes, queries, seed), ((0, 0), (0, 1))) for seed in range(_SEEDS)
    ]
    gaussian = VoteBudget(
        max(plain, sigma or 0.0), 0.0, float(np.mean([_right(one, max(plain, sigma or 0.0)) for one in simulated]))
    )
    if certificate == "gaussian" or (certificate == "auto" and sigma is not None and sigma >= plain):
        return gaussian
    best = None
    for one in (sigma,) if sigma is not None else tuple(s for s in _SIGMAS if s < plain):
        found = _shared(epsilon, delta, teachers, one, simulated)
        if found is not None and (best is None or found.right > best.right + 1e-3):
            best = found
    if best is not None and (certificate == "distance" or sigma is not None or best.right > gaussian.right + 1e-3):
        return best
    if certificate == "distance" or sigma is not None:
        raise PlanError(
            f"no test passes with probability {_PASS} at ({epsilon:g}, {delta:g}) with {teachers} teachers, {queries} queries and the "
            "expected agreement",
            "take more teachers, fewer queries, a larger budget, another sigma or certificate='gaussian'",
        )
    return gaussian


def _shared(
    epsilon: float, delta: float, teachers: int, sigma: float, simulated: list[NDArray[np.int64]]
) -> VoteBudget | None:
    """A share of the test with which it passes in all simulations, with a quarter to spare where one has it; None where none passes."""
    gaps = [np.sort(votes, axis=1)[:, ::-1] for votes in simulated]
    gaps = [one[:, :1] - one[:, 1:] for one in gaps]
    for spare in (1.25, 1.0):
        for share in _SHARES:
            own = VoteBudget(sigma, share * epsilon, 0.0)
            need = StableRelease(own.test, delta).threshold + ceil(log(1 / (1 - _PASS)) / own.test)
            far = own.distance(epsilon, delta, teachers)
            if all(far.within(one, ceil(spare * need) - 1) for one in gaps):
                return VoteBudget(sigma, own.test, float(np.mean([_right(one, sigma) for one in simulated])))
    return None
