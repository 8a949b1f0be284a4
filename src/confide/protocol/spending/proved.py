"""The request of a method whose whole release is proved elsewhere, in one opaque event; what a plan asks of an allowance."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from confide.errors import NoConversion, PlanError, PrivacyError
from confide.guarantees import ApproxDP, Guarantee, PureDP, TradeOff
from confide.guarantees.curves import Curve
from confide.guarantees.rounding import float_up
from confide.protocol.events import Event, fold
from confide.protocol.spending.allowance import Allowance, relation_of
from confide.protocol.units.whose import resolved, unit_assumptions

__all__ = ["Proved"]


@dataclass(frozen=True)
class Proved:
    """A request, and the level at which a release is proved: the request's own, with what the proof assumes.

    Made by `Proved.of(privacy, method, schema)`, for single records under central trust. curve: the trade-off function of the whole
    release, where that is proved: it is stated first, and the level follows from it.
    """

    requested: Guarantee
    level: PureDP | ApproxDP
    curve: Curve | None = None

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
        relation = relation_of(privacy, method)
        if not isinstance(privacy, kinds):
            pure = PureDP in kinds
            raise NoConversion(
                f"{who} is {'proved in epsilon and delta' if pure else '(epsilon, delta)-DP'} and nothing stronger is proved of it, got "
                f"{privacy}; write {'PureDP(1.0) or ' if pure else ''}ApproxDP(1.0, 1e-6){also}"
            )
        asked = resolved(privacy, relation, schema, who)
        if schema.rows_per_unit != 1:
            raise PrivacyError(
                f"{who} protects single records, got rows_per_unit={schema.rows_per_unit}; leave it out, or enforce one row: "
                f'unit=cf.Unit("person_id"){also}'
            )
        labels: dict[str, Any] = {
            "relation": relation,
            "unit": asked.unit,
            "assumptions": tuple(dict.fromkeys((*privacy.assumptions, *unit_assumptions(schema), *assumptions))),
        }
        if isinstance(asked, PureDP):
            return cls(asked, PureDP(asked.epsilon, **labels))
        assert isinstance(asked, ApproxDP)
        return cls(asked, ApproxDP(asked.epsilon, asked.delta, **labels))

    def by(self, curve: Curve) -> Proved:
        """The same request, by a release whose whole curve is proved."""
        return replace(self, curve=curve)

    @property
    def statement(self) -> PureDP | ApproxDP | TradeOff:
        """What is proved, natively."""
        level = self.level
        if self.curve is None:
            return level
        return TradeOff(self.curve, relation=level.relation, unit=level.unit, assumptions=level.assumptions)

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

    @property
    def pure(self) -> Allowance:
        """Its epsilon, to be shared out among ordinary draws; what they leave is `rest`."""
        level = self.level
        labels: dict[str, Any] = {"relation": self.relation, "unit": level.unit, "assumptions": level.assumptions}
        return Allowance(self.requested, PureDP(self.level.epsilon, **labels), 1)

    def rest(self, *events: Event) -> PureDP | ApproxDP:
        """The level that is left after draws of pure guarantees, its epsilon rounded down."""
        spent = [fold(event, self.relation) for event in events]
        left = Fraction(self.level.epsilon) - sum(Fraction(one.epsilon) for one in spent if isinstance(one, PureDP))
        return replace(self.level, epsilon=-float_up(-left))

    def guarantees(self, event: Event) -> tuple[Guarantee, ...]:
        """The proved statements; the events cost no more. Raises `PlanError` when they do, which would be an error of the method."""
        folded = fold(event, self.relation)
        if self.curve is not None:
            if not isinstance(folded, TradeOff) or folded.curve != self.curve:
                raise PlanError("the events of this plan have another curve than the one that is proved")
            return (self.statement, self.level)
        if type(folded) is not type(self.level) or not _within(folded, self.level):
            raise PlanError("the events of this plan do not fit its request; their parts must add up to at most that")
        return (self.level,)


def _within(folded: Any, level: PureDP | ApproxDP) -> bool:
    failure = folded.delta <= level.delta if isinstance(level, ApproxDP) else True
    return bool(folded.epsilon <= level.epsilon and failure)
