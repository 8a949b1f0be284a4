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

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import inf

from confide.errors import PrivacyError
from confide.guarantees import GDP, ZCDP, PureDP
from confide.protocol.spending import variances

__all__ = ["ADDITIVE", "LAWS", "Law", "law_named"]


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
        Law("grid_gaussian", GDP, ("l2", "frobenius"), lambda d, sigma2: d**2 / sigma2, variances.rounded_gaussian),
        Law("discrete_gaussian", ZCDP, ("l2",), lambda d, sigma2: d**2 / (2 * sigma2), variances.discrete_gaussian),
        Law("grid_laplace", PureDP, ("l1",), lambda d, s: d / s, variances.rounded_laplace),
        Law("discrete_laplace", PureDP, ("l1",), lambda d, s: d / s, variances.discrete_laplace),
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
