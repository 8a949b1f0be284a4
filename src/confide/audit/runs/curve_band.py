"""The trade-off curve of a mechanism that can only be run, inside a band that holds everywhere at once.

A score is learned on a first part of the runs, and thresholds are fixed there. On the rest the error rates at all m
thresholds are counted, and Clopper-Pearson bounds at level (1 - confidence)/(2m) hold for all 2m rates at once (union
bound). The mechanism's curve T is the lowest over all tests and convex, so it lies below the convex hull of the m
upper corners and of the trivial tests (0, 1) and (1, 0). That is `upper`. With it any claimed curve can be tested at
every point without another price. `lower` bounds the learned test's own curve from below (not T: an unknown better
test may exist).

The counting follows Dong, Roth, Su 2022, section 2; black-box curves with confidence: Askin et al., USENIX Security 2025.

Does the noise follow the stated distribution? Draws against their exact law, with the rate of false alarms fixed
beforehand.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from confide.audit.outcomes import FloatArray, Mechanism
from confide.audit.runs.attacks import Attack, learn
from confide.audit.runs.known_distributions import upper_tail
from confide.audit.runs.lower_bounds import Runs, best_attack, mu_of_errors, upper_rate
from confide.audit.verdict import Finding, curve_of, relation_of, said
from confide.errors import PrivacyError
from confide.guarantees.validation import count, level, share


@dataclass(frozen=True, eq=False)
class CurveBand:
    """Bounds on the error rates of one learned test at m thresholds, all at once with probability `confidence`.

    thresholds, alpha_low, alpha_high, beta_low, beta_high: (m,), from large thresholds to small ones. draws: runs on both
    neighbors together.
    """

    thresholds: FloatArray
    alpha_low: FloatArray
    alpha_high: FloatArray
    beta_low: FloatArray
    beta_high: FloatArray
    confidence: float
    draws: int
    attack: str
    name: str = "mechanism"

    def upper(self, alpha: Any) -> FloatArray:
        """What the mechanism's trade-off curve is at most, at false-alarm rates alpha in [0, 1]."""
        x, y = self._hull()
        return np.asarray(np.interp(np.asarray(alpha, dtype=np.float64), x, y), dtype=np.float64)

    def lower(self, alpha: Any) -> FloatArray:
        """What the curve of the learned test is at least: the best lower corner to the right of alpha."""
        points = np.asarray(alpha, dtype=np.float64)
        order = np.argsort(self.alpha_low, kind="stable")
        best = np.append(np.maximum.accumulate(self.beta_low[order][::-1])[::-1], 0.0)
        return np.asarray(best[np.searchsorted(self.alpha_low[order], points, side="left")], dtype=np.float64)

    @property
    def mu(self) -> float:
        """The mu of Gaussian differential privacy that the mechanism spends at least."""
        return float(mu_of_errors(self.alpha_high, self.beta_high).max())

    def compare(self, claim: Any, *, quantity: str = "mu", relation: str | None = None) -> Finding:
        """The verdict on a claim (guarantee, curve, or number of `quantity`): violated where the band lies below its curve.

        lower_bound: by how much the claimed curve is too high at least, at the worst point: the delta that it lacks.
        """
        f = curve_of(claim, quantity=quantity)
        down = np.array([f(float(a)) for a in self.alpha_high]) - self.beta_high
        left = np.array([f(float(b)) for b in self.beta_high]) - self.alpha_high
        gaps = np.maximum(down, left)
        worst = int(np.argmax(gaps))
        return Finding(
            name=self.name,
            quantity="gap",
            claim=claim,
            lower_bound=float(gaps[worst]),
            verdict="violated" if gaps[worst] > 0 else "holds",
            attack=f"{self.attack}, {len(gaps)} thresholds at once",
            confidence=self.confidence,
            draws=self.draws,
            relation=relation if relation is not None else relation_of(claim),
            alpha=float(self.alpha_high[worst]),
            beta=float(self.beta_high[worst]),
        )

    def plot(self, claim: Any = None, ax: Any = None, *, quantity: str = "mu") -> Any:
        """Draw the band, and the claimed curve against it; returns the matplotlib axes."""
        if ax is None:
            import matplotlib.pyplot as plt

            _, ax = plt.subplots(figsize=(5, 5))
        x = np.linspace(0, 1, 501)
        ax.fill_between(x, self.lower(x), self.upper(x), alpha=0.3, label=f"learned test, {self.confidence:.4g} band")
        ax.plot(x, self.upper(x), linewidth=1)
        if claim is not None:
            f = curve_of(claim, quantity=quantity)
            ax.plot(x, [f(float(a)) for a in x], "k--", label=f"claim: {said(claim)}")
        ax.plot([0, 1], [1, 0], color="0.8", linewidth=0.8)
        ax.set(xlabel="false alarms", ylabel="misses", xlim=(0, 1), ylim=(0, 1), title=self.name)
        ax.legend()
        return ax

    def _hull(self) -> tuple[FloatArray, FloatArray]:
        """The lower convex hull of the upper corners, (0, 1) and (1, 0), left to right."""
        corners = sorted({(0.0, 1.0), (1.0, 0.0), *zip(self.alpha_high.tolist(), self.beta_high.tolist(), strict=True)})
        hull: list[tuple[float, float]] = []
        for x, y in corners:
            while len(hull) > 1 and _turns_up(hull[-2], hull[-1], (x, y)):
                hull.pop()
            if not hull or x > hull[-1][0]:
                hull.append((x, y))
        return np.array([x for x, _ in hull]), np.array([y for _, y in hull])


def _turns_up(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> bool:
    """Whether b lies on or above the line from a to c."""
    return (b[0] - a[0]) * (c[1] - a[1]) <= (c[0] - a[0]) * (b[1] - a[1])


def trade_off_band(
    mechanism: Mechanism,
    data: Any,
    neighbor: Any,
    *,
    runs: int = 100_000,
    confidence: float = 0.99,
    points: int = 50,
    test: Any = None,
    vectorized: bool = False,
    bits: bool = False,
    name: str = "",
) -> CurveBand:
    """The band for the trade-off curve between the outcomes on two neighbors; arguments as `epsilon_lower_bound`.

    points: thresholds at which the curve is bounded. Errors: PrivacyError for parameters out of range.

    >>> rng = np.random.default_rng(1)
    >>> band = trade_off_band(lambda x, runs: x + rng.normal(size=runs), 0.0, 1.0, vectorized=True)
    >>> band.compare(1.0).verdict, band.compare(0.9).verdict, 0.9 < band.mu < 1
    ('holds', 'violated', True)
    """
    confidence = share(confidence, "confidence", "confidence=0.99", zero=False)
    if count(points, "points", "points=50") > 10_000:
        raise PrivacyError(f"points must be at most 10,000, got {points}", "write for instance points=50")
    trial = Runs(mechanism, data, neighbor, runs, vectorized, test, bits)
    zero, one = trial.training()
    fit = trial.train // 2
    attacks = learn(zero.part(slice(0, fit)), one.part(slice(0, fit)), bits=bits)
    rest = zero.part(slice(fit, None)), one.part(slice(fit, None))
    chosen = best_attack(
        [(attack, attack.score(rest[0]), attack.score(rest[1])) for attack in attacks],
        mu_of_errors,
        trial.rest,
        (1 - confidence) / 2,
    )
    attack = chosen.attack
    thresholds = _spread(attack.score(rest[0]), attack.score(rest[1]), points)
    alarms, misses = _counts(trial, attack, thresholds)
    n, level = trial.rest, (1 - confidence) / (2 * len(thresholds))
    return CurveBand(
        thresholds=thresholds,
        alpha_low=1 - upper_rate(n - alarms, n, level),
        alpha_high=upper_rate(alarms, n, level),
        beta_low=1 - upper_rate(n - misses, n, level),
        beta_high=upper_rate(misses, n, level),
        confidence=confidence,
        draws=2 * int(runs),
        attack=attack.name,
        name=name or getattr(mechanism, "__name__", "mechanism"),
    )


def _spread(zero: FloatArray, one: FloatArray, points: int) -> FloatArray:
    """Thresholds that cut both sets of scores evenly, from large to small."""
    levels = np.arange(1, points // 2 + 1) / (points // 2 + 1)
    cuts = np.concatenate([np.quantile(zero, levels, method="lower"), np.quantile(one, levels, method="lower")])
    return np.unique(cuts)[::-1]


def _counts(trial: Runs, attack: Attack, thresholds: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Scores above each threshold on `data`, at or below it on `neighbor`, in runs that nothing has seen."""
    above = np.zeros((2, len(thresholds)))
    for which in (0, 1):
        for block in trial.blocks(which, trial.rest):
            scores = np.sort(attack.score(block))
            above[which] += len(scores) - np.searchsorted(scores, thresholds, side="right")
    return above[0], trial.rest - above[1]


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

    `draws`: integers, any shape, for the integer laws, in steps; real for "gaussian" and "laplace". `law`, `scale`:
    as `audit_law` (sigma^2 or s). `false_alarm`: probability of "violated" for draws that follow the law.

    Counts of |draw| beyond thresholds, and of signs, are binomial with exactly known rates. Each must lie within its
    Clopper-Pearson interval, the false alarms shared out equally. The `lower_bound` is on the claimed over the actual
    standard deviation, the largest of the bounds from single thresholds. Above 1 the noise is too small, and a claim
    mu is exceeded by that factor. A factor of 0.97 is found at 10^5 draws with probability 0.999 or more at
    false_alarm 1e-6 (10.8 standard deviations for a Gaussian). Errors: PrivacyError for an unknown law, numbers out
    of range, or fewer than 100 draws.

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
        raise PrivacyError(f"a scale needs at least 100 draws, got {len(x)}", "write for instance 100_000")
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
