"""What several releases promise together, and what one promises to a group of units."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import exp, expm1, inf
from typing import TYPE_CHECKING

from confide.errors import NoConversion, PrivacyError
from confide.guarantees.conversion import KINDS, below_one, labels_of, not_a_guarantee, up
from confide.guarantees.validation import count, float_up, sqrt_up
from confide.guarantees.values import GDP, RDP, ZCDP, ApproxDP, Guarantee, PureDP, TradeOff, way

if TYPE_CHECKING:
    from confide.guarantees.curves import Curve


def compose(*guarantees: Guarantee, numeric: bool = False) -> Guarantee:
    """Guarantee of several releases together.

    Each release may have been chosen after seeing the earlier ones; levels must
    be fixed in advance. PureDP, ApproxDP and ZCDP add; RDP adds order by order.
    GDP takes the square root of the sum of the squares of mu and adds deltas.
    TradeOff composes its curves.

    Parameters
    ----------
    *guarantees : Guarantee
        At least one, all of one kind with the same relation, unit and trust.
    numeric : bool, default False
        Whether to compose trade-off functions, for any kinds together. That is
        tighter than adding pairs of epsilon and delta.

    Returns
    -------
    Guarantee
        Of the same kind; a TradeOff if `numeric`, from which
        ``.to_approx(delta=...)`` reads a pair.

    Raises
    ------
    PrivacyError
        The guarantees differ in kind, relation, unit or trust.

    Notes
    -----
    Exact sums are formed in fractions and rounded up once, so that the order
    does not matter. Assumptions are united.

    Examples
    --------
    >>> compose(GDP(3.0), GDP(4.0, 1e-6))
    GDP(5.0, 1e-06)
    >>> many = compose(*[ApproxDP(0.1, 1e-8)] * 100, numeric=True)
    >>> round(many.to_approx(delta=1e-5).epsilon, 2)
    4.33
    """
    if not guarantees:
        raise PrivacyError(
            "compose takes at least one guarantee, got none", "write for instance compose(GDP(1.0), GDP(0.5))"
        )
    if isinstance(guarantees[0], (list, tuple)):
        raise PrivacyError("compose takes single guarantees, got a list of them", "write compose(*guarantees)")
    _comparable(guarantees, mixed=numeric)
    labels = labels_of(guarantees[0]) | {"assumptions": tuple(text for g in guarantees for text in g.assumptions)}
    if numeric:
        return TradeOff(_curve_of_all(guarantees), **labels)

    def total(name: str) -> float:
        return float_up(sum((Fraction(getattr(g, name)) for g in guarantees), Fraction(0)))

    match guarantees[0]:
        case PureDP():
            return PureDP(total("epsilon"), **labels)
        case ZCDP():
            return ZCDP(total("rho"), **labels)
        case ApproxDP():
            return ApproxDP(total("epsilon"), below_one(total("delta"), "the composition"), **labels)
        case GDP():
            squares = sum((Fraction(g.mu) ** 2 for g in guarantees if isinstance(g, GDP)), Fraction(0))
            return GDP(sqrt_up(squares), below_one(total("delta"), "the composition"), **labels)
        case RDP(orders):
            rows = zip(*(g.epsilons for g in guarantees if isinstance(g, RDP)), strict=True)
            sums = tuple(float_up(sum(map(Fraction, row), Fraction(0))) for row in rows)
            return RDP(orders, sums, **labels)
        case TradeOff():
            return TradeOff(_curve_of_all(guarantees), **labels)


def group(g: Guarantee, k: int) -> Guarantee:
    """Guarantee for a group of k units that change at once.

    Parameters
    ----------
    g : Guarantee
        Guarantee for one unit.
    k : int
        Number of units, at least 1.

    Returns
    -------
    Guarantee
        Of the same kind, with numbers rounded up.

    Raises
    ------
    NoConversion
        No bound is proved: GDP with delta above 0, RDP, TradeOff.
    PrivacyError
        The result would say nothing.

    Notes
    -----
    PureDP(k epsilon). ZCDP(k^2 rho) (Bun, Steinke 2016, Proposition 1.9). GDP(k
    mu) for delta 0 (Dong, Roth, Su 2022, Theorem 2.14). ApproxDP(k epsilon,
    delta (1 + e^epsilon + ... + e^((k-1) epsilon))), one unit after another.

    Examples
    --------
    >>> group(GDP(0.5, relation="substitute"), 4)
    GDP(2.0, relation='substitute')
    """
    times = count(k, "k", "group(GDP(0.5), 4)")
    labels = labels_of(g) if isinstance(g, KINDS) else {}
    match g:
        case _ if labels and times == 1:
            return g
        case PureDP(epsilon):
            return PureDP(float_up(times * Fraction(epsilon)), **labels)
        case ZCDP(rho):
            return ZCDP(float_up(times**2 * Fraction(rho)), **labels)
        case GDP(mu, 0.0):
            return GDP(float_up(times * Fraction(mu)), **labels)
        case GDP():
            raise NoConversion(
                f"there is no group conversion of GDP with delta > 0 to k = {times} units, got {g}: no bound on the "
                "grown delta is proved",
                "convert first and group then: group(g.to_approx(epsilon=1.0), k)",
            )
        case RDP() | TradeOff():
            kind = type(g).__name__
            raise NoConversion(
                f"there is no group conversion {kind} -> k = {times} units, got {g}: none is proved that keeps the kind",
                "convert first and group then: group(g.to_approx(epsilon=1.0), k)",
            )
        case ApproxDP(epsilon, delta):
            grown = float_up(times * Fraction(epsilon))
            # (e^(k eps) - 1)/(e^eps - 1), written so that nothing overflows before the bound itself is void.
            steps = grown - epsilon
            factor = exp(steps) * expm1(-grown) / expm1(-epsilon) if steps < 700 else inf
            return ApproxDP(grown, below_one(up(delta * factor), f"{g} for k = {times} units"), **labels)
        case _:
            raise not_a_guarantee(g, "group(GDP(0.5), 4)")


@way
def how_to_change(g: Guarantee, relation: str) -> str:
    """What to do about a guarantee that has another relation than the one needed; for messages."""
    if g.relation == "substitute":
        return (
            "there is no conversion substitute -> add-remove, because replacing a record says nothing about one more "
            "or one fewer; make the release with relation='add-remove'"
        )
    better = f"a method may prove better: ask it for the release with relation={relation!r}"
    try:
        doubled = group(g, 2)
    except PrivacyError:
        return f"a substitution is a removal and an addition, and no bound for two changes is proved for it; {better}"
    return (
        f"a substitution is a removal and an addition, so in general add-remove {_bare(g)} gives substitute "
        f"{_bare(doubled)} (write cf.{replace(doubled, relation=relation)!r}); {better}"
    )


def _comparable(guarantees: tuple[Guarantee, ...], *, mixed: bool) -> None:
    """Refuse to add what has no common meaning, and say what to do instead."""
    for g in guarantees:
        if not isinstance(g, KINDS):
            raise not_a_guarantee(g, "compose(GDP(1.0), GDP(0.5))")
    first = guarantees[0]
    for other in guarantees[1:]:
        if other.relation != first.relation:
            raise PrivacyError(
                f"{first} and {other} have different relations and do not compose: {_relation_hint(first, other)}"
            )
        if other.unit != first.unit:
            raise PrivacyError(
                f"{first} and {other} protect different units, {first.unit!r} and {other.unit!r}, and do not compose. "
                "No general conversion leads from one unit to another",
                f"state both for the same one, for instance unit={first.unit!r}",
            )
        if other.trust != first.trust:
            raise PrivacyError(
                f"{first} and {other} rest on different trust and do not compose: a local substitute statement also "
                "holds centrally, so state it with trust='central', relation='substitute'; the reverse does not hold"
            )
    kinds = list(dict.fromkeys(type(g).__name__ for g in guarantees))
    if len(kinds) > 1 and not mixed:
        verb = (
            "to_rdp(orders)"
            if "RDP" in kinds
            else "to_tradeoff()"
            if "TradeOff" in kinds
            else "to_zcdp()"
            if "ZCDP" in kinds
            else "to_gdp()"
        )
        raise PrivacyError(
            f"compose takes guarantees of one kind, got {' and '.join(kinds)}",
            "convert first, for instance each with "
            f".{verb}, or compose the trade-off functions: compose(..., numeric=True). A release that is known better than by its "
            "epsilon enters as its own curve, as in TradeOff(laplace(1.0))",
        )
    rows = [g.orders for g in guarantees if isinstance(g, RDP)]
    if any(row != rows[0] for row in rows):
        raise PrivacyError(
            "RDP guarantees compose at the same orders alone, got different ones",
            "state both at common orders, "
            "each with .to_rdp(orders) at its source, or compose the trade-off functions: "
            "compose(..., numeric=True)",
        )


def _relation_hint(first: Guarantee, other: Guarantee) -> str:
    if first.relation is None or other.relation is None:
        known = first.relation or other.relation
        return f"one relation is left open where a complete one is needed; set it with .resolve({known!r})"
    return how_to_change(first if first.relation == "add-remove" else other, "substitute")


def _curve_of_all(guarantees: tuple[Guarantee, ...]) -> Curve:
    """The composed trade-off function: what adds exactly is added first, equal curves are composed by a power."""
    added: list[Guarantee] = []
    for kind in (ZCDP, RDP):
        same = [g for g in guarantees if isinstance(g, kind)]
        added += [compose(*same)] if same else []
    curves = [g.to_tradeoff().curve for g in (*added, *(g for g in guarantees if not isinstance(g, (ZCDP, RDP))))]
    powers = [curve.power(curves.count(curve)) for curve in dict.fromkeys(curves)]
    result = powers[0]
    for curve in powers[1:]:
        result = result.compose(curve)
    return result


def _bare(g: Guarantee) -> str:
    return str(g).replace(f", {g.relation}", "")
