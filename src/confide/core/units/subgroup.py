"""Subgroups: a statistic of those records alone that a public condition names.

Guarantee: that of the statistic. A record outside counts as none, so that neighbors under add-remove stay neighbors
or become equal. Under substitution a record may also enter or leave the subgroup. `Subset` then states the larger of
the two sensitivities. A plan for which that is not enough (a method whose number of records is public, an opaque
release) is refused. The size of a subgroup is private under both relations.

It stands here, below the room of the record maps, because plans are made here. For every method, and whatever
statistics its draw puts together between the rounds, records are read through the condition
(`confide.core.meter.within`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from confide.core.events import ADDITIVE, Branches, BudgetItem, Composed, Event, leaves, nodes, with_leaves
from confide.core.exact import digest
from confide.core.lost_values import NAME as LOST, PerhapsInside
from confide.core.statistic import Codes, MapOver, RecordMap, Statistic, StatisticOver
from confide.core.units.privacy_unit import by_units, of_rows, per_of, unit_squared
from confide.errors import PlanError
from confide.guarantees.validation import is_count, is_number
from confide.schema.formulas.conditions import Predicate, parse_predicate

if TYPE_CHECKING:
    pass


# What a method may need beyond sums that no subgroup has: a public number of records, their positions, a stream of them.
_WITHOUT = {
    "fixed_n": "has a public number of records",
    "positions": "reads records by their position",
    "stream": "reads records individually",
}


@dataclass(frozen=True)
class Where(MapOver):
    """A record map that is zero outside a subgroup: bounds stay, because a row of zeros is an allowed row.

    >>> from confide.schema import Integer, Schema
    >>> from confide.core import Total
    >>> schema = Schema({"age": Integer(0, 100), "y": Integer(0, 9)})
    >>> class Own:
    ...     columns, width, l1, l2_squared, digest = ("y",), 1, 9, 81, "y"
    ...     def __call__(self, codes): return codes
    >>> old = Where(Own(), parse_predicate("age >= 65", schema))
    >>> old.columns, old(np.array([[4.0, 5.0], [70.0, 20.0]])).tolist()
    (('y', 'age'), [[4.0, 0.0]])
    """

    map: RecordMap
    predicate: Predicate | PerhapsInside

    @cached_property
    def columns(self) -> tuple[str, ...]:
        own = self.map.columns
        return (*own, *(name for name in self.predicate.columns if name not in own))

    @cached_property
    def digest(self) -> str:
        return digest(["where", self.map.digest, self.predicate.to_list()])

    @cached_property
    def _places(self) -> list[int]:
        return [self.columns.index(name) for name in self.predicate.columns]

    def inside(self, codes: Codes) -> NDArray[np.bool_]:
        """Which records are in the subgroup, (rows,)."""
        return self.predicate(codes[self._places])

    def own(self, codes: Codes) -> Codes:
        """The rows of codes that the map itself asks for."""
        return codes[: len(self.map.columns)]

    def __call__(self, codes: Codes) -> Codes:
        inside = self.inside(codes)
        rows = np.zeros((self.width, codes.shape[1]))
        if inside.any():
            rows[:, inside] = self.map(self.own(codes)[:, inside])
        return rows


@dataclass(frozen=True)
class _State:
    """What is added up of the subgroup, and of all others, which is thrown away."""

    inside: Any
    outside: Any


@dataclass(frozen=True)
class Subset(StatisticOver):
    """A statistic over the records of a subgroup. Sensitivities: under substitution a record may also enter or leave.

    The others are added up too, in a state that nobody reads, so that a subgroup without records takes about as long
    as one that has all of them. A batch with records of both kinds is added up in two parts and takes longer (counts:
    up to twice as long). Anyone who can time a pass learns something about how the subgroup is spread over the
    batches. No guarantee here covers that.
    """

    statistic: Statistic
    predicate: Predicate | PerhapsInside

    @cached_property
    def map(self) -> Where:
        return Where(self.statistic.map, self.predicate)

    def zero(self) -> _State:
        return _State(self.statistic.zero(), self.statistic.zero())

    def update(self, state: _State, codes: Codes) -> _State:
        inside, own = self.map.inside(codes), self.map.own(codes)
        return _State(self._added(state.inside, own, inside), self._added(state.outside, own, ~inside))

    def _added(self, state: Any, codes: Codes, chosen: NDArray[np.bool_]) -> Any:
        if not chosen.any():
            return state
        row = by_units(self.statistic)
        if row is None:
            return self.statistic.update(state, codes[:, chosen])
        place = self.statistic.map.columns.index(row)
        return self.statistic.update(state, of_rows(codes, chosen, place))

    def merge(self, a: _State, b: _State) -> _State:
        return _State(self.statistic.merge(a.inside, b.inside), self.statistic.merge(a.outside, b.outside))

    def value(self, state: _State) -> NDArray[Any]:
        return self.statistic.value(state.inside)


def in_subgroup(
    method: Any, schema: Any, relation: str, event: Event, statistics: Mapping[str, Statistic]
) -> tuple[Event, dict[str, Statistic]]:
    """A plan's events and statistics as those of the method's `where`; `PlanError` for a method that has no subgroups."""
    predicate = parse_predicate(method.where, schema)
    check_subgroup(method)
    # unread cells are counted where the condition cannot be told, too
    perhaps = PerhapsInside(predicate, schema.behind(predicate.columns))
    read: dict[str, Statistic] = {
        name: Subset(one, perhaps if name == LOST else predicate) for name, one in statistics.items()
    }
    if relation == "substitute":
        plain = "add-remove" in method.relations and all(
            isinstance(one, (BudgetItem, Composed, Branches)) for one in nodes(event)
        )
        for leaf in leaves(event):
            if not plain or not _covered(leaf, read, schema):
                raise PlanError(
                    f"{method.name} has no guarantee for a subgroup under 'substitute', where a record may also enter or leave it",
                    "write relation='add-remove' in the guarantee, or leave where out",
                )

    def named(leaf: Any) -> Any:
        return (
            replace(leaf, map=read[leaf.name].map.digest)
            if isinstance(leaf, BudgetItem) and leaf.name in read
            else leaf
        )

    return with_leaves(event, named), read


def check_subgroup(method: Any) -> None:
    """Raise `PlanError` for a method that cannot be asked about a subgroup, whatever the records."""
    for need, why in _WITHOUT.items():
        if need in method.needs:
            raise PlanError(
                f"{method.name} {why}, and the size of a subgroup is private",
                f"leave where={method.where!r} out, or use a method that adds "
                "records up, such as cf.regression.LeastSquares or cf.classification.ClassMeans",
            )


def _covered(leaf: Any, statistics: Mapping[str, Statistic], schema: Any) -> bool:
    """Whether a budget item's sensitivity also covers a record that enters or leaves."""
    if not isinstance(leaf, BudgetItem) or leaf.law not in ADDITIVE or leaf.name not in statistics:
        return False
    own, rows = statistics[leaf.name], schema.rows_per_unit
    least = unit_squared(own, "substitute", rows, per_of(schema))
    if leaf.norm == "l1":
        least = own.sensitivity_l1("substitute") ** 2 * rows**2
    return (leaf.sensitivity * leaf.step) ** 2 >= least


def subgroup_size(where: str, schema: Any, n: int | None, guess: Mapping[str, Any] | None) -> tuple[int | None, str]:
    """How many records a forecast counts on in a subgroup, and the words for it: a guess from public facts, of n records in all."""
    predicate = parse_predicate(where, schema)
    if guess is not None and not isinstance(guess, Mapping):
        raise PlanError(f"guess must be a mapping, got {type(guess).__name__}", 'write guess={"where": 0.2}')
    given = (guess or {}).get("where")
    if given is not None and not (is_number(given) and 0 < given <= 1):
        raise PlanError(
            f"the guessed share of a subgroup must be above 0 and at most 1, got {given!r}",
            'write guess={"where": 0.2}',
        )
    share = predicate.share(schema) if given is None else float(given)
    source = "as you say" if given is not None else 'guessed from the schema alone; guess={"where": ...} says better'
    told = f"where: forecasts count the records of the subgroup, {share:.2g} of all records ({source})"
    if not is_count(n):
        return n, f"{told}; {_ONCE}"
    size = round(n * share)
    return size, f"{told}: {size:,} of n = {n:,}; {_ONCE}"


# What subgroups that are asked one by one cost too much.
_ONCE = (
    "its size is private. Subgroups that divide the records, such as each level of a column, are one crossing: asked together, in a table "
    "or as a term of the formula, they cost once"
)
