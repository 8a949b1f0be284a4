"""Tables in which a person counts once in each year: what is shown, at which shares, and what hangs together across years.

Under `cf.Unit("person_id", per="year")` a person has one row in each of at most `groups` years. A cell of one year holds a person at most
once, so that its count is a number of persons, and its interval that of independent records. Cells of different years hold the same
persons: sums over years are no numbers of persons, and are not shown; differences between years and tests over several have no interval for
the population, as what a person is in one year and in the next hang together.

Every marginal that is drawn has the year among its attributes, so that a person moves it by sqrt(groups) rows at most
(`protocol.orthogonal`); the shares are the best ones of the table of one year. Simultaneous intervals take years as independent, which for
normal errors is on the safe side whatever their correlation (Royen 2014, the Gaussian correlation inequality).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from confide.aggregates.cells.crossing import Axes
from confide.errors import PlanError
from confide.methods.tables.cells.layout import Layout, both_sides
from confide.methods.tables.cells.strategy import Strategy
from confide.protocol.units.orthogonal import per_of
from confide.schema.formulas.names import quoted

__all__ = [
    "LevelStrategy",
    "check_one_level",
    "check_one_test",
    "check_within",
    "level_axis",
    "of_each_level",
    "whose_words",
]


def level_axis(layout: Layout) -> int | None:
    """The place of the attribute in each of whose levels a unit counts once; None where units count otherwise."""
    per = per_of(layout.crossing.schema)
    if per is None:
        return None
    for axis, own in enumerate(layout.crossing.attributes):
        if own.column == per and own.coded:
            return axis
    raise PlanError(
        f"each {layout.crossing.schema.protects} counts once in each {per}, and {layout.formula!r} is not crossed with {per}: sums over "
        f"its levels are no numbers of {layout.crossing.schema.protects}; write {_crossed(layout, per)!r}, or read the records with "
        f"unit=cf.Unit({layout.crossing.schema.protects!r}), where each counts once in the whole table"
    )


def _crossed(layout: Layout, per: str) -> str:
    left, right = (part.strip() for part in both_sides(layout.formula))
    crossed = quoted(per) if right in ("", "1") else f"{quoted(per)} * ({right})"
    return f"{left} ~ {crossed}" if left else crossed


def of_each_level(layout: Layout) -> Layout:
    """The layout with those marginals alone that say the level; the same layout where units count otherwise."""
    axis = level_axis(layout)
    return layout if axis is None else replace(layout, shown=tuple(axes for axes in layout.shown if axis in axes))


def whose_words(schema: Any) -> str:
    """Of whom numbers are, for a title; nothing where units count otherwise."""
    per = per_of(schema)
    return "" if per is None else f" of values of {schema.protects} in each {per}"


def check_one_level(layout: Layout, reading: str, pairs: Any) -> None:
    """Refuse to compare cells of several levels for the population. pairs: (axes, one, other) of cells, by place."""
    per = per_of(layout.crossing.schema)
    if per is None or reading != "population":
        return
    axis = level_axis(layout)
    for axes, one, other in pairs:
        place = axes.index(axis)
        levels = [np.unravel_index(cell, layout.crossing.shape(axes))[place] for cell in (one, other)]
        if levels[0] != levels[1]:
            person = layout.crossing.schema.protects
            raise PlanError(
                f"cells of two levels of {per} hold the same {person}, whose rows hang together, so that their difference has no interval "
                f"for the population; ask for these records, covers='dataset', or compare cells of one {per}"
            )


def check_one_test(schema: Any) -> None:
    """Refuse the tests of a table in which a unit counts in several levels: their null laws are of independent records."""
    per = per_of(schema)
    if per is not None:
        person = schema.protects
        raise PlanError(
            f"tests take rows as independent, and this table has those of one {person} in several levels of {per}; ask one level, "
            f'where="{per} == ...", of records that are read with unit=cf.Unit({person!r})'
        )


def check_within(layout: Layout, within: Axes) -> None:
    """Refuse shares over several levels, which are no shares of units."""
    axis = level_axis(layout)
    if axis is not None and axis not in within:
        name = layout.crossing.attributes[axis].name
        raise PlanError(
            f"shares of a table in which each {layout.crossing.schema.protects} counts once in each {name} are within {name}; write "
            f"within={name!r}"
        )


@dataclass(frozen=True)
class LevelStrategy:
    """The best shares of the table of one level, for marginals that all have the level's attribute `axis` too. groups: of a unit."""

    one: Strategy
    axis: int
    groups: int

    @classmethod
    def of(cls, layout: Layout, axis: int) -> LevelStrategy:
        """Of a layout whose marginals all have the attribute."""

        def without(axes: Axes) -> Axes:
            return tuple(place - (place > axis) for place in axes if place != axis)

        sizes = tuple(size for place, size in enumerate(layout.crossing.sizes) if place != axis)
        closure = tuple(without(axes) for axes in layout.closure if axis in axes)
        one = Strategy.of(sizes, closure, tuple(without(axes) for axes in layout.shown))
        return cls(one, axis, int(layout.crossing.schema.rows_per_unit))

    def _with(self, axes: Axes) -> Axes:
        return tuple(sorted((self.axis, *(place + (place >= self.axis) for place in axes))))

    @property
    def shares(self) -> Mapping[Axes, Fraction]:
        """Of marginals of the whole table."""
        return {self._with(axes): share for axes, share in self.one.shares.items()}

    def variance(self, axes: Axes) -> float:
        """The noise variance of a cell, in units of the sensitivity to one row over mu."""
        inside = tuple(place - (place > self.axis) for place in axes if place != self.axis)
        return self.groups * self.one.variance(inside)
