"""Kernel regression by efficient propose-test-release to the letter: Shen, Tong, Wang 2026, Algorithms 2 and 5; and a rival as its code has
it.

f(x0) = sum K y/sum K with the Gaussian product kernel, |K| <= B, |y| <= R_f by projection; alpha = 4 R_f B/(c0 n), gamma =
(sum K - c0 n - 2 B)_+/(2 B); a reply with probability 1/(1 + exp(-(epsilon/2)(gamma - M))), M = 1 + (2/epsilon) log max(1/delta,
1/epsilon), and then noise of sd (2 alpha/epsilon) sqrt(2 log(1.25/delta)).
"""

from __future__ import annotations

from math import log, pi, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from confide_lab.published.marks import published

__all__ = ["eptr_kernel", "wavelet_code"]

Array = NDArray[np.float64]


@published(
    "(epsilon, delta)-DP under replacement of one record, for each query point",
    "E1: the Gaussian noise is calibrated by a theorem for epsilon/2 <= 1",
    "E6: for a nonnegative kernel alpha = 2 R_f B/d0 and gamma = (d - d0)_+/B hold, half the constants; an attack reaches .9998 of it",
    "E10: the figure spends the whole (epsilon, delta) on each of its 20 query points: together (20 epsilon, 20 delta)",
)
def eptr_kernel(
    x: Array,
    y: Array,
    rng: np.random.Generator,
    *,
    point: Array,
    bandwidth: Array,
    epsilon: float,
    delta: float,
    response_bound: float,
    c0: float,
) -> dict[str, Any]:
    """x: shape (n, d), y: (n,); point, bandwidth: (d,). Returns value or None, replied, noise_sd.

    >>> g = np.random.default_rng(1)
    >>> x = g.random((50_000, 1))
    >>> found = eptr_kernel(x, x[:, 0], g, point=[0.5], bandwidth=[0.05], epsilon=4.0, delta=0.01, response_bound=1.0, c0=0.4)
    >>> found["replied"], round(found["value"], 1), round(found["noise_sd"], 4)
    (True, 0.5, 0.0025)
    """
    h, place = np.asarray(bandwidth, dtype=np.float64), np.asarray(point, dtype=np.float64)
    weights = np.exp(-((((x - place) / h) ** 2).sum(axis=1)) / 2) / np.prod(h * sqrt(2 * pi))
    peak, n = float(1 / np.prod(h * sqrt(2 * pi))), len(x)
    total = float(weights.sum())
    alpha = 4 * response_bound * peak / (c0 * n)
    gamma = max(total - c0 * n - 2 * peak, 0.0) / (2 * peak)
    offset = 1 + 2 / epsilon * log(max(1 / delta, 1 / epsilon))
    noise_sd = 2 * alpha / epsilon * sqrt(2 * log(1.25 / delta))
    replied = bool(rng.random() < special.expit(epsilon / 2 * (gamma - offset)))
    value = None
    if replied:
        mean = float(weights @ np.clip(y, -response_bound, response_bound)) / max(total, 1e-300)
        value = mean + noise_sd * float(rng.standard_normal())
    return {"value": value, "replied": replied, "noise_sd": noise_sd}


@published(
    "epsilon-DP under replacement of one record",
    "E10: one feature, a fixed resolution (level 8 or 10) and a sensitivity 6 tau 2^L/n, where 2 tau 2^L/n is enough at one point",
    "it estimates f times the density of the feature, and so f for a uniform design alone",
)
def wavelet_code(
    x: Array,
    y: Array,
    rng: np.random.Generator,
    *,
    point: float,
    epsilon: float,
    response_bound: float,
    level: int = 8,
) -> dict[str, Any]:
    """The wavelet rival of the simulations, Haar, on [0, 1]: 2^L mean(y 1{same cell}), Laplace noise of scale 6 tau 2^L/(n epsilon),
    clipped at tau.
    """
    cells = 2**level
    same = np.floor(np.asarray(x).ravel() * cells) == np.floor(point * cells)
    scale = 6 * response_bound * cells / (len(y) * epsilon)
    value = cells * float((np.clip(y, -response_bound, response_bound) * same).mean()) + float(rng.laplace(0.0, scale))
    return {
        "value": float(np.clip(value, -response_bound, response_bound)),
        "replied": True,
        "noise_sd": scale * sqrt(2),
    }
