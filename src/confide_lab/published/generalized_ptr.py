"""Generalized propose-test-release to the letter: Redberg, Zhu, Wang, AISTATS 2023, Algorithms 1, 2, 3, 5, 6 and Theorem B.5's formula.

Generic parts: tests, mechanisms, scores are functions that are handed over. Algorithm 4 (teachers' votes) and the algorithms for
particular problems are elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import exp, log, sqrt
from typing import Any

import numpy as np
from scipy import stats

from confide_lab.published.marks import published

__all__ = [
    "algorithm_6",
    "classic_ptr",
    "generalized_ptr",
    "hyperparameter_selection",
    "printed_rdp",
    "uniform_bound",
]


@published(
    "(2 epsilon, delta)-DP (Theorem 3.4)",
    "right, with room: P(D + Lap > log(1/delta)/epsilon) at D = 0 is delta/2; log(1/(2 delta))/epsilon is enough",
    "section 4 writes the same test with pass and fail exchanged",
)
def classic_ptr(
    value: float, distance: int, rng: np.random.Generator, *, epsilon: float, delta: float, bound: float
) -> dict[str, Any]:
    """Algorithm 1. Returns reply (bool) and value + noise, or None."""
    if distance + rng.laplace(0, 1 / epsilon) <= log(1 / delta) / epsilon:
        return {"reply": False, "value": None}
    return {"reply": True, "value": value + rng.laplace(0, bound / epsilon)}


@published(
    "(epsilon + e_test, delta + d_test + d_false)-DP (Theorem 4.3)",
    "right, and d_test + max(delta, d_false) holds: the two belong to different data",
    "the definition asks for both directions of the loss; one is enough, and the authors' own application satisfies only one",
)
def generalized_ptr(
    data: Any,
    rng: np.random.Generator,
    *,
    test: Callable[[Any, np.random.Generator], bool],
    mechanism: Callable[[Any, np.random.Generator], Any],
) -> dict[str, Any]:
    """Algorithm 2. Returns reply (bool) and the mechanism's output, or None."""
    replied = bool(test(data, rng))
    return {"reply": replied, "output": mechanism(data, rng) if replied else None}


@published(
    "(3 e + 3 sqrt(2 d), sqrt(2 d T) + d_2)-DP where each run is (e, d)-DP (Theorem 4.6)",
    "the print of the second term is ambiguous (T under the root or not); either way composing all candidates once can be cheaper: 30 "
    "that are all run and composed get a larger budget each, at (1, 1e-6)",
    "the scores are on public data, which a fit to them alone may beat; on the private records they would need a cost of their own",
)
def hyperparameter_selection(
    data: Any,
    rng: np.random.Generator,
    *,
    candidates: Sequence[Any],
    run: Callable[[Any, Any, np.random.Generator], dict[str, Any]],
    score: Callable[[Any], float],
    tau: float,
    delta_2: float,
) -> dict[str, Any]:
    """Algorithm 3: min(T, G) runs of Algorithm 2, G geometric, candidates drawn with replacement; the best score wins.

    run(data, candidate, rng) gives what `generalized_ptr` returns. Returns output (None when no run replied), score and runs.
    """
    cutoff = int(log(1 / delta_2) / tau)
    runs = min(max(cutoff, 1), int(rng.geometric(tau)))
    best, output = -np.inf, None
    for _ in range(runs):
        found = run(data, candidates[int(rng.integers(len(candidates)))], rng)
        if found["reply"] and (value := score(found["output"])) > best:
            best, output = value, found["output"]
    return {"output": output, "score": best, "runs": runs}


@published(
    "(epsilon + e_bound, delta + d_bound + d_false)-DP (Theorem B.4)",
    "the proof uses the probability of a wrong bound under one data set; it must be small under both neighbours, with a bound that is "
    "valid for both",
)
def uniform_bound(
    data: Any,
    rng: np.random.Generator,
    *,
    bound: Callable[[Any, np.random.Generator], Callable[[Any], float]],
    candidates: Sequence[Any],
    mechanism: Callable[[Any, Any, np.random.Generator], Any],
    epsilon: float,
) -> dict[str, Any]:
    """Algorithm 5: release a bound of all losses, run the first candidate that it allows. Returns reply, candidate and output."""
    allowed = bound(data, rng)
    for candidate in candidates:
        if allowed(candidate) <= epsilon:
            return {"reply": True, "candidate": candidate, "output": mechanism(data, candidate, rng)}
    return {"reply": False, "candidate": None, "output": None}


@published(
    "(alpha, e_test + log(d' e^((alpha - 1) e~) + (1 - d') e^((alpha - 1) e))/(alpha - 1))-RDP (Theorem B.5)",
    "false: a divergence of order alpha has the chance of a wrong pass to the power alpha over the neighbour's to alpha - 1, which d' and "
    "the test's own term do not cover (Gaussian test and mechanism, order 8: 4.814, claimed 4.056)",
)
def algorithm_6(
    data: Any,
    rng: np.random.Generator,
    *,
    order: float,
    distance: Callable[[Any], float],
    mechanism: Callable[[Any, np.random.Generator], Any],
    test: float,
    false_pass: float,
    conditional: float,
    overall: float,
) -> dict[str, Any]:
    """Algorithm 6 with a Gaussian test: the distance from records that must not pass (0 for those), with noise of sd sqrt(order/(2 test)).

    test: the test's Renyi budget at `order`; false_pass: its chance to pass at distance 0, from which its threshold follows; conditional,
    overall: Renyi losses of the mechanism where the test passes rightly, and for any records. Returns reply, output (None without a
    reply), sd and threshold of the test, and rdp, what Theorem B.5 says of the whole.
    """
    sd = sqrt(order / (2 * test))
    threshold = sd * float(stats.norm.isf(false_pass))
    replied = distance(data) + sd * rng.standard_normal() > threshold
    return {
        "reply": bool(replied),
        "output": mechanism(data, rng) if replied else None,
        "sd": sd,
        "threshold": threshold,
        "rdp": printed_rdp(order, conditional=conditional, overall=overall, test=test, false_pass=false_pass),
    }


def printed_rdp(order: float, *, conditional: float, overall: float, test: float, false_pass: float) -> float:
    """The formula of Theorem B.5, which is false: e_test + log(d' e^((a-1) e~) + (1 - d') e^((a-1) e))/(a - 1).

    >>> round(printed_rdp(2.0, conditional=0.1, overall=5.0, test=0.5, false_pass=1e-3), 4)
    0.7251
    """
    up = order - 1
    return test + log(false_pass * exp(up * overall) + (1 - false_pass) * exp(up * conditional)) / up
