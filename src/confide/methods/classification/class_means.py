"""Class sums: means and shares of classes with intervals, and the classifier that they make, from one Gaussian release.

Estimates the share of each class and the mean of each feature within it. Records are clipped to the public bounds and moved, in
half-ranges from their middle, into the ball |u| <= R. A Gaussian classifier follows: log share - |x - mean|^2/(2 variance).

Guarantee: mu-GDP, add/remove or substitution. A record adds (u, t) to the sums of its class and to its count. Under substitution
with t = R the squared distance is |u - u'|^2 <= 4 R^2 within a class. Across two it is |u|^2 + |u'|^2 + 2 t^2 <= 4 R^2. So the
sensitivity is 2 R, and the counts cost nothing more. Under add/remove it is |u|^2 + t^2 = 1.25 R^2 at t = R/2. Unless
variance="identity", a fifth of the budget (of squared mu) pays for sums of u_j^2 by class: sum u_j^4 <= (R min(1, R))^2, sqrt(2) times
that under substitution because squares are not negative. Gaussian mechanisms on exact integers (`sums`) with rounded Gaussian noise;
the squares of mu add up (Dong, Roth, Su 2022).

Interval: normal, mean_k +- z sqrt(v_k/n_k + s^2 (1 + mean_k^2/t^2)/n_k^2), n_k noisy; share q_k +- z sqrt(q (1 - q)/n + noise). It
covers the shares and class means of the population for records moved as above. With variance="identity" v_k is 1 in the data's units,
which is an assumption. Otherwise it is the released variance with an allowance for its own noise. Source: the class statistics of Shen,
Tong, Wang 2026, section 3, without their test: docs/methods/curves-and-classes.md.

Shares and class means without privacy, on test data as their schema reads them: what intervals of classes are judged against.

What the methods of classes share: features in a ball, sums of squares where variances are released, and the reference.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import sqrt
from typing import Any, ClassVar

import numpy as np

from confide._arrays import Array
from confide.core import (
    Allowance,
    Composed,
    Meter,
    Method,
    Noisy,
    Plan,
    Release,
    ResultOptions,
    Source,
    Statistic,
    Total,
)
from confide.core.plan import check_n
from confide.core.units.privacy_unit import independent_words
from confide.guarantees import Guarantee
from confide.methods.classification.design import ClassDesign
from confide.methods.classification.reading import ClassStatistics, checked_radius, checked_variance, class_model
from confide.methods.classification.sums import (
    MOST_SCORES,
    ClassRows,
    ClassTotal,
    SquareRows,
    UnitClassScores,
    class_pairs,
    unit_covariance,
)
from confide.results.classes import ClassModel, class_names
from confide.schema import Schema
from confide.schema.coded_frame import CodedFrame
from confide.schema.formulas.formula import parse_formula
from confide.sums.clusters.cluster_covariance import (
    Counting,
    TruncationBias,
    independent_of,
    meat_of,
    ruler_of,
    scores_of,
    with_scores,
)
from confide.sums.coding import BITS, BOUND
from confide.sums.ranges import RangedMethod, Width


def class_truth(frame: Any, own: ClassDesign, radius: float) -> dict[str, float]:
    """The share of each class and the mean of each feature in it, by name, of records in the ball of the radius.

    NaN for the means of a class without records.
    """
    matrix, codes = CodedFrame.checked(frame).rows(own.design)
    x = matrix[:, int(own.design.intercept) :]
    middle, half = own.chart
    u = (x - middle) / half
    with np.errstate(divide="ignore"):
        u *= np.minimum(1.0, radius / np.linalg.norm(u, axis=1))[:, None]
    x, place = middle + half * u, np.rint(codes - float(own.design.response.low))
    sizes = np.array([(place == k).sum() for k in range(len(own.classes))])
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.array([x[place == k].sum(axis=0) for k in range(len(own.classes))]) / sizes[:, None]
        values = np.concatenate([sizes / sizes.sum(), means.T.ravel()])
    return {name: float(value) for name, value in zip(class_names(own.classes, own.features), values, strict=True)}


class OfClasses(Method):
    """Base of methods for shares and means of classes.

    Parameters
    ----------
    variance : {"per_feature", "per_class", "shared", "identity"}, default "per_feature"
        Variances within classes. There is one for each feature, one for each
        feature and class, one for all (in half-ranges of the bounds), or 1 in
        the data's units without an estimate.
    radius : float, optional
        Radius R of the ball that records are moved into, in half-ranges of the
        bounds. By default sqrt(features), which no record exceeds. A smaller
        radius costs less noise and moves records beyond it.
    """

    formula: str
    variance: str
    radius: float | None
    term_bounds: Mapping[str, tuple[float, float]] | None

    family: ClassVar[str] = "classification"

    def __post_init__(self) -> None:
        checked_variance(self.variance)
        checked_radius(self.radius, 1)

    def _own(self, schema: Any) -> ClassDesign:
        return ClassDesign.of(self.formula, schema, term_bounds=self.term_bounds)

    def _radius(self, own: ClassDesign) -> float:
        return checked_radius(self.radius, len(own.features))

    def _target(self, own: ClassDesign) -> str:
        return f"shares of the classes of {own.response} and means of {', '.join(own.features)} within them"

    def _covered(self, rest: str) -> str:
        variances = "variances of 1 assumed" if self.variance == "identity" else "variances released"
        return (
            "shares and class means of the population, for values clipped to their bounds and records moved into the ball of the radius; "
            f"sampling of records and privacy noise, {variances}, {rest}"
        )

    def _squared(self, own: ClassDesign, drawn: Noisy | None, sizes: Array) -> tuple[Array | None, Array | None]:
        """Mean squares of the features of each class, and the variance of their noise; None where none were released."""
        if drawn is None:
            return None, None
        squared = SquareRows(own, self._radius(own))
        squares = squared.decode(drawn.decode()) / sizes
        return squares, np.broadcast_to(drawn.variance / squared.steps**2 / sizes**2, squares.shape)

    def reference(self, frame: Any) -> Mapping[str, float]:
        """Shares and class means of records moved as those of a release are."""
        own = self._own(CodedFrame.checked(frame).schema)
        return class_truth(frame, own, self._radius(own))


_SQUARES, _MEAT = Fraction(1, 5), Fraction(3, 20)


@dataclass(frozen=True)
class ClassMeans(RangedMethod, OfClasses):
    """Class means, shares and a Gaussian classifier. The default for classes.

    Estimates the share of each class and the mean of each feature in it, for
    records moved into the public bounds and into a ball of radius R.

    Parameters
    ----------
    formula : str
        Formula such as ``"kind ~ a + b"``. The response is a categorical
        column, or an integer column of few values.

    Notes
    -----
    Guarantee: Gaussian DP with parameter mu, add/remove or substitution. Class
    sums and counts have sensitivity sqrt(1.25) R under add/remove and 2 R under
    substitution. Unless variance="identity", a fifth of the budget pays for
    sums of squares. The module docstring has the proofs.

    References
    ----------
    Shen, Tong, Wang 2026, section 3, without their test.

    Examples
    --------
    >>> import confide as cf
    >>> schema = cf.Schema({"kind": cf.Categorical(["a", "b"]), "x": cf.Numeric(-8, 8), "y": cf.Numeric(-8, 8)})
    >>> method = ClassMeans("kind ~ x + y", variance="identity", radius=1.0, bounds="declared")
    >>> plan = method.plan(schema, cf.GDP(1.0, relation="substitute"), n=5_000)
    >>> round(plan.event.parts[0].noise_sd / 2**20, 3)  # 2 R/mu, in units of R = 8, of the 99% that counts leave
    2.01
    """

    formula: str
    variance: str = "per_feature"
    radius: float | None = None
    term_bounds: Mapping[str, tuple[float, float]] | None = None

    name: ClassVar[str] = "class_means"
    task: ClassVar[str] = "classification"
    targets: ClassVar[Mapping[str, Any] | None] = {}
    source: ClassVar[str] = "noisy class sums and counts in one Gaussian release (Dong, Roth, Su 2022)"
    intervals: ClassVar[str] = "shares and means of classes; sampling and privacy noise"
    units: ClassVar[tuple[str, ...]] = ("keep", "weight")
    unit_meat: ClassVar[bool] = True
    of_means: ClassVar[bool] = True

    def summed(self, schema: Schema) -> tuple[str, ...]:
        design = self._own(schema).design
        return tuple(name for name in design.columns if name not in design.response.columns)

    def width(self, plan: Plan, name: str) -> Width:
        own, sd = self._own(plan.declared), plan.spend("sums").noise_sd
        rows = self._rows(own, plan.relation)
        assert sd is not None
        return Width.of_means(((sd / rows.per_count) ** 2, (sd / rows.steps) ** 2), len(own.classes))

    def rules(self, schema: Any) -> tuple[str, ...]:
        """By weight where variances are released and scores are few; else one row of each unit."""
        own = self._own(schema)
        few = len(own.classes) * (len(own.features) + 1) <= MOST_SCORES
        return self.units if few and self.variance != "identity" else ("keep",)

    # plan -----------------------------------------------------------------------------------------------------------

    def plan(
        self, schema: Schema, privacy: Guarantee, *, n: int | None = None, public: Mapping[str, Any] | None = None
    ) -> Plan:
        """Sums and counts, and squares where variances are estimated. Raises `PlanError` for a formula or setting that cannot work."""
        check_n(n)
        own = self._own(schema)
        allowance = Allowance.of(privacy, self, schema)
        radius = self._radius(own)
        rows = self._rows(own, allowance.relation)
        statistics: dict[str, Statistic] = {"sums": ClassTotal(rows)}
        shares = {"sums": Fraction(1)}
        if self.variance != "identity":
            statistics["squares"] = Total(SquareRows(own, radius), nonnegative=True)
            shares = {"sums": 1 - _SQUARES, "squares": _SQUARES}
        counting = self._counting(schema)
        if counting is not None:
            statistics["meat"] = meat_of(UnitClassScores(own, radius, counting), schema.cluster)
            shares = {"sums": 1 - _SQUARES - _MEAT, "squares": _SQUARES, "meat": _MEAT}
        spends = tuple(allowance.spend(name, statistics[name], share) for name, share in shares.items())
        return Plan.of(
            self,
            schema,
            allowance,
            Composed(spends),
            statistics,
            n=n,
            constants={"radius": radius},
            passes=1 if counting is None else 2,
            target=self._target(own),
            intervals_for=self._intervals_for(schema),
            warnings=parse_formula(own.design.formula, own.design.schema).notes,
        )

    def _rows(self, own: ClassDesign, relation: str) -> ClassRows:
        return ClassRows(own, self._radius(own), 1 << (BITS if relation == "substitute" else BITS - 1))

    def _counting(self, schema: Any) -> Counting | None:
        return Counting.of(schema) if "weight" in self.rules(schema) else None

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        """Sums and squares; where several rows of a unit count, then the scores of units at what was drawn."""
        if "meat" not in plan.statistics:
            return super().draw(source, plan, meter)
        names = [name for name in plan.statistics if name != "meat"]
        for name, total in zip(names, source.aggregate(*map(plan.statistic, names)), strict=True):
            meter.draw(name, total)
        planned = plan.statistic("meat")
        scores = scores_of(planned)
        assert isinstance(scores, UnitClassScores)
        found = self._statistics(scores.own, plan.relation, meter.drawn("sums"), meter.drawn("squares"))
        means, sd = np.clip(found.means, -1.0, 1.0), plan.spend("meat").noise_sd
        assert sd is not None
        shares = np.clip(found.counts / found.total, 0.0, 1.0)
        scores = scores.at(means, shares, found.variances, found.total, 2 * BOUND / sd)
        statistic = with_scores(planned, scores, source.schema, float(found.total))
        (total,) = source.aggregate(statistic)
        meter.draw("meat", total)
        return {"cut": np.array([scores.cut]), "scales": np.array(scores.scales), **ruler_of(statistic)}

    def _intervals_for(self, schema: Any) -> str:
        return self._covered(independent_words(schema))

    # infer ----------------------------------------------------------------------------------------------------------

    def infer(self, release: Release, options: ResultOptions | None = None) -> ClassModel:
        """The table of shares and means, which also predicts. `PlanError` for any option, because there is none."""
        (options or ResultOptions()).only()
        schema = release.plan.declared
        own = self._own(schema)
        squares = release["squares"] if self.variance != "identity" else None
        found = self._statistics(own, release.plan.relation, release["sums"], squares)
        counting = Counting.of_plan(release.plan)
        if counting is not None:
            units = independent_of(release, found.total)
            assert units is not None
            found = replace(found, of_units=self._of_units(release, own, found, counting, units.units), weak=units.weak)
        return class_model(
            self,
            release,
            own,
            found,
            self._radius(own),
            target=self._target(own),
            intervals_for=self._intervals_for(schema),
        )

    def _of_units(
        self, release: Release, own: ClassDesign, found: ClassStatistics, counting: Counting, units: float
    ) -> tuple[Any, Any]:
        noisy = release["meat"]
        cut, scales = (np.asarray(release.public[name], dtype=np.float64) for name in ("cut", "scales"))
        scores = UnitClassScores(own, self._radius(own), counting, scales=tuple(scales.tolist()), cut=float(cut[0]))
        variances = np.clip(found.variances, 0.0, 1.0)
        more = TruncationBias.factor_of(release)
        meat = more * noisy.decode()[: scores.width, : scores.width]
        return unit_covariance(scores, meat, more**2 * noisy.variance, found.sizes, variances, units)

    def _statistics(self, own: ClassDesign, relation: str, noisy: Noisy, drawn: Noisy | None) -> ClassStatistics:
        """From noisy sums, and squares where variances are estimated."""
        rows = self._rows(own, relation)
        counts, sums = rows.decode(noisy.decode())
        sizes, sd = np.maximum(counts, 1.0)[:, None], sqrt(noisy.variance)
        means = sums / sizes
        error = (sd / rows.steps) ** 2 + (means * sd / rows.per_count) ** 2
        squared = self._squared(own, drawn, sizes)
        return ClassStatistics(counts, sd / rows.per_count, means, error / sizes**2, *squared)

    def worst_pairs(self, schema: Schema | None = None) -> Iterable[tuple[Mapping[str, Any], ...]]:
        """Opposite corners in one class and in two, which attain the sensitivity of both relations. None with derived terms."""
        return () if schema is None else class_pairs(self._own(schema), schema)
