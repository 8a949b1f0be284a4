"""What each law of noise costs and how much it spreads, as exact functions of its scale.

| law | norm of the sensitivity D | scale | guarantee of one draw | source |
| --- | --- | --- | --- | --- |
| grid_gaussian | l2 (or frobenius) | variance sigma^2 | GDP(D / sigma) | Dong, Roth, Su 2022, Theorem 2; rounding is post-processing |
| discrete_gaussian | l2 | variance sigma^2 | ZCDP(D^2 / (2 sigma^2)) | Canonne, Kamath, Steinke 2020, Theorem 4 |
| grid_laplace | l1 | scale s | PureDP(D / s) | Dwork, McSherry, Nissim, Smith 2006; rounding is post-processing |
| discrete_laplace | l1 | scale s | PureDP(D / s) | Ghosh, Roughgarden, Sundararajan 2012 |
| exponential | of the score | epsilon | PureDP(epsilon) | McSherry, Talwar 2007 |
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import inf

from confide.errors import PrivacyError
from confide.guarantees import GDP, ZCDP, PureDP

__all__ = [
    "ADDITIVE",
    "LAWS",
    "Law",
    "discrete_gaussian",
    "discrete_laplace",
    "law_named",
    "rounded_gaussian",
    "rounded_laplace",
]


# the variance of one draw of each, in squared steps: closed forms in float64, good to 1e-12 -------------------------


def rounded_gaussian(sigma2: Fraction) -> float:
    """N(0, sigma2) rounded to the nearest integer: sigma2 + 1/12 plus a series that is below 2e-8 from sigma = 1 on.

    Relative error below 1e-12 from sigma = .02 on (there the variance is 1e-137).
    """
    if sigma2 < Fraction(1, 4):
        return _variance_by_tails(math.sqrt(sigma2))
    four_s = 4 * math.pi**2 * float(sigma2)
    # From sigma = 1/2 on the terms fall faster than e^(-4.9 j^2): the fourth is below 1e-33.
    series = sum((-1) ** j * (1 / j**2 + four_s) * math.exp(-four_s * j * j / 2) for j in (1, 2, 3))
    return float(sigma2 + Fraction(1, 12)) + series / math.pi**2


def _variance_by_tails(sigma: float) -> float:
    """The sum of (2k - 1) P(|X| >= k - 1/2): for small sigma, where the series cancels against sigma2 + 1/12."""
    # Below sigma = 1/2 what follows k = 5 is below 1e-22 of the first term.
    reach = 1 / (sigma * math.sqrt(2)) if sigma > 1e-9 else math.inf
    return sum((2 * k - 1) * math.erfc((k - 0.5) * reach) for k in (5, 4, 3, 2, 1))


def rounded_laplace(scale: Fraction) -> float:
    """A Laplace rounded to the nearest integer: cosh(x) / (2 sinh(x)^2), x = 1/(2s); near 2 s^2 for large s."""
    x = _inverse(2 * scale)
    # e^x and e^-x apart from their quotient: sinh would overflow for small scales.
    return math.exp(-x) * (1 + math.exp(-2 * x)) / math.expm1(-2 * x) ** 2


def discrete_laplace(scale: Fraction) -> float:
    """P(k) proportional to e^(-|k|/scale): 2 q / (1 - q)^2 with q = e^(-1/scale)."""
    x = _inverse(scale)
    return 2 * math.exp(-x) / math.expm1(-x) ** 2


def discrete_gaussian(sigma2: Fraction) -> float:
    """P(k) proportional to e^(-k^2 / (2 sigma2)): below sigma2 by less than 3e-7 from sigma = 1 on."""
    if sigma2 < 1:
        half = _inverse(2 * sigma2)
        weights = [(k * k, math.exp(-half * k * k)) for k in range(1, 15)]  # the next is below e^-112
        return 2 * sum(square * weight for square, weight in weights) / (1 + 2 * sum(weight for _, weight in weights))
    # Poisson summation: the normaliser is sigma sqrt(2 pi) (1 + 2 sum_j e^(-2 pi^2 sigma2 j^2)); its derivative.
    s = float(sigma2)
    terms = [(j * j, math.exp(-2 * math.pi**2 * s * j * j)) for j in (1, 2, 3)]
    total = 1 + 2 * sum(weight for _, weight in terms)
    return s - 8 * math.pi**2 * s * s * sum(square * weight for square, weight in terms) / total


def _inverse(value: Fraction) -> float:
    """1 / value, at most 1e6: e^-x is 0 there already."""
    return float(1 / value) if value > Fraction(1, 10**6) else 1e6


# the laws -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Law:
    """A law of noise: what kind of statement it gives, the exact number in it, and the variance of one draw.

    cost(D, scale) is mu^2 for GDP, rho for ZCDP and epsilon for PureDP: the number that adds up when releases compose.
    """

    name: str
    kind: type[GDP] | type[ZCDP] | type[PureDP]
    norms: tuple[str, ...]
    cost: Callable[[Fraction, Fraction], Fraction]
    variance: Callable[[Fraction], float]


LAWS: dict[str, Law] = {
    law.name: law
    for law in (
        Law("grid_gaussian", GDP, ("l2", "frobenius"), lambda d, sigma2: d**2 / sigma2, rounded_gaussian),
        Law("discrete_gaussian", ZCDP, ("l2",), lambda d, sigma2: d**2 / (2 * sigma2), discrete_gaussian),
        Law("grid_laplace", PureDP, ("l1",), lambda d, s: d / s, rounded_laplace),
        Law("discrete_laplace", PureDP, ("l1",), lambda d, s: d / s, discrete_laplace),
        Law("exponential", PureDP, ("score",), lambda _, epsilon: epsilon, lambda _: inf),
    )
}

#: The laws that add noise to integers; the other one chooses.
ADDITIVE = ("grid_gaussian", "discrete_gaussian", "grid_laplace", "discrete_laplace")


def law_named(name: str) -> Law:
    """The law of that name; `PrivacyError` for one that has no proved cost here.

    >>> law_named("grid_laplace").cost(Fraction(3), Fraction(6))
    Fraction(1, 2)
    """
    if name not in LAWS:
        raise PrivacyError(f"no law {name!r} with a proved cost; the laws are {', '.join(LAWS)}")
    return LAWS[name]
