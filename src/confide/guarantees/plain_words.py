"""What a guarantee means in one sentence: how often an attacker guesses right whether one person is in the data."""

from __future__ import annotations

from math import ceil, exp, sqrt

from confide._special import ndtr
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
