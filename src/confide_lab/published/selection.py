"""Private tuning to the letter: random stopping of Liu and Talwar as Redberg, Zhu, Wang 2023 state it (Algorithm 3, Theorem 4.6, B.2).

The algorithm itself is `generalized_ptr.hyperparameter_selection`, over propose-test-release and over any base mechanism (a run that always
replies). Here is the calibration of its runs.
"""

from __future__ import annotations

from math import log, sqrt

__all__ = ["chance_best_is_drawn", "run_budget", "theorem_46"]


def run_budget(epsilon: float, delta: float, tau: float, *, outside: bool = False) -> tuple[float, float]:
    """(e*, d*) of each run, so that Theorem 4.6 with delta_2 = delta/2 gives (epsilon, delta) to the digit.

    outside: T outside the root of the theorem's second term, which some copies of the paper allow; as printed it stands under it.

    >>> from confide.guarantees import gaussian_mu
    >>> e, d = run_budget(1.0, 1e-6, 0.05 / 30)
    >>> float(f"{e:.4f}"), float(f"{d:.2e}"), round(gaussian_mu(e, d), 4)
    (0.3333, 1.44e-17, 0.0425)
    >>> theorem_46(e, d, 0.05 / 30, 0.5e-6)
    (1.0, 1e-06)
    >>> e, d = run_budget(1.0, 1e-6, 0.05 / 30, outside=True)
    >>> round(gaussian_mu(e, d), 4)
    0.0375
    """
    cutoff = log(2 / delta) / tau
    d = (delta / 2 / cutoff) ** 2 / 2 if outside else (delta / 2) ** 2 / (2 * cutoff)
    return (epsilon - 3 * sqrt(2 * d)) / 3, d


def theorem_46(epsilon: float, delta: float, tau: float, delta_2: float) -> tuple[float, float]:
    """(3 e* + 3 sqrt(2 d*), sqrt(2 d* T) + delta_2) with T = log(1/delta_2)/tau: Theorem 4.6 as printed, without any rearrangement."""
    cutoff = log(1 / delta_2) / tau
    return 3 * epsilon + 3 * sqrt(2 * delta), sqrt(2 * delta * cutoff) + delta_2


def chance_best_is_drawn(candidates: int, tau: float) -> float:
    """1 - f(1 - 1/k) for the geometric law, which B.2 writes as 1 - E[1/(runs + 1)] and evaluates for other tau.

    >>> round(chance_best_is_drawn(30, 0.05 / 30), 3)
    0.954
    """
    x = 1 - 1 / candidates
    return 1 - tau * x / (1 - (1 - tau) * x)
