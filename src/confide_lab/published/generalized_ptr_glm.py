"""Private logistic regression as published: Hessian-shaped noise after a private eigenvalue (Redberg, Zhu, Wang 2023, Example C.8), and the
objective and output perturbation of Chaudhuri, Monteleoni, Sarwate 2011 and Kifer, Smith, Thakurta 2012.

x (n, d) has rows of length at most 1, y (n,) is 1 or -1. With F(theta) = sum log(1 + exp(-y x'theta)) and a ridge lam |theta|^2/2.
`hessian_shaped_rdp` is no published bound but a Renyi form of the first one's mechanism, which is proved; it is far above what
objective perturbation needs (experiment gptr.logistic).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import exp, expm1, inf, log, log1p, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from confide_lab.published.generalized_ptr import hyperparameter_selection
from confide_lab.published.marks import published
from confide_lab.published.selection import run_budget

__all__ = [
    "chaudhuri_objective",
    "chaudhuri_output",
    "hessian_shaped",
    "hessian_shaped_gamma",
    "hessian_shaped_rdp",
    "hessian_shaped_search",
    "kifer_objective",
    "logistic_minimiser",
]

Array = NDArray[np.float64]


def logistic_minimiser(x: Array, y: Array, ridge: float, tilt: Array | None = None) -> Array:
    """argmin F(theta) + ridge |theta|^2/2 + tilt'theta by Newton's method with halved steps.

    >>> logistic_minimiser(np.array([[1.0], [1.0]]), np.array([1.0, -1.0]), 1.0).round(6).tolist()
    [0.0]
    """
    rows = x * y[:, None]
    tilt = np.zeros(x.shape[1]) if tilt is None else tilt
    theta = np.zeros(x.shape[1])

    def objective(at: Array) -> float:
        return float(np.logaddexp(0.0, -(rows @ at)).sum() + ridge * (at @ at) / 2 + tilt @ at)

    for _ in range(200):
        pull = special.expit(-(rows @ theta))
        gradient = ridge * theta + tilt - rows.T @ pull
        if np.linalg.norm(gradient) <= 1e-9 * max(1.0, ridge):
            break
        step = np.linalg.solve(_hessian(rows, pull) + ridge * np.eye(len(theta)), gradient)
        size = 1.0
        while size > 1e-9 and objective(theta - size * step) > objective(theta):
            size /= 2
        theta = theta - size * step
    return theta


def _hessian(rows: Array, pull: Array) -> Array:
    return np.asarray((rows.T * (pull * (1 - pull))) @ rows)


@published(
    "(epsilon, 2 delta)-DP for a proposed ridge (Theorem C.9)",
    "C.6 does not follow from E.1, whose first factor is (R L + 4 beta)/alpha and not R (L + beta)/alpha",
    "the proof of E.1 takes a chi variable with d degrees of freedom for a half-normal one and a log-determinant without its factor d",
    "the eigenvalue's noise sd sqrt(log(4/delta))/(epsilon/2) is too small for (epsilon/2, delta/2)",
    "the shift is printed as sqrt(2 log(4/delta)) log(1/delta): a normal quantile has the second logarithm under the root as well "
    "(shift='restored')",
    "C.11 needs strong convexity on the segment between the minimisers: its bound holds for ridge >= 2 R L, not R L",
)
def hessian_shaped(
    x: Array, y: Array, rng: np.random.Generator, *, ridge: float, epsilon: float, delta: float, shift: str = "printed"
) -> dict[str, Any]:
    """Example C.8, steps 2 to 7 with Remark C.7, for one ridge. Returns theta (d,), or None where no gamma fits, and alpha, gamma."""
    return _hessian_shaped(_fit(x, y, ridge), rng, ridge, epsilon, delta, shift)


def _fit(x: Array, y: Array, ridge: float) -> tuple[Array, Array]:
    """The minimiser and the Hessian of the loss there, without the ridge: all that a run reads."""
    theta = logistic_minimiser(x, y, ridge)
    rows = x * y[:, None]
    return theta, _hessian(rows, special.expit(-(rows @ theta)))


def _hessian_shaped(
    fit: tuple[Array, Array], rng: np.random.Generator, ridge: float, epsilon: float, delta: float, shift: str
) -> dict[str, Any]:
    theta, bent = fit
    quantile = {"printed": log(1 / delta), "restored": sqrt(log(1 / delta))}[shift]
    least = float(np.linalg.eigvalsh(bent)[0])
    moved = 2 + 0.25  # 2 R L + beta
    half = epsilon / 2
    noisy = (
        least
        + sqrt(log(4 / delta)) / half * moved * rng.standard_normal()
        - sqrt(2 * log(4 / delta)) * quantile * moved / half
    )
    alpha = max(noisy, 0.0) + ridge
    t = log(2 / (delta / 2))
    left = half - 1.25 / alpha * (1 + t)
    if left <= 0:
        return {"theta": None, "alpha": alpha, "gamma": 0.0}
    # gamma/alpha + sqrt(gamma t/alpha) = left, a quadratic in sqrt(gamma/alpha)
    gamma = alpha * ((-sqrt(t) + sqrt(t + 4 * left)) / 2) ** 2
    return {"theta": _shaped(theta, bent + ridge * np.eye(len(theta)), gamma, rng), "alpha": alpha, "gamma": gamma}


@published(
    "(epsilon, delta)-DP (Theorems C.9 and 4.6)",
    "rests on the privacy of each run, which `hessian_shaped` does not have as printed",
    "Theorem C.9 says (epsilon, 2 delta) of a run whose two parts are (epsilon/2, delta/2) and fail with delta: a run gets d*/2, so that "
    "its own claim is (e*, d*)",
    "the score is on a public validation set, to which a fit of its own may be better",
)
def hessian_shaped_search(
    x: Array,
    y: Array,
    rng: np.random.Generator,
    *,
    ridges: Sequence[float],
    score: Callable[[Array], float],
    epsilon: float,
    delta: float,
    shift: str = "printed",
) -> dict[str, Any]:
    """Example C.8, steps 1 to 8: Algorithm 3, tau = .05/k, delta_2 = delta/2, over runs of `hessian_shaped` with (e*, d*) of Theorem 4.6.

    score(theta) is large for a good fit of the public validation set. Returns theta (None where no run replied), ridge, runs and
    budget = (e*, d*).
    """
    tau = 0.05 / len(ridges)
    each, small = run_budget(epsilon, delta, tau)
    # a candidate is drawn many times, its fit is the same each time
    fits = {ridge: _fit(x, y, ridge) for ridge in ridges}

    def run(data: dict[float, tuple[Array, Array]], ridge: float, g: np.random.Generator) -> dict[str, Any]:
        found = _hessian_shaped(data[ridge], g, ridge, each, small / 2, shift)
        return {"reply": found["theta"] is not None, "output": (found["theta"], ridge)}

    best = hyperparameter_selection(
        fits, rng, candidates=ridges, run=run, score=lambda pair: score(pair[0]), tau=tau, delta_2=delta / 2
    )
    theta, ridge = best["output"] or (None, None)
    return {"theta": theta, "ridge": ridge, "runs": best["runs"], "budget": (each, small)}


def _shaped(theta: Array, hessian: Array, gamma: float, rng: np.random.Generator) -> Array:
    """theta + N(0, (gamma H)^-1)."""
    values, vectors = np.linalg.eigh(hessian)
    return np.asarray(theta + vectors @ (rng.standard_normal(len(theta)) / np.sqrt(gamma * values)))


def hessian_shaped_rdp(order: float, gamma: float, certified: float, dimension: int) -> float:
    """A proved Renyi bound at one order for theta + N(0, (gamma H)^-1), rows of length at most 1, add-remove; inf where it has none.

    certified: a lower bound m on the least eigenvalue of H. With s = -log(1 - 1/m), the Hessians of two neighbours at their minimisers lie
    within exp(+-s) of each other but for the record's own part b = e^s/(4 m) in one direction, where the ratio is at most M = e^s + b, and
    the means are apart by |v|^2 = gamma e^(3 s)/m in units of the noise.

    >>> round(hessian_shaped_rdp(2.0, 0.1, 1000.0, 5), 4)
    0.0001
    """
    if certified <= 1:
        return inf
    s = -log1p(-1 / certified)
    most = exp(s) * (1 + 1 / (4 * certified))
    if order * (most - 1) >= most:
        return inf
    v = gamma * exp(3 * s) / certified
    mean = order / 2 * v / (order / most - (order - 1))
    others = (dimension - 1) * max(_spread(exp(s), order), _spread(exp(-s), order))
    return mean + others + max(_spread(most, order), _spread(1 / most, order))


def _spread(ratio: float, order: float) -> float:
    """The Renyi divergence of two normal laws of equal means whose variances have this ratio."""
    return -(log(order / ratio - (order - 1)) + order * log(ratio)) / (2 * (order - 1))


def hessian_shaped_gamma(epsilon: float, delta: float, certified: float, dimension: int) -> float:
    """The largest gamma at which `hessian_shaped_rdp` meets (epsilon, delta), over orders; 0 where there is none.

    >>> hessian_shaped_gamma(1.0, 1e-6, 3.0, 5)
    0.0
    """
    orders = 1 + np.geomspace(0.05, 500, 120)

    def spent(gamma: float) -> float:
        return min(
            rdp + log1p(-1 / a) - (log(delta) + log(a)) / (a - 1)
            for a in map(float, orders)
            if (rdp := hessian_shaped_rdp(a, gamma, certified, dimension)) < inf
        )

    try:
        if spent(1e-12) > epsilon:
            return 0.0
    except ValueError:
        return 0.0
    low, high = 1e-12, 1e12
    while high > low * (1 + 1e-6):
        middle = sqrt(low * high)
        low, high = (middle, high) if spent(middle) <= epsilon else (low, middle)
    return low


def _radial(d: int, rate: float, rng: np.random.Generator) -> Array:
    """A vector of density proportional to exp(-rate |b|)."""
    direction = rng.standard_normal(d)
    return np.asarray(direction / np.linalg.norm(direction) * rng.gamma(d, 1 / rate))


@published(
    "epsilon-DP under replacement, n public",
    "the sensitivity 2 L/lam is right under replacement; it does not use that a record's slope and curvature are small where the loss is "
    "steep, and pure epsilon asks for noise that grows with d",
)
def chaudhuri_output(x: Array, y: Array, rng: np.random.Generator, *, ridge: float, epsilon: float) -> dict[str, Any]:
    """Algorithm 1 of Chaudhuri et al. 2011: density exp(-n Lambda epsilon |b|/2) on the minimiser, ridge = n Lambda."""
    return {"theta": logistic_minimiser(x, y, ridge) + _radial(x.shape[1], ridge * epsilon / 2, rng)}


@published(
    "epsilon-DP under replacement, n public",
    "the term 2 log(1 + c/(n Lambda)) of the determinant is twice what a record added or removed needs",
)
def chaudhuri_objective(
    x: Array, y: Array, rng: np.random.Generator, *, ridge: float, epsilon: float
) -> dict[str, Any]:
    """Algorithm 2 of Chaudhuri et al. 2011 with c = 1/4, ridge = n Lambda. Returns theta and the ridge that was added."""
    c = 0.25
    left, more = epsilon - 2 * log1p(c / ridge), 0.0
    if left <= 0:
        more, left = max(c / expm1(epsilon / 4) - ridge, 0.0), epsilon / 2
    tilt = _radial(x.shape[1], left / 2, rng)
    return {"theta": logistic_minimiser(x, y, ridge + more, tilt), "added": more}


@published(
    "(epsilon, delta)-DP under replacement",
    "at epsilon = 1, delta = 1e-6 the sd of b is 11.0, where under replacement 8.5 is enough and 4.23 when a record is added or removed",
)
def kifer_objective(
    x: Array, y: Array, rng: np.random.Generator, *, ridge: float, epsilon: float, delta: float
) -> dict[str, Any]:
    """Algorithm 1 of Kifer et al. 2012 with Gaussian b: ridge at least 2 beta/epsilon, sd sqrt(8 log(2/delta) + 4 epsilon)/epsilon."""
    sd = sqrt(8 * log(2 / delta) + 4 * epsilon) / epsilon
    tilt = np.asarray(sd * rng.standard_normal(x.shape[1]))
    return {"theta": logistic_minimiser(x, y, max(ridge, 0.5 / epsilon), tilt), "sd": sd}
