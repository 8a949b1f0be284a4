"""The base's level for a total (epsilon, delta): the largest mu at which a bound on the selection still meets it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import exp, log, sqrt

from confide.errors import PrivacyError
from confide.guarantees.mechanisms.gaussian import mu_bracket
from confide.guarantees.selection.bounds import profile_epsilon, renyi_epsilon, tradeoff_delta
from confide.guarantees.selection.laws import RunLaw

__all__ = ["Base", "calibrate_selection", "composed_base", "largest_base"]

_BITS = 20


@dataclass(frozen=True)
class Base:
    """What each run may cost: mu-GDP up to a slack. law: of the number of runs; None: every candidate runs once, and all compose.

    drawn: the probability that a given candidate, such as the best, is run at all.
    """

    mu: float
    slack: float
    law: RunLaw | None
    drawn: float


def _down(mu: float) -> float:
    """mu rounded down to 20 bits, so that machines whose last digits differ make the same plan."""
    exponent = int(log(mu, 2) // 1)
    mantissa = int(mu / 2.0**exponent * 2**_BITS)
    return mantissa * 2.0 ** (exponent - _BITS)


@lru_cache(maxsize=256)
def largest_base(epsilon: float, delta: float, law: RunLaw, slack: float = 0.0, bound: str = "tradeoff") -> float:
    """The largest mu of the base at which `bound` gives at most (epsilon, delta): "tradeoff" (b), "profile" (a) or "renyi" (c).

    slack: d0 of the base, for "tradeoff" alone. At most what a single run may have. 0 where no mu does.

    >>> from confide.guarantees.selection import TruncatedNegativeBinomial
    >>> round(largest_base(1.0, 1e-6, TruncatedNegativeBinomial(1.0, 90.0)), 3)
    0.127
    """
    bounds: dict[str, Callable[[float], bool]] = {
        "tradeoff": lambda mu: tradeoff_delta(epsilon, mu, law, slack) <= delta,
        "profile": lambda mu: profile_epsilon(delta, mu, law) <= epsilon,
        "renyi": lambda mu: renyi_epsilon(delta, mu, law) <= epsilon,
    }
    if bound not in bounds:
        raise PrivacyError(f"bound must be one of {', '.join(bounds)}, got {bound!r}; the default is the sharpest")
    holds = bounds[bound]
    high = log(mu_bracket(epsilon, delta)[0])
    if holds(exp(high)):
        return exp(high)
    low = high - 1
    while not holds(exp(low)):
        low, high = low - 1, low
        if low < -40:
            return 0.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (middle, high) if holds(exp(middle)) else (low, middle)
    return exp(low)


def composed_base(epsilon: float, delta: float, candidates: int) -> float:
    """mu of each candidate where all run once and all is accounted as released."""
    return mu_bracket(epsilon, delta)[0] / sqrt(candidates)


@lru_cache(maxsize=256)
def calibrate_selection(
    epsilon: float, delta: float, candidates: int, law: RunLaw | None, slack: float = 0.0, *, alone: bool = False
) -> Base:
    """The base of a selection among `candidates` with total (epsilon, delta).

    slack: the share of delta that is set aside for a base whose own guarantee may fail, 0 for none. law: of the number of runs; None for
    all composed. alone: take the law as it is; otherwise, for three candidates or fewer, running all of them once is compared, and taken
    where its mu is larger.

    >>> from confide.guarantees.selection import TruncatedNegativeBinomial
    >>> round(calibrate_selection(1.0, 1e-6, 30, TruncatedNegativeBinomial(1.0, 90.0)).drawn, 3)
    0.756
    """
    found = []
    if law is not None:
        own = slack * delta / law.mean
        mu = largest_base(epsilon, delta, law, own)
        if mu > 0:
            found.append(Base(_down(mu), own, law, law.chance_drawn(candidates)))
    if law is None or (candidates <= 3 and not alone):
        found.append(
            Base(_down(composed_base(epsilon, delta * (1 - slack), candidates)), slack * delta / candidates, None, 1.0)
        )
    if not found:
        raise PrivacyError(
            f"no base level gives ({epsilon!r}, {delta!r}) with {law}; ask for a larger budget or fewer runs"
        )
    return max(found, key=lambda base: base.mu)
