"""Scores of units: the sum over a unit's rows of their weighted scores, limited and rounded as one.

A unit with m usable rows counts each with the weight v = min(1, k/m), where its rows are bounded by weight; kept rows, at most k of them,
count 1 each. Its score is g = sum v s, s the score of a row. Maps give one column of integers for each unit:

    UnitScores   limit(g, R) in integer steps   |m|^2 <= 2^40   its total is b, its Gram matrix the meat
    UnitSizes    the cell of |g|                                one count moves by 1
    UnitInfluences   the square of sum v h, limited   0 <= m <= 2^40   its total says how well R is known

Sensitivities are those of `score_rows`, of ONE unit, whatever k and m are: the limit is put to the unit's sum. The meat counts units, and
rows of a unit may hang together in any way. Source: cluster-robust covariances (Liang, Zeger 1986); the limit and its integers here.

The sum does not depend on the order of the rows: each row's score is rounded first, to 2^-12 of the step in which g is coded (2^-20 of the
first edge, for cells), and cut to 2^46, so that 2^16 rows add up in 64-bit integers. What one row alone gives is what the map of records
gives it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from confide._arrays import Array
from confide.aggregates.lines.rows import BITS, leverage, only, round_within, steps
from confide.aggregates.scores.fisher_rows import FisherScores
from confide.aggregates.scores.score_rows import InCoordinates, Influences, LimitedScores, SizeIndices, cell_among
from confide.protocol import RecordMap
from confide.protocol.exact import digest
from confide.protocol.units.weighted import rows_in_units, usable
from confide.protocol.units.whose import UNIT_ROW, WHOLE_ROW
from confide.schema import Schema, Unit

__all__ = ["Counting", "UnitFisherScores", "UnitInfluences", "UnitScores", "UnitSizes", "summed_by_unit"]


_FINER = float(1 << 12)
_MOST = 2.0**46


@dataclass(frozen=True)
class Counting:
    """How the rows of a unit count: `rows` at most, by the row of codes that says where units begin.

    >>> Counting.of(Schema({"x": {"kind": "numeric", "low": 0, "high": 1}}, unit=Unit("id", rows=2))).weighted
    True
    """

    rows: int
    row: str

    @classmethod
    def of(cls, schema: Schema) -> Counting | None:
        """Of a schema, by weight unless it says otherwise; None where a record is its own unit, or one row of each is kept."""
        unit = schema.unit
        if not isinstance(unit, Unit) or (unit.rule == "keep" and unit.rows == 1):
            # of clusters, each record or kept row is a unit
            return None if schema.cluster is None else cls(1, UNIT_ROW)
        return cls(unit.rows, UNIT_ROW if unit.rule == "keep" else WHOLE_ROW)

    @classmethod
    def of_plan(cls, plan: Any) -> Counting | None:
        """As the rows of a plan's unit were counted: a plan that says no rule kept rows."""
        rows, weighted = int(plan.schema["rows_per_unit"]), plan.rule == "weight"
        several = isinstance(plan.schema["unit"], Mapping) and (weighted or rows > 1)
        if not several and plan.schema.get("cluster") is None:
            return None
        return cls(rows, WHOLE_ROW if weighted else UNIT_ROW)

    @property
    def weighted(self) -> bool:
        """Whether all rows count, by weight."""
        return self.row == WHOLE_ROW

    @property
    def spread(self) -> float:
        """About how large a unit's score is, beside a row's: rows of one unit correlate by .3."""
        return float(np.sqrt(self.rows * (1 + 0.3 * (self.rows - 1))))

    def weights(self, sizes: NDArray[np.intp]) -> Array:
        """v of the rows of units with so many usable ones."""
        return np.minimum(1.0, self.rows / np.maximum(sizes, 1))


def summed_by_unit(rows: Array, starts: NDArray[np.intp]) -> Array:
    """Sums of rounded rows of each unit, exact in any order; NaN counts as 0. Shape (width, units)."""
    whole = np.rint(rows)
    np.nan_to_num(whole, copy=False, nan=0.0, posinf=_MOST, neginf=-_MOST)
    np.clip(whole, -_MOST, _MOST, out=whole)
    return np.add.reduceat(whole.astype(np.int64), starts, axis=1).astype(np.float64)


@dataclass(frozen=True)
class _OfUnits(InCoordinates):
    """What maps of units share: the row of codes that says where units begin, after those of the design."""

    counting: Counting = field(kw_only=True)

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.design.columns, self.counting.row)

    @property
    def stated(self) -> tuple[Any, ...]:
        return (self.counting.rows, self.counting.row)

    def row_scores(self, codes: Array) -> Array:
        """v r of each row, 0 for one that is dropped, from the codes of the design's columns."""
        v, r, keep = self.rows(codes)
        v *= r if keep is None else r * keep
        return v

    def by_unit(
        self,
        codes: Array,
        unit: float,
        alone: Callable[[Array], Array],
        together: Callable[[Array, NDArray[np.intp]], Array],
    ) -> Array:
        """One column for each unit: of `alone` where one row is usable, else `together` of the unit's summed scores.

        unit: what scores are rounded in; together: is handed the sums (width, units) and the numbers of usable rows.
        """
        own, first = codes[:-1], codes[-1]
        there = usable(cast(RecordMap, self), own)
        starts, sizes = rows_in_units(first, there)
        if len(starts) == len(first):
            return alone(own)
        with np.errstate(all="ignore"):
            rows = self.row_scores(own)
            rows *= unit
            rows[:, ~there] = 0.0
            out = together(summed_by_unit(rows, starts) * self.counting.weights(sizes), sizes)
        one = np.flatnonzero(sizes == 1)
        if len(one):
            # the only usable row of a unit is the next usable one from its beginning on
            used = np.flatnonzero(there)
            out[:, one] = alone(np.ascontiguousarray(own[:, used[np.searchsorted(used, starts[one])]]))
        return out


def limited(sums: Array, longest: float) -> Array:
    """Columns cut to a length and rounded, from sums in steps."""
    size = np.sqrt(leverage(sums))
    np.maximum(size, longest, out=size)
    sums *= longest / size
    return round_within(sums)


@dataclass(frozen=True)
class UnitScores(_OfUnits, LimitedScores):
    """One unit as limit(g, R)/R in integer steps, g the sum of its rows' weighted scores: |m|^2 <= 2^40."""

    kind: ClassVar[str] = "limited scores of units"

    def __call__(self, codes: Array) -> Array:
        longest = float(steps(1.0, self.width))
        return self.by_unit(
            codes,
            self.steps * _FINER,
            lambda own: LimitedScores.__call__(self, own),
            lambda sums, _: limited(sums / _FINER, longest),
        )


@dataclass(frozen=True)
class UnitInfluences(_OfUnits, Influences):
    """One unit as the square of the sum of its rows' weighted influences on R, limited: 0 <= m <= 2^40."""

    kind: ClassVar[str] = "limited influence of units"

    def row_scores(self, codes: Array) -> Array:
        """h of each row."""
        return self.influence(self.located(codes))[None, :]

    def __call__(self, codes: Array) -> Array:
        unit = _FINER * (1 << BITS)
        return self.by_unit(
            codes,
            unit / self.reach,
            lambda own: Influences.__call__(self, own),
            lambda sums, _: self.squared(sums / unit),
        )


@dataclass(frozen=True)
class UnitSizes(_OfUnits, SizeIndices):
    """The cell of |g| among rising edges, from 1 on, and 0 for a unit without a usable row."""

    @property
    def digest(self) -> str:
        return digest(["size cells of units", self.scores, self.cells, self.design.to_dict(), *self.stated])

    def __call__(self, codes: Array) -> Array:
        edges = self.edges or tuple(float(k) for k in range(1, self.cells))
        unit = (1 << BITS) / max(edges[0], 1e-300)

        def cells(sums: Array, sizes: NDArray[np.intp]) -> Array:
            found = cell_among(edges, np.sqrt(leverage(sums)) / unit)
            return np.asarray((found * (sizes > 0))[None, :])

        return self.by_unit(codes, unit, lambda own: SizeIndices.__call__(self, own), cells)


@dataclass(frozen=True)
class UnitFisherScores(_OfUnits, FisherScores):
    """One unit as the sum of its rows' weighted scores w r u, cut to `spread` times the bound of one: |b|^2 <= 2^40 in steps of that."""

    @property
    def digest(self) -> str:
        return digest(["scores of units", super().digest, *self.stated])

    @property
    def steps(self) -> float:
        """Integer steps in one unit of w r u."""
        return self.reach / self.bound / self.counting.spread

    def row_scores(self, codes: Array) -> Array:
        parts = self.parts(codes)
        r = parts.residual
        r *= self.counted(parts)[1]
        return np.asarray(parts.u * only(r, parts.keep))

    def __call__(self, codes: Array) -> Array:
        return self.by_unit(
            codes,
            self.steps * _FINER,
            lambda own: FisherScores.__call__(self, own),
            lambda sums, _: limited(sums / _FINER, self.reach),
        )
