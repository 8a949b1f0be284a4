"""Whether a plan's statements are paid for by its spends. The gate asks before it charges, whoever wrote the method."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from math import prod

from confide.errors import NoConversion, PlanError
from confide.guarantees import GDP, RDP, ZCDP, ApproxDP, Guarantee, PureDP, TradeOff, gaussian_delta
from confide.protocol.events import (
    Either,
    Event,
    Opaque,
    Spend,
    Test,
    Together,
    exact_cost,
    fold,
    is_path,
    leaves,
)
from confide.protocol.parts import names_of, of_parts
from confide.protocol.plan import Plan
from confide.protocol.release import Noisy, Release
from confide.protocol.spending.laws import ADDITIVE
from confide.protocol.units.orthogonal import per_of, rows_moved, unit_squared
from confide.protocol.units.whose import protected

__all__ = ["check_plan", "drawn_as_planned", "implies", "parts_agree", "request_met", "statements_hold"]


def statements_hold(event: Event, guarantees: tuple[Guarantee, ...]) -> bool:
    """Whether the event tree costs no more than the native statement, and the other statements follow from it."""
    if not guarantees or guarantees[0].relation is None:
        return False
    native, relation = guarantees[0], guarantees[0].relation
    exact = exact_cost(event)
    if exact is not None and exact.kind is type(native):
        paid = exact.amount <= _amount(native) and exact.delta <= _failure(native)
    else:
        paid = implies(fold(event, relation), native)
    same = all((g.relation, g.unit, g.trust) == (relation, native.unit, native.trust) for g in guarantees)
    assumed = all(set(native.assumptions) <= set(g.assumptions) for g in guarantees)
    return paid and same and assumed and _bounds_fit(event, native) and all(implies(native, g) for g in guarantees[1:])


def request_met(plan: Plan) -> bool:
    """Whether what a plan says was asked for is about the same unit and relation as its guarantee, and the guarantee gives it."""
    asked, native = plan.requested, plan.guarantees[0]
    same = (asked.relation, asked.unit, asked.trust) == (native.relation, native.unit, native.trust)
    return same and any(implies(own, asked) for own in plan.guarantees)


def _bounds_fit(event: Event, native: Guarantee) -> bool:
    """Whether bounds that are proved elsewhere protect what the native statement says, under no further assumption."""
    match event:
        case Opaque(_, bound, _):
            labels = (bound.relation in (None, native.relation), bound.unit == native.unit, bound.trust == native.trust)
            return all(labels) and set(bound.assumptions) <= set(native.assumptions)
        case Together(children) | Either(children):
            return all(_bounds_fit(child, native) for child in children)
        case Test(on, then):
            return _bounds_fit(on, native) and _bounds_fit(then, native)
        case _:
            return True


def _amount(native: Guarantee) -> Fraction:
    """The number of a statement that adds up, exactly: mu^2, rho or epsilon."""
    match native:
        case GDP(mu):
            return Fraction(mu) ** 2
        case ZCDP(rho):
            return Fraction(rho)
        case PureDP(epsilon):
            return Fraction(epsilon)
    return Fraction(-1)


def _failure(native: Guarantee) -> Fraction:
    return Fraction(native.delta) if isinstance(native, GDP) else Fraction(0)


def implies(stronger: Guarantee, weaker: Guarantee) -> bool:
    """Whether one statement follows from another by the proved conversions, numbers only.

    >>> implies(GDP(1.0), ZCDP(0.5)), implies(GDP(1.0), ZCDP(0.4)), implies(ZCDP(0.5), GDP(1.0))
    (True, False, False)
    """
    try:
        match weaker:
            case GDP(mu, delta):
                own = stronger.to_gdp(delta=delta) if isinstance(stronger, TradeOff) else stronger.to_gdp()
                return own.mu <= mu and own.delta <= delta
            case ZCDP(rho):
                return stronger.to_zcdp().rho <= rho
            case PureDP(epsilon):
                return stronger.to_pure().epsilon <= epsilon
            case RDP(orders, epsilons):
                return all(a <= b for a, b in zip(stronger.to_rdp(orders).epsilons, epsilons, strict=True))
            case ApproxDP(epsilon, delta):
                if isinstance(stronger, PureDP) and stronger.epsilon <= epsilon:
                    return True
                if isinstance(stronger, GDP):
                    return gaussian_delta(epsilon, stronger.mu) + stronger.delta <= delta
                return stronger.to_approx(epsilon=epsilon).delta <= delta
            case TradeOff(curve):
                # the same curve; whether one curve lies above another is not decided here
                return stronger.to_tradeoff().curve == curve
    except NoConversion:
        return False


def drawn_as_planned(event: Event, statistics: Mapping[str, Noisy]) -> bool:
    """Whether noisy statistics are one branch of a tree, each with the law, scale, step, norm and shape that the tree says."""
    planned = {leaf.name: leaf for leaf in leaves(event)}
    if not is_path(event, frozenset(statistics)):
        return False
    for name, noisy in statistics.items():
        leaf = planned[name]
        if isinstance(leaf, Spend):
            own = (leaf.law, leaf.scale, leaf.step, leaf.norm)
            shape = (1,) if leaf.law == "exponential" else leaf.shape
            if own != (noisy.law, noisy.scale, noisy.step, noisy.norm) or noisy.shape != shape:
                return False
            if leaf.law == "exponential" and not 0 <= noisy.values[0] < prod(leaf.shape):
                return False
        elif noisy.law != "opaque":
            return False
    return True


def parts_agree(release: Release) -> bool:
    """Whether a release is one of its plan: its numbers drawn as planned, and where it is a publication, those of each question; its
    statements are about the unit that its schema enforces.

    A question that failed has no numbers; its status is the one that no guarantee covers.
    """
    children, statuses = release.plan.children, release.statuses
    whose, whole = protected(release.plan.schema), (release.plan, *children.values())
    if any(one.unit != whose for plan in whole for one in (plan.requested, *plan.guarantees)):
        return False
    if not children:
        return not statuses and drawn_as_planned(release.plan.event, release.statistics)
    own = sum(len(names_of(part, release.statistics)) for part in children)
    if set(statuses) != set(children) or own != len(release.statistics) or not _children_hold(release.plan):
        return False
    return all(
        not names_of(part, release.statistics)
        if statuses[part] == "failed"
        else drawn_as_planned(plan.event, names_of(part, release.statistics))
        for part, plan in children.items()
    )


def _children_hold(plan: Plan) -> bool:
    """Whether the event of a publication is what its questions spend, and each of them states no less than that."""
    return plan.event == of_parts(plan.children) and all(
        statements_hold(one.event, one.guarantees) and one.relation == plan.relation for one in plan.children.values()
    )


def check_plan(plan: Plan, requested: Guarantee) -> None:
    """Raise `PlanError` when a plan answers another request, states less than it spends, or spends less than its maps say."""
    who = f"the plan of {plan.method.name!r}"
    whose = protected(plan.schema)
    if any(statement.unit != whose for statement in plan.guarantees):
        raise PlanError(
            f"{who} states a guarantee for another unit than {whose!r}, which its schema enforces; this is an error of the method"
        )
    if plan.requested != replace(requested.resolve(plan.relation), unit=whose):
        raise PlanError(f"{who} is for {plan.requested}, asked was {requested}; this is an error of the method")
    if not statements_hold(plan.event, plan.guarantees):
        raise PlanError(f"{who} states a guarantee that its spends exceed; this is an error of the method")
    if plan.children and not _children_hold(plan):
        raise PlanError(f"{who} does not spend what its questions spend; this is an error of the method")
    rows = int(plan.schema["rows_per_unit"])
    for leaf in leaves(plan.event):
        statistic = plan.statistics.get(leaf.name)
        if not isinstance(leaf, Spend) or leaf.law not in ADDITIVE:
            continue
        if statistic is None:
            raise PlanError(
                f"{who} spends on {leaf.name!r} and holds no statistic of that name; this is an error of the method"
            )
        own = rows_moved(statistic, rows)
        norms = ("l1",) if leaf.norm == "l1" else ("l2", "cells") if leaf.norm == "l2" else (leaf.norm,)
        if leaf.norm != "l1" and statistic.norm not in norms:
            raise PlanError(
                f"{who} draws {leaf.name!r} in another norm than its statistic's; this is an error of the method"
            )
        if leaf.norm == "l1":
            least = (statistic.sensitivity_l1(plan.relation) * own) ** 2
        else:
            least = unit_squared(statistic, plan.relation, rows, per_of(plan.schema))
        if (leaf.sensitivity * leaf.step) ** 2 < least or leaf.map != statistic.map.digest:
            raise PlanError(
                f"{who} states a smaller sensitivity for {leaf.name!r} than its record map; this is an error of the method"
            )
