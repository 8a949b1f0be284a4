"""What a guarantee means in one sentence: how often an attacker guesses right whether one person is in the data."""

from __future__ import annotations

from decimal import ROUND_CEILING, Context, Decimal
from math import ceil, exp, sqrt
from typing import Any

from confide._special import ndtr
from confide.errors import PrivacyError
from confide.guarantees.values import GDP, ZCDP, ApproxDP, Guarantee, PureDP

# Rates of false alarm between which the general bound is read: it is above the exact one by at most 1 in 1,000.
_RATES = 500


def guess_limit(guarantee: Guarantee) -> float:
    """The largest share of right guesses between two neighboring datasets that are equally likely.

    Notes
    -----
    Half of 1 plus the total variation distance. Gaussian DP: the normal distribution function at mu/2, plus half of delta
    (Dong, Roth and Su 2022). Pure and approximate DP: (e^epsilon + delta)/(1 + e^epsilon) (Kairouz, Oh and Viswanath 2015). All others:
    the largest (1 + d(a) - a)/2 over rates a of false alarm, with the detection limit d, which rises in a, read at the end of each step.
    Zero-concentrated DP also: total variation of at most the root of rho/2 (Pinsker; the Kullback-Leibler divergence is at most rho).

    Examples
    --------
    >>> from confide.guarantees import GDP, PureDP, ZCDP
    >>> [round(guess_limit(one), 3) for one in (GDP(1.0), PureDP(1.0), ZCDP(0.5))]
    [0.691, 0.731, 0.75]
    """
    match guarantee:
        case GDP():
            found = float(ndtr(guarantee.mu / 2)) + guarantee.delta / 2
        case PureDP():
            found = 1 / (1 + exp(-guarantee.epsilon))
        case ApproxDP():
            found = (1 + guarantee.delta * exp(-guarantee.epsilon)) / (1 + exp(-guarantee.epsilon))
        case _:
            ends = [(step + 1) / _RATES for step in range(_RATES)]
            limits = [guarantee.detection_limit(end) if end < 1 else 1.0 for end in ends]
            found = max((1 + limit - (end - 1 / _RATES)) / 2 for end, limit in zip(ends, limits, strict=True))
            if isinstance(guarantee, ZCDP):
                found = min(found, (1 + sqrt(guarantee.rho / 2)) / 2)
    return min(1.0, found)


def guess_percent(guarantee: Guarantee) -> int:
    """The same in whole per cent, rounded up.

    Examples
    --------
    >>> from confide.guarantees import GDP
    >>> [guess_percent(GDP(mu)) for mu in (0.5, 1.0, 2.0)]
    [60, 70, 85]
    """
    return min(100, ceil(100 * guess_limit(guarantee) - 1e-9))


def plain_words(guarantee: Guarantee, after: str = "after this release") -> str:
    """The guarantee in plain words, as reports, ledgers and the studio print it.

    Examples
    --------
    >>> from confide.guarantees import GDP
    >>> plain_words(GDP(2.0), "after the whole budget")
    'An attacker who guesses whether one person is in the data is right 50% of the time by chance, and at most 85% after the whole budget.'
    """
    asked = "whether one person is in the data"
    if guarantee.relation == "substitute":
        asked = "which of two possible records one person has"
    return (
        f"An attacker who guesses {asked} is right 50% of the time by chance, and at most {guess_percent(guarantee)}% "
        f"{after}."
    )


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
    """A guarantee by its kind and numbers alone, each rounded up to three figures; a delta of 0 is not written.

    Examples
    --------
    >>> from confide.guarantees import GDP
    >>> bare_words(GDP(2.0)), bare_words(GDP(1.0, 1e-6))
    ('Gaussian DP, mu = 2', 'Gaussian DP, mu = 1, delta = 1e-06')
    """
    for kind, words, fields in _KINDS:
        if type(guarantee) is kind:
            given = [(one, getattr(guarantee, one)) for one in fields]
            return ", ".join([words, *(f"{one} = {_raised(number):.3g}" for one, number in given if number)])
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
