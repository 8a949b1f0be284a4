"""How far one unit moves a statistic: k rows' worth, or where it counts once in each level of a column and these lie apart, sqrt(k).

A unit that counts once in each year, in at most k years, has k rows of different years. Where numbers of different years are different
numbers of the statistic (`separates`, of the map), what a unit adds in two years is orthogonal: it moves the statistic by at most sqrt(k) B
when it comes or goes, B the bound of one row. Replaced by another it moves each of up to 2k years by at most B, or k years by at most B',
that of one row replaced: sqrt(k) max(B', sqrt(2) B). Elsewhere the bound is k B and k B', as for any k rows (`protocol.allowance`). Under
Laplace noise nothing is won, for absolute values add up. Source: derived here.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from confide.protocol.units.over import StatisticOver
from confide.protocol.units.weighted import Weighted
from confide.protocol.units.whose import by_units
from confide.schema import Unit

__all__ = ["per_of", "rows_moved", "separates", "unit_squared"]


def per_of(schema: Any) -> str | None:
    """The column in each of whose levels a unit counts once; None for none. schema: a `Schema`, or a plan's dictionary."""
    unit = schema["unit"] if isinstance(schema, Mapping) else schema.unit
    if isinstance(unit, Mapping):
        return unit.get("per")
    return unit.per if isinstance(unit, Unit) else None


def rows_moved(statistic: Any, rows: int) -> int:
    """How many rows' worth one unit moves a statistic by: 1 where its map is of units, `rows` for any sum over records.

    A statistic that is told where units begin, and sums their rows one by one all the same, says so: `by_rows`.
    """
    if statistic.by_unit:
        return 1
    own = statistic
    while own is not None and not isinstance(own, Weighted) and not own.by_rows:
        own = own.statistic if isinstance(own, StatisticOver) else None
    return rows if own is not None or by_units(statistic) is None else 1


def separates(statistic: Any, per: str | None) -> bool:
    """Whether rows that differ in a column lie in numbers of their own; what stands around a statistic changes nothing of that."""
    own = statistic
    while isinstance(own, StatisticOver):
        own = own.statistic
    return per is not None and per in own.map.separates


def unit_squared(statistic: Any, relation: str, rows: int, per: str | None) -> Fraction:
    """The squared sensitivity to one unit, in the norm of the statistic. rows: the most that a unit has; per: `per_of` its schema."""
    moved, own = rows_moved(statistic, rows), Fraction(statistic.sensitivity_squared(relation))
    if moved == 1 or not separates(statistic, per):
        return own * moved**2
    alone = Fraction(statistic.sensitivity_squared("add-remove"))
    return rows * (alone if relation == "add-remove" else max(own, 2 * alone))
