"""Two methods of a third party: the mean of a bounded column, and its Gini coefficient with a record map and a menu entry of its own."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

import confide as cf
from confide.core import MenuEntry, Method, RecordMap, Release, ResultOptions, Total
from confide.core.exact import digest
from confide.results import Estimates
from confide.sums import ColumnMoments


@dataclass(frozen=True)
class Mean(Method):
    """mu-GDP under add-remove (or substitute); normal interval, sampling and privacy noise."""

    column: str
    name: ClassVar[str] = "toy_mean"
    family: ClassVar[str] = "intervals"
    source: ClassVar[str] = "Dong, Roth, Su 2022, Theorem 2"
    intervals: ClassVar[str] = "population mean of the clipped column"

    def about(self, schema: cf.Schema) -> ColumnMoments:
        return ColumnMoments(schema, self.column)  # the record map; it states its own sensitivity

    def statistics(self, rows: ColumnMoments, relation: str) -> dict[str, tuple[Total, Fraction]]:
        return {"moments": (Total(rows, nonnegative=True), Fraction(1))}  # all of mu^2

    def facts(self, rows: ColumnMoments) -> dict[str, str]:
        return {"target": f"mean of {self.column}", "intervals_for": self.intervals}

    def reference(self, frame: Any) -> dict[str, float]:
        return {"mean": float(frame[self.column].mean())}

    def table(self, release: Release, rows: ColumnMoments, options: ResultOptions) -> Estimates:
        count, mean, square = rows.decode(release["moments"].decode())
        noise = release["moments"].variance / 2**40 * (1 + mean**2) / count**2
        width = rows.to_units(1.0) - rows.to_units(0.0)
        variance = (max(square - mean**2, 0.0) / count + noise) * width**2
        return Estimates.of(
            release,
            response=self.column,
            names=("mean",),
            estimates=[rows.to_units(mean)],
            covariance=[[variance]],
            noise_variance=[noise * width**2],
        )


@dataclass(frozen=True)
class Bins(RecordMap):
    """1 in the bin of a record's value, 0 in all others; all 0 where it is missing."""

    schema: cf.Schema
    columns: tuple[str, ...]
    width: int
    l1: ClassVar[int] = 1
    l2_squared: ClassVar[int] = 1

    @property
    def digest(self) -> str:
        return digest(["bins", self.width, self.columns[0], self.schema[self.columns[0]].steps])

    def __call__(self, codes: np.ndarray) -> np.ndarray:
        place = np.minimum(codes[0] * self.width // self.schema[self.columns[0]].steps, self.width - 1)
        return np.asarray(place == np.arange(self.width)[:, None], dtype=np.float64)


@dataclass(frozen=True)
class Gini(Method):
    """The Gini coefficient of a column of positive numbers: half the mean difference of two records over the mean."""

    column: str
    bins: int = 64
    name: ClassVar[str] = "gini"
    family: ClassVar[str] = "inequality"
    source: ClassVar[str] = "a noisy histogram (Dong, Roth, Su 2022, Theorem 2); influence function of Monti 1991"
    intervals: ClassVar[str] = "the population's Gini coefficient; sampling and privacy noise"
    menu: ClassVar[MenuEntry] = MenuEntry("How unequal are incomes", "{below} | {number}", "The Gini coefficient.")

    def about(self, schema: cf.Schema) -> Bins:
        if isinstance(schema[self.column], cf.Categorical):
            raise cf.errors.PlanError(f"{self.column!r} is no number; name a numeric column")
        return Bins(schema, (self.column,), self.bins)

    def statistics(self, rows: Bins, relation: str) -> dict[str, tuple[Total, Fraction]]:
        return {"bins": (Total(rows, nonnegative=True), Fraction(1))}

    def facts(self, rows: Bins) -> dict[str, str]:
        return {"target": f"Gini coefficient of {self.column}", "intervals_for": self.intervals}

    def reference(self, frame: Any) -> dict[str, float]:
        values = np.sort(np.asarray(frame[self.column], dtype=float))
        ranks = 2 * np.arange(1, len(values) + 1) - len(values) - 1
        return {"gini": float(ranks @ values / (len(values) * values.sum()))}

    def table(self, release: Release, rows: Bins, options: ResultOptions) -> Estimates:
        counts, column = release["bins"].decode(), rows.schema[self.column]
        at = column.low + (column.high - column.low) * (np.arange(rows.width) + 0.5) / rows.width
        n = max(counts.sum(), 1.0)
        share = counts / n
        mean, gaps = share @ at, np.abs(at[:, None] - at) @ share
        gini = share @ gaps / (2 * mean)
        influence = (gaps - share @ gaps) / mean - gini * (at - mean) / mean
        noise = release["bins"].variance * (influence**2).sum() / n**2
        variance = max(share @ influence**2, 0.0) / n + noise
        own = {"response": self.column, "names": ("gini",), "estimates": [gini]}
        return Estimates.of(release, covariance=[[variance]], noise_variance=[noise], **own)
