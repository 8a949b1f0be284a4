"""The rule for coverage claims: a claim [a, b] fails only when a 99.9 % Clopper-Pearson interval misses it.

Coefficients of one replication are not independent, so the interval is clustered: the number of trials is the effective one,
p (1 - p) / Var(mean over replications), never above the number of intervals and never below the number of replications' share.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import stats

CONFIDENCE = 0.999


def interval(hits: NDArray[np.bool_]) -> tuple[float, float, float]:
    """(coverage, low, high) of hits with shape (replications, coefficients)."""
    hits = np.atleast_2d(hits.T).T
    runs, width = hits.shape
    mean = float(hits.mean())
    trials = float(runs * width)
    if 0 < mean < 1 and runs > 1:
        spread = float(np.var(hits.mean(axis=1), ddof=1)) / runs
        trials = float(np.clip(mean * (1 - mean) / spread, min(runs, trials), trials)) if spread > 0 else trials
    k = mean * trials
    tail = (1 - CONFIDENCE) / 2
    low = float(stats.beta.ppf(tail, k, trials - k + 1)) if k > 0 else 0.0
    high = float(stats.beta.ppf(1 - tail, k + 1, trials - k)) if k < trials else 1.0
    return mean, low, high


def consistent(hits: NDArray[np.bool_], low: float, high: float) -> bool:
    """Whether the claim "coverage lies in [low, high]" survives."""
    _, a, b = interval(hits)
    return a <= high and b >= low
