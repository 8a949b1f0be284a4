"""Analyze Gauss to the letter: Dwork, Talwar, Thakurta, Zhang, STOC 2014, Algorithm 1, then least squares on what it releases."""

from __future__ import annotations

from math import log, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide_lab.published.marks import published

__all__ = ["analyze_gauss"]

Array = NDArray[np.float64]


@published(
    "(epsilon, delta)-DP when a record is added or removed, for |(x, y)| <= B",
    "sd = B^2 sqrt(2 ln(1.25/delta))/epsilon is a theorem for epsilon up to 1 only: with one feature at epsilon = 8, delta = 1e-3 a record "
    "(B, 0) has epsilon 8.18",
    "every entry above the diagonal gets the variance of the diagonal; half of it is enough, because each counts twice in |v v'|_F",
)
def analyze_gauss(
    x: Array, y: Array, rng: np.random.Generator, *, epsilon: float, delta: float, bound: float
) -> dict[str, Any]:
    """x: shape (n, d), y: (n,), rows of (x, y) clipped to length `bound`. Returns beta (d,) and moments (d + 1, d + 1), noisy."""
    whole = np.column_stack([x, y])
    length = np.linalg.norm(whole, axis=1, keepdims=True)
    whole = whole * np.minimum(1.0, bound / np.maximum(length, 1e-300))
    k = whole.shape[1]
    noise = bound**2 * sqrt(2 * log(1.25 / delta)) / epsilon * rng.standard_normal((k, k))
    moments = whole.T @ whole + np.triu(noise) + np.triu(noise, 1).T
    return {"beta": np.linalg.solve(moments[:-1, :-1], moments[:-1, -1]), "moments": moments}
