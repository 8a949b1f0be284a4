"""The parts of a publication: plans in a plan, meters in a meter, releases in a release.

The spends of a part stand in the whole plan's tree under the name of the part, "model/moments", and its noise is drawn by the meter of the
whole, which alone knows what was charged: a part has a meter in front of that one (`meter.PartMeter`), which puts its name before what it
draws and can draw nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from confide.protocol.events import Event, Opaque, Spend, Together, with_leaves
from confide.protocol.statistic import Statistic

if TYPE_CHECKING:
    from confide.protocol.plan import Plan

__all__ = ["names_of", "of_parts", "prefixed", "statistics_of"]

#: Between the name of a part and a name in it.
_OF = "/"


def prefixed(part: str, name: str) -> str:
    """The name of a spend or a number of a part, in the whole."""
    return f"{part}{_OF}{name}"


def names_of(part: str, whole: Mapping[str, Any]) -> dict[str, Any]:
    """What a mapping of the whole holds for a part, by the part's own names."""
    start = prefixed(part, "")
    return {name[len(start) :]: value for name, value in whole.items() if name.startswith(start)}


def of_parts(plans: Mapping[str, Plan]) -> Event:
    """The event of a whole: all that its parts draw, one after the other."""
    return Together(tuple(_named(part, plan.event) for part, plan in plans.items()))


def _named(part: str, event: Event) -> Event:
    def named(leaf: Spend | Opaque) -> Spend | Opaque:
        if isinstance(leaf, Opaque) and leaf.hiding is not None:
            leaf = replace(leaf, hiding=replace(leaf.hiding, name=prefixed(part, leaf.hiding.name)))
        return replace(leaf, name=prefixed(part, leaf.name))

    return with_leaves(event, named)


def statistics_of(plans: Mapping[str, Plan]) -> dict[str, Statistic]:
    """The live statistics of all parts."""
    return {prefixed(part, name): one for part, plan in plans.items() for name, one in plan.statistics.items()}
