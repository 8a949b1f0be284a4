"""The request of objective perturbation: (epsilon, delta), nothing stronger, for single records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from confide.errors import NoConversion, PrivacyError
from confide.guarantees import ApproxDP, Guarantee
from confide.protocol import fold
from confide.protocol.allowance import checked_privacy

__all__ = ["ProvedRequest"]


@dataclass(frozen=True)
class ProvedRequest:
    """The request of objective perturbation, whose whole release is proved elsewhere; what a plan asks of an allowance."""

    requested: Guarantee
    level: ApproxDP

    @classmethod
    def of(cls, privacy: Guarantee, method: Any, schema: Any) -> ProvedRequest:
        relation = checked_privacy(privacy).relation or method.relations[0]
        if relation not in method.relations:
            raise PrivacyError(
                f"{method.name} has no guarantee under {relation!r}; it has: {', '.join(method.relations)}; "
                f"write relation={method.relations[0]!r} in the guarantee"
            )
        if not isinstance(privacy, ApproxDP) or not 0 < privacy.delta < 1:
            raise NoConversion(
                f"objective perturbation is (epsilon, delta)-DP and nothing stronger is proved of it, got {privacy}; write "
                'cf.ApproxDP(1.0, 1e-6), or Logistic(formula, mechanism="output") for other requests'
            )
        if privacy.unit != "record" or privacy.trust != "central" or schema.rows_per_unit != 1:
            raise PrivacyError(
                f"objective perturbation protects single records under central trust, got unit={privacy.unit!r}, trust={privacy.trust!r}, "
                f'rows_per_unit={schema.rows_per_unit}; leave them at their defaults, or write mechanism="output"'
            )
        assumed = tuple(dict.fromkeys((*privacy.assumptions, "float64 solver")))
        level = ApproxDP(privacy.epsilon, privacy.delta, relation=relation, assumptions=assumed)
        return cls(privacy.resolve(relation), level)

    @property
    def relation(self) -> str:
        return str(self.level.relation)

    def guarantees(self, event: Any) -> tuple[Guarantee, ...]:
        assert fold(event, self.relation) == self.level
        return (self.level,)
