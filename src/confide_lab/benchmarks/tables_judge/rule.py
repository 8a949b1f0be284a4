"""When a coverage claim fails: coverage among the answers that a result stands by, clustered by replication.

The rule is that of `confide_lab.benchmarks.coverage`, with answers left out where a flag says that the interval is not to be relied on: a
claim [a, b] fails only if the 99.9 % Clopper-Pearson interval misses it, at the effective number of trials. Of numbers that hold .94
exactly, one in two thousand looks short: the false alarms to be expected are printed beside the failures.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from confide_lab.benchmarks.coverage import CONFIDENCE

__all__ = ["FALSE_ALARM", "Held", "held"]

Array = NDArray[np.float64]

#: The chance that a claim which holds with equality fails on one side.
FALSE_ALARM = (1 - CONFIDENCE) / 2


@dataclass(frozen=True)
class Held:
    """Coverage, the ends of its 99.9 % interval, how many answers were counted, and the share of answers that were."""

    coverage: float
    low: float
    high: float
    answers: int
    answered: float

    def short(self, least: float) -> bool:
        """Whether "at least `least`" fails."""
        return self.answers > 0 and self.high < least

    def long(self, most: float) -> bool:
        """Whether "at most `most`" fails."""
        return self.answers > 0 and self.low > most


def held(inside: NDArray[np.bool_], counted: NDArray[np.bool_]) -> Held:
    """Of (replications, quantities): whether each interval covers, and which are counted.

    >>> own = held(np.array([[True], [False], [True], [True]]), np.array([[True], [True], [True], [False]]))
    >>> round(own.coverage, 3), own.answers, own.answered
    (0.667, 3, 0.75)
    """
    runs = max(len(inside), 1)
    hits, trials = (inside & counted).sum(axis=1).astype(float), counted.sum(axis=1).astype(float)
    answers, answered = int(trials.sum()), float(counted.mean()) if counted.size else 0.0
    if not answers:
        return Held(float("nan"), 0.0, 1.0, 0, answered)
    p = float(hits.sum() / answers)
    effective = float(answers)
    if 0 < p < 1:
        spread = float(((hits - p * trials) ** 2).sum()) / answers**2 * runs / max(runs - 1, 1)
        least = float((trials > 0).sum())
        effective = float(np.clip(p * (1 - p) / spread, min(least, answers), answers)) if spread > 0 else effective
    k, tail = p * effective, FALSE_ALARM
    low = float(stats.beta.ppf(tail, k, effective - k + 1)) if p > 0 else 0.0
    high = float(stats.beta.ppf(1 - tail, k + 1, effective - k)) if p < 1 else 1.0
    return Held(p, low, high, answers, answered)
