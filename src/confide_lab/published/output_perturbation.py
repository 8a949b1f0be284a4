"""Output perturbation to the letter, with squared error put in: Chaudhuri, Monteleoni, Sarwate, JMLR 2011, Algorithm 1."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide_lab.published.marks import published

__all__ = ["output_perturbation"]

Array = NDArray[np.float64]


@published(
    "epsilon-DP under replacement of one record, for |x| <= 1 and a loss with a slope of at most 1",
    "squared error has no bounded slope, so the claim does not hold for it: with regulariser L one record moves the minimiser of "
    "1/n sum (y - x'f)^2/2 + L |f|^2/2 by up to (2/(n L)) times the largest residual, which grows as 1/sqrt(L)",
    "n is used exactly, which add-remove does not allow",
)
def output_perturbation(
    x: Array, y: Array, rng: np.random.Generator, *, epsilon: float, regulariser: float
) -> dict[str, Any]:
    """x: shape (n, d) with rows of length at most 1, y: (n,) in [-1, 1]; regulariser L > 0.

    Returns f (d,) and exact (d,), without noise.
    """
    n, d = x.shape
    exact = np.linalg.solve(x.T @ x / n + regulariser * np.eye(d), x.T @ y / n)
    # density proportional to exp(-n L epsilon |b|/2)
    direction = rng.standard_normal(d)
    length = rng.gamma(d, 2 / (n * regulariser * epsilon))
    return {"f": exact + length * direction / np.linalg.norm(direction), "exact": exact}
