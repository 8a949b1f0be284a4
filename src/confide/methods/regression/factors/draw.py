"""Least squares on factors alone from exact sums by level: group means, their differences, additive effects of several factors.

A formula of one factor (`y ~ f`, `y ~ 0 + f`, a 0/1 column, `a:b`, `y ~ 1`) needs the count and the sum of the response in each level.
One of several factors (`y ~ f + g`) needs the counts of pairs of levels as well. Each is released once, of all complete records: no
record weighs less than another, no response is limited by anything but its declared bounds, and nothing is assumed of tails.

Guarantee: mu-GDP, add-remove or substitute. Four Gaussian mechanisms on exact integers, adaptively composed, whose bounds hold for any
earlier output (`sums`): counts and sums in one vector (78%), a histogram of |r| (5%), sum min(r^2, .) (2%), and the meat (14%). The
meat is sums of min(r^2, R^2) by level, or for several factors the Gram matrix of v clip(r, R) with |v| <= 1. Another 1% counts
responses outside their bounds. With a response of two values and one factor the sums tell the squares and get the shares of the rest.
Sources: Dwork, McSherry, Nissim, Smith 2006; Dong, Roth, Su 2022, Theorem 2 and Corollary 2.

Interval: Student's t with a sandwich covariance, A^-1 (meat + noise of the tables) A^-1. Unequal residual variances are allowed,
residuals are limited at R in the meat alone, and no coefficient's sampling variance is below 0.7 of that of equal variances. It covers
the least-squares coefficients of the population (for one factor: means and their differences), for responses clipped to their bounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import Any

import numpy as np

from confide._arrays import Array
from confide.core import Allowance, Composed, Gram, Meter, Plan, Release, ResultOptions, Source, Statistic, Total
from confide.methods.regression.factors.reading import LevelFit, LevelTables, TailCounts, largest_fit
from confide.methods.regression.factors.results import INTERVALS_FOR, TARGET, read
from confide.methods.regression.factors.sums import (
    FactorLevels,
    Fits,
    LevelRows,
    LevelScores,
    LevelSquares,
    LevelSums,
    ResidualCells,
    ResidualIndices,
    SquaredRows,
)
from confide.methods.regression.linear_estimates import SharedEstimates, kept
from confide.methods.regression.reference import least_squares
from confide.schema import Categorical, ModelMatrix, Schema
from confide.schema.coded_frame import CodedFrame
from confide.sums.coding import ends
from confide.sums.columns import columns_of

# Shares of mu^2.
_SUMS = Fraction(79, 100)
_SHARES = {
    "sums": _SUMS,
    "tail": Fraction(5, 100),
    "square": Fraction(2, 100),
    "meat": Fraction(14, 100),
}
# Of the sums' share: counts and sums of the response under add-remove. Under substitute both are one spend, where equal units are free.
_COUNTS = 36 / 42
# Of the counts' part, with several factors: the levels of the factors, the rest being for pairs of levels.
_MARGINS = 0.6
# Integer units of the largest weight: squares of a row add up exactly in doubles.
_UNIT = 1 << 5
# The noise of a limited meat, as a share of the variance that it is part of.
_MEAT_NOISE = 0.25


@dataclass(frozen=True)
class FactorMeans:
    """The way to the least-squares line of a formula of factors. label: name and version of the method. Made by `of`."""

    label: str
    schema: Schema
    design: ModelMatrix
    levels: FactorLevels

    @classmethod
    def of(cls, label: str, schema: Schema, design: ModelMatrix) -> FactorMeans | None:
        """None for a design that has other terms than factors, or more levels than tables can hold."""
        levels = FactorLevels.of(design)
        return None if levels is None else cls(label, schema, design, levels)

    # plan -----------------------------------------------------------------------------------------------------------

    def plan(self, allowance: Allowance, n: int | None) -> dict[str, Any]:
        """The spends; three passes, or one for a response of two values on one factor, whose squares follow from the sums."""
        statistics, shares = self._statistics(allowance.relation), dict(_SHARES)
        # what the sums get in place of a part that is not drawn
        for name in ("tail", "square", "meat") if self.levels.told_by_sums else ():
            shares["sums"] += shares.pop(name)
        spends = {name: allowance.spend(name, statistics[name], share) for name, share in shares.items()}
        return {
            "event": Composed(tuple(spends.values())),
            "statistics": {name: statistics[name] for name in shares},
            "passes": 1 if self.levels.told_by_sums else 3,
            "constants": {},
            "target": f"linear regression of {self.design.response.name} on {self.design.features}, {TARGET}",
            "intervals_for": INTERVALS_FOR.format(self.design.response.name),
        }

    def _statistics(self, relation: str) -> dict[str, Statistic]:
        rows = self.rows(relation)
        return {
            "sums": LevelSums(rows),
            "tail": ResidualCells(ResidualIndices(self.levels)),
            "square": Total(SquaredRows(self.levels), nonnegative=True),
            "meat": LevelSquares.of(self.levels)
            if len(self.levels.blocks) == 1
            else Gram(LevelScores(self.levels, axes=self._axes(rows))),
        }

    def rows(self, relation: str) -> LevelRows:
        """The map of the sums. A block's sums get a part of the bound in proportion to its levels.

        The reason: sum over coefficients of the noise variance against the sampling one, (levels/n w)^2/(levels/n), is least for w^2
        prop. to the number of levels.
        """
        sizes = np.array(self.levels.levels, dtype=np.float64)
        weights = np.sqrt(sizes / sizes.sum())
        counts = weights * sqrt(_MARGINS if self.levels.pairs else 1.0)
        crossed = np.array([sizes[a] * sizes[b] for a, b in self.levels.pairs])
        pairs = np.sqrt((1 - _MARGINS) * crossed / crossed.sum()) if len(crossed) else crossed
        scale = (1 << 20) * _UNIT * (1.0 if relation == "substitute" else sqrt(_COUNTS))
        return LevelRows(
            self.levels,
            counts=tuple(max(round(scale * w), 1) for w in counts),
            pairs=tuple(max(round(scale * w), 1) for w in pairs),
            sums=tuple(max(round(_UNIT * w), 1) for w in weights),
        )

    def _axes(self, rows: LevelRows) -> tuple[tuple[tuple[float, ...], ...], ...]:
        """V^(-1/2) d for the noise covariance V of b at unit noise of the sums.

        |v|^2 <= sum w_b^2 = 1, as no linear image of numbers lies further from its noise than they do.
        """
        weights = np.array(rows.sums, dtype=np.float64) / sqrt(sum(w * w for w in rows.sums))
        tables = LevelTables.bare(self.levels, 1 / np.repeat(weights, self.levels.levels) ** 2)
        sizes, axes = np.linalg.eigh(tables.cross_noise)
        root = (axes / np.sqrt(sizes)) @ axes.T
        # rounded, so that the bits of a linear algebra library have no say in a public constant
        return tuple(tuple(tuple(map(float, row)) for row in np.round(h @ root, 12)) for h in tables.design_rows)

    def _noise(self, rows: LevelRows, sd: float) -> tuple[Array, Array]:
        """Noise variances of the sums and of the counts, in records."""
        units = np.array(rows.units, dtype=np.float64)
        cells = self.levels.cells
        return (sd / (units[cells:] * 2.0**20)) ** 2, (sd / units[:cells]) ** 2

    # release --------------------------------------------------------------------------------------------------------

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        """Tables; the histogram of residuals at their line; the square and the meat, limited as the histogram says."""
        (total,) = source.aggregate(plan.statistic("sums"))
        sums = meter.draw("sums", total)
        if self.levels.told_by_sums:
            return {}
        tables = LevelTables.of(self.levels, self.rows(plan.relation), sums)
        fits = _line(tables)
        largest = 1.0 + largest_fit(fits)
        edges = TailCounts.edges_for(largest)
        cells = plan.statistic("tail")
        assert isinstance(cells, ResidualCells)
        (counts,) = source.aggregate(cells.at(fits, edges))
        noisy = meter.draw("tail", counts)
        tail = TailCounts(edges, largest, noisy.decode(), sqrt(noisy.variance))
        reach = self._reach(plan, tables, tail, fits)
        square, meat = self._at(plan, fits, reach)
        squares, meats = source.aggregate(square, meat)
        meter.draw("square", squares)
        meter.draw("meat", meats)
        return {"fits": np.concatenate([np.array(own) for own in fits]), "reach": np.array(reach)}

    def _at(self, plan: Plan, fits: Fits, reach: tuple[float, float]) -> tuple[Statistic, Statistic]:
        square, meat = plan.statistic("square"), plan.statistic("meat")
        assert isinstance(square, Total) and isinstance(square.map, SquaredRows)
        limited = Total(square.map.at(fits, reach[0]), nonnegative=True)
        if isinstance(meat, LevelSquares):
            return limited, meat.at(fits, reach[1])
        assert isinstance(meat, Gram) and isinstance(meat.map, LevelScores)
        return limited, Gram(meat.map.at(fits, reach[1]))

    def _reach(self, plan: Plan, tables: LevelTables, tail: TailCounts, fits: Fits) -> tuple[float, float]:
        """Where |r| is limited in the residual sum of squares and in the meat: as high as their noise allows.

        The square: six SDs, further where its noise stays below a tenth of it. The meat: where its noise is a quarter of the variance
        that it is part of, in a level of the usual size; at least two and a half SDs. Both further where the histogram shows that they
        would remove more than a twentieth, and to the largest |r| for a response of two values.
        """
        records = max(tables.count, 1.0)
        sd = sqrt(tail.mean_square(records))
        noise = {name: plan.spend(name).noise_sd for name in ("square", "meat")}
        assert noise["square"] is not None and noise["meat"] is not None
        square = sd * sqrt(max(36.0, 0.1 * records * SquaredRows.unit / noise["square"]))
        if len(self.levels.blocks) == 1:
            own = records / self.levels.levels[0]
            middle = float(np.median(np.maximum(tables.counts, 1.0)))
            own, unit = min(own, middle), float(1 << 30)
            fitted = float(np.clip(np.array(fits[0]), -1.0, 1.0) @ np.clip(np.array(fits[0]), -1.0, 1.0)) / len(fits[0])
            private = float(tables.sum_variance[0]) + fitted * float(tables.count_variance[0])
        else:
            rows = self.rows(plan.relation)
            scores = LevelScores(self.levels)
            own, unit = records / self.levels.width, float(scores.steps) ** 2
            private = float(tables.sum_variance[0]) * rows.sums[0] ** 2 / sum(w * w for w in rows.sums)
        meat = sqrt(_MEAT_NOISE * (sd**2 * own + private) * unit / noise["meat"])
        if self.design.response.steps == 2:
            return tail.largest, tail.largest
        return tail.widened(square, records), tail.widened(max(meat, 2.5 * sd), records)

    # infer ----------------------------------------------------------------------------------------------------------

    def table(self, release: Release, options: ResultOptions) -> SharedEstimates:
        """The table; a subset's covariance assumes equal residual variances, as the released meat belongs to the full model."""
        return read(
            release, self.design, self.levels, self.rows(str(release.charged.relation)), kept(self.design, options)
        )

    def reference(self, frame: Any) -> Mapping[str, float]:
        """Least squares of the response on the terms, without privacy. frame: simulated records, or a frame that the schema then reads."""
        return least_squares(frame if isinstance(frame, CodedFrame) else CodedFrame.of(frame, self.schema), self.design)

    def worst_pairs(self) -> Iterable[tuple[Mapping[str, Any], ...]]:
        """Opposite ends of the response at the same levels, and at levels that all differ. None for a derived response."""
        name = self.design.response.plain
        if name is None:
            return
        column = self.schema[name]
        assert not isinstance(column, Categorical)
        first, last = ({}, {}) if not self.levels.blocks else ends(self.schema, columns_of(*self.levels.blocks))
        low, high = {name: column.low}, {name: column.high}
        yield {**first, **low}, {**first, **high}
        yield {**first, **low}, {**last, **high}


def _line(tables: LevelTables) -> Fits:
    """What each level adds to the line of the tables; 0 where there is no line."""
    try:
        return LevelFit.of(tables).fits
    except np.linalg.LinAlgError:
        return tuple((0.0,) * levels for levels in tables.levels.levels)
