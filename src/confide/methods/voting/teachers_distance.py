"""How many ballots must change before the labels of noisy votes cost more than proposed: an integer that one ballot moves by at most 1.

Votes are integers (queries, options), every row adds up to K; winners are y_i = argmax_j (n_ij + sigma N_ij). The options are the classes
and "failed", for a teacher that gives no class, so that every teacher has one ballot on each query whatever becomes of it. One record
changes one teacher, and so one ballot of each query, from any option to any other. Below all options are alike: a query that "failed" leads
by far is certified to be won by "failed", and who reads the winners gives it no label.

D is the least number d of ballots whose change may bring the loss of all winners together above the proposed (epsilon, delta). It moves by
at most 1 because its every step is exact and monotone:

    tails   P(g), integers in units of 2^-b: at least Phibar((g - h)/(sqrt(2) sigma)), h the grid of the noise, rounded up and then raised
            until they are convex in the gap g. q_i(d): the most that sum_j P(n_1 - n_j) can be within d changes, at least 1/2 from a tie
            on. All d go from the top to the runner-up: moves between others leave all gaps larger, and a sum of convex functions is
            largest at an extreme point, of which the smallest gap gains most. So the ball is searched exactly: q_i(d; X) <=
            q_i(d + 1; X').
    levels  the quantile of q_i is taken down to a public grid, by comparing integers; from q = 1/2 on the level is 0.
    costs   the collapsed-Gaussian Renyi bound (`confide.guarantees.mechanisms.gnmax`) of each level and order, in units of 2^-32, rounded
    up and made
            to rise with q; added up over queries as integers. Enough: at one of the public orders at least the sum is within what
            converts to the proposed epsilon at delta (Canonne, Kamath, Steinke 2020).

The proof holds for any number of options, which enters by the sum over j alone. The grid, the orders and all tables depend on K, sigma,
epsilon and delta alone. A composition on a grid of privacy losses would be tighter; its transforms and windows round in ways that depend
on the votes, and no sensitivity of 1 would be proved of it.
Source: derived in confide; the test is that of Redberg, Zhu, Wang 2023 (Theorem 4.3).
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import ceil, floor, log, log1p, sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide import _special as special
from confide._arrays import Whole
from confide.errors import PlanError
from confide.guarantees.mechanisms.gnmax import GNMAX_ORDERS, collapsed_rdp
from confide.guarantees.validation import is_finite, is_whole

__all__ = ["NOISE_GRID", "BallotDistance", "checked_votes"]


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
