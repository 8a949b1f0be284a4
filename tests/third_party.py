"""A stranger's method: the mean of a bounded column, with an interval for the population mean."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

import confide as cf
from confide.mechanisms import ColumnMoments
from confide.protocol import Allowance, Meter, Plan, Question, Release, Total
from confide.results import Estimates


@dataclass(frozen=True)
class Mean:
    """mu-GDP under add-remove (or substitute); normal interval, sampling and privacy noise."""

    column: str
    name: ClassVar[str] = "toy_mean"
    family: ClassVar[str] = "moments"
    version: ClassVar[str] = "1"
    source: ClassVar[str] = "Dong, Roth, Su 2022, Theorem 2"
    relations: ClassVar[tuple[str, ...]] = ("add-remove", "substitute")
    native: ClassVar[str] = "GDP"
    intervals: ClassVar[str] = "population mean of the clipped column"
    needs: ClassVar[frozenset[str]] = frozenset()

    def plan(self, schema: cf.Schema, privacy: Any, *, n: int | None = None, public: Any = None) -> Plan:
        allowance, statistic = (
            Allowance.of(privacy, self, schema),
            Total(ColumnMoments(schema, self.column), nonnegative=True),
        )
        spend = allowance.spend("moments", statistic, Fraction(1))
        return Plan.of(
            self,
            schema,
            allowance,
            spend,
            {"moments": statistic},
            n=n,
            target=f"mean of {self.column}",
            covers=self.intervals,
        )

    def release(self, source: Any, plan: Plan, noise: Any) -> Release:
        with Meter(plan, noise) as meter:
            meter.draw("moments", *source.aggregate(plan.statistic("moments")))
        return meter.release()

    def infer(self, release: Release, question: Question | None = None) -> Estimates:
        record = ColumnMoments(cf.Schema.from_dict(release.plan.schema), self.column)
        count, mean, square = record.decode(release["moments"].decode())
        noise = release["moments"].variance / 2**40 * (1 + mean**2) / count**2
        width = record.to_units(1.0) - record.to_units(0.0)
        variance = (max(square - mean**2, 0.0) / count + noise) * width**2
        return Estimates(
            method="toy_mean 1",
            response=self.column,
            names=("mean",),
            estimates=np.array([record.to_units(mean)]),
            covariance=np.array([[variance]]),
            df=np.inf,
            noise_variance=np.array([noise * width**2]),
            status="ok",
            reason="",
            flags=(),
            requested=release.plan.requested,
            guarantee=release.charged,
            target=release.plan.target,
            covers=release.plan.covers,
            release_sha256=release.sha256,
            simulated=release.simulated,
        )

    def worst_pairs(self) -> tuple[()]:
        return ()
