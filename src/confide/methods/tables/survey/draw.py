"""About how large persons' scores are, by cell, from the released moments: what limits and scales are made of.

How a survey's table is planned and drawn: weights, sums, and the meat of persons or PSUs at the estimates.

Three passes. (1) A noisy histogram of weights, from which the cap W follows (`cap`), or the noisy number of persons. (2) The marginals of
the table as exact integers, each person with omega = min(w, W)/W (`weighted_cells`). Noise is that of equal weights, times W over the mean
of min(w, W). Also drawn is what W leaves out, the sum of (w - W)+ (`cells/weighted_cells`). It gets as much of their cost as makes the
shortest interval by the histogram: one of `SPLITS`, of which exactly one is drawn. (3) At those estimates the Gram matrix of the
scores of persons (`survey_scores`), or that of PSU sums (`clusters/psu_covariance`). For means the squares of cut scores are drawn, too,
together with which the whole ones are known. So is the least number of PSUs that the records of each cell are in (`contributing`), on
which degrees of freedom rest.

Guarantee: mu-GDP, add-remove or substitution: the cost is shared out among these, each an exact sum with independent rounded Gaussian noise
(Dong, Roth, Su 2022). Sensitivities are in the docstring of each map. Weights, strata and PSUs are assumed to follow from the person's own
record, which plans and results print. Source: Horvitz-Thompson and Hajek estimators, linearized variances after Binder 1983.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import inf, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide._arrays import Array
from confide.core import Allowance, Branches, BudgetItem, Composed, Event, Meter, Noisy, Plan, Source, Statistic, Total
from confide.core.units.subgroup import Subset
from confide.errors import PlanError
from confide.guarantees import Guarantee
from confide.methods.tables.draw import Margins
from confide.methods.tables.layout import Layout, marginal_name, weight_of
from confide.methods.tables.survey.estimand import KINDS, Estimand, Sums
from confide.methods.tables.survey.sums import Complete, Squares, SurveyScores
from confide.schema import Schema, SurveyDesign
from confide.schema.formulas.names import column_named
from confide.schema.survey import ASSUMPTION, NOT_COVERED, UNFORESEEN
from confide.sums.cells.cell_sums import Histogram
from confide.sums.cells.moments import MomentRows
from confide.sums.cells.weighted_cells import (
    CELLS,
    IN_RANGES,
    Cap,
    CappedWeight,
    TailRows,
    WeightCells,
)
from confide.sums.clusters.cluster_covariance import WIDE, Limits, Sampled, caps_of, hidden_part, too_few_psus
from confide.sums.clusters.psu_covariance import (
    Contributing,
    Listed,
    PersonCovariance,
    PresentIn,
    PsuCovariance,
    bits_for,
    design_of,
)
from confide.sums.coding import BITS

# The least sd in half-widths; noise sds of a count at which a cell's own spread counts as much as that of all.
_LEAST, _BORROWED = 1e-3, 10.0


def spreads(sums: Sums, theta: Array) -> tuple[Array, float]:
    """(a person's SD at omega = 1 in each cell, the longest score in SDs).

    Scores that reach into other cells have one SD for all, those of indicators 1, of which none is longer than sqrt(2).
    """
    of = sums.of
    if of.kind in ("shares", "counts"):
        return np.ones(len(theta)), float(np.sqrt(2.0))
    if of.kind == "totals":
        own = of.layout.measures[of.column]
        most = abs(own.middle) + own.half + (float(np.sqrt(theta @ theta)) if of.base is not None else 0.0)
        mean, variance = pooled(sums)
        root = max(float(np.sqrt(mean**2 + variance)), _LEAST * own.half)
        return np.full(len(theta), root), most / root
    if of.kind == "ratios":
        y, x = of.layout.measures
        both = pooled(sums)[1] + theta**2 * pooled(sums, 1)[1]
        spread = np.sqrt(np.maximum(both, (_LEAST * y.half) ** 2))
        reach = abs(y.middle) + y.half + np.abs(theta) * (abs(x.middle) + x.half)
        return spread, float(np.max(reach / spread))
    own = of.layout.measures[of.column]
    spread = own.half * np.maximum(_of_cells(sums), _LEAST)
    return spread, float(np.max((own.half + np.abs(theta - own.middle)) / spread))


def _of_cells(sums: Sums) -> Array:
    """The SD of a column in half-ranges, in each cell, moved toward that of all where the cell is near its noise."""
    n, _, variance = _moments(sums)
    _, _, overall = _moments(sums.overall)
    borrowed = _BORROWED * np.sqrt(sums.margins.variance(sums.of.axes)) / (sums.rows.count if sums.rows else sums.one)
    weight = np.maximum(n, 0.0)
    return np.asarray(np.sqrt((weight * variance + borrowed * overall) / (weight + borrowed + 1e-9)))


def _moments(sums: Sums, column: int | None = None) -> tuple[Array, Array, Array]:
    """(sum omega, mean, variance) of u, by cell."""
    assert sums.rows is not None
    of = sums.of
    table = sums.margins.table(of.axes)
    table = table.reshape(len(table), -1)
    start = sums.rows.starts[of.column if column is None else column]
    n = np.maximum(sums.persons, 1e-9) if column is None else np.maximum(table[0] / sums.rows.count, 1e-9)
    mean = np.clip(table[start] / sums.rows.steps / n, -1.0, 1.0)
    variance = np.clip(1.0 - table[start + 1] / sums.rows.steps / n - mean**2, 0.0, 1.0)
    return n, mean, variance


def pooled(sums: Sums, column: int | None = None) -> tuple[float, float]:
    """(mean, variance) of a column among all persons, in its units."""
    own = sums.of.layout.measures[sums.of.column if column is None else column]
    _, mean, variance = _moments(sums.overall, column)
    return own.middle + own.half * float(mean[0]), own.half**2 * float(variance[0])


def shift_of(sums: Sums) -> float:
    """The length of the mean score of a total without a public N, in its units."""
    return abs(pooled(sums)[0]) if sums.rows is not None else 1.0


def squares_of(sums: Sums, theta: Array) -> Array:
    """sum omega^2 (y - theta)^2 of each cell, from the released moments, for means."""
    assert sums.rows is not None
    own, rows, start = sums.of.layout.measures[sums.of.column], sums.rows, sums.rows.starts[sums.of.column]
    table = sums.margins.table(sums.of.axes)
    table = table.reshape(len(table), -1)
    if sums.of.layout.weight is not None:
        half = len(table) // 2
        table = table[:half] - table[half:]
    n = table[0] / rows.count
    if rows.counts_missing(sums.of.column):
        n = n - table[start + 4] / float(1 << 20)
    s, q = table[start] / rows.steps, table[start + 1] / rows.steps
    m = (theta - own.middle) / own.half
    return np.asarray(own.half**2 * np.maximum(n - q - 2 * m * s + m * m * n, 0.0))


#: Names of what is drawn beside the marginals.
WEIGHTS, TAIL, MEAT, KEPT, IN_PSUS = "(weights)", "(tail)", "(meat)", "(kept)", "(in PSUs)"

# Of mu^2: the histogram of weights, or the number of persons; the squares of cut scores; the meat of persons and of PSUs. The rest: sums,
# and what the cut of weights leaves out.
_HISTOGRAM, _COUNT, _SQUARES = Fraction(5, 100), Fraction(1, 100), Fraction(3, 100)
#: Of mu^2, in hundredths: what goes to what the cut leaves out. Without it there is no cut.
SPLITS = (0, 30)
_PERSONS, _PSUS = Fraction(15, 100), Fraction(30, 100)
# In how many PSUs cells are. At mu = 1 the noise of such a sum is 6 records: of a cell of 60 the bound is a fifth short of the PSUs, which
# makes t wider by 1 % at 40 of them, and sums have 2.5 % more noise for it. Half the share would double both losses where cells are small.
_CONTRIBUTING = Fraction(3, 100)
# As of `PsuCovariance`: cuts of PSU sums are short, so that M has noise to spare and what lies beyond them is to be seen.
_ROUGH = 2
_MOST_CELLS = 256
# What grows with the population.
_EXTENSIVE = ("totals", "counts")
_UNKNOWN = (
    "how many PSUs were sampled is not public. Totals and counts then treat that number as random, and their intervals are wide; write "
    "count=, where it is public, in the design"
)
_ONE = float(1 << BITS)


@dataclass(frozen=True)
class SurveyPath:
    """A table's method on a schema with a design. Made by `SurveyPath.of`."""

    method: Any
    schema: Schema
    design: SurveyDesign
    layout: Layout

    @classmethod
    def of(cls, method: Any, schema: Any) -> SurveyPath | None:
        """The path, where the schema has a design or clusters, or the method needs one; None elsewhere. Raises `PlanError`."""
        whole = Schema.of(schema)
        design = design_of(whole)
        if method.name not in KINDS or (design is None and method.name != "ratios"):
            return None
        weights = method.weights
        if weights is not None:
            weights = column_named(str(weights), whole.names)
            if design is not None and design.weight is not None:
                raise PlanError(
                    f"weights={weights!r} and the schema's design, weighted by {design.weight}, both weigh records",
                    "leave weights out",
                )
            design = replace(design or SurveyDesign(deff=1.0), weight=weights, cap="full")
        if method.population_size is not None:
            raise PlanError(
                f"population_size={method.population_size} is for records without a design",
                "write it in the schema, "
                "SurveyDesign(..., population=N) for totals, fraction=f for the sampling fraction",
            )
        design = design or SurveyDesign(deff=1.0)
        if method.name in _EXTENSIVE and design.population is None:
            # what is cut off weights is lost to a sum, and no mean of others makes up for it
            design = replace(design, cap="full")
        layout = method.survey_layout(whole)
        if design.weight is not None:
            layout = replace(layout, weight=CappedWeight(weight_of(design.weight, whole).design))
        return cls(method, whole, design, layout)._checked()

    def _checked(self) -> SurveyPath:
        if self.design.population is not None and self._extensive and self.method.where is not None:
            raise PlanError(
                f"population={self.design.population:,} is of all persons, and where= keeps some. N times their mean is not their "
                "total",
                f'ask by group, as in {type(self.method).__name__}("{"y ~ sex" if self.kind == "totals" else "sex"}") or with '
                "cut(age, 65), or leave population out of the design, where weights add up to persons",
            )
        for axes in self.layout.shown:
            if self.layout.crossing.cells(axes) > _MOST_CELLS:
                raise PlanError(
                    f"under a design at most {_MOST_CELLS} cells have intervals together, and {self.layout.crossing.title(axes)} has "
                    f"{self.layout.crossing.cells(axes):,}",
                    "ask for a coarser table",
                )
        return self

    # plan -------------------------------------------------------------------------------------------------------------

    @property
    def kind(self) -> str:
        return str(self.method.name)

    @property
    def _extensive(self) -> bool:
        """Whether the estimand grows with the population."""
        return self.kind in _EXTENSIVE

    @cached_property
    def listed(self) -> Listed | None:
        """The public PSUs."""
        return Listed.of(self.schema) if self.schema.design is not None else None

    @cached_property
    def complete(self) -> Complete | None:
        """Of ratios, whose totals are of the same persons: those with both values, where one may be missing."""
        drops = self.kind == "ratios" and any(own.drops for own in self.layout.measures)
        return Complete(self.layout.measures) if drops else None

    @property
    def _columns(self) -> tuple[int, ...]:
        """Positions of the columns that are shown."""
        return tuple(range(len(self.layout.measures))) if self.kind in ("means", "totals") else (0,)

    def estimands(self, layout: Layout | None = None) -> tuple[Estimand, ...]:
        """In the order of the table: column by column, marginal by marginal."""
        own = layout or self.layout
        within = self.method.survey_within(own)
        shown = self.method.survey_shown(own)
        size = self.design.population if self._extensive else None
        return tuple(Estimand(self.kind, own, axes, column, within, size) for column in self._columns for axes in shown)

    def label(self, of: Estimand) -> str:
        """Of an estimand's statistics."""
        own = f" {self.layout.measures[of.column].name}" if len(self._columns) > 1 else ""
        return marginal_name(self.layout, of.axes) + own

    @property
    def cuts(self) -> bool:
        """Whether weights are cut where noise asks for it."""
        return self.design.cap == "auto" and isinstance(self.layout.weight, CappedWeight)

    @property
    def _cells_of_weights(self) -> int:
        return CELLS if self.design.cap == "auto" else 1

    def _inside(self, statistic: Statistic) -> Statistic:
        """Of the persons in listed PSUs alone, for ratios of those with both values."""
        for condition in (self.listed, self.complete):
            statistic = statistic if condition is None else Subset(statistic, condition)  # type: ignore[arg-type]
        return statistic

    def weights(self) -> Statistic | None:
        """The histogram of weights; None without."""
        weight = self.layout.weight
        if not isinstance(weight, CappedWeight):
            return None
        return self._inside(Histogram(WeightCells(weight, self._cells_of_weights)))

    def tail(self, layout: Layout) -> Statistic:
        """What the cut of weights leaves out: (w - W)+ over its largest value, in steps of 2^-20, one number in [0, 1] for a person."""
        assert isinstance(layout.weight, CappedWeight)
        return self._inside(Total(TailRows(layout.weight), nonnegative=True))

    @staticmethod
    def beside(split: int, name: str) -> str:
        """What sums are called with that much of the budget for what the cut leaves out."""
        return f"{name}, tail {split} %" if split else name

    def split(self, drawn: Container[str]) -> int:
        """Which split was drawn."""
        return next((split for split in SPLITS if self.beside(split, TAIL) in drawn), 0)

    def margins(self, drawn: Mapping[str, Any], layout: Layout) -> Margins:
        """The noisy marginals, of whichever split."""
        split = self.split(drawn)
        if split:
            end = self.beside(split, "")
            drawn = {name.removesuffix(end): one for name, one in drawn.items() if name.endswith(end)}
        found: Margins = self.method.survey_margins(drawn, layout)
        return found

    def sums(self, layout: Layout, relation: str) -> dict[str, tuple[Statistic, Fraction]]:
        """The marginals of a layout, with their shares of one another."""
        planned = self.method.survey_sums(layout, relation)
        return {name: (self._inside(one), share) for name, (one, share) in planned.items()}

    @staticmethod
    def scores(of: Estimand) -> SurveyScores:
        """The scores of an estimand, before its estimates are known."""
        return SurveyScores(
            of.layout.crossing, of.axes, of.numerator, of.denominator, of.base, _capped(of.layout.weight)
        )

    def meat(self, of: Estimand, bits: int) -> PersonCovariance | PsuCovariance:
        """The meat of an estimand, before its estimates are known."""
        scores = self.scores(of)
        return (
            PersonCovariance(scores, bits)
            if self.design.psu is None
            else PsuCovariance(scores, self.listed, bits, rough=_ROUGH)
        )

    def contributing(self, of: Estimand) -> tuple[str, Contributing]:
        """(name, statistic) of the PSUs that the cells of an estimand lie in: columns without missing values have the same."""
        own = of.numerator if of.numerator is not None and of.numerator.drops and self.complete is None else None
        present = PresentIn(of.layout.crossing, of.axes, own, _capped(of.layout.weight))
        name = marginal_name(of.layout, of.axes) + ("" if own is None else f" {own.name}")
        return f"{IN_PSUS} {name}", Contributing(present, self.listed)

    def _in_psus(self) -> dict[str, tuple[Statistic, Fraction]]:
        """The PSUs of every cell; nothing without PSUs. Noise is the same part of the records of a cell in every marginal."""
        if self.design.psu is None:
            return {}
        found = dict(map(self.contributing, self.estimands()))
        whole = sum(one.shape[1] ** 2 for one in found.values())
        return {
            name: (self._inside(one), _CONTRIBUTING * Fraction(one.shape[1] ** 2, whole)) for name, one in found.items()
        }

    @property
    def squared(self) -> bool:
        """Whether the squares of cut scores are drawn: where the whole ones are known."""
        return self.kind == "means"

    def statistics(self, relation: str, amount: Fraction) -> dict[str, tuple[Statistic, Fraction]]:
        """Everything that is drawn, with its share. amount: the square of mu."""
        common, splits = self._shared(relation, amount)
        return {name: one for part in (*common, *splits) for name, one in part.items()}

    def _shared(
        self, relation: str, amount: Fraction
    ) -> tuple[list[dict[str, tuple[Statistic, Fraction]]], list[dict[str, tuple[Statistic, Fraction]]]]:
        """(what is always drawn, before and after; the splits, of which one is) with their shares."""
        found: dict[str, tuple[Statistic, Fraction]] = {}
        weights = self.weights()
        if weights is not None:
            found[WEIGHTS] = weights, _HISTOGRAM if self.cuts else _COUNT
        own = self.estimands()
        meat = _PERSONS if self.design.psu is None else _PSUS
        squares = _SQUARES if self.squared else Fraction(0)
        last = self._in_psus()
        rest = 1 - meat - squares - sum(share for _, share in (*found.values(), *last.values()))
        splits = []
        for split in SPLITS if self.cuts else (0,):
            part = Fraction(split, 100)
            sums = self.sums(self.layout, relation).items()
            made = {self.beside(split, TAIL): (self.tail(self.layout), part)} if split else {}
            splits.append(
                made | {self.beside(split, name): (one, (rest - part) * share) for name, (one, share) in sums}
            )
        # a unit of several rows moves a meat that many times as far
        bits = bits_for(sqrt(amount * meat / len(own)) / self.schema.rows_per_unit)
        for each in own:
            statistic = self.meat(each, bits)
            last[f"{MEAT} {self.label(each)}"] = self._inside(statistic), meat / len(own)
            if self.squared:
                last[f"{KEPT} {self.label(each)}"] = (
                    self._inside(Total(Squares(self.scores(each)))),
                    squares / len(own),
                )
        return [found, last], splits

    def plan(self, privacy: Guarantee, n: int | None) -> Plan:
        """The spends. Raises `PlanError` or `SchemaError` for what cannot be planned from public facts."""
        allowance = Allowance.of(privacy, self.method, self.schema)
        (first, last), splits = self._shared(allowance.relation, allowance.amount)

        def spent(shares: Mapping[str, tuple[Statistic, Fraction]]) -> tuple[BudgetItem, ...]:
            return tuple(allowance.spend(name, one, share) for name, (one, share) in shares.items())

        own = [spent(one) for one in splits]
        chosen: tuple[Event, ...] = own[0] if len(own) == 1 else (Branches(tuple(map(_all_of, own))),)
        event, planned = (
            Composed((*spent(first), *chosen, *spent(last))),
            self.statistics(allowance.relation, allowance.amount),
        )
        facts = dict(self.method.facts(replace(self.layout, weight=None)))
        target = facts["target"] + ("" if self.design.plain else f", {self.design.words}")
        assumed = (ASSUMPTION,) if self.design.weight is not None or self.listed is not None else ()
        drawn = self.design.psu is not None or self.design.weight is not None
        unknown = (
            (_UNKNOWN,)
            if self._extensive and self.design.psu and not (self.design.psu_count or self.design.population)
            else ()
        )
        meat = next(sqrt(spend.mu_squared) for spend in spent(last) if spend.name.startswith(MEAT))
        cells = max(1 if of.dense else self.layout.crossing.cells(of.axes) for of in self.estimands())
        facts |= {
            "target": target,
            "intervals_for": self._intervals_for(),
            "passes": 3 if WEIGHTS in planned else 2,
            "warnings": (
                *too_few_psus(self.design, meat, cells=cells),
                *unknown,
                *((f"assumed: {ASSUMPTION}",) if assumed else ()),
                *((NOT_COVERED,) if drawn else ()),
            ),
        }
        told = (*too_few_psus(self.design, meat, n, cells), UNFORESEEN) if n else ()
        facts["notes"] = (*facts.get("notes", ()), *told)
        live = {name: one for name, (one, _) in planned.items()}
        return Plan.of(self.method, self.schema, allowance, event, live, n=n, **facts)

    def _intervals_for(self) -> str:
        own = self.design
        if own.psu is not None:
            alike = "independent PSUs" + (f" within {own.strata}" if self.listed is not None and own.strata else "")
            alike += f" {own.alike} (sums of larger or more alike ones are clipped; intervals are widened for it)"
        else:
            alike = f"a declared design effect of {own.deff:g}" if own.deff not in (None, 1) else "independent persons"
        cut = " and the trimming of weights" if own.weight is not None else ""
        return f"{self.kind} of the population, linearized variances; {alike}; privacy noise{cut}"

    # release ----------------------------------------------------------------------------------------------------------

    def draw(self, source: Source, plan: Plan, meter: Meter) -> dict[str, NDArray[Any]]:
        """Weights, sums, meats; the public numbers between them, by name."""
        public: dict[str, NDArray[Any]] = {}
        layout, weights, cap, split = self.layout, self.weights(), None, 0
        if weights is not None:
            (total,) = source.aggregate(weights)
            noisy = meter.draw(WEIGHTS, total)
            split, cap = self._cap(noisy.decode(), sqrt(noisy.variance), plan)
            layout = self.capped(cap.weight)
        persons = None if cap is None else cap.persons
        planned = {self.beside(split, TAIL): self.tail(layout)} if split else {}
        planned |= {self.beside(split, name): one for name, (one, _) in self.sums(layout, plan.relation).items()}
        totals = dict(zip(planned, source.aggregate(*planned.values()), strict=True))
        drawn = {name: meter.draw(name, totals[name]) for name in planned}
        margins = self.margins(drawn, layout)
        if cap is not None:
            if split:
                base = self.reading(Estimand(self.kind, layout, ()), margins, plan.relation)
                cap = self._with_tail(cap, drawn[self.beside(split, TAIL)], max(float(base.persons[0]), 0.0))
            public["cap"] = np.array([cap.weight, cap.lost, cap.persons, cap.over, cap.error])
        asked: dict[str, Statistic] = {}
        for of in self.estimands(layout):
            label = self.label(of)
            if self.design.psu is not None:
                name, counted = self.contributing(of)
                caps = self._caps(of, margins, plan, persons)
                asked[name] = self._inside(counted.at(caps))
                public[f"caps {name}"] = caps.astype(np.float64)
            meat = self.meat(of, self._bits(of, plan))
            scores, limits, facts = self._limited(of, margins, plan, persons)
            if isinstance(meat, PsuCovariance):
                meat = meat.at(scores, limits.psu / limits.person, limits.centred)
                facts["beyond"] = meat.ruler
            else:
                meat = meat.at(scores)
            asked[f"{MEAT} {label}"] = self._inside(meat)
            facts["steps"] = np.array([float(meat.longest)])
            if self.squared:
                asked[f"{KEPT} {label}"] = self._inside(Total(Squares(scores)))
            public |= {f"{name} {label}": value for name, value in facts.items()}
        for name, total in zip(asked, source.aggregate(*asked.values()), strict=True):
            meter.draw(name, total)
        return public

    def _caps(self, of: Estimand, margins: Margins, plan: Plan, persons: float | None) -> NDArray[np.int64]:
        """The caps of `contributing`, by the noisy numbers of records in cells."""
        sums, size = self.reading(of, margins, plan.relation), float(self.design.size or 1.0)
        first, _, n = self._omega(sums.overall, margins, persons)
        return caps_of(sums.persons / first, float(self.design.psu_count or max(n / size, 2.0)), size)

    def _bits(self, of: Estimand, plan: Plan) -> int:
        """How fine the planned meat is, of one row, whatever the rows of a unit for which its noise is."""
        own: Any = plan.statistic(f"{MEAT} {self.label(of)}")
        while not isinstance(own, PersonCovariance | PsuCovariance):
            own = own.statistic
        return own.bits

    def capped(self, cap: float | None) -> Layout:
        """The layout with weights cut at W."""
        weight = self.layout.weight
        return replace(self.layout, weight=weight.at(cap)) if isinstance(weight, CappedWeight) else self.layout

    def _cap(self, counts: Array, sd: float, plan: Plan) -> tuple[int, Cap]:
        """(the split, the cap) of the shortest interval, by noisy counts of weights."""
        weight = self.layout.weight
        assert isinstance(weight, CappedWeight)
        axes = max(self.layout.shown, key=self.layout.crossing.cells)
        largest = max((name for name in self.sums(self.layout, plan.relation)), key=len)
        edges = WeightCells(weight, self._cells_of_weights).edges
        cells = self.layout.crossing.cells(axes)
        found = plan.spend(f"{MEAT} {self.label(self.estimands()[0])}")
        meat = hidden_part(self.design, sqrt(found.mu_squared))
        # shares and counts are of indicators, whose means are up to 1 apart
        distance = 1.0 if self.kind in ("shares", "counts") else IN_RANGES
        made = []
        for split in SPLITS if self.cuts else (0,):
            # of a sum of omega u with |u| <= 1, in units of omega, and of (w - W)+ over its largest value
            noise = _sd(plan, self.beside(split, largest)) ** 2
            tail = _sd(plan, self.beside(split, TAIL)) if split else inf
            half, cap = Cap.predicted(counts, sd, edges, float(weight.term.low), noise, cells, meat, distance, tail)
            made.append((half, split, cap))
        _, split, cap = min(made, key=lambda one: one[0])
        return split, cap

    def _with_tail(self, cap: Cap, noisy: Noisy, total: float) -> Cap:
        """With what the cut leaves out. total: the noisy sum of omega."""
        assert isinstance(self.layout.weight, CappedWeight)
        reach = float(self.layout.weight.term.high) - cap.weight
        over, error = (reach / _ONE * one for one in (float(noisy.decode()[0]), sqrt(noisy.variance)))
        return cap.of_tail(over, error, total * cap.weight)

    def reading(self, of: Estimand, margins: Margins, relation: str) -> Sums:
        """An estimand's sums."""
        rows = self.method.survey_rows(of.layout, relation)
        assert rows is None or isinstance(rows, MomentRows)
        return Sums(of, margins, rows, 1.0 if of.layout.weight is None else _ONE)

    def _limited(
        self, of: Estimand, margins: Margins, plan: Plan, persons: float | None
    ) -> tuple[SurveyScores, Limits, dict[str, NDArray[Any]]]:
        """Scores at the noisy estimates, with the limits that their noise allows."""
        sums = self.reading(of, margins, plan.relation)
        x = sums.x
        theta = np.where(x > 0, sums.y / np.where(x > 0, x, 1.0), 0.0) if of.base is not None else np.zeros(len(x))
        low, high = of.bounds
        theta = np.clip(theta, low, high)
        first, second, n = self._omega(sums.overall, margins, persons)
        spread, longest = spreads(sums, theta)
        sampled = Sampled(n, first, second, 1 if of.dense else len(theta), self.design)
        spend = plan.spend(f"{MEAT} {self.label(of)}")
        assert spend.noise_sd is not None
        bits = self._bits(of, plan)
        limits = Limits.of(
            sampled,
            2.0**bits / spend.noise_sd,
            longest=longest,
            shift=shift_of(sums) / float(np.mean(spread)) if of.base is None else 0.0,
            centred=self.listed is not None,
            fixed=of.kind in ("shares", "counts"),
            wide=WIDE,
        )
        scales = limits.person * spread
        scores = self.scores(of).at(tuple(theta), tuple(scales), of.layout.heaviest if of.layout.weight else None)
        facts = {
            "theta": theta,
            "scales": scales,
            "limits": np.array([limits.person, limits.psu, float(limits.centred), float(limits.whole)]),
        }
        return scores, limits, facts

    def _omega(self, sums: Sums, margins: Margins, persons: float | None) -> tuple[float, float, float]:
        """(mean omega, mean omega^2, persons), noisy."""
        total = max(float(sums.persons[0]), 1.0)
        if self.layout.weight is None or persons is None:
            return 1.0, 1.0, total
        table = margins.table(())
        half = len(table) // 2
        one = sums.one if sums.rows is None else float(sums.rows.count)
        first, rest = float(table.ravel()[0]) / one, float(table.ravel()[half]) / one
        n = max(persons, total)
        mean = min(max(total / n, 1e-6), 1.0)
        return mean, min(max((first - rest) / n, mean**2), mean), n


def _all_of(spends: tuple[BudgetItem, ...]) -> Event:
    return spends[0] if len(spends) == 1 else Composed(spends)


def _sd(plan: Plan, name: str) -> float:
    """The noise of sums in steps of 2^-20."""
    noise = plan.spend(name).noise_sd
    assert noise is not None
    return noise / _ONE


def _capped(weight: Any) -> CappedWeight | None:
    return weight if isinstance(weight, CappedWeight) else None


def facts_of(public: Mapping[str, NDArray[Any]], label: str) -> dict[str, Array]:
    """The public numbers of one estimand."""
    return {name: np.asarray(public[f"{name} {label}"]) for name in ("theta", "scales", "limits", "steps")}
