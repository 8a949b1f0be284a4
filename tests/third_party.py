"""A third party's method: the mean of a bounded column, with an interval for the population mean."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import confide as cf
from confide.core import Method, Question, Release, Total
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
        return {"target": f"mean of {self.column}", "covers": self.intervals}

    def reference(self, frame: Any) -> dict[str, float]:
        return {"mean": float(frame[self.column].mean())}

    def table(self, release: Release, rows: ColumnMoments, question: Question) -> Estimates:
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
