"""The parts of a publication: plans in a plan, meters in a meter, releases in a release.

The spends of a part stand in the whole plan's tree under the name of the part, "model/moments", and its noise is drawn by the meter of the
whole, which alone knows what was charged: a part has a meter in front of that one, which puts its name before what it draws and can draw
nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from confide.errors import ReleaseError
from confide.protocol.events import Event, Opaque, Spend, Together, is_path, with_leaves
from confide.protocol.statistic import Statistic

if TYPE_CHECKING:
    from confide.protocol.meter import Meter
    from confide.protocol.noise import Noise
    from confide.protocol.plan import Plan
    from confide.protocol.release import Noisy

__all__ = ["PartMeter", "names_of", "of_parts", "prefixed", "statistics_of"]

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


class PartMeter:
    """What the draw of a part is handed: the verbs of a meter, for the spends of this part alone."""

    def __init__(self, outer: Meter, part: str, plan: Plan) -> None:
        self._outer, self._part, self._plan = outer, part, plan
        self.declined = False
        self._closed = False

    def _name(self, name: str) -> str:
        if self._closed:
            raise ReleaseError(f"{name!r} was drawn after its question was closed; draw inside the method's draw")
        return prefixed(self._part, name)

    def draw(self, name: str, integers: NDArray[Any]) -> Noisy:
        """As `Meter.draw`."""
        return self._outer.draw(self._name(name), integers)

    def choose(self, name: str, scores: NDArray[Any], lengths: NDArray[Any] | None = None) -> int:
        """As `Meter.choose`."""
        return self._outer.choose(self._name(name), scores, lengths)

    def test(self, name: str, safety: NDArray[Any]) -> bool:
        """As `Meter.test`."""
        return self._outer.test(self._name(name), safety)

    def drawn(self, name: str) -> Noisy:
        """As `Meter.drawn`."""
        return self._outer.drawn(self._name(name))

    def opaque(self, name: str, value: NDArray[Any], grid: Fraction, noise_sd: float | None = None) -> Noisy:
        """As `Meter.opaque`."""
        return self._outer.opaque(self._name(name), value, grid, noise_sd)

    def noise(self, name: str) -> Noise:
        """As `Meter.noise`."""
        return self._outer.noise(self._name(name))

    def decline(self) -> None:
        """As `Meter.decline`, for this part."""
        self.declined = True

    def close(self) -> None:
        """Assert that what was drawn is one branch of the part's own plan; nothing more is drawn for it."""
        self._closed = True
        if not is_path(self._plan.event, frozenset(names_of(self._part, self._outer.all_drawn))):
            raise ReleaseError(
                "what was drawn is no branch of the plan; a release draws every spend of one branch, once"
            )
