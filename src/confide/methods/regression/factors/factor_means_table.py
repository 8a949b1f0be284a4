"""The table of least squares on factors: estimates, sandwich covariance, which coefficients are told, R squared, residual sd."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, nan, sqrt
from typing import Any

import numpy as np

from confide import _special as special
from confide._arrays import Array
from confide._lazy import later
from confide.aggregates.cells.factor_levels import FactorLevels
from confide.aggregates.cells.level_sums import LevelRows
from confide.methods.regression.evidence.r_squared import share_of, share_text
from confide.methods.regression.evidence.remarks import clipped_responses
from confide.methods.regression.factors.factor_figures import LevelFigures
from confide.methods.regression.factors.factor_means_reading import SEEN, USABLE, LevelTables
from confide.methods.regression.linear import legend
from confide.methods.regression.shared_estimates import SharedEstimates
from confide.protocol import Release
from confide.results.levels import LevelCount, level_legend, level_remarks
from confide.results.pages.table import DASH, with_interval
from confide.schema import Design

__all__ = ["COVERS", "TARGET", "Reading", "read"]

linalg = later("scipy.linalg")


TARGET = "least squares of all complete records"
COVERS = (
    "coefficients of the population's least-squares line for {} clipped to its declared bounds; sampling of records and privacy noise, "
    "unequal residual variances allowed, independent records"
)
_SUBSET = (
    "coefficients of the population's least-squares line on these columns alone; sampling of records and privacy noise, equal residual "
    "variances in the smaller model assumed, independent records"
)
_NORMAL = float(special.ndtri(0.975))
# Levels that a legend counts one by one.
_LISTED = 12


def read(release: Release, design: Design, levels: FactorLevels, rows: LevelRows, keep: list[int]) -> SharedEstimates:
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
        status = "ok" if answered.all() else "partial" if answered.any() else "weak"
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
            extra, explained = self._explained(half, told=status == "ok")
            numbers |= explained
        return self._result(names, estimates, numbers, status, "" if status == "ok" else reason, extra)

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
        """The noisy count of each level of each block."""
        return [
            LevelCount(block.name, label, float(self.tables.counts[at][k]), float(self.tables.count_sds[at][k]))
            for block, at in zip(self.levels.blocks, self.tables.places, strict=True)
            for k, label in enumerate(block.labels)
        ]

    def _explained(self, half: float, *, told: bool) -> tuple[tuple[tuple[str, str], ...], dict[str, Any]]:
        """R squared and the residual sd with 95 % intervals, or why not.

        The line's sum of squares e = v'Av about its mean, less what noise and sampling add to it on average, has variance
        4 v'AVAv + 2 tr((VA)^2); the residual sum of squares, with what its limit took on average, that of its noise and of the fourth
        powers that the histogram of |r| shows. One that noise left at 0 or below is no estimate: a dash stands for it, and for what is
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
        """The line's sum of squares about its mean, corrected, and its sd."""
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
        flags, clipped = clipped_responses(self.release, self.records)
        few = ("few_records",) if self.tables.count < 3 * self.tables.count_sd else ()
        small = ("subset_classical",) if self.subset else ()
        response, counts = self.design.response.name, self._counts()
        told = [f"{one.column}[{one.level}] {one.count:,.0f} ± {one.margin:,.0f}" for one in counts]
        listed = (("Records (noisy)", "; ".join(told)),) if self.design.terms and len(told) <= _LISTED else ()
        return SharedEstimates.of(
            self.release,
            response=response,
            names=names,
            estimates=estimates,
            status=status,
            reason=reason,
            flags=(*flags, *small, *few),
            target=f"linear regression of {response} on {', '.join(names)}, {TARGET}",
            covers=_SUBSET if self.subset else COVERS.format(response),
            facts=(
                ("Cov. type", "classical" if self.subset else "robust"),
                ("Count (noisy)", f"{self.tables.count:,.0f} ± {_NORMAL * self.tables.count_sd:,.0f}"),
                *extra,
                *clipped,
            ),
            legend=(
                *listed,
                *(level_legend(self._unseen()) if status == "ok" else ()),
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
