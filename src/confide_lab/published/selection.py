"""Private tuning to the letter: random stopping of Liu and Talwar as Redberg, Zhu, Wang 2023 state it (Algorithm 3, Theorem 4.6, B.2).

The algorithm itself, over propose-test-release, is `generalized_ptr.hyperparameter_selection`. Here is the same over any base mechanism,
with the calibration of its runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import log, sqrt
from typing import Any

import numpy as np

from confide_lab.published.marks import published

__all__ = ["chance_best_is_drawn", "random_stopping", "run_budget"]


@published(
    "(3 e + 3 sqrt(2 d), sqrt(2 d T) + d_2)-DP where each run is (e, d)-DP (Theorem 4.6)",
    "the print of the second term is ambiguous: sqrt(2 d T) or sqrt(2 d) T",
    "with either reading 30 candidates that are all run and composed get a larger budget each, at (1, 1e-6)",
    "scores are on public data, which a fit to them alone may beat",
)
def random_stopping(
    data: Any,
    rng: np.random.Generator,
    *,
    candidates: Sequence[Any],
    run: Callable[[Any, Any, np.random.Generator], Any],
    score: Callable[[Any], float],
    tau: float,
    delta_2: float,
) -> dict[str, Any]:
    """min(T, G) runs, G geometric from 1, T = log(1/delta_2)/tau, candidates evenly with replacement. -> the best output, runs."""
    runs = min(max(int(log(1 / delta_2) / tau), 1), int(rng.geometric(tau)))
    outputs = [run(data, candidates[int(rng.integers(len(candidates)))], rng) for _ in range(runs)]
    return {"output": max(outputs, key=score), "runs": runs}


def run_budget(epsilon: float, delta: float, tau: float, *, outside: bool = True) -> tuple[float, float]:
    """(e, d) of each run by Theorem 4.6 with delta_2 = delta/2. outside: T stands outside the root.

    >>> from confide.guarantees import gaussian_mu
    >>> e, d = run_budget(1.0, 1e-6, 0.05 / 30)
    >>> round(gaussian_mu(e, d), 4)
    0.0375
    >>> e, d = run_budget(1.0, 1e-6, 0.05 / 30, outside=False)
    >>> round(gaussian_mu(e, d), 4)
    0.0425
    """
    cutoff = log(2 / delta) / tau
    d = (delta / 2 / cutoff) ** 2 / 2 if outside else (delta / 2) ** 2 / (2 * cutoff)
    return (epsilon - 3 * sqrt(2 * d)) / 3, d


def chance_best_is_drawn(candidates: int, tau: float) -> float:
    """1 - f(1 - 1/k) for the geometric law, which B.2 writes as 1 - E[1/(runs + 1)] and evaluates for other tau.

    >>> round(chance_best_is_drawn(30, 0.05 / 30), 3)
    0.954
    """
    x = 1 - 1 / candidates
    return 1 - tau * x / (1 - (1 - tau) * x)
