"""Whether a plan's statements are paid for by its spends. The door asks before it charges, whoever wrote the method."""

from __future__ import annotations

from fractions import Fraction

from confide.errors import NoConversion, PlanError
from confide.guarantees import GDP, RDP, ZCDP, ApproxDP, Guarantee, PureDP, TradeOff, gaussian_delta
from confide.protocol.events import Event, Spend, exact_cost, fold, leaves
from confide.protocol.plan import Plan

__all__ = ["check_plan", "implies", "statements_hold"]


def statements_hold(event: Event, guarantees: tuple[Guarantee, ...]) -> bool:
    """Whether the event tree costs no more than the native statement, and the other statements follow from it."""
    if not guarantees or guarantees[0].relation is None:
        return False
    native, relation = guarantees[0], guarantees[0].relation
    exact = exact_cost(event)
    if exact is not None and exact.kind is type(native):
        paid = exact.amount <= _amount(native)
    else:
        paid = implies(fold(event, relation), native)
    same = all((g.relation, g.unit, g.trust) == (relation, native.unit, native.trust) for g in guarantees)
    return paid and same and all(implies(native, other) for other in guarantees[1:])


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


def check_plan(plan: Plan, requested: Guarantee) -> None:
    """Raise `PlanError` when a plan answers another request, states less than it spends, or spends less than its maps say."""
    who = f"the plan of {plan.method.name!r}"
    if plan.requested != requested.resolve(plan.relation):
        raise PlanError(f"{who} is for {plan.requested}, asked was {requested}; this is an error of the method")
    if not statements_hold(plan.event, plan.guarantees):
        raise PlanError(f"{who} states a guarantee that its spends exceed; this is an error of the method")
    rows = int(plan.schema["rows_per_unit"])
    for leaf in leaves(plan.event):
        statistic = plan.statistics.get(leaf.name)
        if statistic is None or not isinstance(leaf, Spend):
            continue
        if leaf.norm == "l1":
            least = (statistic.sensitivity_l1(plan.relation) * rows) ** 2
        else:
            least = statistic.sensitivity_squared(plan.relation) * rows**2
        if (leaf.sensitivity * leaf.step) ** 2 < least or leaf.map != statistic.map.digest:
            raise PlanError(
                f"{who} states a smaller sensitivity for {leaf.name!r} than its record map; this is an error of the method"
            )
