"""PATE with propose-test-release to the letter: Redberg, Zhu, Wang, AISTATS 2023, Algorithm 4, on the analysis of Papernot et al. 2018.

The smooth sensitivity is the range maximum of spec and proof: over all changes of d ballots, without the conditions that the source checks
numerically. `smooth_cost` is the exact Renyi divergence of releasing a number with noise of its smooth sensitivity; `printed_smooth_cost`
is Papernot et al.'s Theorem 23, and `lemma_cost` what Lemma 5.5 makes of it.
"""

from __future__ import annotations

from math import exp, expm1, inf, log, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide import _special as special
from confide.guarantees.mechanisms.noisy_max import gnmax_log_error, published_rdp
from confide_lab.published.marks import published

__all__ = [
    "algorithm_4",
    "gnmax_exact",
    "lemma_cost",
    "local_sensitivities",
    "printed_cost",
    "printed_smooth_cost",
    "smooth_cost",
    "smooth_quadrature",
]

Array = NDArray[np.float64]

_FLOOR = 1e-12


def printed_smooth_cost(order: float, beta: float, sigma: float) -> float:
    """Papernot et al. 2018, Theorem 23: alpha e^(2 beta)/sigma^2 + (beta alpha - log(1 - 2 alpha beta)/2)/(alpha - 1).

    >>> round(printed_smooth_cost(49.0, 0.01, 15.0), 4)
    0.2731
    """
    if not 2 * order * beta < 1:
        return inf
    return order * exp(2 * beta) / sigma**2 + (beta * order - log(1 - 2 * order * beta) / 2) / (order - 1)


def lemma_cost(order: float, sigma: float) -> float:
    """Lemma 5.5: (alpha + 1)/sigma^2 for beta = .2/alpha.

    >>> round(lemma_cost(2.0, 15.0), 5)
    0.01333
    """
    return (order + 1) / sigma**2


def smooth_cost(order: float, beta: float, sigma: float) -> float:
    """The largest Renyi divergence of f + SS N(0, sigma^2) for neighbours with SS'/SS = r in [e^-beta, e^beta], |f - f'| = min(SS, SS').

    alpha min(1, r)^2/(2 sigma^2 v) + [alpha log r - log(v)/2]/(alpha - 1), v = alpha r^2 + 1 - alpha; infinite where v <= 0.

    >>> round(smooth_cost(49.0, 0.01, 15.0), 3), smooth_cost(50.0, 0.02, 15.0)
    (3.616, inf)
    """
    if order * -expm1(-2 * beta) >= 1:
        return inf

    def at(log_ratio: float) -> float:
        r = exp(log_ratio)
        v = order * r * r + 1 - order
        return order * min(1.0, r) ** 2 / (2 * sigma**2 * v) + (order * log_ratio - log(v) / 2) / (order - 1)

    return max(at(float(one)) for one in np.linspace(-beta, beta, 201))


def smooth_quadrature(order: float, beta: float, sigma: float) -> float:
    """The divergence of N(1, sigma^2) and N(0, (r sigma)^2), r = e^-beta, by quadrature: a pair that the smooth sensitivity allows."""
    r = exp(-beta)
    x = np.linspace(-900 * sigma, 900 * sigma, 4_000_001)
    # the sensitivity is that of the smaller scale
    log_p = -((x - r) ** 2) / (2 * sigma**2) - log(sigma)
    log_q = -(x**2) / (2 * (r * sigma) ** 2) - log(r * sigma)
    logs = order * log_p + (1 - order) * log_q - 0.5 * log(2 * np.pi)
    top = logs.max()
    return float((top + np.log(np.trapezoid(np.exp(logs - top), x))) / (order - 1))


def printed_cost(order: float, sigma: float) -> float:
    """Theorem 5.4's data-dependent cost of one label, exp(-2 alpha/sigma^2)/alpha, whatever the votes are."""
    return exp(-2 * order / sigma**2) / order


def gnmax_exact(gap: float, order: float, sigma: float) -> float:
    """The exact divergence D(M(X) || M(X')) of one label between two classes, X' with one ballot moved so that the gap is 2 less.

    >>> round(gnmax_exact(40.0, 50.0, 5.0), 3)
    1.305
    """
    scale = sqrt(2) * sigma
    p = special.log_ndtr(np.array([gap, -gap]) / scale)
    q = special.log_ndtr(np.array([gap - 2, -(gap - 2)]) / scale)
    r = special.log_ndtr(np.array([gap + 2, -(gap + 2)]) / scale)
    return max(float(np.logaddexp(*(order * p + (1 - order) * other))) / (order - 1) for other in (q, r))


def local_sensitivities(votes: NDArray[np.int64], order: float, sigma: float, farthest: int) -> Array:
    """LS_d for d = 0..farthest: the most that one ballot can move the sum of published bounds at votes d changes away, bounded above."""
    counts = np.sort(np.asarray(votes), axis=1)[:, ::-1]
    classes = counts.shape[1]
    grid = np.linspace(-60.0, log1m(classes), 4000)
    g = np.maximum.accumulate(published_rdp(grid, order, sigma))
    jump = _moves(grid, g, classes, sigma)
    found = []
    for d in range(farthest + 1):
        high, low = _reach(counts, d, sigma, grid)
        first, last = np.searchsorted(grid, low), np.searchsorted(grid, high, side="right")
        found.append(_range_maxima(jump, np.clip(first - 1, 0, len(grid) - 1), np.clip(last, 0, len(grid) - 1)).sum())
    return np.array(found)


def log1m(classes: int) -> float:
    """log(1 - 1/C)."""
    return log(1 - 1 / classes)


def _moves(grid: Array, g: Array, classes: int, sigma: float) -> Array:
    """h(q): what one ballot does to the bound at q, by the interval that q can move in."""
    z = -special.ndtri_exp(grid - log(classes - 1))
    shift = sqrt(2) / sigma
    up = np.minimum(special.log_ndtr(-(z - shift)) + log(classes - 1), grid[-1])
    down = special.log_ndtr(-(z + shift)) + log(classes - 1)
    higher, lower = np.interp(up, grid, g), np.interp(down, grid, g)
    return np.asarray(np.maximum(higher - g, g - lower))


def _reach(counts: NDArray[np.int64], d: int, sigma: float, grid: Array) -> tuple[Array, Array]:
    """log q at its highest and lowest within d changes, by query."""
    scale = sqrt(2) * sigma
    worse = counts.astype(float).copy()
    move = np.minimum(d, np.ceil((counts[:, 0] - counts[:, 1]) / 2))
    worse[:, 0] -= move
    worse[:, 1] += move
    # all rivals lose d ballots together; a bound below is enough: each of them down by d, the top up by d
    better = np.maximum(counts[:, 1:] - d, 0)
    top = counts[:, :1] + np.minimum(d, counts[:, 1:].sum(axis=1, keepdims=True))
    out = []
    for gaps in (worse[:, :1] - worse[:, 1:], top - better):
        logs = special.log_ndtr(-np.maximum(gaps, 0) / scale)
        most = logs.max(axis=1)
        out.append(np.clip(most + np.log(np.exp(logs - most[:, None]).sum(axis=1)), grid[0], grid[-1]))
    return out[0], out[1]


def _range_maxima(values: Array, first: NDArray[np.intp], last: NDArray[np.intp]) -> Array:
    """max values[first..last] by a sparse table."""
    table = [values]
    while 2 << (len(table) - 1) <= len(values):
        width = 1 << (len(table) - 1)
        table.append(np.maximum(table[-1][:-width], table[-1][width:]))
    last = np.maximum(last, first)
    level = np.floor(np.log2(last - first + 1)).astype(int)
    return np.array([max(table[k][a], table[k][b - (1 << k) + 1]) for k, a, b in zip(level, first, last, strict=True)])


@published(
    "(epsilon_test + epsilon_mech, delta)-DP (Theorem 5.6)",
    "Lemma 5.5's (alpha + 1)/sigma_s^2 does not follow from Papernot et al.'s Theorem 23, which is false near its boundary, and "
    "fails for small orders: alpha = 2, sigma = 15 costs .0308, .0133 is claimed; it holds at what the rule gives for small delta",
    "Definition 4.1 asks for both directions of the loss, and the published bound of a label is of one; the theorem needs one",
    "a smooth sensitivity of 0 has no logarithm; here a constant stands below it",
    "one order, tied to the test's epsilon, prices the labels: on real votes the plain Gaussian mechanism is cheaper but at "
    "little noise",
)
def algorithm_4(
    votes: NDArray[np.int64],
    rng: np.random.Generator,
    *,
    sigma: float,
    test_epsilon: float,
    delta: float,
    order: float | None = None,
    sigma_s: float | None = None,
) -> dict[str, Any]:
    """Returns epsilon (of labels, as the algorithm publishes it), total (with the test's) and reply at a proposal of `inf`.

    order, sigma_s: as the paper's rule has them when left out, alpha = 2 log(2/delta)/epsilon_test + 1, sigma_s^2 = (3 alpha +
    2)/epsilon_test.
    """
    alpha = 2 * log(2 / delta) / test_epsilon + 1 if order is None else order
    noise = sqrt((3 * alpha + 2) / test_epsilon) if sigma_s is None else sigma_s
    beta, delta_2 = 0.2 / alpha, delta / 2
    counts = np.asarray(votes)
    cost = float(published_rdp(gnmax_log_error(counts, sigma), alpha, sigma).sum())
    farthest = int(counts[0].sum() // 2)
    local = local_sensitivities(counts, alpha, sigma, farthest)
    smooth = max(float((np.exp(-beta * np.arange(farthest + 1)) * local).max()), _FLOOR)
    spread = sqrt(2 * log(2 / delta_2))
    m = log(smooth) + beta * noise * rng.standard_normal() + spread * noise * beta
    upper = cost + smooth * noise * rng.standard_normal() + noise * spread * exp(m)
    epsilon = upper + log(2 / delta) / (alpha - 1)
    return {"reply": True, "epsilon": epsilon, "total": epsilon + test_epsilon, "order": alpha}
