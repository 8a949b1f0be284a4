"""The integer strategy K of cumulative counts, and what least squares makes of it (`cumulative` says what it is and proves it)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import comb, isqrt

import numpy as np

from confide._arrays import Array, Whole
from confide.aggregates.lines.rows import BITS

__all__ = ["Strategy", "strategy"]


@dataclass(frozen=True, eq=False)
class Strategy:
    """K for m bins, and what least squares makes of it. table (3 m, m): K; longest: q_max; both exact.

    In units where the released numbers have noise variance 1 and K is K / 2^20: covariance (m, m) of the counts, `root` a square root of
    it, and for sums up to each edge, (m + 1,), `upto` their variances and `with_all` their covariances with the total.

    >>> own = strategy(64)
    >>> variances = own.centred(np.arange(1, 65) / 64) * own.longest / 4.0**20
    >>> [round(float(v), 2) for v in (variances[:-1].mean(), variances.max())]
    [3.85, 4.38]
    """

    table: Whole
    longest: int

    @cached_property
    def covariance(self) -> Array:
        unit = self.table / 2.0**BITS
        return np.asarray(np.linalg.inv(unit.T @ unit))

    @cached_property
    def root(self) -> Array:
        return np.asarray(np.linalg.cholesky(self.covariance))

    @cached_property
    def upto(self) -> Array:
        rows = np.cumsum(self.covariance, axis=0)
        return np.concatenate([[0.0], np.diag(np.cumsum(rows, axis=1))])

    @cached_property
    def with_all(self) -> Array:
        return np.concatenate([[0.0], np.cumsum(self.covariance.sum(axis=1))])

    @property
    def total(self) -> float:
        """The variance of the number of all records."""
        return float(self.upto[-1])

    def counts(self, values: Array) -> Array:
        """Least squares: counts (..., m) from released numbers (..., 3 m), in the integers that they are released in."""
        return np.asarray((values / 4.0**BITS) @ self.table @ self.covariance)

    def centred(self, q: float | Array) -> Array:
        """Variances of "up to each edge" less q times all, (m + 1,), or (m,) for one q for each upper edge."""
        upto, both = (self.upto, self.with_all) if np.ndim(q) == 0 else (self.upto[1:], self.with_all[1:])
        return np.asarray(upto - 2 * q * both + np.square(q) * self.total)


@lru_cache(maxsize=8)
def strategy(bins: int) -> Strategy:
    """The strategy of so many bins."""
    f = np.array([(comb(2 * k, k) << BITS) >> (2 * k) for k in range(bins)], dtype=np.int64)
    apart = np.subtract.outer(np.arange(bins), np.arange(bins))
    left = np.where(apart >= 0, f[np.abs(apart)], 0)
    right = left[::-1, ::-1]
    # f^2 below 2^40, at most 2^11 of them: no sum reaches 2^63
    squares = (left * left).sum(axis=0) + (right * right).sum(axis=0)
    longest = int(squares.max())
    slack = np.diag([isqrt(longest - int(square)) for square in squares])
    table = np.concatenate([left, right, slack])
    table.setflags(write=False)
    return Strategy(table, longest)
