"""The request of a method whose whole release is proved elsewhere, in one opaque event; what a plan asks of an allowance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from confide.errors import NoConversion, PrivacyError
from confide.guarantees import ApproxDP, Guarantee, PureDP
from confide.protocol.allowance import checked_privacy
from confide.protocol.events import Event, fold

__all__ = ["Proved"]


@dataclass(frozen=True)
class Proved:
    """A request, and the level at which a release is proved as a whole: the request's own, with what the proof assumes.

    Made by `Proved.of(privacy, method, schema)`, for single records under central trust.
    """

    requested: Guarantee
    level: PureDP | ApproxDP

    @classmethod
    def of(
        cls,
        privacy: Guarantee,
        method: Any,
        schema: Any,
        *,
        kinds: tuple[type[Any], ...] = (ApproxDP,),
        assumptions: tuple[str, ...] = (),
        who: str = "",
        instead: str = "",
    ) -> Proved:
        """Resolve the relation, and refuse what the proof does not cover.

        kinds: the kinds of request that it covers, of `PureDP` and `ApproxDP`; assumptions: what it rests on beyond the request's own; who:
        the name of what is proved, the method's when left out; instead: what to write for other requests.

        Raises `PrivacyError` for a relation, unit, trust or number of rows that the proof does not cover, `NoConversion` for another kind.
        """
        who = who or method.name
        also = f", or {instead}" if instead else ""
        relation = checked_privacy(privacy).relation or method.relations[0]
        if relation not in method.relations:
            raise PrivacyError(
                f"{method.name} has no guarantee under {relation!r}; it has: {', '.join(method.relations)}; "
                f"write relation={method.relations[0]!r} in the guarantee"
            )
        if not isinstance(privacy, kinds):
            pure = PureDP in kinds
            raise NoConversion(
                f"{who} is {'proved in epsilon and delta' if pure else '(epsilon, delta)-DP'} and nothing stronger is proved of it, got "
                f"{privacy}; write {'PureDP(1.0) or ' if pure else ''}ApproxDP(1.0, 1e-6){also}"
            )
        if privacy.unit != "record" or privacy.trust != "central" or schema.rows_per_unit != 1:
            raise PrivacyError(
                f"{who} protects single records under central trust, got unit={privacy.unit!r}, trust={privacy.trust!r}, "
                f"rows_per_unit={schema.rows_per_unit}; leave them at their defaults{also}"
            )
        labels: dict[str, Any] = {
            "relation": relation,
            "assumptions": tuple(dict.fromkeys((*privacy.assumptions, *assumptions))),
        }
        if isinstance(privacy, PureDP):
            return cls(privacy.resolve(relation), PureDP(privacy.epsilon, **labels))
        assert isinstance(privacy, ApproxDP)
        return cls(privacy.resolve(relation), ApproxDP(privacy.epsilon, privacy.delta, **labels))

    @property
    def relation(self) -> str:
        """The neighbouring relation of the statement."""
        assert self.level.relation is not None
        return self.level.relation

    @property
    def approx(self) -> ApproxDP:
        """The level of a request for (epsilon, delta)."""
        assert isinstance(self.level, ApproxDP)
        return self.level

    def guarantees(self, event: Event) -> tuple[Guarantee, ...]:
        """The proved statement, which is that of the event."""
        assert fold(event, self.relation) == self.level
        return (self.level,)
