"""Is the noise what it is said to be? Draws against their exact law, with the rate of false alarms fixed beforehand."""

from __future__ import annotations

from math import sqrt

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from confide.audit.runs.known_laws import upper_tail
from confide.audit.runs.lower_bounds import upper_rate
from confide.audit.verdict import Finding
from confide.errors import PrivacyError
from confide.guarantees.validation import level, share

__all__ = ["noise_scale_test"]

# Shares of |draw| beyond a threshold. The scale shows best near P(|X| >= k) = .14 for a Gaussian, .2 for a Laplace; the rest looks for a
# wrong centre and wrong tails.
SHARES = (0.9, 0.7, 0.5, 0.35, 0.25, 0.2, 0.15, 0.1, 0.05, 0.02, 0.01, 1e-3, 1e-4)
LONGEST = 1e6  # factor by which a scale is searched in both directions


def noise_scale_test(
    draws: ArrayLike,
    law: str,
    *,
    scale: float,
    false_alarm: float = 1e-6,
    name: str = "",
) -> Finding:
    """Test draws of noise (a release less the exact statistic) against their law and scale: is the noise too small, or of other shape?

    draws: integers, any shape, for the integer laws, in steps; real for "gaussian" and "laplace". law, scale: as
    `audit_law` (sigma^2 or s). false_alarm: probability of "violated" for draws that follow the law.

    Counts of |draw| beyond thresholds, and of signs, are binomial with exactly known rates; each must lie within its Clopper-Pearson
    interval, the false alarms shared out equally. lower_bound: claimed over actual standard deviation at least, the
    largest of the bounds from single thresholds: above 1 the noise is too small, and a claim mu is spent by that factor.
    A factor of .97 is found at 10^5 draws with probability .999 or more at false_alarm 1e-6 (10.8 standard deviations for a Gaussian).
    Errors: PrivacyError for an unknown law, numbers out of range, or fewer than 100 draws.

    >>> from confide.noise import SimulatedNoise
    >>> noise_scale_test(SimulatedNoise(1).grid_gaussian(10**6, 100_000), "grid_gaussian", scale=10**6).verdict
    'holds'
    >>> noise_scale_test(SimulatedNoise(1).grid_gaussian(940_900, 100_000), "grid_gaussian", scale=10**6).verdict
    'violated'
    """
    x = np.asarray(draws, dtype=np.float64).ravel()
    false_alarm = share(false_alarm, "false_alarm", "false_alarm=1e-6", zero=False)
    claimed = level(float(scale), "scale", "scale=4")
    if len(x) < 100:
        raise PrivacyError(f"a scale needs at least 100 draws, got {len(x)}; write for instance 100_000")
    if not np.isfinite(x).all():
        raise PrivacyError("draws must be finite; the audits epsilon_lower_bound and mu_lower_bound take any outcome")
    thresholds = _thresholds(law, claimed)
    checks = 2 * (len(thresholds) + 2)
    wrong, ratio = [], 0.0
    for k in thresholds:
        count = int((np.abs(x) >= k).sum())
        rate = 2 * float(upper_tail(law, claimed, k))
        highest, lowest = _interval(count, len(x), false_alarm / checks)
        ratio = max(ratio, _ratio(law, claimed, k, highest))
        if not lowest <= rate <= highest:
            wrong.append(f"|noise| >= {k:g}: {count / len(x):.5g} of the draws, {rate:.5g} by the law")
    for sign, text in ((1.0, "positive"), (-1.0, "negative")):
        count = int((sign * x > 0).sum())
        smallest = 1 if law not in ("gaussian", "laplace") else 0
        rate = float(upper_tail(law, claimed, smallest))
        highest, lowest = _interval(count, len(x), false_alarm / checks)
        if not lowest <= rate <= highest:
            wrong.append(f"noise {text}: {count / len(x):.5g} of the draws, {rate:.5g} by the law")
    return Finding(
        name=name or law,
        quantity="ratio",
        claim=1.0,
        lower_bound=ratio,
        verdict="violated" if wrong else "holds",
        attack=f"counts beyond {len(thresholds)} thresholds and signs",
        confidence=1 - false_alarm,
        draws=len(x),
        note="; ".join(wrong[:2]),
    )


def _interval(count: int, n: int, risk: float) -> tuple[float, float]:
    return float(upper_rate(count, n, risk)), 1 - float(upper_rate(n - count, n, risk))


def _thresholds(law: str, scale: float) -> list[float]:
    """Where the law leaves about each of `SHARES` outside; whole numbers for integer laws."""
    spread = sqrt(scale) if "gaussian" in law else scale
    whole = law not in ("gaussian", "laplace")
    found = set()
    for outside in SHARES:
        low, high = 0.0, 40 * spread + 2
        for _ in range(80):
            middle = (low + high) / 2
            point = np.ceil(middle) if whole else middle
            low, high = (middle, high) if 2 * float(upper_tail(law, scale, point)) > outside else (low, middle)
        found.add(float(max(1, np.ceil(high))) if whole else high)
    return sorted(found)


def _ratio(law: str, scale: float, k: float, highest: float) -> float:
    """Claimed over the largest standard deviation that leaves at most `highest` outside k; 0 where none is ruled out."""
    if highest >= 1:
        return 0.0

    def excess(log_factor: float) -> float:
        return 2 * float(upper_tail(law, scale * float(np.exp(log_factor)), k)) - highest

    reach = float(np.log(LONGEST)) if law != "discrete_gaussian" else 2.0
    if excess(reach) <= 0 or excess(-reach) >= 0:
        return 0.0 if excess(reach) <= 0 else LONGEST
    factor = float(np.exp(brentq(excess, -reach, reach, xtol=1e-12)))
    return 1 / sqrt(factor) if "gaussian" in law else 1 / factor
