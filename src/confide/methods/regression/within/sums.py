"""Rows of a unit as deviations from the unit's own means: what a regression with fixed effects is fitted to.

A unit's rows that the design can use, m of them, become m rows of deviations. Of each term t of the design (and of the response) the
row has t - tbar, tbar the mean of the unit's own codes. It is exact in integers, on a grid of 2^20 steps between -(high - low) and high
- low. A unit with one row of this kind has nothing to say, and gives none. The means of a unit follow from its own rows alone, and
never leave.

Guarantee: deviations are again at most as many rows as the unit had, each within public bounds (`Deviations.inner`), and they depend on
the unit's own rows alone. So a sum over them moves by no more, when a unit comes, goes or is replaced, than a sum over that many rows
of the inner schema may. That is k times the bound of one under "keep", and k by weight (`core.units.privacy_unit`, m the rows of
deviations). Nothing is taken from sum (t - tbar)^2 <= sum t^2, so that no bound depends on rounding. Maps of units move as they state,
once for each unit. Source: derived here; the estimator is the within (fixed effects) estimator, e.g. Wooldridge 2010, 10.5, with its
unit-clustered covariance.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.core import Statistic
from confide.core.allowance import Allowance
from confide.core.events import BudgetItem
from confide.core.exact import digest
from confide.core.statistic import Codes, MapOver, MappedSource, RecordMap, Source, StatisticOver
from confide.core.units.privacy_unit import CLUSTER_ROW, UNIT_ROW, WHOLE_ROW, Weighted, by_units, of_rows, rows_in_units
from confide.schema import ModelMatrix, Numeric, Schema, Unit
from confide.schema.formulas.names import quoted

# Steps between the middle of the grid, which is a deviation of 0, and either end.
_HALF = 1 << 19


@dataclass(frozen=True)
class Deviations:
    """The deviations of a design's terms and response from each unit's own means.

    design: of the records, of a schema that enforces a unit; weighted: all rows of a unit are there, and count by weight.
    """

    design: ModelMatrix
    weighted: bool

    @cached_property
    def inner(self) -> ModelMatrix:
        """The line through deviations: a numeric column for each term, of the term's name, with an intercept that is 0 without noise."""
        outer = self.design.schema
        ends = {term.name: float(term.high - term.low) for term in (*self.design.terms, self.design.response)}
        columns = {name: Numeric(-width, width, steps=2 * _HALF + 1) for name, width in ends.items()}
        schema = Schema(columns, unit=outer.unit, cluster=outer.cluster, dataset=outer.dataset)
        right = " + ".join(quoted(term.name) for term in self.design.terms)
        return ModelMatrix.of(f"{quoted(self.design.response.name)} ~ {right}", schema)

    @property
    def row(self) -> str:
        """The row of codes that says where units begin."""
        return WHOLE_ROW if self.weighted else UNIT_ROW

    @cached_property
    def digest(self) -> str:
        return digest(["deviations", self.design.to_dict(), self.row])

    def __call__(self, codes: Codes, first: Codes) -> tuple[Codes, NDArray[np.bool_]]:
        """(codes of the inner design's columns for every row, which rows are deviations) of rows of whole units.

        codes: of the design's columns; first: -1 on all rows but a unit's first.
        """
        terms, keep = self.design.codes(codes)
        there = np.ones(terms.shape[1], dtype=np.bool_) if keep is None else keep.copy()
        starts, counts = rows_in_units(first, there)
        unit = np.cumsum(first >= 0) - 1
        m = counts[unit].astype(np.float64)
        there &= m > 1
        m = np.maximum(m, 1.0)
        out = np.empty_like(terms, dtype=np.float64)
        for row, own, term in zip(out, terms, (*self.design.terms, self.design.response), strict=True):
            whole = np.where(there, own, 0.0).astype(np.int64)
            total = np.add.reduceat(whole, starts) if len(starts) else whole
            # m c - S is exact: at most 2^16 rows of codes below 2^22
            row[:] = m * whole - total[unit]
            row *= _HALF / max(term.steps - 1, 1)
            row /= m
            np.rint(row, out=row)
            row += _HALF
            row[~there] = -1.0
        return out, there


@dataclass(frozen=True)
class _MapOfDeviations(MapOver):
    """A map of deviations, with the rows of codes that they are made of; of a single row there is none, and it gives 0."""

    map: RecordMap
    deviations: Deviations

    @cached_property
    def columns(self) -> tuple[str, ...]:
        cluster = (CLUSTER_ROW,) if CLUSTER_ROW in self.map.columns else ()
        return (*self.deviations.design.columns, self.deviations.row, *cluster)

    @cached_property
    def digest(self) -> str:
        return digest(["of deviations", self.deviations.digest, self.map.digest])

    def __call__(self, codes: Codes) -> Codes:
        return np.zeros((self.width, codes.shape[1]))

    def inside(self, codes: Codes) -> Codes:
        """The codes that the map asks for, of rows of deviations alone."""
        design = self.deviations.design
        place = len(design.columns)
        found, there = self.deviations(codes[:place], codes[place])
        marks = of_rows(codes[place:], there, 0)
        names = (term.name for term in (*design.terms, design.response))
        rows = dict(zip(names, found[:, there], strict=True))
        rows |= {self.deviations.row: marks[0]} | ({CLUSTER_ROW: marks[1]} if len(marks) > 1 else {})
        return np.stack([rows[name] for name in self.map.columns])


@dataclass(frozen=True)
class OfDeviations(StatisticOver):
    """A statistic of the rows of deviations. by_rows: each of a unit's rows moves it separately, so that k of them count k times."""

    statistic: Statistic
    deviations: Deviations

    @cached_property
    def map(self) -> _MapOfDeviations:
        return _MapOfDeviations(self.statistic.map, self.deviations)

    @property
    def by_rows(self) -> bool:
        return isinstance(self.statistic, Weighted) or by_units(self.statistic) is None

    @property
    def grain(self) -> Fraction:
        """What values are multiples of."""
        return self.statistic.grain

    def moved_squared(self, own: Any, rows: Any) -> Any:
        """Of units of one row, which have no deviation."""
        return 0 * (rows * rows).sum(axis=0)

    def update(self, state: Any, codes: Codes) -> Any:
        inner = self.map.inside(codes)
        return self.statistic.update(state, inner) if inner.shape[1] else state


def deviations_of(statistic: Statistic, deviations: Deviations) -> OfDeviations:
    """A statistic of records, or of units, as one of deviations; by weight where all rows count."""
    unit = deviations.design.schema.unit
    assert isinstance(unit, Unit)
    weighted = deviations.weighted and by_units(statistic) is None
    return OfDeviations(Weighted(statistic, unit.rows) if weighted else statistic, deviations)


def inner_statistic(statistic: Any) -> Statistic:
    """The statistic that `deviations_of` stands around."""
    assert isinstance(statistic, OfDeviations)
    inner: Any = statistic.statistic
    return inner.statistic if isinstance(inner, Weighted) else inner


@dataclass(frozen=True)
class DeviationsAllowance:
    """An allowance whose spends are for statistics of deviations."""

    allowance: Allowance
    deviations: Deviations

    @property
    def relation(self) -> str:
        return self.allowance.relation

    def spend(self, name: str, statistic: Statistic, share: Fraction) -> BudgetItem:
        return self.allowance.spend(name, deviations_of(statistic, self.deviations), share)


def source_of_deviations(source: Source, deviations: Deviations) -> Source:
    """A source whose sums are over deviations: what the rounds of a line are handed."""
    return MappedSource(source, lambda one: deviations_of(one, deviations))
