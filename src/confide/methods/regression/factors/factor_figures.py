"""The figures of a release of level sums: residual squares, sampling and noise variances of the coefficients, and their joint law."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from confide._arrays import Array
from confide._lazy import later
from confide.aggregates.cells.factor_levels import FactorLevels
from confide.aggregates.cells.level_sums import LevelScores, SquaredRows
from confide.methods.regression.factors.factor_means_reading import LevelFit, LevelTables, ScoreNoise, TailCounts
from confide.protocol import Release
from confide.results.inference.joint_law import JointLaw, NoisyMeat
from confide.results.noise_share import sampling_alone
from confide.schema import Design

__all__ = ["LevelFigures"]

linalg = later("scipy.linalg")

# No coefficient's sampling variance is below this share of that of equal variances: noise may leave almost nothing of a meat.
_LEAST = 0.7


@dataclass(frozen=True, eq=False)
class LevelFigures:
    """One release, read for some of the coefficients. All in half-ranges of the response."""

    release: Release
    design: Design
    levels: FactorLevels
    tables: LevelTables
    columns: NDArray[np.int64]

    @cached_property
    def fitted(self) -> LevelFit:
        return LevelFit.of(self.tables, self.columns)

    @property
    def subset(self) -> bool:
        return len(self.columns) < self.levels.width

    @property
    def records(self) -> float:
        return max(self.tables.count, 1.0)

    # variances ------------------------------------------------------------------------------------------------------

    @property
    def reach(self) -> tuple[float, float, float]:
        """Where |r| was limited in the square and in the meat, and the largest |r| of all."""
        if self.levels.told_by_sums:
            return 2.0, 2.0, 2.0
        square, meat = np.asarray(self.release.public["reach"], dtype=np.float64)
        fits = np.asarray(self.release.public["fits"], dtype=np.float64)
        return float(square), float(meat), 1.0 + float(self._largest(fits))

    def _largest(self, fits: Array) -> float:
        own = [fits[at] for at in self.tables.places]
        low, high = sum(float(part.min()) for part in own), sum(float(part.max()) for part in own)
        return min(max(abs(low), abs(high)), 1.0)

    @cached_property
    def tail(self) -> TailCounts | None:
        """The histogram of |r|; None where sums tell the squares."""
        if self.levels.told_by_sums:
            return None
        noisy, largest = self.release["tail"], self.reach[2]
        return TailCounts(TailCounts.edges_for(largest), largest, noisy.decode(), sqrt(noisy.variance))

    def _beyond(self, reach: float) -> tuple[float, float]:
        """What the limit took from sum r^2 for each record, and the sd of its noise: where it is cut at 0 it is only too large."""
        if self.tail is None:
            return 0.0, 0.0
        total, sd = self.tail.beyond(reach)
        return total / self.records, min(sd, total) / self.records

    @cached_property
    def square(self) -> tuple[float, float]:
        """sum min(r^2, reach^2) at the line that was released, and the sd of its noise."""
        if self.levels.told_by_sums:
            own, sds = LevelFit.of(self.tables).squares
            return float(own.sum()), sqrt(float(sds @ sds))
        noisy, unit = self.release["square"], self.reach[0] ** 2 / SquaredRows.unit
        return float(noisy.decode()[0]) * unit, sqrt(noisy.variance) * unit

    @cached_property
    def variance(self) -> float:
        """The residual variance: no less than the noise of its sum can tell."""
        total, noise = self.square
        own = max(total, noise) + self._beyond(self.reach[0])[0] * self.records
        if self.subset:
            whole = LevelFit.of(self.tables)
            own += max(float(self.tables.cross @ (whole.theta - self.fitted.theta)), 0.0)
        return own / max(self.records - len(self.columns), 1.0)

    @cached_property
    def by_level(self) -> tuple[Array, Array] | None:
        """One block: the sum of r^2 in each level, with the usual factor for its mean and the least share; and the noise sd."""
        if len(self.levels.blocks) > 1 or self.subset:
            return None
        if self.levels.told_by_sums:
            total, sds = self.fitted.squares
        else:
            noisy, unit = self.release["meat"], self.reach[1] ** 2 / (1 << 30)
            total, sds = noisy.decode() * unit, np.full(self.levels.levels[0], sqrt(noisy.variance) * unit)
        counts = np.maximum(self.tables.counts, 1.0)
        means = self.levels.width / self.levels.levels[0]  # coefficients for each level
        lost, noise = self._beyond(self.reach[1])
        scaled = total * counts / np.maximum(counts - means, 0.5 * counts) + lost * counts
        return np.maximum(scaled, _LEAST * self.variance * counts), np.hypot(sds, noise * counts)

    @cached_property
    def scores(self) -> tuple[Array, float, Array]:
        """Several blocks: the meat in the coordinates v = root d in which it was drawn, its noise sd, and K = A^-1 root^-1."""
        noisy = self.release["meat"]
        unit = self.reach[1] ** 2 / float(LevelScores(self.levels).steps) ** 2
        unit *= self.records / max(self.records - len(self.columns), 1.0)
        weights = np.array(self.tables.sum_variance) * self._unit_noise
        bare = LevelTables.bare(self.levels, weights)
        sizes, axes = np.linalg.eigh(bare.cross_noise)
        back = (axes * np.sqrt(sizes)) @ axes.T
        return noisy.decode() * unit, sqrt(noisy.variance) * unit, self.fitted.inverse @ back

    @property
    def _unit_noise(self) -> float:
        """What makes the noise of the sums that of weights w with sum w^2 = 1."""
        return float(sum(1 / self.tables.sum_variance[at.start] for at in self.tables.places))

    @cached_property
    def sampling(self) -> Array:
        """The sampling part of the covariance of theta, shape (p, p)."""
        fitted, inverse = self.fitted, self.fitted.inverse
        classical = inverse @ fitted.gram @ inverse * self.variance
        if self.subset:
            return np.asarray(classical)
        if self.by_level is not None:
            h = self.tables.design_rows[0]
            return np.asarray(inverse @ (h.T * self.by_level[0]) @ h @ inverse)
        meat, _, bread = self.scores
        lost = self._beyond(self.reach[1])[0] * inverse @ fitted.gram @ inverse
        return _lifted(bread @ meat @ bread.T + lost, _LEAST * classical)

    @cached_property
    def alone(self) -> Array:
        """The variances of theta by sampling alone, without anything that is allowed for because of noise, (p,)."""
        fitted, inverse = self.fitted, self.fitted.inverse
        if self.subset:
            return np.diag(self.sampling)
        if self.by_level is not None:
            own, sds = self.by_level
            squares = np.minimum(sampling_alone(own, sds, self.variance * np.maximum(self.tables.counts, 1.0)), own)
            return np.asarray((inverse @ self.tables.design_rows[0].T) ** 2 @ squares)
        meat, sd, bread = self.scores
        classical = np.diag(inverse @ fitted.gram @ inverse) * self.variance
        robust = np.einsum("ij,jk,ik->i", bread, meat, bread)
        alone = sampling_alone(robust, sd * (bread**2).sum(axis=1), classical)
        return np.minimum(alone, np.diag(self.sampling))

    @cached_property
    def noise(self) -> Array:
        """The privacy part of the covariance of theta."""
        return np.asarray(self.fitted.inverse @ self.fitted.noise @ self.fitted.inverse)

    @property
    def sampling_df(self) -> Array:
        """Degrees of freedom that sampling alone would leave: those of the records behind each coefficient."""
        if self.by_level is None:
            return np.maximum(1 / np.maximum(np.diag(self.fitted.inverse), 1e-300), 3.0)
        own, counts = self.by_level[0], np.maximum(self.tables.counts, 2.0)
        influence = (self.fitted.inverse @ self.tables.design_rows[0].T) ** 4
        sampled = np.diag(self.sampling)
        return np.asarray(
            np.clip(2 * sampled**2 / np.maximum(influence @ (2 * own**2 / (counts - 1)), 1e-300), 3.0, 1e6)
        )

    @cached_property
    def df(self) -> Array:
        """Degrees of freedom: of the noise of the meat and of the records behind each coefficient (Satterthwaite 1946)."""
        sampled = np.diag(self.sampling)
        whole = np.maximum(sampled + np.diag(self.noise), 1e-300)
        counts = np.maximum(self.tables.counts, 2.0)
        if self.by_level is not None:
            own, sds = self.by_level
            influence = (self.fitted.inverse @ self.tables.design_rows[0].T) ** 4
            uncertain = influence @ (sds**2 + 2 * own**2 / (counts - 1))
        else:
            records = 1 / np.maximum(np.diag(self.fitted.inverse), 1e-300)
            noisy = 0.0 if self.subset else (self.scores[1] * (self.scores[2] ** 2).sum(axis=1)) ** 2
            if not self.subset:
                noisy = noisy + (self._beyond(self.reach[1])[1] / records) ** 2
            uncertain = noisy + 2 * sampled**2 / np.maximum(records, 1.0)
        return np.asarray(np.clip(2 * whole**2 / np.maximum(uncertain, 1e-300), 3.0, 1e6))

    @property
    def score_noise(self) -> ScoreNoise | None:
        """What a joint test needs, in the units of the response; None for a smaller model, whose meat was not drawn.

        One block: the scores are sums of residuals in the levels, apart from each other; several: v r in the coordinates v of the meat.
        """
        if self.subset:
            return None
        half = float(self.design.response.high - self.design.response.low) / 2
        total, noise = self.square
        records = 1 / np.maximum(np.diag(self.fitted.inverse), 1e-300)
        size = noise / max(total, noise)
        if self.by_level is not None:
            h, (own, sds) = self.tables.design_rows[0], self.by_level
            counts = np.maximum(self.tables.counts, 1.0)
            fit = np.clip(h @ self.fitted.theta, -1.0, 1.0)
            private = self.tables.sum_variance + fit**2 * self.tables.count_variance
            shape = np.diag(self.variance * counts)
            units = half * self.fitted.inverse @ h.T
            return ScoreNoise(units, np.diag(private), np.diag(own), np.diag(sds), shape, size, records)
        meat, sd, units = self.scores
        back = np.linalg.solve(self.fitted.inverse, units)
        forth = np.linalg.inv(back)
        private, shape = forth @ self.fitted.noise @ forth.T, self.variance * forth @ self.fitted.gram @ forth.T
        meat = meat + self._beyond(self.reach[1])[0] * forth @ self.fitted.gram @ forth.T
        return ScoreNoise(half * units, private, meat, np.full(meat.shape, sd), shape, size, records)

    def _law(self, half: float) -> JointLaw:
        """What the tables say of the errors of all coefficients together, in the units of the data.

        Scores are the sums of residuals in levels (or in the coordinates of the meat), and beside them the noise of the normal equations.
        """
        fitted, p = self.fitted, len(self.fitted.theta)
        total, noise = self.square
        uncertain = sqrt((noise / max(total, noise)) ** 2 + 2 / max(self.records, 1.0))
        behind = 1 / np.maximum(np.diag(fitted.inverse), 1e-300)
        if self.subset:
            shape, sd, spread = fitted.gram * self.variance, np.zeros((p, p)), fitted.inverse
            values = shape
        elif self.by_level is not None:
            own, sds = self.by_level
            values, sd, shape = np.diag(own), np.diag(sds), np.diag(self.variance * np.maximum(self.tables.counts, 1.0))
            spread = fitted.inverse @ self.tables.design_rows[0].T
            used = self.tables.levels.compared(0)
            behind = np.where(used, np.maximum(self.tables.counts, 2.0), np.inf).min(axis=1)
        else:
            values, one, spread = self.scores
            back = np.linalg.solve(spread, fitted.inverse)
            shape, sd = self.variance * back @ fitted.gram @ back.T, np.full_like(values, one)
        nothing = np.zeros((p, p))
        values, sd, shape = (linalg.block_diag(part, nothing) for part in (values, sd, (shape + shape.T) / 2))
        return JointLaw(
            units=half * np.hstack([spread, fitted.inverse])[self.columns],
            noise=linalg.block_diag(np.zeros((len(values) - p,) * 2), fitted.noise),
            meats=(NoisyMeat(values, sd, shape, uncertain),),
            records=behind[self.columns],
            key=(self.release.drawn_sha256, ",".join(map(str, self.columns))),
        )


def _lifted(sampled: Array, least: Array) -> Array:
    """A covariance whose variances are the larger of both, with the correlations of the two in the direction where each is larger."""
    sizes, axes = np.linalg.eigh((least + least.T) / 2)
    root = axes * np.sqrt(np.maximum(sizes, 1e-12 * sizes[-1]))
    inside = np.linalg.solve(root, np.linalg.solve(root, (sampled + sampled.T) / 2).T)
    values, vectors = np.linalg.eigh((inside + inside.T) / 2)
    raised = (root @ vectors * np.maximum(values, 1.0)) @ (root @ vectors).T
    wanted = np.sqrt(np.maximum(np.diag(sampled), np.diag(least)) / np.diag(raised))
    return np.asarray(raised * np.outer(wanted, wanted))
