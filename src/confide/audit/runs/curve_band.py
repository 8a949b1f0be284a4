"""The trade-off curve of a mechanism that can only be run, inside a band that holds everywhere at once.

A score is learnt on a first part of the runs, and thresholds are fixed there. On the rest the error rates at all m
thresholds are counted, and Clopper-Pearson bounds at level (1 - confidence)/(2m) hold for all 2m rates at once (union
bound). The mechanism's curve T is the lowest over all tests and convex, so it lies below the convex hull of the m upper corners and of
the trivial tests (0, 1) and (1, 0): that is `upper`. With it any claimed curve can be tested at every point without another
price. `lower` bounds the learnt test's own curve from below (not T: an unknown better test may exist).

The counting follows Dong, Roth, Su 2022, section 2; black-box curves with confidence: Askin et al., USENIX Security 2025.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from confide.audit.outcomes import FloatArray, Mechanism
from confide.audit.runs.attacks import Attack, learn
from confide.audit.runs.lower_bounds import Runs, best_attack, mu_of_errors, upper_rate
from confide.audit.verdict import Finding, curve_of, relation_of, said
from confide.errors import PrivacyError
from confide.guarantees.validation import count, share

__all__ = ["CurveBand", "trade_off_band"]


@dataclass(frozen=True, eq=False)
class CurveBand:
    """Bounds on the error rates of one learnt test at m thresholds, all at once with probability `confidence`.

    thresholds, alpha_low, alpha_high, beta_low, beta_high: (m,), from large thresholds to small ones. draws: runs on both
    neighbours together.
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
        """What the curve of the learnt test is at least: the best lower corner to the right of alpha."""
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
        ax.fill_between(x, self.lower(x), self.upper(x), alpha=0.3, label=f"learnt test, {self.confidence:.4g} band")
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
    neighbour: Any,
    *,
    runs: int = 100_000,
    confidence: float = 0.99,
    points: int = 50,
    test: Any = None,
    vectorised: bool = False,
    bits: bool = False,
    name: str = "",
) -> CurveBand:
    """The band for the trade-off curve between the outcomes on two neighbours; arguments as `epsilon_lower_bound`.

    points: thresholds at which the curve is bounded. Errors: PrivacyError for parameters out of range.

    >>> rng = np.random.default_rng(1)
    >>> band = trade_off_band(lambda x, runs: x + rng.normal(size=runs), 0.0, 1.0, vectorised=True)
    >>> band.compare(1.0).verdict, band.compare(0.9).verdict, 0.9 < band.mu < 1
    ('holds', 'violated', True)
    """
    confidence = share(confidence, "confidence", "confidence=0.99", zero=False)
    if count(points, "points", "points=50") > 10_000:
        raise PrivacyError(f"points must be at most 10000, got {points}; write for instance points=50")
    trial = Runs(mechanism, data, neighbour, runs, vectorised, test, bits)
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
    """Scores above each threshold on `data`, at or below it on `neighbour`, in runs that nothing has seen."""
    above = np.zeros((2, len(thresholds)))
    for which in (0, 1):
        for block in trial.blocks(which, trial.rest):
            scores = np.sort(attack.score(block))
            above[which] += len(scores) - np.searchsorted(scores, thresholds, side="right")
    return above[0], trial.rest - above[1]
