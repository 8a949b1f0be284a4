"""The table of least squares on factors: estimates, sandwich covariance, which coefficients are told, R squared, residual SD.

The figures of a release of level sums: residual squares, sampling and noise variances of the coefficients, and their joint
distribution.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import ceil, nan, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide import _special as special
from confide._arrays import Array
from confide._helpers import later
from confide.core import Release
from confide.methods.regression.evidence.r_squared import share_of, share_text
from confide.methods.regression.factors.reading import SEEN, USABLE, LevelFit, LevelTables, ScoreNoise, TailCounts
from confide.methods.regression.factors.sums import FactorLevels, LevelRows, LevelScores, SquaredRows
from confide.methods.regression.linear_estimates import SharedEstimates, legend
from confide.results.base import LevelCount, level_legend, level_remarks
from confide.results.inference.simulated_null import JointLaw, NoisyMiddleMatrix
from confide.results.pages.table import DASH, sampling_alone, with_interval
from confide.schema import ModelMatrix

linalg = later("scipy.linalg")

# No coefficient's sampling variance is below this share of that of equal variances: noise may leave almost nothing of a meat.
_LEAST = 0.7


@dataclass(frozen=True, eq=False)
class LevelFigures:
    """One release, read for some of the coefficients. All in half-ranges of the response."""

    release: Release
    design: ModelMatrix
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
        """What the limit took from sum r^2 for each record, and the SD of its noise: where it is set to 0 it is only too large."""
        if self.tail is None:
            return 0.0, 0.0
        total, sd = self.tail.beyond(reach)
        return total / self.records, min(sd, total) / self.records

    @cached_property
    def square(self) -> tuple[float, float]:
        """sum min(r^2, reach^2) at the fit that was released, and the SD of its noise."""
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
        """One block: the sum of r^2 in each level, with the usual factor for its mean and the least share; and the SD of the noise."""
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
        """Several blocks: the meat in the coordinates v = root d in which it was drawn, the SD of its noise, and K = A^-1 root^-1."""
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

        Scores are the sums of residuals in levels (or in the coordinates of the meat), and in addition the noise of the normal equations.
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
            meats=(NoisyMiddleMatrix(values, sd, shape, uncertain),),
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


TARGET = "least squares of all complete records"
INTERVALS_FOR = (
    "coefficients of the population's least-squares line for {} clipped to its bounds; sampling of records and privacy noise, "
    "unequal residual variances allowed, independent records"
)
_SUBSET = (
    "coefficients of the population's least-squares line on these columns alone; sampling of records and privacy noise, equal residual "
    "variances in the smaller model assumed, independent records"
)
_NORMAL = float(special.ndtri(0.975))
# Levels that a legend counts one by one.
_LISTED = 12


def read(
    release: Release, design: ModelMatrix, levels: FactorLevels, rows: LevelRows, keep: list[int]
) -> SharedEstimates:
    """The table of a release of `FactorMeans`. keep: the terms of a smaller model."""
    tables = LevelTables.of(levels, rows, release["sums"])
    shift = int(design.intercept)
    columns = np.array([*range(shift), *(shift + j for j in keep)], dtype=np.int64)
    return Reading(release, design, levels, tables, columns).table()


@dataclass(frozen=True, eq=False)
class Reading(LevelFigures):
    """One release, read for some of the coefficients: the table, and what it says."""

    def table(self) -> SharedEstimates:
        """Estimates in the units of the data, at the status that the tables allow."""
        names = tuple(self.design.names[j] for j in self.columns)
        half = float(self.design.response.high - self.design.response.low) / 2
        unknown = np.full(len(names), nan)
        numbers: dict[str, Any] = {"covariance": np.full((len(names),) * 2, nan), "noise_variance": unknown, "df": nan}
        estimates, answered, reason = unknown, np.zeros(len(names), dtype=np.bool_), _SINGULAR
        extra: tuple[tuple[str, str], ...] = (("R-squared", f"{DASH} (no coefficient is answered)"),)
        if self._solved:
            uncertain = self.fitted.uncertain[self.columns]
            answered, reason = uncertain <= USABLE, self._needs(names, uncertain)
            estimates = (half * self.fitted.theta + self._middle)[self.columns]
        status = "valid" if answered.all() else "partial" if answered.any() else "imprecise"
        if answered.any():
            own = self.columns
            covariance = half**2 * (self.sampling + self.noise)[np.ix_(own, own)]
            covariance = (covariance + covariance.T) / 2
            covariance[~answered] = covariance[:, ~answered] = nan
            numbers = {
                "covariance": covariance,
                "noise_variance": np.maximum(np.diag(covariance) - half**2 * self.alone[own], 0.0),
                "df": np.where(answered, self.df[own], nan),
                "sampling_df": self.sampling_df[own],
                "joint": self._law(half),
            }
            estimates = np.where(answered, estimates, nan)
            extra, explained = self._explained(half, told=status == "valid")
            numbers |= explained
        return self._result(names, estimates, numbers, status, "" if status == "valid" else reason, extra)

    @property
    def _middle(self) -> Array:
        """The coefficients of the constant at the middle of the response's bounds."""
        constant = self.levels.constant
        assert constant is not None
        return float(self.design.response.low + (self.design.response.high - self.design.response.low) / 2) * constant

    @property
    def _solved(self) -> bool:
        try:
            fitted = self.fitted
        except np.linalg.LinAlgError:
            return False
        return bool(np.isfinite(fitted.theta).all() and fitted.positive)

    def _needs(self, names: tuple[str, ...], uncertain: Array) -> str:
        """One sentence for the coefficients that are not told, and the levels whose count is nothing."""
        left = [(name, eta) for name, eta in zip(names, uncertain, strict=True) if not eta <= USABLE]
        if not left:
            return ""
        shown = ", ".join(name for name, _ in left[:_LISTED]) + (
            f" and {len(left) - _LISTED} more" if len(left) > _LISTED else ""
        )
        worst = max(eta for _, eta in left)
        small = [one for one in self._counts() if one.count < SEEN * one.sd]
        larger = f", or mu {worst / USABLE:.1f} times as large" if all(one.seen for one in small) else ""
        if small:
            # two more sds, so that it is told in most releases
            each = max(one.sd for one in small) * (SEEN + 2)
            needed = f"about {_round(each)} records in each of the levels that they compare"
        else:
            needed = f"about {_round(self.records * worst / USABLE)} records"
        return f"{shown}: not told from the noise, needs {needed}{larger}{level_remarks(small)}"

    def _unseen(self) -> str:
        return level_remarks(one for one in self._counts() if not one.seen)

    def _counts(self) -> list[LevelCount]:
        """The estimated number of records of each level of each block."""
        return [
            LevelCount(block.name, label, float(self.tables.counts[at][k]), float(self.tables.count_sds[at][k]))
            for block, at in zip(self.levels.blocks, self.tables.places, strict=True)
            for k, label in enumerate(block.labels)
        ]

    def _explained(self, half: float, *, told: bool) -> tuple[tuple[tuple[str, str], ...], dict[str, Any]]:
        """R squared and the residual SD with 95% intervals, or why not.

        The fit's sum of squares is e = v'Av about its mean, less what noise and sampling add to it on average. It has variance 4 v'AVAv
        + 2 tr((VA)^2). The residual sum of squares, with what its limit took on average, has that of its noise and of the fourth powers
        that the histogram of |r| shows. One that noise left at 0 or below is not an estimate. A dash is printed for it, and for what is
        made of it, before the interval.
        """
        if self.subset or not told:
            why = f"{DASH} ({'a smaller model' if self.subset else 'some coefficients are not answered'})"
            return (("R-squared", why), ("Residual sd", why)), {}
        (cut, _, _), (total, noise), (lost, unsure) = self.reach, self.square, self._beyond(self.reach[0])
        residual = total - float(np.trace(self.fitted.inverse @ self.fitted.noise))
        residual += lost * self.records if residual > 0 else 0.0
        fourth = cut**2 * max(total, 0.0)
        if self.tail is not None:
            fourth = min(fourth, self.tail.fourth(cut))
        error = _NORMAL * sqrt(noise**2 + (unsure * self.records) ** 2 + fourth)
        explained, spread = self._line_square(self.sampling + self.noise)
        low, high = max(residual - error, 0.0), max(residual + error, 0.0)
        freedom = max(self.records - len(self.columns), 1.0)
        sd = [half * sqrt(value / freedom) for value in (residual if residual > 0 else nan, low, high)]
        share, ends = share_of(explained, _NORMAL * spread, residual, (error, error))
        facts = (("R-squared", share_text(share, *ends)), ("Residual sd", with_interval(*sd)))
        return facts, {"rsquared": share, "rsquared_interval": ends}

    def _line_square(self, covariance: Array) -> tuple[float, float]:
        """The fit's sum of squares about its mean, corrected, and its SD."""
        gram, constant = self.fitted.gram, self.levels.constant
        assert constant is not None
        mean = constant @ gram / float(constant @ gram @ constant)
        about = gram - np.outer(mean, mean) * float(constant @ gram @ constant)
        theta, moved = self.fitted.theta, covariance @ about
        slope = about @ theta
        explained = float(theta @ slope) - float(np.trace(moved))
        # which levels are drawn: squares of the line about its mean differ between records as much as a normal variable's
        drawn = 2 * max(explained, 0.0) ** 2 / self.records
        if self.levels.saturated:
            counts = np.maximum(self.tables.counts, 0.0)
            squares = (self.tables.design_rows[0] @ theta - float(mean @ theta)) ** 2
            drawn = max(float(counts @ squares**2) - max(explained, 0.0) ** 2 / self.records, 0.0)
        variance = 4 * float(slope @ covariance @ slope) + 2 * float(np.trace(moved @ moved)) + drawn
        return explained, sqrt(max(variance, 0.0))

    def _result(
        self,
        names: tuple[str, ...],
        estimates: Array,
        numbers: dict[str, Any],
        status: str,
        reason: str,
        extra: tuple[tuple[str, str], ...],
    ) -> SharedEstimates:
        few = ("few_complete_records",) if self.tables.count < 3 * self.tables.count_sd else ()
        small = ("submodel_classical",) if self.subset else ()
        response, counts = self.design.response.name, self._counts()
        margin = _NORMAL * self.tables.count_sd
        told_n = f" (95% CI {self.tables.count - margin:,.0f} to {self.tables.count + margin:,.0f})"
        told = [f"{one.column}[{one.level}] {one.count:,.0f} ± {one.margin:,.0f}" for one in counts]
        listed = (("Records (noisy)", "; ".join(told)),) if self.design.terms and len(told) <= _LISTED else ()
        return SharedEstimates.of(
            self.release,
            response=response,
            names=names,
            estimates=estimates,
            status=status,
            reason=reason,
            flags=(*small, *few),
            target=f"linear regression of {response} on {', '.join(names)}, {TARGET}",
            intervals_for=_SUBSET if self.subset else INTERVALS_FOR.format(response),
            facts=(
                ("Cov. type", "classical" if self.subset else "robust"),
                ("n", f"{self.tables.count:,.0f}{told_n if margin > 0.01 * self.tables.count else ''}"),
                *extra,
            ),
            legend=(
                *listed,
                *(level_legend(self._unseen()) if status == "valid" else ()),
                *legend(self.design, self.release.plan.declared)[1:],
            ),
            design=self.design,
            nobs=self.tables.count,
            **numbers,
        )


_SINGULAR = (
    "the released counts are not those of any records: noise hides how the levels are spread; ask for fewer levels, more records or a "
    "larger budget"
)


def _round(records: float) -> str:
    """Two digits, rounded up."""
    size = 10 ** max(len(str(ceil(records))) - 2, 0)
    return f"{ceil(records / size) * size:,}"
