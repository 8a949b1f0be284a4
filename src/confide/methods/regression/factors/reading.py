"""Least squares on factors from noisy tables: the fit, its noise, its sandwich, and which coefficients the tables can tell.

Notation: H_b (levels, p) as in `sums`; N counts, T counts of pairs of levels, S sums of the response t in half-ranges. A = sum_b H_b'
diag(N_b) H_b + sum_ab (H_a' T_ab H_b + its transpose), b = sum_b H_b' S_b, theta = A^-1 b. The tables' noise, Xi in A and xi in b,
enters as A^-1 (xi - Xi theta), whose covariance is exact: the tables are linear in the noise.

Tables that tell the same total twice (a block's counts and the sums over pairs) are made consistent by weighted least squares. For the
restrictions R x = 0 that the true tables obey, V R'(R V R')^-1 R x is removed from x. The covariance becomes V - V R'(R V R')^-1 R V.
Post-processing, and no interval is longer for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide._arrays import Array
from confide.core import Noisy
from confide.methods.regression.factors.sums import FactorLevels, Fits, LevelRows

#: A coefficient is told where the second-order part of the tables' noise is at most this share of the first (spec of the method, 5).
USABLE = 0.4
#: A level is told of where its noisy count is at least this many sds of its noise.
SEEN = 4.0
# A level whose noisy count is less than this many sds of its noise counts as that many in the normal equations of several factors.
_LEAST_SDS = 2.0
# What a limit may visibly cut from the sum of squared residuals.
_BEARABLE = 0.05


@dataclass(frozen=True, eq=False)
class LevelTables:
    """Consistent noisy tables: counts (cells,) and sums (levels of all blocks,), each with its noise covariance as V - U U'."""

    levels: FactorLevels
    counts: Array
    sums: Array
    count_variance: Array
    sum_variance: Array
    count_loss: Array
    sum_loss: Array

    @classmethod
    def of(cls, levels: FactorLevels, rows: LevelRows, noisy: Noisy) -> LevelTables:
        """From a release of `LevelSums`."""
        units = np.array(rows.units, dtype=np.float64)
        units[levels.cells :] *= 2.0**20
        values, variance = noisy.decode() / units, noisy.variance / units**2
        cells = levels.cells
        counts, count_loss = _consistent(values[:cells], variance[:cells], _count_restrictions(levels))
        sums, sum_loss = _consistent(values[cells:], variance[cells:], _sum_restrictions(levels))
        return cls(levels, counts, sums, variance[:cells], variance[cells:], count_loss, sum_loss)

    @classmethod
    def bare(cls, levels: FactorLevels, sum_variance: Array, count_variance: Array | None = None) -> LevelTables:
        """Tables of no record, for what follows from their noise alone."""
        counts = np.zeros(levels.cells) if count_variance is None else count_variance
        zeros = np.zeros(len(sum_variance))
        _, sum_loss = _consistent(zeros, sum_variance, _sum_restrictions(levels))
        _, count_loss = _consistent(np.zeros(levels.cells), np.maximum(counts, 1e-12), _count_restrictions(levels))
        return cls(levels, np.zeros(levels.cells), zeros, counts, sum_variance, count_loss, sum_loss)

    @cached_property
    def design_rows(self) -> tuple[Array, ...]:
        """H_b of each block."""
        return tuple(self.levels.rows(block) for block in range(len(self.levels.blocks)))

    @cached_property
    def places(self) -> tuple[slice, ...]:
        """Where each block's levels stand in counts and in sums."""
        ends = np.cumsum((0, *self.levels.levels))
        return tuple(slice(int(a), int(b)) for a, b in pairwise(ends))

    @cached_property
    def pair_places(self) -> tuple[slice, ...]:
        sizes = self.levels.levels
        ends = np.cumsum((sum(sizes), *(sizes[a] * sizes[b] for a, b in self.levels.pairs)))
        return tuple(slice(int(a), int(b)) for a, b in pairwise(ends))

    @property
    def count(self) -> float:
        """The noisy number of complete records."""
        return float(self.counts[self.places[0]].sum())

    @property
    def count_sd(self) -> float:
        """The SD of its noise."""
        own = np.zeros(len(self.counts))
        own[self.places[0]] = 1.0
        return sqrt(max(float(self.count_variance @ own**2 - ((own @ self.count_loss) ** 2).sum()), 0.0))

    @cached_property
    def count_sds(self) -> Array:
        """The SD of the noise of each count."""
        return np.asarray(np.sqrt(np.maximum(self.count_variance - (self.count_loss**2).sum(axis=1), 0.0)))

    @cached_property
    def cross(self) -> Array:
        """b (p,)."""
        return np.asarray(sum(h.T @ self.sums[at] for h, at in zip(self.design_rows, self.places, strict=True)))

    @cached_property
    def cross_noise(self) -> Array:
        """The noise covariance of b, shape (p, p)."""
        stack = np.concatenate(self.design_rows)
        lost = stack.T @ self.sum_loss
        return np.asarray((stack.T * self.sum_variance) @ stack - lost @ lost.T)

    def gram(self, least: float) -> Array:
        """A (p, p), where no level counts as fewer than `least` records and, with several blocks, than two SDs of its noise."""
        parts = self.design_rows
        total = np.zeros((self.levels.width,) * 2)
        for h, at in zip(parts, self.places, strict=True):
            floor = least if len(parts) == 1 else np.maximum(least, _LEAST_SDS * self.count_sds[at])
            total += (h.T * np.maximum(self.counts[at], floor)) @ h
        for (a, b), at in zip(self.levels.pairs, self.pair_places, strict=True):
            table = self.counts[at].reshape(len(parts[a]), len(parts[b]))
            cross = parts[a].T @ table @ parts[b]
            total += cross + cross.T
        return total

    def applied(self, w: Array) -> Array:
        """The matrix J (p, cells) with J x = A(x) w for any table x."""
        parts = self.design_rows
        columns = [(h * (h @ w)[:, None]).T for h in parts]
        for a, b in self.levels.pairs:
            left = parts[a][:, None, :] * (parts[b] @ w)[None, :, None]
            right = parts[b][None, :, :] * (parts[a] @ w)[:, None, None]
            columns.append((left + right).reshape(-1, self.levels.width).T)
        return np.concatenate(columns, axis=1)

    def gram_noise(self, w: Array) -> Array:
        """The covariance of Xi w, shape (p, p)."""
        own = self.applied(w)
        lost = own @ self.count_loss
        return np.asarray((own * self.count_variance) @ own.T - lost @ lost.T)


@dataclass(frozen=True, eq=False)
class LevelFit:
    """theta (p,) in half-ranges of the response, A, its inverse, and the covariance G (p, p) of the noise in b - A theta.

    columns: the coefficients of a smaller model; the others are 0, as are their rows and columns of the inverse.
    """

    tables: LevelTables
    columns: NDArray[np.int64]
    theta: Array
    gram: Array
    inverse: Array
    noise: Array

    @classmethod
    def of(cls, tables: LevelTables, columns: NDArray[np.int64] | None = None) -> LevelFit:
        """The least-squares line of the tables. Raises `numpy.linalg.LinAlgError` where A cannot be inverted."""
        p = tables.levels.width
        keep = np.arange(p) if columns is None else columns
        gram, inverse = tables.gram(1.0), np.zeros((p, p))
        inverse[np.ix_(keep, keep)] = np.linalg.inv(gram[np.ix_(keep, keep)])
        theta = inverse @ tables.cross
        weights: Array = theta
        if tables.levels.saturated and len(keep) == p:
            # no mean of a bounded response is beyond its bounds, and its noise no larger than there
            h = tables.design_rows[0]
            weights = np.asarray(np.linalg.solve(h, np.clip(h @ theta, -1.0, 1.0)))
        return cls(tables, keep, theta, gram, inverse, tables.cross_noise + tables.gram_noise(weights))

    @property
    def whole(self) -> bool:
        """Whether no coefficient was left out."""
        return len(self.columns) == self.tables.levels.width

    @property
    def positive(self) -> bool:
        """Whether A is positive definite."""
        own = self.gram[np.ix_(self.columns, self.columns)]
        return bool(np.linalg.eigvalsh((own + own.T) / 2)[0] > 0)

    @property
    def fits(self) -> Fits:
        """What each level of each block adds to the line; 0 where noise left no number."""
        theta = self.theta if np.isfinite(self.theta).all() and np.abs(self.theta).max() < 1e6 else 0 * self.theta
        return tuple(tuple(map(float, h @ np.nan_to_num(theta))) for h in self.tables.design_rows)

    @property
    def squares(self) -> tuple[Array, Array]:
        """One block and a response that is -1 or 1: the sum of r^2 in each level, and the SD of its noise.

        It is N (1 + f^2) - 2 f S for the level's fit f.
        """
        tables = self.tables
        fit = np.clip(tables.design_rows[0] @ self.theta, -1.0, 1.0)
        total = tables.counts * (1 + fit**2) - 2 * fit * tables.sums
        return total, np.sqrt((1 + fit**2) ** 2 * tables.count_variance + 4 * fit**2 * tables.sum_variance)

    @cached_property
    def uncertain(self) -> Array:
        """eta (p,): a coefficient is told where it is at most `USABLE`; infinite where A fails. The larger of two numbers.

        Levels: `USABLE` times `SEEN` SDs of the noise over the least count of the levels that a coefficient compares, so that one
        without records passes with probability 3e-5.

        Second order, with k = A^-1 c_j and Xi the noise of A: the root of E (k'Xi A^-1 Xi k)/(k'A k) = tr(A^-1 Cov(Xi k))/(k'A k). This
        is the remainder of the first order against the fit's own scale.
        """
        tables = self.tables
        found = self._by_level
        if tables.levels.saturated and self.whole:
            return found
        if not self.positive:
            return np.full(len(self.theta), np.inf)
        found = found.copy()
        for j in self.columns:
            k = self.inverse[j]
            second = float(np.trace(self.inverse @ tables.gram_noise(k)))
            found[j] = max(found[j], sqrt(max(second, 0.0) / float(k @ self.gram @ k)))
        return found

    @property
    def _by_level(self) -> Array:
        """USABLE SEEN `sd`/N for the least told level that each coefficient compares."""
        tables, found = self.tables, np.zeros(len(self.theta))
        for block, at in enumerate(tables.places):
            relative = tables.count_sds[at] / np.maximum(tables.counts[at], 1e-3 * tables.count_sds[at])
            used = tables.levels.compared(block)
            found = np.maximum(found, np.where(used, USABLE * SEEN * relative, 0.0).max(axis=1))
        return found


def largest_fit(fits: Fits) -> float:
    """No fitted value that counts (cut at the bounds of the response) is larger in size."""
    low, high = sum(min(own) for own in fits), sum(max(own) for own in fits)
    return float(min(max(abs(low), abs(high)), 1.0))


@dataclass(frozen=True, eq=False)
class ScoreNoise:
    """All that the errors of the estimates, units (s + g), are known to be made of; enough to simulate estimates and their covariance.

    units : array
        (p, k): the estimates' errors for those of k scores.
    noise : array
        (k, k): the covariance of g, privacy noise.
    meat : array
        (k, k): that of s, the sampling of records, as released.
    meat_sd : array
        (k, k): SD of its noise on the diagonal, and sqrt(2) times it off the diagonal, 0 where nothing was drawn.
    shape : array
        (k, k): the meat of equal residual variances, its size known up to a relative SD of `shape_sd`.
    records : array
        (p,): how many records each estimate rests on.
    """

    units: Array
    noise: Array
    meat: Array
    meat_sd: Array
    shape: Array
    shape_sd: float
    records: Array


@dataclass(frozen=True, eq=False)
class TailCounts:
    """Noisy counts of |r| in nine cells between 0, eight edges and the largest |r|; `sd`: of the noise of each."""

    edges: Array
    largest: float
    counts: Array
    sd: float

    @staticmethod
    def edges_for(largest: float) -> Array:
        """The eight edges, closer to each other at extreme values, where a limit must be found."""
        return largest * 2.0 ** np.array([-7.0, -5.0, -4.0, -3.0, -2.0, -1.5, -1.0, -0.5])

    def mean_square(self, records: float) -> float:
        """About the mean of r^2: cells that exceed their noise at the middle of each."""
        middles = np.concatenate(
            [[0.6 * self.edges[0]], np.sqrt(self.edges[:-1] * self.edges[1:]), [0.85 * self.largest]]
        )
        seen = np.where(self.counts > 2 * self.sd, self.counts, 0.0)
        return float(max((seen * middles**2).sum() / max(records, 1.0), (0.6 * self.edges[0]) ** 2))

    def cut(self, reach: float) -> float:
        """What limiting |r| at `reach` may take from sum r^2, from the cells beyond it that exceed their noise: all at the upper end."""
        far = np.concatenate([self.edges, [self.largest]])
        return float((np.where(self.counts > 2 * self.sd, self.counts, 0.0) * np.maximum(far**2 - reach**2, 0.0)).sum())

    def beyond(self, reach: float) -> tuple[float, float]:
        """What limiting |r| at `reach` takes from sum r^2, without a threshold, and the SD of its noise.

        A tail of a few records, of which no cell can tell, is in it on average. Each cell counts at its upper end, so that it is not
        too small.
        """
        far = np.maximum(np.concatenate([self.edges, [self.largest]]) ** 2 - reach**2, 0.0)
        return max(float(self.counts @ far), 0.0), self.sd * sqrt(float(far @ far))

    def fourth(self, reach: float) -> float:
        """sum min(|r|, reach)^4 at most, each cell at its upper end, with half an SD of the noise more."""
        far = np.minimum(np.concatenate([self.edges, [self.largest]]), reach) ** 4
        return max(float(self.counts @ far), 0.0) + self.sd * sqrt(float(far @ far)) / 2

    def widened(self, reach: float, records: float) -> float:
        """The smallest limit from `reach` on that visibly cuts at most a twentieth of sum r^2, and the largest |r| at most."""
        bearable = _BEARABLE * records * self.mean_square(records)
        while reach < self.largest and self.cut(reach) > bearable:
            reach *= 2**0.25
        return min(reach, self.largest)


def _consistent(values: Array, variance: Array, restrictions: Array) -> tuple[Array, Array]:
    """Tables that obey R x = 0, and U with covariance V - U U'; R may have rows that follow from others."""
    if not len(restrictions):
        return values, np.zeros((len(values), 0))
    scaled = variance[:, None] * restrictions.T
    inner = restrictions @ scaled
    sizes, axes = np.linalg.eigh(inner)
    kept = sizes > 1e-9 * sizes[-1]
    loss = scaled @ (axes[:, kept] / np.sqrt(sizes[kept]))
    free = (axes[:, kept] / np.sqrt(sizes[kept])).T @ (restrictions @ values)
    return values - loss @ free, loss


def _count_restrictions(levels: FactorLevels) -> Array:
    """Each pair's table adds up to both blocks' counts."""
    sizes = levels.levels
    starts = np.cumsum((0, *sizes))
    rows: list[Any] = []
    at = sum(sizes)
    for a, b in levels.pairs:
        cells = np.arange(at, at + sizes[a] * sizes[b]).reshape(sizes[a], sizes[b])
        at += cells.size
        for block, table in ((a, cells), (b, cells.T)):
            for k, own in enumerate(table):
                row = np.zeros(levels.cells)
                row[own] = 1.0
                row[starts[block] + k] = -1.0
                rows.append(row)
    return np.array(rows).reshape(len(rows), levels.cells)


def _sum_restrictions(levels: FactorLevels) -> Array:
    """The sums of each block add up to the same total."""
    sizes = levels.levels
    starts = np.cumsum((0, *sizes))
    rows = np.zeros((len(sizes) - 1, sum(sizes)))
    for block in range(1, len(sizes)):
        rows[block - 1, : sizes[0]] = -1.0
        rows[block - 1, starts[block] : starts[block + 1]] = 1.0
    return rows
