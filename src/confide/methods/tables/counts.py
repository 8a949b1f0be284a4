"""Counts and shares over a crossing, with margins that add up and intervals for the population or for the data set.

Guarantee: mu-GDP, add-remove or substitute. For each marginal A of the strategy (`strategy`) a record adds 1 to one cell: sensitivity 1
under add-remove, sqrt(2) under substitute (`cell_sums`); independent rounded Gaussian noise with the share s_A of mu^2, sum s_A = 1
(Dong, Roth, Su 2022: mu^2 adds). Under substitute, with n public and no record left out, the total is exact and is not drawn.

Interval of a count: population (Poisson sampling) Y + z^2/2 +- z sqrt(Y + v + z^2/4), data set Y +- z sqrt(v); of a share: the p with
(Y - p N)^2 <= z^2 (N p (1 - p) + V(Y - p N)), Wilson's and Fieller's at once; V by least squares over all marginals (`margins`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from math import inf, sqrt
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from confide._lazy import later
from confide.aggregates.cells.cell_sums import CellCounts, CellIndex
from confide.aggregates.cells.crossing import Axes
from confide.aggregates.cells.weighted_cells import CountRows
from confide.aggregates.lines.corners import ends
from confide.errors import PlanError
from confide.guarantees import GDP, Guarantee
from confide.methods.tables.cells.counted import CountTable, ShareTable, shares_shown
from confide.methods.tables.cells.layout import Layout, both_sides
from confide.methods.tables.cells.numbers import cell_names
from confide.methods.tables.cells.per_level import LevelStrategy, check_within, of_each_level, whose_words
from confide.methods.tables.cells.precise import checked_precision, least_mu, precise_strategy
from confide.methods.tables.cells.result import CellTable
from confide.methods.tables.cells.strategy import Strategy
from confide.methods.tables.method import TableMethod, cell_totals, tabulated
from confide.protocol import Allowance, Plan, Release, Statistic
from confide.protocol.units.orthogonal import per_of
from confide.schema import Practice

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = later("pandas")

__all__ = ["Counts", "Shares"]


class _CountMethod(TableMethod):
    """What counts and shares share: one exact count for each cell."""

    per_level: ClassVar[bool] = True

    def about(self, schema: Any) -> Layout:
        layout = of_each_level(Layout.of(self.formula, schema, weights=self.weights))
        self._check(layout)
        return layout

    def _check(self, layout: Layout) -> None:
        if layout.measures:
            right = both_sides(layout.words)[1].strip()
            raise PlanError(
                f"{self.verb} take no left side, got {layout.formula!r}; write cf.tables.{self.verb}({right!r}, ...), or "
                f"cf.tables.means({layout.formula!r}, ...) for means"
            )

    def statistic(self, layout: Layout, axes: Axes, relation: str) -> Statistic:
        if layout.weight is None:
            return CellCounts(CellIndex(layout.crossing, axes))
        return cell_totals(layout, CountRows(layout.crossing, axes))

    def worst_pairs(self, schema: Any = None) -> tuple[tuple[Mapping[str, Any], ...], ...]:
        """Two records that differ in every attribute."""
        if schema is None:
            return ()
        layout = self.about(schema)
        return (ends(schema, layout.columns),) if layout.columns else ()


@dataclass(frozen=True)
class Counts(_CountMethod):
    """Numbers of records over a crossing. formula: "a*b" (crossing and margins), "a:b" (crossing and total), "a + b" (one-way margins).

    covers: "population" (the records are a sample: Poisson sampling and noise) or "dataset" (these records: noise alone), without a
    default; a question may ask for the other one. population_size: the public size of a finite population, whose sampling variance is
    multiplied by 1 - n/N. weights: a numeric column with public bounds from 0 up, which each record counts with; the noise grows with the
    largest weight over the mean one, so declare bounds that few weights reach. precision: the standard deviation of the noise that is
    wished for, by marginal ("total", "1-way", "2-way", "region:smoker"): shares follow it, and a plan without a privacy is that of the
    least mu. One pass.

    >>> import confide as cf
    >>> schema = cf.Schema({"region": cf.Categorical(["N", "S"]), "smoker": cf.Categorical(["no", "yes"])})
    >>> data = cf.read(schema.sample(2_000, seed=1), schema)
    >>> release = cf.release(Counts("region * smoker", covers="population"), data, cf.GDP(1.0), ledger=None)
    >>> table = cf.infer(release)
    >>> table.crosstab().shape, table.status
    ((3, 3), 'ok')
    >>> wished = Counts("region * smoker", covers="dataset", precision={"total": 4, "1-way": 4, "2-way": 3})
    >>> round(cf.plan(wished, schema).guarantee.mu, 2)
    0.36
    """

    formula: str
    covers: str | None = None
    population_size: int | None = None
    weights: str | None = None
    precision: Mapping[str, float] | None = None

    name: ClassVar[str] = "counts"
    numbers: ClassVar[Mapping[str, str]] = {"": "count"}
    # under a design earlier ones cut weights and PSU sums otherwise; the numbers mean the same
    intervals: ClassVar[str] = (
        "counts of a population (Poisson sampling and noise) or of the data set (noise), exact in the noise"
    )
    verb: ClassVar[str] = "counts"
    shown_as: ClassVar[type[CellTable]] = CountTable
    #: Counts grow with the number of records: the contract compares them with a population scaled to the sample.
    extensive: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_precision(self.precision, weights=self.weights)

    def strategy(self, layout: Layout, *, known: bool = False) -> Strategy | LevelStrategy:
        """The best shares, or those at which the wishes for its noise cost least."""
        return (
            super().strategy(layout, known=known)
            if self.precision is None
            else precise_strategy(layout, self.precision, known=known)
        )

    def priced(self, schema: Any, relation: str, n: int | None = None) -> Guarantee | None:
        """What the wishes for the noise cost, for whoever plans without a privacy; None without wishes. n: of records, if it is public."""
        if self.precision is None:
            return None
        if not self._priceable(schema):
            raise PlanError(
                "precision is of tables whose rows count once each; give privacy=cf.GDP(...), or accuracy= and n"
            )
        layout = self.about(schema)
        known = self.knows_total(layout, relation, n)
        mu = least_mu(layout, self.precision, 2.0 if relation == "substitute" else 1.0, known=known)
        return GDP(mu, relation=relation)

    def _priceable(self, schema: Any) -> bool:
        """Whether rows count once each, so that the noise of a cell is what its marginal's share gives."""
        apart = schema.design is None and schema.cluster is None and per_of(schema) is None
        return apart and not self.about(schema).of_units

    def plan(
        self, schema: Any, privacy: Guarantee, *, n: int | None = None, public: Mapping[str, Any] | None = None
    ) -> Plan:
        """Raises `PlanError` for a privacy under which the noise is above what `precision` wishes for, beside what tables refuse."""
        made = super().plan(schema, privacy, n=n, public=public)
        if self.precision is None or not self._priceable(schema):
            return made
        allowance = Allowance.of(privacy, self, schema)
        least = self.priced(schema, allowance.relation, n)
        assert isinstance(least, GDP)
        if sqrt(allowance.amount) < least.mu * (1 - 1e-9):
            raise PlanError(
                f"precision={dict(self.precision)!r} costs {least}, and {privacy} is less; leave the privacy out, or write {least!r}, or "
                "larger wishes"
            )
        return made

    def facts(self, about: Layout) -> Mapping[str, Any]:
        return {
            "target": f"numbers{whose_words(about.crossing.schema) or ' of records'} by {about.words}{about.weighed}",
            "covers": self.intervals,
        }

    def expected(self, layout: Layout, axes: Axes, count: float, noise: float, relation: str) -> float:
        sampling = count if self.covers == "population" else 0.0
        return sqrt(sampling + noise * (2.0 if relation == "substitute" else 1.0))

    def value(self, layout: Layout, axes: Axes, count: float) -> float | None:
        return count

    def reference(self, frame: Any) -> Mapping[str, float]:
        """The counts of practice records."""
        practice = Practice.checked(frame)
        layout = self.about(practice.schema)
        values = np.concatenate([tabulated(layout, practice, axes) for axes in layout.shown])
        return dict(zip(cell_names(layout, layout.shown), values.tolist(), strict=True))


@dataclass(frozen=True)
class Shares(_CountMethod):
    """Shares of records over a crossing, of all records or within the levels of some attributes.

    within: the attributes whose cells the shares add up to 1 in: Shares("region * smoker", within="region") has the share of smokers of
    each region. The other parameters are those of `Counts`, and so is the release.

    >>> import confide as cf
    >>> schema = cf.Schema({"region": cf.Categorical(["N", "S"]), "smoker": cf.Categorical(["no", "yes"])})
    >>> data = cf.read(schema.sample(2_000, seed=1), schema)
    >>> method = Shares("region * smoker", within="region", covers="population")
    >>> table = cf.infer(cf.release(method, data, cf.GDP(1.0), ledger=None))
    >>> table.crosstab().shape, table.diff({"region": "N", "smoker": "yes"}, {"region": "S", "smoker": "yes"}).shape
    ((3, 2), (1, 4))
    """

    formula: str
    within: str | tuple[str, ...] | None = None
    covers: str | None = None
    population_size: int | None = None
    weights: str | None = None

    name: ClassVar[str] = "shares"
    numbers: ClassVar[Mapping[str, str]] = {"": "share"}
    # under a design earlier ones cut weights and PSU sums otherwise; the numbers mean the same
    intervals: ClassVar[str] = "shares of a population (binomial sampling and noise) or of the data set (noise)"
    verb: ClassVar[str] = "shares"
    shown_as: ClassVar[type[CellTable]] = ShareTable

    def _check(self, layout: Layout) -> None:
        super()._check(layout)
        if not shares_shown(layout, self._within(layout)):
            raise PlanError(
                f"every share of {layout.formula!r} within {self.within!r} is 1; cross it with another column, as in "
                '"region * smoker" within="region"'
            )

    def survey_within(self, layout: Layout) -> Axes:
        return self._within(layout)

    def survey_shown(self, layout: Layout) -> tuple[Axes, ...]:
        return shares_shown(layout, self._within(layout))

    def _within(self, layout: Layout) -> Axes:
        within = () if self.within is None else layout.axes(self.within)
        check_within(layout, within)
        return within

    def facts(self, about: Layout) -> Mapping[str, Any]:
        of = "" if not self._within(about) else f" within {about.crossing.title(self._within(about))}"
        return {
            "target": f"shares{whose_words(about.crossing.schema) or ' of records'} by {about.words}{of}{about.weighed}",
            "covers": self.intervals,
        }

    def expected(self, layout: Layout, axes: Axes, count: float, noise: float, relation: str) -> float:
        base = self._base(layout, axes, count)
        return self._error(count / base if base else inf, base, noise, relation)

    def _base(self, layout: Layout, axes: Axes, count: float) -> float:
        """The records that a share is of, where each cell has that many."""
        inside = tuple(axis for axis in axes if axis in self._within(layout))
        return count * layout.crossing.cells(axes) / layout.crossing.cells(inside)

    def _error(self, p: float, base: float, noise: float, relation: str) -> float:
        sampling = p * (1 - p) / base if self.covers == "population" else 0.0
        return sqrt(sampling + noise * (2.0 if relation == "substitute" else 1.0) / base**2)

    def value(self, layout: Layout, axes: Axes, count: float) -> float | None:
        base = self._base(layout, axes, count)
        return count / base if base else None

    def uneven(
        self, layout: Layout, axes: Axes, count: float
    ) -> Iterable[tuple[str, Callable[[float, str], float], float | None]]:
        base = self._base(layout, axes, count)
        if not axes or not base:
            return
        within = any(axis in self._within(layout) for axis in axes)
        small, where = (base / 4, " in a group with a quarter of those records") if within else (base, "")
        for words, p in (("a share of one half", 0.5), ("a level with a quarter of that share", count / base / 4)):
            yield words + where, partial(self._error, p, small), p

    def told(self, release: Release, layout: Layout) -> dict[str, Any]:
        return {"within": self._within(layout)}

    def reference(self, frame: Any) -> Mapping[str, float]:
        """The shares of practice records; NaN where no record has a base."""
        practice = Practice.checked(frame)
        layout = self.about(practice.schema)
        within, values = self._within(layout), []
        for axes in shares_shown(layout, within):
            counts = tabulated(layout, practice, axes).reshape(layout.crossing.shape(axes))
            others = tuple(place for place, axis in enumerate(axes) if axis not in within)
            with np.errstate(all="ignore"):
                values.append((counts / counts.sum(axis=others, keepdims=True)).ravel())
        names = cell_names(layout, shares_shown(layout, within))
        return dict(zip(names, np.concatenate(values).tolist(), strict=True))
