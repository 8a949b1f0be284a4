"""What a method's draw reads: the records of its subgroup, coded once where a plan has several passes."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import cast

from confide.errors import PlanError
from confide.protocol.plan import Plan
from confide.protocol.source import Source, Through
from confide.protocol.statistic import Statistic
from confide.protocol.units.weighted import Weighted, weighing
from confide.protocol.units.where import Subset
from confide.schema.formulas.predicate import Predicate, parse_predicate

__all__ = ["check_read", "for_one_draw", "within"]


def for_one_draw(source: Source, plan: Plan) -> AbstractContextManager[Source]:
    """What a plan's draw reads: where it reads the records more than once, a source that codes them once (`RecordSource.kept`).

    Asked of the class, so that a source that stands before another one, to watch it, is asked for every pass itself.
    """
    keep = getattr(type(source), "kept", None)
    if keep is None or plan.passes < 2:
        return nullcontext(source)
    rows = dict.fromkeys(row for statistic in plan.statistics.values() for row in statistic.map.columns)
    return cast("AbstractContextManager[Source]", keep(source, tuple(rows)))


class _Subgroup(Through):
    """A source whose sums are those of a subgroup: what a method's draw is handed."""

    def __init__(self, source: Source, predicate: Predicate) -> None:
        super().__init__(source, lambda one: Subset(one, predicate))

    def count(self) -> int:
        raise PlanError("the number of records in a subgroup is private; count them with noise")


def within(source: Source, plan: Plan) -> tuple[Source, Plan]:
    """What a method's draw is handed: the records of its subgroup, and the plan with the method's own statistics.

    A histogram of units is drawn beside them, of all units.
    """
    own = {name: _own(one) for name, one in plan.statistics.items() if not getattr(one, "by_unit", False)}
    if plan.where is not None:
        source = _Subgroup(source, parse_predicate(plan.where, source.schema))
    if plan.rule == "weight":
        source = weighing(source, int(plan.schema["rows_per_unit"]))
    changed = plan.where is not None or plan.rule == "weight" or len(own) != len(plan.statistics)
    return source, replace(plan, statistics=own) if changed else plan


def _own(statistic: Statistic) -> Statistic:
    """A method's own statistic, which `Weighted` and `Subset` stand around."""
    while isinstance(statistic, (Subset, Weighted)):
        statistic = statistic.statistic
    return statistic


def check_read(made: Plan, where: str | None) -> None:
    """Raise `PlanError` for a plan that is about other records than its method asks for, as one is that was not made by `Plan.of`."""
    read = where is None or all(
        isinstance(one, Subset) or getattr(one, "by_unit", False) for one in made.statistics.values()
    )
    if made.where != where or not read:
        raise PlanError(
            f"the plan of {made.method.name!r} is not about the subgroup where={where!r}: its record maps cannot be told to leave the "
            "others out; leave where out, or make the plan in the method with Plan.of"
        )
