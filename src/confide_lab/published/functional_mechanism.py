"""The functional mechanism for linear regression to the letter: Zhang, Zhang, Xiao, Yang, Winslett, VLDB 2012, Algorithms 1 and 2."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide_lab.published.marks import published

__all__ = ["functional_mechanism"]

Array = NDArray[np.float64]


@published(
    "epsilon-DP under replacement of one record, for |x| <= 1 and |y| <= 1",
    "not under-calibrated: D = 2 (d + 1)^2 bounds sums of |x_j| by d where |x| <= 1 gives sqrt(d), and counts both triangles; "
    "2 (1 + sqrt(d))^2 would do",
    "no intercept: records are scaled to [0, 1/sqrt(d)] and the line goes through the origin of that scale",
)
def functional_mechanism(x: Array, y: Array, rng: np.random.Generator, *, epsilon: float) -> dict[str, Any]:
    """x: shape (n, d) with rows of length at most 1, y: (n,) in [-1, 1]. Returns omega (d,), trimmed: directions left out."""
    d = x.shape[1]
    scale = 2 * (d + 1) ** 2 / epsilon
    square, linear = x.T @ x, -2 * (x.T @ y)
    noise = np.triu(rng.laplace(0.0, scale, (d, d)))
    square = square + noise + np.triu(noise, 1).T
    linear = linear + rng.laplace(0.0, scale, d)
    values, vectors = np.linalg.eigh(square + 4 * sqrt(2) * scale * np.eye(d))
    kept = values > 0
    turned = vectors[:, kept]
    omega = -turned @ ((turned.T @ linear) / values[kept]) / 2
    return {"omega": omega, "trimmed": int((~kept).sum())}
