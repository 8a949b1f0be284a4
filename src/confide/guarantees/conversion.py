"""Every proved way from one guarantee to another, to a sum of them, to a group, or to a noise level.

A *statement* says what a release satisfies; converting it gives a weaker statement that is true as well (`to_gdp`,
`to_zcdp`, `to_approx`, `compose`, `group`): numbers are rounded up. A *calibration* says how little noise a Gaussian
release needs to meet a request (`calibrate_gaussian`): its mu is rounded down. The two differ: a release known to be
only (1, 1e-6)-private states GDP(1.23, 1e-6), while a Gaussian release that shall be (1, 1e-6)-private must have mu =
0.236.

    from \\ to               GDP                      ZCDP                      ApproxDP
    PureDP(eps)             mu(eps) [1]              eps^2/2 [2]               curve of randomised response [3]
    ApproxDP(eps, delta)    mu(eps), delta [3]       none                      the same with a leak [3]
    ZCDP(rho)               none                     itself                    best order [4]
    GDP(mu, delta)          itself                   mu^2/2 if delta = 0       the Gaussian curve plus delta [1]

    [1] Dong, Roth, Su 2022: delta(eps; mu) is Corollary 2.13; mu(eps) = -2 Phi^-1(1/(1 + e^eps)) is where the curve of
        randomised response, the worst case of epsilon-DP [3], touches a Gaussian curve.
    [2] Bun, Steinke 2016, Proposition 1.4.  [3] Kairouz, Oh, Viswanath 2015.  [4] Canonne, Kamath, Steinke 2020.

All conversions keep relation, unit, trust and assumptions.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import exp, expm1, inf, log, nextafter
from typing import Any

from confide.errors import NoConversion, PrivacyError
from confide.guarantees.concentrated import zcdp_epsilon, zcdp_log_delta
from confide.guarantees.gaussian import gaussian_epsilon, log_gaussian_delta, mu_bracket
from confide.guarantees.randomised_response import leak_delta, leak_epsilon, pure_mu
from confide.guarantees.rounding import SLACK, float_up, sqrt_down, sqrt_up
from confide.guarantees.validation import count, level, share
from confide.guarantees.values import GDP, ZCDP, ApproxDP, Guarantee, PureDP

__all__ = ["calibrate_gaussian", "compose", "group", "how_to_change", "to_approx", "to_gdp", "to_zcdp"]

# Smallest delta that a conversion states: below it exp() enters the subnormal floats and its relative error is no
# longer bounded.
_SMALLEST_DELTA = 1e-300


def to_gdp(g: Guarantee) -> GDP:
    """The GDP statement that follows from a guarantee; `NoConversion` for ZCDP.

    >>> to_gdp(ApproxDP(1.0, 1e-6, relation="add-remove"))  # doctest: +ELLIPSIS
    GDP(1.23203..., 1e-06, relation='add-remove')
    """
    match g:
        case GDP():
            return g
        case PureDP(epsilon):
            return GDP(_up(pure_mu(epsilon)), **_labels(g))
        case ApproxDP(epsilon, delta):
            return GDP(_up(pure_mu(epsilon)), delta, **_labels(g))
        case ZCDP():
            raise NoConversion(
                f"there is no proved conversion ZCDP -> GDP, got {g}: mu = sqrt(2 rho) does not follow from a bound "
                "on Renyi divergences; if the release is Gaussian, state it as GDP(...) at its source, else use a "
                "ledger in ZCDP, or to_approx(delta=1e-6)"
            )
        case _:
            raise _not_a_guarantee(g, "to_gdp(GDP(1.0))")


def to_zcdp(g: Guarantee) -> ZCDP:
    """The zCDP statement that follows from a guarantee; `NoConversion` where a delta is in the way.

    >>> to_zcdp(PureDP(1.0, relation="substitute"))
    ZCDP(0.5, relation='substitute')
    """
    match g:
        case ZCDP():
            return g
        case PureDP(size) | GDP(size, 0.0):
            return ZCDP(float_up(Fraction(size) ** 2 / 2), **_labels(g))
        case GDP():
            raise NoConversion(
                f"there is no conversion GDP(mu, delta > 0) -> ZCDP, got {g}: with probability delta the Renyi "
                f"divergence may be infinite; use GDP({g.mu!r}) if the release is proved with delta = 0, or a ledger "
                "in GDP, which adds deltas"
            )
        case ApproxDP():
            raise NoConversion(
                f"there is no conversion ApproxDP -> ZCDP, got {g}: with probability delta the Renyi divergence may "
                "be infinite; use to_gdp() and a ledger in GDP, or ask for the release as ZCDP(rho)"
            )
        case _:
            raise _not_a_guarantee(g, "to_zcdp(GDP(1.0))")


def to_approx(g: Guarantee, *, epsilon: float | None = None, delta: float | None = None) -> ApproxDP:
    """The (epsilon, delta) statement that follows from a guarantee: one number is given, the other rounded up.

    >>> to_approx(GDP(1.0), epsilon=1.0).delta  # doctest: +ELLIPSIS
    0.12693673...
    """
    if (epsilon is None) == (delta is None):
        raise PrivacyError(
            "to_approx takes one of epsilon and delta and computes the other; write to_approx(delta=1e-6) or "
            "to_approx(epsilon=1.0)"
        )
    if not isinstance(g, (PureDP, ApproxDP, ZCDP, GDP)):
        raise _not_a_guarantee(g, "to_approx(GDP(1.0), delta=1e-6)")
    if epsilon is not None:
        kept = level(epsilon, "epsilon", "to_approx(epsilon=1.0)")
        return ApproxDP(kept, _below_one(_delta_at(g, kept), f"{g} at epsilon={kept!r}"), **_labels(g))
    chosen = share(delta, "delta", "to_approx(delta=1e-6)", zero=False)
    needed = _epsilon_at(g, chosen)
    if needed <= 0:
        raise PrivacyError(
            f"at delta={chosen!r} {g} holds with every epsilon above 0, so there is no smallest one; give a smaller "
            "delta, or the epsilon: to_approx(epsilon=0.1)"
        )
    return ApproxDP(needed, chosen, **_labels(g))


def compose(*guarantees: Guarantee) -> Guarantee:
    """The guarantee of several releases together, each of which may have been chosen after seeing the earlier ones.

    PureDP, ApproxDP and ZCDP add; GDP takes the square root of the sum of squares of mu and adds deltas. Exact sums
    are formed in fractions and rounded up once, so that the order does not matter. Levels must be fixed in advance;
    assumptions are united. Raises `PrivacyError` unless all are of one kind with the same relation, unit and trust.

    >>> compose(GDP(3.0), GDP(4.0, 1e-6))
    GDP(5.0, 1e-06)
    """
    if not guarantees:
        raise PrivacyError(
            "compose takes at least one guarantee, got none; write for instance compose(GDP(1.0), GDP(0.5))"
        )
    _comparable(guarantees)
    labels = _labels(guarantees[0]) | {"assumptions": tuple(text for g in guarantees for text in g.assumptions)}

    def total(name: str) -> float:
        return float_up(sum((Fraction(getattr(g, name)) for g in guarantees), Fraction(0)))

    match guarantees[0]:
        case PureDP():
            return PureDP(total("epsilon"), **labels)
        case ZCDP():
            return ZCDP(total("rho"), **labels)
        case ApproxDP():
            return ApproxDP(total("epsilon"), _below_one(total("delta"), "the composition"), **labels)
        case GDP():
            squares = sum((Fraction(g.mu) ** 2 for g in guarantees if isinstance(g, GDP)), Fraction(0))
            return GDP(sqrt_up(squares), _below_one(total("delta"), "the composition"), **labels)


def group(g: Guarantee, k: int) -> Guarantee:
    """The same release seen by a group of k units: what it promises when k of them change at once.

    PureDP(k epsilon), ZCDP(k^2 rho) (Bun, Steinke 2016, Proposition 1.9), GDP(k mu) when delta = 0 (Dong, Roth, Su
    2022, Theorem 2.14), ApproxDP(k epsilon, delta (1 + e^epsilon + ... + e^((k-1) epsilon))) (one unit after another).
    Numbers are rounded up. Raises `NoConversion` for GDP with delta > 0, and `PrivacyError` where nothing is left.

    >>> group(GDP(0.5, relation="substitute"), 4)
    GDP(2.0, relation='substitute')
    """
    times = count(k, "k", "group(GDP(0.5), 4)")
    labels = _labels(g) if isinstance(g, (PureDP, ApproxDP, ZCDP, GDP)) else {}
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
                f"there is no group conversion GDP(mu, delta > 0) -> k = {times} units, got {g}: no bound on the "
                "grown delta is proved; convert first and group then: group(g.to_approx(epsilon=1.0), k)"
            )
        case ApproxDP(epsilon, delta):
            grown = float_up(times * Fraction(epsilon))
            # (e^(k eps) - 1)/(e^eps - 1), written so that nothing overflows before the bound itself is void.
            steps = grown - epsilon
            factor = exp(steps) * expm1(-grown) / expm1(-epsilon) if steps < 700 else inf
            return ApproxDP(grown, _below_one(_up(delta * factor), f"{g} for k = {times} units"), **labels)
        case _:
            raise _not_a_guarantee(g, "group(GDP(0.5), 4)")


def calibrate_gaussian(privacy: Guarantee) -> float:
    """The largest mu such that every mu-GDP Gaussian release meets a request; rounded to the safe side.

    A calibration, not a statement: GDP(mu) gives mu; ApproxDP the analytic Gaussian mechanism (Balle, Wang 2018), the
    lower end of its bracket less 1e-11 relative; ZCDP(rho) the largest float with mu^2/2 <= rho. Raises `NoConversion`
    for PureDP: no Gaussian noise gives it.

    >>> calibrate_gaussian(ZCDP(0.5)), round(calibrate_gaussian(ApproxDP(1.0, 1e-6)), 6)
    (1.0, 0.236704)
    """
    match privacy:
        case GDP(mu):
            return mu
        case ApproxDP(epsilon, delta):
            return mu_bracket(epsilon, delta)[0] * (1 - SLACK)
        case ZCDP(rho):
            return sqrt_down(2 * Fraction(rho))
        case PureDP(epsilon):
            raise NoConversion(
                f"there is no Gaussian noise for PureDP, got {privacy}: any Gaussian release exceeds every epsilon "
                f"with some probability; ask for ApproxDP({epsilon!r}, 1e-6), or for GDP or ZCDP, or use a method "
                "with Laplace noise"
            )
        case _:
            raise _not_a_guarantee(privacy, "calibrate_gaussian(GDP(1.0))")


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
        f"{_bare(doubled)} (write {replace(doubled, relation=relation)!r}); {better}"
    )


def _comparable(guarantees: tuple[Guarantee, ...]) -> None:
    """Refuse to add what has no common meaning, and say what to do instead."""
    for g in guarantees:
        if not isinstance(g, (PureDP, ApproxDP, ZCDP, GDP)):
            raise _not_a_guarantee(g, "compose(GDP(1.0), GDP(0.5))")
    first = guarantees[0]
    for other in guarantees[1:]:
        if other.relation != first.relation:
            raise PrivacyError(
                f"{first} and {other} have different relations and do not compose: {_relation_hint(first, other)}"
            )
        if other.unit != first.unit:
            raise PrivacyError(
                f"{first} and {other} protect different units, {first.unit!r} and {other.unit!r}, and do not compose: "
                "no general conversion leads from one unit to another; state both for the same one, for instance "
                f"unit={first.unit!r}"
            )
        if other.trust != first.trust:
            raise PrivacyError(
                f"{first} and {other} rest on different trust and do not compose: a local substitute statement also "
                "holds centrally, so state it with trust='central', relation='substitute'; the reverse does not hold"
            )
    kinds = list(dict.fromkeys(type(g).__name__ for g in guarantees))
    if len(kinds) > 1:
        verb = "to_zcdp()" if "ZCDP" in kinds else "to_gdp()"
        raise PrivacyError(
            f"compose takes guarantees of one kind, got {' and '.join(kinds)}; convert first, for instance each with "
            f".{verb}"
        )


def _relation_hint(first: Guarantee, other: Guarantee) -> str:
    if first.relation is None or other.relation is None:
        known = first.relation or other.relation
        return f"one relation is left open where a complete one is needed; set it with .resolve({known!r})"
    return how_to_change(first if first.relation == "add-remove" else other, "substitute")


def _delta_at(g: Guarantee, epsilon: float) -> float:
    """delta of a guarantee's own curve at an epsilon, rounded up; 1 or more where nothing is left."""
    match g:
        case GDP(mu, delta):
            return float_up(Fraction(_exp_up(log_gaussian_delta(epsilon, mu))) + Fraction(delta))
        case ZCDP(rho):
            return _exp_up(zcdp_log_delta(epsilon, rho))
        case ApproxDP(known, delta):
            return delta if epsilon >= known else _up(leak_delta(known, delta, epsilon))
        case PureDP(known):
            if epsilon >= known:
                raise PrivacyError(
                    f"{g} already says more than any delta at epsilon={epsilon!r}; keep it, or give the delta: "
                    "to_approx(delta=1e-6)"
                )
            return _up(leak_delta(known, 0.0, epsilon))


def _epsilon_at(g: Guarantee, delta: float) -> float:
    """epsilon of a guarantee's own curve at a delta, rounded up; 0 or less where every epsilon above 0 holds."""
    own = g.delta if isinstance(g, (GDP, ApproxDP)) else 0.0
    if delta < own or (delta == own and isinstance(g, GDP)):
        raise PrivacyError(
            f"{g} holds for no delta {'below' if delta < own else 'as small as'} its own {own!r}, got {delta!r}; give "
            "a larger delta"
        )
    match g:
        case GDP(mu, _):
            left = -float_up(Fraction(own) - Fraction(delta))  # rounded down
            epsilon = gaussian_epsilon(left, mu)
            # The curve is steep in epsilon on the scale of mu, so the slack counts on both scales.
            return epsilon + SLACK * (epsilon + mu) if epsilon > 0 else 0.0
        case ZCDP(rho):
            epsilon = zcdp_epsilon(log(delta), rho)
            return epsilon + SLACK * (epsilon + rho) if epsilon > 0 else 0.0
        case PureDP(known) | ApproxDP(known, _):
            return leak_epsilon(known, own, delta)


def _labels(g: Guarantee) -> dict[str, Any]:
    return {"relation": g.relation, "unit": g.unit, "trust": g.trust, "assumptions": g.assumptions}


def _bare(g: Guarantee) -> str:
    return str(g).replace(f", {g.relation}", "")


def _up(number: float) -> float:
    return nextafter(number * (1 + SLACK), inf)


def _exp_up(log_delta: float) -> float:
    return max(_up(exp(log_delta)), _SMALLEST_DELTA)


def _below_one(delta: float, of: str) -> float:
    if delta < 1:
        return delta
    raise PrivacyError(
        f"delta of {of} comes to 1 or more, which promises nothing; start from a stronger guarantee or take a larger "
        "epsilon"
    )


def _not_a_guarantee(value: object, example: str) -> PrivacyError:
    return PrivacyError(
        f"a guarantee is PureDP, ApproxDP, ZCDP or GDP, got {type(value).__name__}; write for instance {example}"
    )
