r"""Every proved way from one guarantee to another.

A *statement* says what a release satisfies; converting it gives a weaker statement that is true as well: numbers are
rounded up. How much noise meets a request is another question (`calibration.py`). A release known to be only (1,
1e-6)-private states GDP(1.23, 1e-6), while a Gaussian release that shall be (1, 1e-6)-private must have mu = 0.236.

    from \ to         GDP               ZCDP              RDP                   ApproxDP                TradeOff
    PureDP(eps)       mu(eps) [1]       eps^2/2 [2]       worst case [2, 5]     randomized response [3] the same
    ApproxDP          mu(eps), delta[3] none              none                  the same, leaking [3]   the same
    ZCDP(rho)         none              itself            a rho                 best order [4]          all orders [4]
    RDP               none              none              itself                best order [4]          best orders [4]
    GDP, delta 0      itself            v/2 [6]           a v/2 [6]             Gaussian curve [1]      the same
    GDP, delta > 0    itself            none              none                  that plus delta         the same
    TradeOff(f)       at a delta [1]    none              none                  its curve               itself

PureDP follows from itself, and from a TradeOff whose loss is bounded; from nothing else.

    [1] Dong, Roth, Su 2022: delta(eps; mu) is Corollary 2.13. At mu(eps) = -2 Phi^-1(1/(1 + e^eps)) the curve of
        randomized response, the worst case of epsilon-DP [3], touches a Gaussian curve. A trade-off function is above
        G_mu - delta exactly when its privacy profile is below that of the Gaussian plus delta.
    [2] Bun, Steinke 2016, Proposition 1.4.  [3] Kairouz, Oh, Viswanath 2015.  [4] Canonne, Kamath, Steinke 2020.
    [5] Mironov 2017.  [6] v = mu * mu.

All conversions keep relation, unit, trust and assumptions.

Trade-off functions from text, as people write them: `GDP(1)`, `laplace(0.1) ** 10`, `gaussian(1) * laplace(0.5)`.

The text is parsed, never evaluated: calls of known names on numbers, `*` for composition, `** k` for k-fold composition.

How much a pure mechanism may spend within any request.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterable
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from math import exp, inf, isfinite, log, nextafter
from typing import Any

from confide.errors import NoConversion, PrivacyError
from confide.guarantees.curves import Curve, approx_dp, gaussian, laplace, perfect, symmetric_laplace, zero_inflated
from confide.guarantees.curves.elementary import (
    Gaussian,
    RandomisedResponse,
    Relaxed,
    RenyiBound,
    zcdp_epsilon,
    zcdp_log_delta,
)
from confide.guarantees.mechanisms.classical import (
    DEFAULT_ORDERS,
    leak_delta,
    leak_epsilon,
    pure_epsilon,
    pure_mu,
    pure_renyi,
    rdp_epsilon,
    rdp_log_delta,
)
from confide.guarantees.mechanisms.gaussian import gaussian_epsilon, log_gaussian_delta
from confide.guarantees.validation import SLACK, float_up, level, orders_tuple, share, sqrt_down
from confide.guarantees.values import GDP, RDP, ZCDP, ApproxDP, Guarantee, PureDP, TradeOff, way

KINDS = (PureDP, ApproxDP, ZCDP, GDP, RDP, TradeOff)
# Smallest delta that a conversion states: below it exp() enters the subnormal floats and its relative error is no
# longer bounded.
_SMALLEST_DELTA = 1e-300


@way
def to_gdp(g: Guarantee, *, delta: float | None = None) -> GDP:
    """The GDP statement that follows from a guarantee; `NoConversion` for ZCDP and RDP.

    delta: for a TradeOff, which has a mu for each delta; no other kind takes it.

    >>> to_gdp(ApproxDP(1.0, 1e-6, relation="add-remove"))  # doctest: +ELLIPSIS
    GDP(1.23203..., 1e-06, relation='add-remove')
    """
    if isinstance(g, TradeOff):
        if delta is None:
            raise NoConversion(
                f"a trade-off function has a mu for each delta and no single one, got {g} without a delta",
                "say which: to_gdp(delta=1e-6), or to_gdp(delta=0.0) where mu exists without one",
            )
        chosen = share(delta, "delta", "to_gdp(delta=1e-6)", zero=True)
        mu = float(g.curve.gdp(chosen))
        if mu == 0:
            raise PrivacyError(
                f"at delta={chosen!r} {g} holds with every mu above 0, so there is no smallest one",
                "give a smaller delta",
            )
        return GDP(mu, chosen, **labels_of(g))
    if delta is not None and isinstance(g, KINDS):
        raise PrivacyError(
            f"{g} converts with the delta that it has",
            f"write to_gdp(), or for the mu at another delta to_tradeoff().to_gdp(delta={delta!r})",
        )
    match g:
        case GDP():
            return g
        case PureDP(epsilon):
            return GDP(up(pure_mu(epsilon)), **labels_of(g))
        case ApproxDP(epsilon, delta):
            return GDP(up(pure_mu(epsilon)), delta, **labels_of(g))
        case ZCDP():
            raise NoConversion(
                f"there is no proved conversion ZCDP -> GDP (got {g}). A mu of sqrt(2 rho) does not follow from bounds "
                "on Renyi divergences; if the release is Gaussian, state it as GDP(...) at its source, else use a "
                "ledger in ZCDP, or to_approx(delta=1e-6)"
            )
        case RDP():
            raise NoConversion(
                f"there is no proved conversion RDP -> GDP (got {g}). A mu does not follow from bounds on Renyi "
                "divergences",
                "state the release as GDP(...) at its source if it is Gaussian, else use "
                "to_approx(delta=1e-6), whose (epsilon, delta) a ledger in GDP takes",
            )
        case _:
            raise not_a_guarantee(g, "to_gdp(GDP(1.0))")


@way
def to_zcdp(g: Guarantee) -> ZCDP:
    """The zCDP statement that follows from a guarantee; `NoConversion` where a delta is in the way.

    >>> to_zcdp(PureDP(1.0, relation="substitute"))
    ZCDP(0.5, relation='substitute')
    """
    match g:
        case ZCDP():
            return g
        case PureDP(size) | GDP(size, 0.0):
            return ZCDP(float_up(Fraction(size) ** 2 / 2), **labels_of(g))
        case GDP():
            raise NoConversion(
                f"there is no conversion of GDP with delta > 0 to ZCDP (got {g}). With probability delta the Renyi "
                "divergence may be infinite",
                f"use cf.GDP({g.mu!r}) if the release is proved with delta 0, or a ledger in GDP, which adds deltas",
            )
        case ApproxDP():
            raise NoConversion(
                f"there is no conversion ApproxDP -> ZCDP (got {g}). With probability delta the Renyi divergence may "
                "be infinite",
                "use to_gdp() and a ledger in GDP, or ask for the release as ZCDP(rho)",
            )
        case RDP():
            raise NoConversion(
                f"there is no conversion RDP -> ZCDP (got {g}). zCDP bounds every order above 1, and a Renyi curve only "
                "those that it lists",
                "state the release as ZCDP(rho) at its source, or use to_approx(delta=1e-6)",
            )
        case TradeOff():
            raise NoConversion(
                f"there is no conversion TradeOff -> ZCDP, got {g}: the Renyi divergences of a trade-off function may be "
                "infinite",
                f"{_through_pure(g, 'to_zcdp()')}",
            )
        case _:
            raise not_a_guarantee(g, "to_zcdp(GDP(1.0))")


@way
def to_pure(g: Guarantee) -> PureDP:
    """The pure statement that follows from a guarantee: of a PureDP, or of a TradeOff whose loss is bounded.

    >>> from confide.guarantees import laplace
    >>> to_pure(TradeOff(laplace(1.0)))
    PureDP(1.0)
    """
    match g:
        case PureDP():
            return g
        case TradeOff(curve):
            epsilon = curve.epsilon(0.0)
            if isfinite(epsilon):
                return PureDP(epsilon, **labels_of(g))
            raise NoConversion(
                f"there is no PureDP statement of {g}: its privacy loss is not bounded",
                "use to_approx(delta=1e-6), or to_gdp(delta=1e-6)",
            )
        case ApproxDP() | ZCDP() | GDP() | RDP():
            kind = type(g).__name__
            raise NoConversion(
                f"there is no conversion {kind} -> PureDP, got {g}: {kind} allows any loss with some small probability",
                "use to_approx(delta=1e-6), or ask for the release as PureDP(epsilon) with Laplace noise",
            )
        case _:
            raise not_a_guarantee(g, "to_pure(PureDP(1.0))")


@way
def to_rdp(g: Guarantee, orders: Iterable[float] | None = None) -> RDP:
    """The Renyi curve that follows from a guarantee, numbers rounded up; `NoConversion` where a delta is in the way.

    orders: above 1, strictly rising; by default 1.1 to 10.9 by tenths, 11 to 63, and powers of 2 to 1024. Of an RDP
    only they are kept, and it must have them all.

    >>> to_rdp(ZCDP(0.5), (2, 4))
    RDP((2.0, 4.0), (1.0, 2.0))
    """
    if isinstance(g, RDP) and orders is None:
        return g
    chosen = DEFAULT_ORDERS if orders is None else orders_tuple(orders, "to_rdp((2, 8, 32))")
    match g:
        case PureDP(epsilon):
            # the exact bound is below order * epsilon^2/2, which rounding it up must not undo
            halves = (float_up(Fraction(a) * Fraction(epsilon) ** 2 / 2) for a in chosen)
            levels = [min(up(pure_renyi(a, epsilon)), half) for a, half in zip(chosen, halves, strict=True)]
        case ZCDP(rho):
            levels = [float_up(Fraction(a) * Fraction(rho)) for a in chosen]
        case GDP(mu, 0.0):
            levels = [float_up(Fraction(a) * Fraction(mu) ** 2 / 2) for a in chosen]
        case RDP():
            known = dict(zip(g.orders, g.epsilons, strict=True))
            if not known.keys() >= set(chosen):
                raise NoConversion(
                    f"{g} bounds the orders that it lists and no others",
                    "ask for some of them: to_rdp(g.orders), or for the orders at the source of the release",
                )
            levels = [known[a] for a in chosen]
        case GDP() | ApproxDP():
            raise NoConversion(
                f"there is no conversion {type(g).__name__} with a delta -> RDP (got {g}). With probability delta the "
                "Renyi divergence may be infinite",
                "use to_gdp() and compose in GDP, which adds deltas, or to_tradeoff()",
            )
        case TradeOff():
            raise NoConversion(
                f"there is no conversion TradeOff -> RDP, got {g}: the Renyi divergences of a trade-off function may be "
                "infinite",
                f"{_through_pure(g, 'to_rdp()')}",
            )
        case _:
            raise not_a_guarantee(g, "to_rdp(GDP(1.0))")
    return RDP(chosen, tuple(levels), **labels_of(g))


def from_guarantee(g: Guarantee) -> Curve:
    """Curve that a guarantee proves.

    f-DP for the largest f that follows from it, or a proved lower bound. Exact
    for PureDP, ApproxDP, GDP and TradeOff; for ZCDP and RDP what their best
    order proves.

    Parameters
    ----------
    g : Guarantee
        Any guarantee.

    Returns
    -------
    Curve
        The trade-off function.

    Examples
    --------
    >>> from confide.guarantees import GDP
    >>> from_guarantee(GDP(1.0, 1e-6)).mass_at_infinity
    1e-06
    """
    match g:
        case TradeOff(curve):
            return curve
        case GDP(mu, delta):
            return Relaxed(Gaussian(mu), delta) if delta else Gaussian(mu)
        case PureDP(epsilon):
            return RandomisedResponse(epsilon)
        case ApproxDP(epsilon, delta):
            return approx_dp(epsilon, delta)
        case ZCDP(rho):
            return RenyiBound(None, (rho,))
        case RDP(orders, epsilons):
            return RenyiBound(orders, epsilons)
    raise PrivacyError(
        f"a curve is made from a guarantee, got {type(g).__name__}", "write from_guarantee(GDP(1.0)) or gaussian(1.0)"
    )


@way
def to_tradeoff(g: Guarantee) -> TradeOff:
    """The trade-off function that a guarantee proves: exact for GDP, PureDP and ApproxDP, a bound for ZCDP and RDP.

    >>> to_tradeoff(PureDP(1.0)).to_pure()
    PureDP(1.0)
    """
    if not isinstance(g, KINDS):
        raise not_a_guarantee(g, "to_tradeoff(GDP(1.0))")
    return g if isinstance(g, TradeOff) else TradeOff(from_guarantee(g), **labels_of(g))


@way
def to_approx(g: Guarantee, *, epsilon: float | None = None, delta: float | None = None) -> ApproxDP:
    """The (epsilon, delta) statement that follows from a guarantee: one number is given, the other rounded up.

    >>> to_approx(GDP(1.0), epsilon=1.0).delta  # doctest: +ELLIPSIS
    0.12693673...
    """
    if (epsilon is None) == (delta is None):
        raise PrivacyError(
            "to_approx takes one of epsilon and delta and computes the other",
            "write to_approx(delta=1e-6) or to_approx(epsilon=1.0)",
        )
    if not isinstance(g, KINDS):
        raise not_a_guarantee(g, "to_approx(GDP(1.0), delta=1e-6)")
    if epsilon is not None:
        kept = level(epsilon, "epsilon", "to_approx(epsilon=1.0)")
        return ApproxDP(kept, below_one(_delta_at(g, kept), f"{g} at epsilon={kept!r}"), **labels_of(g))
    chosen = share(delta, "delta", "to_approx(delta=1e-6)", zero=False)
    needed = _epsilon_at(g, chosen)
    if needed <= 0:
        raise PrivacyError(
            f"at delta={chosen!r} {g} holds with every epsilon above 0, so there is no smallest one",
            "give a smaller delta, or the epsilon: to_approx(epsilon=0.1)",
        )
    return ApproxDP(needed, chosen, **labels_of(g))


def _delta_at(g: Guarantee, epsilon: float) -> float:
    """delta of a guarantee's own curve at an epsilon, rounded up; 1 or more where nothing is left."""
    match g:
        case GDP(mu, delta):
            return float_up(Fraction(_exp_up(log_gaussian_delta(epsilon, mu))) + Fraction(delta))
        case ZCDP(rho):
            return _exp_up(zcdp_log_delta(epsilon, rho))
        case RDP(orders, epsilons):
            return _exp_up(min(rdp_log_delta(epsilon, orders, epsilons), 0.0))
        case TradeOff(curve):
            return max(float(curve.delta(epsilon)), _SMALLEST_DELTA)
        case ApproxDP(known, delta):
            return delta if epsilon >= known else up(leak_delta(known, delta, epsilon))
        case PureDP(known):
            if epsilon >= known:
                raise PrivacyError(
                    f"{g} already says more than any delta at epsilon={epsilon!r}",
                    "keep it, or give the delta: to_approx(delta=1e-6)",
                )
            return up(leak_delta(known, 0.0, epsilon))


def _epsilon_at(g: Guarantee, delta: float) -> float:
    """epsilon of a guarantee's own curve at a delta, rounded up; 0 or less where every epsilon above 0 holds."""
    own = g.delta if isinstance(g, (GDP, ApproxDP)) else 0.0
    if delta < own or (delta == own and isinstance(g, GDP)):
        raise PrivacyError(
            f"{g} holds for no delta {'below' if delta < own else 'as small as'} its own {own!r}, got {delta!r}",
            "give a larger delta",
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
        case RDP(orders, epsilons):
            epsilon = rdp_epsilon(log(delta), orders, epsilons)
            return epsilon + SLACK * (epsilon + 1 - log(delta)) if epsilon > 0 else 0.0
        case TradeOff(curve):
            epsilon = float(curve.epsilon(delta))
            if isfinite(epsilon):
                return epsilon
            raise PrivacyError(
                f"{g} holds for no delta as small as {delta!r}: its loss is infinite with a larger probability",
                "give a larger delta",
            )
        case PureDP(known) | ApproxDP(known, _):
            return leak_epsilon(known, own, delta)


def _through_pure(g: TradeOff, verb: str) -> str:
    """What to do where Renyi divergences are asked of a trade-off function."""
    if isfinite(g.curve.epsilon(0.0)):
        return f"its loss is bounded, so use to_pure().{verb}"
    return "use to_gdp(delta=1e-6) or to_approx(delta=1e-6), or state the release in the kind wanted at its source"


def labels_of(g: Guarantee) -> dict[str, Any]:
    """Relation, unit, trust and assumptions, to be handed on.

    >>> labels_of(GDP(1.0))["unit"]
    'record'
    """
    return {"relation": g.relation, "unit": g.unit, "trust": g.trust, "assumptions": g.assumptions}


def up(number: float) -> float:
    """A transcendental result, rounded to the weaker side.

    >>> up(1.0) > 1.0
    True
    """
    return nextafter(number * (1 + SLACK), inf)


def _exp_up(log_delta: float) -> float:
    return max(up(exp(log_delta)), _SMALLEST_DELTA)


def below_one(delta: float, of: str) -> float:
    """A delta that still says something, or `PrivacyError`.

    >>> below_one(0.5, "GDP(1.0)")
    0.5
    """
    if delta < 1:
        return delta
    raise PrivacyError(
        f"delta of {of} comes to 1 or more, which promises nothing",
        "start from a stronger guarantee or take a larger epsilon",
    )


def not_a_guarantee(value: object, example: str) -> PrivacyError:
    """The error for anything else than a guarantee.

    >>> print(not_a_guarantee(1, "group(GDP(0.5), 4)"))
    a guarantee is PureDP, ApproxDP, ZCDP, GDP, RDP or TradeOff, got int; write for instance group(GDP(0.5), 4)
    """
    return PrivacyError(
        f"a guarantee is PureDP, ApproxDP, ZCDP, GDP, RDP or TradeOff, got {type(value).__name__}",
        f"write for instance {example}",
    )


_CURVES: dict[str, Callable[..., Curve]] = {
    "gaussian": gaussian,
    "laplace": laplace,
    "approx_dp": approx_dp,
    "symmetric_laplace": symmetric_laplace,
    "zero_inflated": zero_inflated,
    "perfect": perfect,
}
_VALUES: dict[str, Callable[..., Any]] = {kind.__name__: kind for kind in (GDP, PureDP, ApproxDP, ZCDP, RDP)}
_HELP = (
    "write for instance 'GDP(1)', 'ApproxDP(1, 1e-6)', 'laplace(0.1) ** 10', 'gaussian(1) * laplace(0.5)', "
    "'symmetric_laplace(3, 0.5)' or 'zero_inflated(0.05, symmetric_laplace(inf, 0.5))'"
)


def parse_curve(text: str) -> Curve:
    """Read a trade-off function from text, such as ``"laplace(0.1) ** 10"``.

    Parameters
    ----------
    text : str
        Names of curves and guarantees; ``*`` composes, ``** k`` composes k
        times. The text is parsed, never evaluated.

    Returns
    -------
    Curve
        The trade-off function.

    Raises
    ------
    PrivacyError
        The text is anything else; the message has examples.

    Examples
    --------
    >>> parse_curve("gaussian(3) * GDP(4)").delta(0.0) == parse_curve("gaussian(5)").delta(0.0)
    True
    """
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise PrivacyError(f"{text!r} is not a guarantee", f"{_HELP}") from None
    found = _read(tree, text)
    if not isinstance(found, Curve):
        raise PrivacyError(f"{text!r} is a number, not a guarantee", f"{_HELP}")
    return found


def _read(node: ast.expr, text: str) -> Any:
    match node:
        case ast.Constant(value=bool()):
            pass
        case ast.Constant(value=int() | float()):
            return node.value
        case ast.Name(id="inf"):
            return math.inf
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            number = _read(operand, text)
            if isinstance(number, (int, float)):
                return -number
        case ast.Tuple(elts=items) | ast.List(elts=items):
            return tuple(_read(item, text) for item in items)
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            one, other = _read(left, text), _read(right, text)
            if isinstance(one, Curve) and isinstance(other, Curve):
                return one.compose(other)
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            base, times = _read(left, text), _read(right, text)
            if isinstance(base, Curve):
                if not isinstance(times, int) or times < 1:
                    raise PrivacyError(
                        f"{ast.unparse(node)!r}: ** takes a whole number of releases, at least 1, got {times!r}",
                        "write for instance 'laplace(0.1) ** 10'",
                    )
                return base.power(times)
        case ast.BinOp(op=ast.Add() | ast.Sub()):
            raise PrivacyError(
                f"{ast.unparse(node)!r}: releases compose by * and equal ones by **",
                "write for instance 'GDP(1) * GDP(2)' or 'GDP(1) ** 3'",
            )
        case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords) if name in (*_CURVES, *_VALUES):
            values = [_read(arg, text) for arg in args]
            named = {keyword.arg: _read(keyword.value, text) for keyword in keywords if keyword.arg}
            try:
                made = (_CURVES | _VALUES)[name](*values, **named)
            except TypeError:
                raise PrivacyError(f"{name} in {text!r} has other parameters", f"{_HELP}") from None
            except PrivacyError as error:
                raise PrivacyError(f"{ast.unparse(node)!r}: {error}") from None
            return made if isinstance(made, Curve) else from_guarantee(made)
    raise PrivacyError(f"{ast.unparse(node)!r} in {text!r} is not understood", f"{_HELP}")


def calibrate_pure(privacy: Guarantee) -> float:
    """Largest epsilon at which every epsilon-private release meets a request.

    What holds for randomized response holds for all. PureDP gives its epsilon;
    GDP the inverse of `pure_mu`; ZCDP the largest float with epsilon^2/2 <=
    rho; ApproxDP the epsilon of randomized response whose curve meets epsilon
    and delta.

    Parameters
    ----------
    privacy : Guarantee
        Request: PureDP, GDP, ZCDP or ApproxDP. A delta of GDP is left unused.

    Returns
    -------
    float
        Epsilon, rounded to the safe side.

    Raises
    ------
    PrivacyError
        The request is of another kind.

    References
    ----------
    Kairouz, Oh and Viswanath (2015), The composition theorem for differential
    privacy, ICML.

    Examples
    --------
    >>> calibrate_pure(PureDP(0.5)), calibrate_pure(ZCDP(0.5)), round(calibrate_pure(GDP(1.0)), 6)
    (0.5, 1.0, 0.806965)
    """
    match privacy:
        case PureDP(epsilon):
            return epsilon
        case GDP(mu):
            return _down(pure_epsilon(mu))
        case ZCDP(rho):
            return sqrt_down(2 * Fraction(rho))
        case ApproxDP(epsilon, delta):
            # (e^x - e^epsilon) / (1 + e^x) = delta, solved for x: the curve of randomised response at epsilon
            return max(epsilon, _down(epsilon + log((1 + delta * exp(-epsilon)) / (1 - delta))))
        case _:
            raise PrivacyError(
                f"a pure mechanism is calibrated to PureDP, GDP, ZCDP or ApproxDP, got {type(privacy).__name__}",
                "write for instance calibrate_pure(PureDP(1.0))",
            )


def _down(number: float) -> float:
    # The statement that leads back is itself rounded up by SLACK, and mu grows as slowly as the root of epsilon: twice the
    # slack in epsilon answers one in mu; four times leaves room for the float on either side.
    return nextafter(number * (1 - 4 * SLACK), -inf)


_KINDS: tuple[tuple[type[Any], str, tuple[str, ...]], ...] = (
    (GDP, "Gaussian DP", ("mu", "delta")),
    (PureDP, "pure DP", ("epsilon",)),
    (ZCDP, "zero-concentrated DP", ("rho",)),
    (ApproxDP, "approximate DP", ("epsilon", "delta")),
)


def implied_pair(
    guarantee: Guarantee, delta: float = 1e-6, *, requested: Guarantee | None = None
) -> tuple[float, float] | None:
    """The epsilon that follows at a delta, rounded up to three figures; None where it is stated already or none follows.

    requested: what was asked for; where it is that pair, it is not rounded up beyond it.

    Examples
    --------
    >>> from confide.guarantees import GDP
    >>> implied_pair(GDP(1.0))
    (4.89, 1e-06)
    """
    if isinstance(guarantee, (PureDP, ApproxDP)):
        return None
    try:
        epsilon = guarantee.to_approx(delta=delta).epsilon
    except PrivacyError:
        return None
    if isinstance(requested, ApproxDP) and requested.delta == delta and abs(epsilon / requested.epsilon - 1) < 1e-6:
        return requested.epsilon, delta
    return _raised(epsilon), delta


def bare_words(guarantee: Guarantee) -> str:
    """A guarantee by its kind and numbers alone, of up to four figures as they are, else rounded up to three; no delta of 0.

    Examples
    --------
    >>> from confide.guarantees import GDP
    >>> bare_words(GDP(1.603)), bare_words(GDP(1.0, 1e-6))
    ('Gaussian DP, mu = 1.603', 'Gaussian DP, mu = 1, delta = 1e-06')
    """
    for kind, words, fields in _KINDS:
        if type(guarantee) is kind:
            given = [(one, getattr(guarantee, one)) for one in fields]
            # one that was asked for is not told as more than it is, and than is left
            told = [(one, x if float(f"{x:.4g}") == x else _raised(x)) for one, x in given if x]
            return ", ".join([words, *(f"{one} = {x:.4g}" for one, x in told)])
    return str(guarantee)


def kind_words(guarantee: Guarantee, requested: Guarantee | None = None) -> str:
    """A guarantee by its kind and numbers, with what it implies, each rounded up to three figures.

    Examples
    --------
    >>> from confide.guarantees import GDP, PureDP
    >>> kind_words(GDP(0.5)), kind_words(PureDP(1.0))
    ('Gaussian DP, mu = 0.5 (implies epsilon 2.26 at delta 1e-6)', 'pure DP, epsilon = 1')
    """
    said = bare_words(guarantee)
    pair = implied_pair(guarantee, requested=requested)
    if pair is None:
        return said
    delta = f"{pair[1]:.0e}".replace("e-0", "e-")
    return f"{said} (implies epsilon {pair[0]:#.3g} at delta {delta})".replace(". at", " at")


def _raised(number: float) -> float:
    """A bound on a risk is rounded up."""
    return float(Context(3, ROUND_CEILING).create_decimal(Decimal(repr(number))))
