"""What a request allows a method to spend, shared out among its spends in exact fractions.

The randomness that a release is handed: exact laws on integers, from words that are secret or, in simulations, seeded.

The request of a method whose whole release is proved elsewhere, in one opaque event; what a plan asks of an allowance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import nextafter
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from confide.core.events import BudgetItem, Composed, Event, Test, exact_cost, fold
from confide.core.exact import round_up, sqrt_up
from confide.core.lost_values import NAME as LOST, SHARE, ReadCounts, counts_of
from confide.core.ranges import RangeStep, spend_name
from confide.core.statistic import Statistic, Total
from confide.core.units.privacy_unit import (
    Weighted,
    by_units,
    per_of,
    resolved,
    rows_moved,
    rule_of,
    unit_assumptions,
    unit_squared,
)
from confide.errors import NoConversion, PlanError, PrivacyError
from confide.guarantees import GDP, ApproxDP, Guarantee, PureDP, TradeOff, calibrate_gaussian, calibrate_pure
from confide.guarantees.curves import Curve
from confide.guarantees.validation import check_reach, float_up
from confide.schema import Schema, Unit

if TYPE_CHECKING:
    from confide.guarantees.mechanisms.ptr import GaussianReply


#: `Method.native` of a method that adds Laplace noise where a pure guarantee is asked for, and Gaussian noise otherwise.
EITHER = "GDP or PureDP"

#: Integer steps in one unit of a safety, which one record moves by at most 1.
SAFETY_STEPS = 1 << 10

#: Of mu^2 where a unit is enforced, for the histogram of its units' rows (`core.units.contributions`).
UNIT_SHARE = Fraction(1, 100)

# Noise is released on a grid at least this fine against its scale, so that the rounding's own variance (1/12 step^2) is below
# 1e-7 of the noise's.
_FINE = 1 << 10
# The exact samplers give 64-bit integers with room to spare up to this scale in steps.
_COARSE = 1 << 56


def checked_privacy(privacy: object) -> Guarantee:
    """The request itself, when it is a guarantee at levels whose squares are ordinary floats; `PrivacyError` otherwise."""
    if not isinstance(privacy, Guarantee):
        shown = repr(privacy) if isinstance(privacy, (int, float, str, type(None))) else type(privacy).__name__
        raise PrivacyError(
            f"privacy says what the release may cost and has no default, got {shown}",
            "write privacy=cf.GDP(1.0) or privacy=cf.ApproxDP(1.0, 1e-6)",
        )
    check_reach(privacy)
    return privacy


def relation_of(privacy: Guarantee, method: Any) -> str:
    """The relation of a request to a method: the request's own, else the method's first; `PrivacyError` for one that it has not."""
    relation: str = checked_privacy(privacy).relation or method.relations[0]
    if relation not in method.relations:
        raise PrivacyError(
            f"{method.name} has no guarantee under {relation!r}; it has: {', '.join(method.relations)}",
            f"write relation={method.relations[0]!r} in the guarantee",
        )
    return relation


@dataclass(frozen=True)
class Allowance:
    """The calibrated level of a request, shared out in exact fractions: of the square of mu for a Gaussian method, of
    epsilon for a pure one.

    Made by `Allowance.of(privacy, method, schema)`: resolves the relation (the value's own, else the method's first),
    and refuses one that the method does not have. It calibrates the level of the method's native guarantee, and
    carries the schema's `rows_per_unit` into every sensitivity. A unit moves a sum at most k times the move of one
    row, whose Euclidean and Frobenius bounds are for one row added, removed or replaced. Under an enforced unit at
    most k rows of it are there (keep) or weigh k together (weight). Only its own term C of the sum changes, |C| <=
    sum v_r |g(r)| <= k B. Replaced, with another number of rows too, it gives |C - C'| <= k B' by pairing both
    weightings, padded with zero rows (B' >= B). (Once in each level of a column: `orthogonal`.) Elsewhere k is a
    declaration, and the statement says so.
    """

    requested: Guarantee
    level: GDP | PureDP
    rows_per_unit: int
    part: Fraction = Fraction(1)
    weighted: bool = False
    per: str | None = None
    step: RangeStep | None = None
    counts_lost: bool = False

    @classmethod
    def of(
        cls,
        privacy: Guarantee,
        method: Any,
        schema: Any,
        *,
        failure: Fraction | None = None,
        assumptions: tuple[str, ...] = (),
    ) -> Allowance:
        """The allowance of a request. `failure`: for methods whose guarantee may fail with a small probability, such as
        propose-test-release: the share of delta that is set aside for that, where Gaussian DP with a delta is
        requested. `assumptions`: what the method's guarantee rests on beyond exact arithmetic.
        """
        relation = relation_of(privacy, method)
        asked = resolved(privacy, relation, schema, method.name, per=method.per_level)
        rule = rule_of(method, schema)
        assumed = privacy.assumptions + unit_assumptions(schema, rule) + assumptions
        labels: dict[str, Any] = {"relation": relation, "unit": asked.unit, "assumptions": assumed}
        match "PureDP" if method.native == EITHER and isinstance(privacy, PureDP) else method.native:
            case "GDP" if failure is not None:
                level: GDP | PureDP = GDP(*_with_failure(privacy, method, failure), **labels)
            case "GDP" | "GDP or PureDP":
                level = GDP(calibrate_gaussian(privacy), **labels)
            case "PureDP":
                level = PureDP(calibrate_pure(privacy), **labels)
            case other:
                raise PlanError(
                    f"an allowance is calibrated for methods that are natively GDP, PureDP or either, {method.name} says {other!r}"
                )
        # what a Gaussian level of an enforced unit leaves for the histogram of contributions
        counted = isinstance(schema.unit, Unit) and method.native == "GDP" and failure is None
        return cls(
            asked,
            level,
            schema.rows_per_unit,
            1 - UNIT_SHARE if counted else Fraction(1),
            weighted=rule == "weight",
            per=per_of(schema),
            step=method.ranges(schema),
            counts_lost=method.counts_lost and method.clipping_check and isinstance(level, GDP),
        )

    def bounded(self, statistic: Statistic) -> Statistic:
        """The statistic as it is drawn: by weight each row counts min(1, k/m); a map of units bounds them itself."""
        if not self.weighted or by_units(statistic):
            return statistic
        return Weighted(statistic, self.rows_per_unit)

    @property
    def relation(self) -> str:
        """The neighboring relation of every statement."""
        assert self.level.relation is not None
        return self.level.relation

    @cached_property
    def amount(self) -> Fraction:
        """What the method may spend, exactly: the square of mu, or epsilon. The parts that count the rows of an enforced unit, and
        clipped and unread values, and that of its ranges, are subtracted.
        """
        ranges = 0 if self.step is None else self.step.share
        return self.part * self._whole * (1 - ranges - (SHARE if self.counts_lost else 0))

    def with_ranges(self, event: Event, statistics: Mapping[str, Statistic]) -> tuple[Event, dict[str, Statistic]]:
        """A method's events and statistics after those of its ranges, each column's with its own noise."""
        step = self.step
        if step is None:
            return event, dict(statistics)
        alone, first = self._alone, {spend_name(name): step.statistic(name) for name in step.columns}
        each = step.share / len(first)
        spends = tuple(alone.spend(name, one, each) for name, one in first.items())
        return Composed((*spends, *(event.parts if isinstance(event, Composed) else (event,)))), {**first, **statistics}

    def with_lost(
        self, event: Event, statistics: Mapping[str, Statistic], schema: Schema, parameters: Mapping[str, Any]
    ) -> tuple[Event, dict[str, Statistic], tuple[str, ...]]:
        """The same and the counts of clipped and unread values, with what is counted. parameters: of the method."""
        rows = counts_of(statistics, schema, parameters)
        if not rows.names:
            return event, dict(statistics), ()
        counts = ReadCounts(rows)
        parts = event.parts if isinstance(event, Composed) else (event,)
        return Composed((*parts, self._alone.spend(LOST, counts, SHARE))), {**statistics, LOST: counts}, rows.names

    @property
    def _alone(self) -> Allowance:
        """Of what is drawn beside a method's own."""
        return replace(self, step=None, counts_lost=False)

    @cached_property
    def _whole(self) -> Fraction:
        return Fraction(self.level.mu) ** 2 if isinstance(self.level, GDP) else Fraction(self.level.epsilon)

    @property
    def delta(self) -> Fraction:
        """What is set aside for a guarantee that may fail, exactly; 0 for most methods."""
        return Fraction(self.level.delta) if isinstance(self.level, GDP) else Fraction(0)

    def reply(self, gamma_plan: float, beta: float) -> GaussianReply:
        """The law of a hidden test that shall pass with probability 1 - beta at a safety of `gamma_plan`, at this level."""
        from confide.guarantees.mechanisms.ptr import GaussianReply

        assert isinstance(self.level, GDP)
        return GaussianReply(self.level.mu, self.level.delta, float(gamma_plan), beta)

    def test(
        self, name: str, statistic: Statistic, share: Fraction, then: Event, *, failure: Fraction = Fraction(1)
    ) -> Test:
        """A safety test with `share` of the amount, after which `then` is drawn when it passes (`Meter.test`).

        statistic: one number, the safety in `SAFETY_STEPS` steps of one unit. failure: the share of `delta` that it may pass by
        chance on data that are next to unsafe ones.
        """
        return Test(self.spend(name, statistic, share), then, self.delta * failure, shown=False)

    def certify(self, on: BudgetItem, then: Event, *, failure: Fraction = Fraction(1)) -> Test:
        """A certificate that is released, and `then`, whose sensitivity it bounds but for a failure with `failure` of `delta`."""
        return Test(on, then, self.delta * failure, shown=True)

    def spend(self, name: str, statistic: Statistic, share: Fraction, *, law: str = "") -> BudgetItem:
        """Noise for a statistic with `share` of the amount; its scale is an exact rational, rounded up.

        law: "grid_gaussian" (the default of a Gaussian allowance), "grid_laplace" (of a pure one), or "discrete_laplace" for
        integer output of a pure one.
        """
        gaussian = isinstance(self.level, GDP)
        law = law or ("grid_gaussian" if gaussian else "grid_laplace")
        if law not in (("grid_gaussian",) if gaussian else ("grid_laplace", "discrete_laplace")):
            raise PlanError(f"the law {law!r} does not fit an allowance in {type(self.level).__name__}")
        allowed, statistic = self._share(name, share), self.bounded(statistic)
        rows = rows_moved(statistic, self.rows_per_unit)
        if gaussian:
            norm = "l2" if statistic.norm == "cells" else statistic.norm
            sensitivity = sqrt_up(unit_squared(statistic, self.relation, self.rows_per_unit, self.per))
            scale = sensitivity**2 / allowed  # sigma^2
        else:
            norm = "l1"
            sensitivity = statistic.sensitivity_l1(self.relation) * rows
            scale = (sensitivity / allowed) ** 2  # s^2, so that one comparison serves both
        step = min(self._step(name, law, scale), statistic.grain)
        sensitivity /= step
        scale = round_up(sensitivity**2 / allowed if gaussian else sensitivity / allowed)
        return BudgetItem(name, law, sensitivity, norm, scale, step, statistic.shape, statistic.map.digest)

    def hiding(self, name: str, apart: Fraction, share: Fraction, shape: tuple[int, ...]) -> BudgetItem:
        """Gaussian noise that the meter adds last to an opaque release (`OpaqueRelease.hiding`), with `share` of the amount.

        apart: how far its integers are apart at most, in the Euclidean norm, on two neighbors whose ideal numbers agree.
        """
        if not isinstance(self.level, GDP):
            raise PlanError(f"what hides {name!r} is Gaussian", "say native = 'GDP' in the method")
        allowed = self._share(name, share)
        step = self._step(name, "grid_gaussian", apart**2 / allowed)
        scale = round_up((apart / step) ** 2 / allowed)
        return BudgetItem(name, "grid_gaussian", apart / step, "l2", scale, step, shape)

    def _step(self, name: str, law: str, squared: Fraction) -> Fraction:
        """The size of a released step in the statistic's integers, fine against noise of that squared scale."""
        if squared >= _COARSE**2:
            raise PlanError(
                f"{self.requested} with {self.rows_per_unit} rows per unit asks for noise beyond 2^56 steps in {name!r}",
                "use fewer grid steps, fewer rows per unit or a larger budget",
            )
        if not law.startswith("grid") or squared >= _FINE**2:
            return Fraction(1)
        # 2^-k, k the least with _FINE^2 <= squared 4^k
        quotient = -(-(_FINE**2 * squared.denominator) // squared.numerator)
        return Fraction(1, 1 << ((quotient - 1).bit_length() + 1) // 2)

    def choice(
        self, name: str, candidates: int, sensitivity: Fraction, share: Fraction, *, map: str = ""
    ) -> BudgetItem:
        """A private choice among candidates whose integer scores one record moves by at most `sensitivity`."""
        if not isinstance(self.level, PureDP):
            raise PlanError(f"the choice {name!r} spends epsilon", "say native = 'PureDP' in the method")
        moved = sensitivity * self.rows_per_unit
        return BudgetItem(
            name, "exponential", moved, "score", self._share(name, share), Fraction(1), (candidates,), map
        )

    def _share(self, name: str, share: Fraction) -> Fraction:
        allowed = self.amount * share
        if allowed <= 0:
            raise PlanError(f"the share of {name!r} must be above 0, got {share}")
        return allowed

    def guarantees(self, event: Event) -> tuple[Guarantee, ...]:
        """The proved statements of a tree: native first, then the request and what follows.

        Raises `PlanError` when the exact cost of the tree is above the amount, which would be an error of the method.
        """
        exact = exact_cost(event)
        fits = exact is not None and exact.kind is type(self.level)
        if exact is None or not fits or exact.amount > self._whole or exact.delta > self.delta:
            raise PlanError(
                "the spends of this plan do not fit its request; their shares must add up to at most 1, in the laws of its native "
                "guarantee"
            )
        statements: list[Guarantee] = [self.level]
        if isinstance(self.requested, ApproxDP):
            statements.append(
                ApproxDP(
                    self.requested.epsilon,
                    self.requested.delta,
                    relation=self.relation,
                    unit=self.level.unit,
                    assumptions=self.level.assumptions,
                )
            )
        if isinstance(self.level, PureDP):
            statements.append(self.level.to_gdp())
        if not self.delta:
            statements.append(self.level.to_zcdp())
        return tuple(statements)


def _with_failure(privacy: Guarantee, method: Any, failure: Fraction) -> tuple[float, float]:
    """mu and delta of a request that leaves room for a failure; `PrivacyError` for one that has no delta."""
    match privacy:
        case GDP(mu, delta) if delta > 0:
            return mu, delta
        case ApproxDP(_, delta) if delta > 0:
            own = float(delta * failure)
            # the two parts add up to at most the request's delta, in floats as in fractions
            rest = (
                delta - own if Fraction(delta - own) + Fraction(own) <= Fraction(delta) else nextafter(delta - own, 0)
            )
            return calibrate_gaussian(replace(privacy, delta=rest)), own
    raise PrivacyError(
        f"the guarantee of {method.name} may fail with a small probability, so it needs a delta, got {privacy}",
        "write cf.GDP(1.0, 1e-6) or cf.ApproxDP(1.0, 1e-6)",
    )


class Noise(Protocol):
    """Base of exact samplers over a stream of random words; `simulated` marks everything that a seed has touched.

    spawns: whether it has independent streams, by number (`spawn`), as seeded noise has.
    """

    spawns: ClassVar[bool] = False

    @property
    def simulated(self) -> bool: ...
    def rekey(self) -> None: ...
    def grid_gaussian(self, sigma2: Fraction, size: int) -> NDArray[np.int64]: ...
    def discrete_gaussian(self, sigma2: Fraction, size: int) -> NDArray[np.int64]: ...
    def grid_laplace(self, scale: Fraction | Sequence[Fraction], size: int) -> NDArray[np.int64]: ...
    def grid_cauchy(self, scale: Fraction | Sequence[Fraction], size: int) -> NDArray[Any]: ...
    def discrete_laplace(self, scale: Fraction, size: int) -> NDArray[np.int64]: ...
    def bernoulli(self, p: Fraction, size: int) -> NDArray[np.bool_]: ...
    def exponential_mechanism(
        self, scores: NDArray[Any], epsilon: Fraction, sensitivity: Fraction, lengths: NDArray[Any] | None = None
    ) -> int: ...

    def mark(self, name: str) -> None:
        """The name that the next draws are for: the meter says it. Override where draws are recorded."""
        return

    def spawn(self, key: int) -> Noise:
        """The independent stream of that number. Override where there are some, and say so in `spawns`."""
        raise PrivacyError(f"{type(self).__name__} has no separate streams", "take cf.noise.SimulatedNoise(seed)")


@dataclass(frozen=True)
class Proved:
    """A request, and the level at which a release is proved: the request's own, with what the proof assumes.

    Made by `Proved.of(privacy, method, schema)`, for single records under central trust. `curve`: the trade-off
    function of the whole release, where that is proved: it is stated first, and the level follows from it.
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

        `kinds`: the kinds of request that it covers, of `PureDP` and `ApproxDP`. `assumptions`: what it rests on
        beyond the request's own. `who`: the name of what is proved, the method's when left out. `instead`: what to
        write for other requests.

        Raises `PrivacyError` for a relation, unit, trust or number of rows that the proof does not cover, `NoConversion` for another kind.
        """
        who = who or method.name
        also = f", or {instead}" if instead else ""
        relation = relation_of(privacy, method)
        if not isinstance(privacy, kinds):
            pure = PureDP in kinds
            raise NoConversion(
                f"{who} is {'proved in epsilon and delta' if pure else '(epsilon, delta)-DP'} and nothing stronger is proved of it, got "
                f"{privacy}",
                f"write {'PureDP(1.0) or ' if pure else ''}ApproxDP(1.0, 1e-6){also}",
            )
        asked = resolved(privacy, relation, schema, who)
        if schema.rows_per_unit != 1:
            raise PrivacyError(
                f"{who} protects single records, got rows_per_unit={schema.rows_per_unit}",
                f'leave it out, or enforce one row: unit=cf.Unit("person_id"){also}',
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
        """The neighboring relation of the statement."""
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
