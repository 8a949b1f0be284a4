"""Naive Bayes with Laplace noise: class counts, class sums, and counts of levels, under pure differential privacy.

Estimates the share of each class, the mean of each feature within it and, for factors and 0/1 columns, the probability of each level
within it. A feature that is not 0/1 counts by a normal density, a factor by its table.

Guarantee: (epsilon, 0)-DP, add-remove or substitute, by the Laplace mechanism (Dwork, McSherry, Nissim, Smith 2006) on exact integers;
epsilons add. A fifth pays for the class counts, the rest for the others in proportion to how many features they serve. Bounds in l1 for one
record added or removed, p features that are not 0/1 in half-widths and moved into |u| <= R, over all classes jointly since a record is
in one: counts 1; sums min(p, sqrt(p) R); squares R^2; levels of G factors G. Twice that when a record is replaced, whether it changes its
class or not. Nothing depends on the private size of a class (`laplace_rows`).

Interval: none. The law of a ratio of sums with Laplace noise is not normal; `ClassMeans` has intervals.
Source: Vaidya, Shafiq, Basu, Hong 2013, whose noise for a class mean has the private size of the class in its scale (evidence/errata.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from confide.core import Allowance, Composed, Method, Plan, Release, ResultOptions, Statistic, Total
from confide.guarantees import Guarantee
from confide.methods.classification.class_means import class_truth
from confide.methods.classification.design import ClassDesign
from confide.methods.classification.reading import ClassStatistics, checked_radius, checked_variance, class_model
from confide.methods.classification.sums import class_pairs
from confide.results.classes import ClassModel, ClassTable
from confide.schema import Schema
from confide.schema.coded_frame import CodedFrame
from confide.schema.formulas.formula import parse_formula
from confide_lab.aggregates.laplace_rows import ClassCounts, ClassPowers, LevelCounts

__all__ = ["NaiveBayes"]

Array = NDArray[np.float64]

_COUNTS = Fraction(1, 5)
# Of what the features that are not 0/1 get, where variances are estimated.
_SQUARES = Fraction(3, 8)


@dataclass(frozen=True)
class NaiveBayes(Method):
    """Naive Bayes under (epsilon, 0)-differential privacy: a classifier without intervals.

    formula, variance, radius (of the features that are not 0/1), term_bounds: as `ClassMeans`. One pass.

    >>> import confide as cf
    >>> schema = cf.Schema({"kind": cf.Categorical(["a", "b"]), "x": cf.Numeric(-8, 8), "y": cf.Numeric(-8, 8)})
    >>> plan = NaiveBayes("kind ~ x + y", variance="identity", radius=1.0).plan(schema, cf.PureDP(1.0, relation="substitute"))
    >>> [(part.name, round(float(part.scale * part.step), 1)) for part in plan.event.parts]
    [('counts', 10.0), ('sums', 2621440.0)]
    """

    formula: str
    variance: str = "per_feature"
    radius: float | None = None
    term_bounds: Mapping[str, tuple[float, float]] | None = None

    name: ClassVar[str] = "naive_bayes"
    family: ClassVar[str] = "classification"
    task: ClassVar[str] = "classification"
    source: ClassVar[str] = "Laplace mechanism on class counts, class sums and level counts (after Vaidya et al. 2013)"
    native: ClassVar[str] = "PureDP"

    def __post_init__(self) -> None:
        checked_variance(self.variance)
        checked_radius(self.radius, 1)

    # plan -----------------------------------------------------------------------------------------------------------

    def plan(
        self, schema: Schema, privacy: Guarantee, *, n: int | None = None, public: Mapping[str, Any] | None = None
    ) -> Plan:
        """Counts, sums, squares and level counts, as far as the formula needs them. Raises `PlanError` for what cannot work."""
        own = self._own(schema)
        allowance = Allowance.of(privacy, self, schema)
        statistics, shares = self._statistics(own)
        spends = tuple(allowance.spend(name, statistics[name], shares[name]) for name in statistics)
        return Plan.of(
            self,
            schema,
            allowance,
            Composed(spends),
            statistics,
            n=n,
            constants={"radius": self._radius(own)},
            target=self._target(own),
            intervals_for=_INTERVALS_FOR,
            warnings=parse_formula(own.design.formula, own.design.schema).notes,
        )

    def _own(self, schema: Any) -> ClassDesign:
        return ClassDesign.of(self.formula, schema, term_bounds=self.term_bounds)

    def _radius(self, own: ClassDesign) -> float:
        return checked_radius(self.radius, max(len(own.measured), 1))

    def _statistics(self, own: ClassDesign) -> tuple[dict[str, Statistic], dict[str, Fraction]]:
        statistics: dict[str, Statistic] = {"counts": Total(ClassCounts(own), nonnegative=True)}
        shares = {"counts": _COUNTS}
        parts = len(own.measured) + len(own.groups)
        if own.measured:
            rest = (1 - _COUNTS) * Fraction(len(own.measured), parts)
            squares = Fraction(0) if self.variance == "identity" else _SQUARES
            statistics["sums"] = Total(ClassPowers(own, self._radius(own)))
            shares["sums"] = rest * (1 - squares)
            if squares:
                statistics["squares"] = Total(ClassPowers(own, self._radius(own), 2), nonnegative=True)
                shares["squares"] = rest * squares
        if own.groups:
            statistics["levels"] = Total(LevelCounts(own), nonnegative=True)
            shares["levels"] = (1 - _COUNTS) * Fraction(len(own.groups), parts)
        return statistics, shares

    def _target(self, own: ClassDesign) -> str:
        return f"shares of the classes of {own.response} and means of {', '.join(own.features)} within them"

    # infer ----------------------------------------------------------------------------------------------------------

    def infer(self, release: Release, options: ResultOptions | None = None) -> ClassModel:
        """Shares and means without standard errors, and predictions. A question has nothing to ask: `PlanError`."""
        (options or ResultOptions()).only()
        own = self._own(release.plan.schema)
        drawn = release["counts"]
        counts, count_sd = drawn.decode(), sqrt(drawn.variance)
        sizes = np.maximum(counts, 1.0)[:, None]
        shape = (len(own.classes), len(own.features))
        means, noise = np.zeros(shape), np.zeros(shape)
        squares, square_noise = np.ones(shape), np.zeros(shape)
        measured = list(own.measured)
        if measured:
            rows, noisy = ClassPowers(own, self._radius(own)), release["sums"]
            means[:, measured] = rows.decode(noisy.decode()) / sizes
            noise[:, measured] = noisy.variance / rows.steps**2 / sizes**2
            noise[:, measured] += (means[:, measured] * count_sd / sizes) ** 2
            if self.variance != "identity":
                squared, second = ClassPowers(own, self._radius(own), 2), release["squares"]
                squares[:, measured] = squared.decode(second.decode()) / sizes
                square_noise[:, measured] = second.variance / squared.steps**2 / sizes**2
        tables = []
        if own.groups:
            levels, error = LevelCounts(own), sqrt(release["levels"].variance)
            for group, table in zip(own.groups, levels.decode(release["levels"].decode()), strict=True):
                places = list(group.terms)
                means[:, places] = 2 * np.clip(table / sizes, 0.0, 1.0) - 1
                tables.append(
                    ClassTable(group.terms, _logs(np.column_stack([table, counts - table.sum(axis=1)]), error))
                )
        estimated = self.variance != "identity"
        found = ClassStatistics(
            counts,
            count_sd,
            means,
            noise,
            squares if estimated else None,
            square_noise if estimated else None,
            laplace=True,
        )
        words: dict[str, Any] = {"target": self._target(own), "intervals_for": _INTERVALS_FOR}
        return class_model(
            self,
            release,
            own,
            found,
            self._radius(own),
            intervals=False,
            tables=tuple(tables),
            of=own.measured,
            **words,
        )

    def reference(self, frame: Any) -> Mapping[str, float]:
        """Shares and class means of records moved as those of a release are."""
        own = self._own(CodedFrame.checked(frame).schema)
        return class_truth(frame, own, self._radius(own))

    def worst_pairs(self, schema: Schema | None = None) -> Iterable[tuple[Mapping[str, Any], ...]]:
        """Opposite corners in one class and in two. None with derived or categorical features."""
        return () if schema is None else class_pairs(self._own(schema), schema)


_INTERVALS_FOR = (
    "no interval: the law of a ratio of sums with Laplace noise is not worked out; ClassMeans has intervals"
)


def _logs(counts: Array, error: float) -> Array:
    """Logarithms of level probabilities, each count taken as one sd of its noise at least."""
    positive = np.maximum(counts, max(error, 0.5))
    return np.asarray(np.log(positive / positive.sum(axis=1, keepdims=True)))
