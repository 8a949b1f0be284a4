"""What tables of means and totals share: noisy sums of cells, their spread and shape, their errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from confide import _special as special
from confide._arrays import Array
from confide._helpers import later
from confide.methods.tables.draw import UnitMargins
from confide.methods.tables.intervals import MeanSums, expected_cells, summed
from confide.methods.tables.reading import UnitSums, WeightedSums
from confide.methods.tables.results import CellTable
from confide.results.pages.content import check_alpha
from confide.sums.cells.cell_sums import Axes
from confide.sums.cells.moments import MomentRows

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = later("pandas")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class MeasuredTable(CellTable):
    """What tables of means and totals share. rows: the map behind the released sums."""

    rows: MomentRows

    # with those of `shape`
    own_columns: ClassVar[tuple[str, ...]] = (
        "variable", "n", *CellTable.own_columns, "mean", "sd", "skewness", "kurtosis"
    )  # fmt: skip

    @property
    def measured(self) -> tuple[str, ...]:
        return tuple(measure.name for measure in self.layout.measures)

    def _counts_of_rows(self) -> Mapping[str, Array]:
        if self.layout.weight is not None:
            return {}
        return {"n": np.concatenate([self.sums(axes, column).n for axes, column in self._places])}

    def sums(self, axes: Axes, column: int) -> MeanSums:
        """Noisy sums of a marginal's cells, in units of records and of half the range."""
        table = self.margins.table(axes)
        table = table.reshape(len(table), -1)
        start = self.rows.starts[column]
        n, v0 = table[0] / self.rows.count, self.count_variance(axes)
        moments = table[start : start + 4] / self.rows.steps
        v1 = self.margins.variance(axes) / self.rows.steps**2
        if self.rows.counts_missing(column):
            n = n - table[start + 4] / self._one
            v0 = v0 + self.margins.variance(axes) / self._one**2
        s, q, c, d = moments
        noises = np.full(len(n), v0), np.full(len(n), v1)
        if self.layout.weight is None:
            return MeanSums(n, s, q, c, d, *noises)
        squares = self._squared(table, column, np.stack([n, s, q, c, d]))
        if isinstance(self.margins, UnitMargins):
            return UnitSums(n, s, q, c, d, *noises, *squares, rough=self.margins.rough(axes))
        return WeightedSums(n, s, q, c, d, *noises, *squares)

    def in_range(self, column: int) -> bool:
        """Whether a column is clipped to a range that was found, which bounds its skewness."""
        own = self.ranges.get(self.measured[column])
        return own is not None and own.clips

    def loose(self, axes: Axes, column: int) -> MeanSums:
        """`sums` for combinations of cells: a unit in several of them adds at most sum omega e^2 to the variance."""
        own = self.sums(axes, column)
        return MeanSums(own.n, own.s, own.q, own.c, own.d, own.v0, own.v1) if self.layout.of_units else own

    def _squared(self, table: Array, column: int, first: Array) -> Array:
        """The sums of omega^2 f: those of omega f less those of omega (1 - omega) f, which stand behind them."""
        behind, start = table[self.rows.block :], self.rows.starts[column]
        count = behind[0] / self.rows.count
        if self.rows.counts_missing(column):
            count = count - behind[start + 4] / self._one
        return np.asarray(first - np.concatenate([count[None], behind[start : start + 4] / self.rows.steps]))

    @property
    def _one(self) -> float:
        """Integer steps of a missing value."""
        return float(1 << 20)

    def counts(self, axes: Axes) -> Array:
        return super().counts(axes) / self.rows.count

    def count_variance(self, axes: Axes) -> float:
        return super().count_variance(axes) / self.rows.count**2

    @property
    def size(self) -> float:
        return float(self.margins.table(())[0]) / self.rows.count

    def _scale(self, column: int) -> tuple[float, float]:
        """The middle and half the range of a column."""
        measure = self.layout.measures[column]
        return measure.middle, measure.half

    def sd(self, alpha: float = 0.05) -> pd.DataFrame:
        """The standard deviation of the records of each cell: estimate, std_err, ci_low, ci_high, in the column's units, and flags.

        "count_below_noise": the variance, or n, is not above three standard deviations of its privacy noise. The estimate is NaN, and the
        interval starts at 0. "skewed_few_records": a few extreme values dominate (`intervals.MeanSums.extreme`), or the records are too
        few for so skewed a mean.
        """
        z = float(-special.ndtri(check_alpha(alpha) / 2))
        parts, flags = [], []
        for axes, column in self._places:
            sums, (_, half) = self.sums(axes, column), self._scale(column)
            parts.append([half * part for part in sums.spread_interval(z, self.part)])
            weak = (sums.extreme | sums.skewed) & (self.part > 0)
            flags.append(np.select([~sums.clear, weak], ["count_below_noise", "skewed_few_records"], ""))
        names = ("estimate", "std_err", "ci_low", "ci_high")
        found = {name: np.concatenate([part[k] for part in parts]) for k, name in enumerate(names)}
        return self.index.assign(**found, flags=np.concatenate(flags).astype(object))

    def shape(self) -> pd.DataFrame:
        """Mean, standard deviation, skewness and excess kurtosis of the records of each cell, without intervals.

        The last three are NaN if the variance, or n, is not above three standard deviations of its noise.
        """
        parts = []
        for axes, column in self._places:
            sums, (middle, half) = self.sums(axes, column), self._scale(column)
            sd = sums.sd
            parts.append(
                np.stack(
                    [
                        middle + half * sums.mean,
                        half * sd,
                        sums.third / sd**3,
                        sums.fourth / sd**4 - 3,
                    ]
                )
            )
        mean, sd, skewness, kurtosis = np.concatenate(parts, axis=1)
        return self.index.assign(mean=mean, sd=sd, skewness=skewness, kurtosis=kurtosis)

    def _errors(self, generator: np.random.Generator, draws: int, column: int) -> Iterator[tuple[Axes, Array, Array]]:
        """Draws of the errors of (N, S) for each marginal shown, (draws, cells)."""
        crossed = expected_cells(self.layout, self.margins) if self.part else None
        sampled: tuple[Array, Array] | None = None
        if crossed is not None:
            axes, size = crossed[0], crossed[1] / self.rows.count
            own = self.sums(axes if self.margins.contains(axes) else (), column)
            mean, sd = (
                np.broadcast_to(v.reshape(size.shape if v.size > 1 else (1,) * size.ndim), size.shape)
                for v in (own.mean, np.sqrt(own.variance))
            )
            n = generator.standard_normal((draws, *size.shape)) * np.sqrt(self.part * size)
            s = generator.standard_normal((draws, *size.shape)) * np.sqrt(self.part * size) * sd + mean * n
            sampled = n, s
        noise_n = self.margins.noise(self.marginals, draws, generator, counts=True)
        noise_s = self.margins.noise(self.marginals, draws, generator)
        for axes, n, s in zip(self.marginals, noise_n, noise_s, strict=True):
            n, s = n / self.rows.count, s / self.rows.steps
            if sampled is not None:
                n, s = n + summed(sampled[0], axes), s + summed(sampled[1], axes)
            yield axes, n.reshape(draws, -1), s.reshape(draws, -1)
