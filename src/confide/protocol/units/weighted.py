"""All rows of a unit by weight: sums in which each of a unit's m usable rows counts min(1, k/m).

Guarantee: that of the statistic with sensitivity k times its own, as for at most k rows of a unit, and the rounding. Rows of units of one m
are summed apart, in the statistic's own exact integers G_m; what is drawn is G_0 + sum over m of k G_m/m (G_0: units of at most k rows),
each term cut off at 2^-64 steps, and the whole rounded to a multiple of the grain. The weights of one unit are k/m, m of them, or 1, at
most k of them: k in all at most. So adding or removing a unit moves the sum by at most k B. Replacing it by another, with another number
of rows too, moves it by at most k B': pad both with zero rows to the weight k and pair their weights in any way. Rounding moves each number
by at most half a grain on either side, and the terms of two m by 2^-64 each: sqrt(numbers) grains and a little, for which twice that is
charged. Where no unit has more than k rows these are the integers of the statistic itself.

m counts the rows that the statistic can use: complete in its columns, in the subgroup (`where`). A unit's weights follow from its own rows
alone; m never leaves. Source: derived here; the estimand weighs each row by min(k, m)/m, as draws of k rows of each unit do on average.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.protocol.exact import digest, sqrt_up
from confide.protocol.source import Source, Through
from confide.protocol.statistic import Codes, RecordMap, Statistic
from confide.protocol.units.keyed import Keyed
from confide.protocol.units.over import MapOver, StatisticOver
from confide.protocol.units.whose import WHOLE_ROW, by_units

__all__ = ["Weighted", "of_rows", "rows_in_units", "usable", "weighing"]

# Integers of rows of 2^20 steps are fine enough for a weighted sum; counts are not.
_FINE_ROWS, _GRAIN = 1 << 40, Fraction(1, 1 << 20)
_CUT = 1 << 64


def usable(map: RecordMap, codes: Codes) -> NDArray[np.bool_]:
    """Which records a map can use, (rows,): complete in its columns and in what its design derives from them."""
    design = map.derived_by
    found = np.asarray((codes >= 0).all(axis=0))
    if design is None or all(term.plain is not None or term.binary for term in (*design.terms, design.response)):
        return found
    _, keep = design.codes(codes[: len(design.columns)])
    return found if keep is None else found & keep


def rows_in_units(first: Codes, counted: NDArray[np.bool_]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """(where each unit begins, how many of its rows are counted), from a row of codes that is -1 on all rows but a unit's first."""
    starts = np.flatnonzero(first >= 0)
    return starts, np.add.reduceat(counted.astype(np.intp), starts) if len(starts) else starts


def of_rows(codes: Codes, chosen: NDArray[np.bool_], place: int) -> Codes:
    """The chosen columns of codes whose row `place` says where units begin, with each unit's first chosen row as its beginning."""
    unit = np.cumsum(codes[place] >= 0)[chosen]
    own = codes[:, chosen]
    begins = np.ones(len(unit), dtype=np.bool_)
    begins[1:] = unit[1:] != unit[:-1]
    own[place] = np.where(begins, np.maximum(own[place], 0.0), -1.0)
    return own


@dataclass(frozen=True)
class _WeightedRows(MapOver):
    """A record map with the row of codes that says where units begin; of one record by itself it is the map."""

    map: RecordMap

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.map.columns, WHOLE_ROW)

    @cached_property
    def digest(self) -> str:
        return digest(["weighted", self.map.digest])

    def __call__(self, codes: Codes) -> Codes:
        return self.map(codes[:-1])


@dataclass(frozen=True)
class Weighted(StatisticOver):
    """A sum over records as one over units, in which each of a unit's m usable rows counts min(1, rows/m). Values: multiples of `grain`.

    statistic: any sum over records, linear in them. Sensitivities are for rows = 1, and are taken `rows` times (`Allowance.spend`).
    """

    statistic: Statistic
    rows: int

    @cached_property
    def map(self) -> _WeightedRows:
        return _WeightedRows(self.statistic.map)

    @cached_property
    def grain(self) -> Fraction:
        """What values are multiples of, in the statistic's steps."""
        return Fraction(1) if self.statistic.map.l2_squared >= _FINE_ROWS else _GRAIN

    def sensitivity_squared(self, relation: str) -> Fraction:
        own = sqrt_up(super().sensitivity_squared(relation))
        return (own + 2 * sqrt_up(Fraction(prod(self.shape))) * self.grain) ** 2

    def sensitivity_l1(self, relation: str) -> Fraction:
        return super().sensitivity_l1(relation) + 2 * prod(self.shape) * self.grain

    # the sum ----------------------------------------------------------------------------------------------------------

    def zero(self) -> Keyed:
        return Keyed(self.statistic.zero)

    def update(self, state: Keyed, codes: Codes) -> Keyed:
        own, first = codes[:-1], codes[-1]
        there = usable(self.statistic.map, own)
        _, counts = rows_in_units(first, there)
        # at most `rows` rows: all of them count once, in one sum
        counts = np.where(counts <= self.rows, 0, counts)
        if there.all() and not counts.any():
            state[0] = self.statistic.update(state[0], own)
            return state
        sizes = counts[np.cumsum(first >= 0) - 1]
        sizes = np.where(there, sizes, -1)
        order = np.argsort(sizes, kind="stable")
        values, starts = np.unique(sizes[order], return_index=True)
        for m, chosen in zip(values.tolist(), np.split(order, starts[1:]), strict=True):
            if m >= 0:
                state[m] = self.statistic.update(state[m], np.ascontiguousarray(own[:, chosen]))
        return state

    def merge(self, a: Keyed, b: Keyed) -> Keyed:
        for m, own in b.items():
            a[m] = self.statistic.merge(a[m], own)
        return a

    def value(self, state: Keyed) -> NDArray[Any]:
        fine = int(1 / self.grain)
        total = self.statistic.value(self.statistic.zero()).astype(object)
        for m, own in sorted(state.items()):
            part = self.statistic.value(own).astype(object) * (fine * _CUT)
            total = total + (part * self.rows // m if m else part)
        whole = (total + _CUT // 2) // _CUT
        if fine == 1:
            return np.asarray(whole, dtype=object)
        found = np.empty(whole.size, dtype=object)
        found[:] = [Fraction(int(value), fine) for value in whole.ravel()]
        return found.reshape(whole.shape)


def weighing(source: Source, rows: int) -> Source:
    """The source with each sum over records weighted (`Weighted`), which a method's draw is handed; maps of units pass through."""
    return Through(source, lambda one: one if by_units(one) else Weighted(one, rows))
