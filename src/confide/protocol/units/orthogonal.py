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

from confide.protocol.units.weighted import rows_moved
from confide.schema import Unit

__all__ = ["per_of", "separates", "unit_squared"]


def per_of(schema: Any) -> str | None:
    """The column in each of whose levels a unit counts once; None for none. schema: a `Schema`, or a plan's dictionary."""
    unit = schema["unit"] if isinstance(schema, Mapping) else schema.unit
    if isinstance(unit, Mapping):
        return unit.get("per")
    return unit.per if isinstance(unit, Unit) else None


def separates(statistic: Any, per: str | None) -> bool:
    """Whether rows that differ in a column lie in numbers of their own; what stands around a statistic changes nothing of that."""
    own = statistic
    while hasattr(own, "statistic"):
        own = own.statistic
    return per is not None and per in getattr(own.map, "separates", ())


def unit_squared(statistic: Any, relation: str, rows: int, per: str | None) -> Fraction:
    """The squared sensitivity to one unit, in the norm of the statistic. rows: the most that a unit has; per: `per_of` its schema."""
    moved, own = rows_moved(statistic, rows), Fraction(statistic.sensitivity_squared(relation))
    if moved == 1 or not separates(statistic, per):
        return own * moved**2
    alone = Fraction(statistic.sensitivity_squared("add-remove"))
    return rows * (alone if relation == "add-remove" else max(own, 2 * alone))
