"""A response on a given line: residuals that are orthogonal to the model matrix of the file, so that plain OLS returns the line."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, sqrt

import numpy as np
from numpy.typing import NDArray

__all__ = ["Line", "deficient", "fitted", "off_by", "on_line"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Line:
    """Coefficients (p,) in the order of the design's names and the residual sd, both in the units of the data.

    covariance (p, p): of the coefficients, sampling and privacy noise; None where the release gives no valid one.
    """

    coefficients: Array
    sigma: float
    covariance: Array | None = None

    def drawn(self, generator: np.random.Generator) -> Line:
        """A line drawn from the normal law of this one; itself when there is no covariance."""
        if self.covariance is None:
            return self
        values, vectors = np.linalg.eigh((self.covariance + self.covariance.T) / 2)
        scaled = vectors * np.sqrt(np.maximum(values, 0.0))
        return Line(self.coefficients + scaled @ generator.standard_normal(len(values)), self.sigma, self.covariance)


def _basis(matrix: Array) -> tuple[Array, int]:
    """An orthonormal basis (rows, rank) of the columns of a matrix, each scaled to length 1 first; and its rank."""
    if not matrix.size:
        return np.zeros((len(matrix), 0)), 0
    length = np.sqrt((matrix**2).sum(axis=0))
    left, values, _ = np.linalg.svd(matrix / np.where(length > 0, length, 1.0), full_matrices=False)
    rank = int((values > 1e-10 * max(values[0], 1e-300)).sum()) if len(values) else 0
    return left[:, :rank], rank


def deficient(matrix: Array) -> bool:
    """Whether OLS on the matrix (rows, p) has no single solution, or no degree of freedom left for the residuals."""
    rows, p = matrix.shape
    return bool(rows < p + 2 or _basis(matrix)[1] < p)


def residuals(matrix: Array, sigma: float, generator: np.random.Generator) -> Array:
    """Normal residuals (rows,), exactly orthogonal to the matrix, of which OLS estimates the sd `sigma` exactly."""
    rows = len(matrix)
    basis, rank = _basis(matrix)
    found = generator.standard_normal(rows)
    for _ in range(2):  # once more for what rounding left
        found = found - basis @ (basis.T @ found)
    size = float(np.sqrt(found @ found))
    return found * (sigma * sqrt(max(rows - rank, 0)) / size) if rows > rank and size > 0 else np.zeros(rows)


def fitted(matrix: Array, y: Array) -> Array:
    """Plain OLS of y on the matrix, columns scaled to length 1 for the solution."""
    length = np.sqrt((matrix**2).sum(axis=0))
    length = np.where(length > 0, length, 1.0)
    solution, *_ = np.linalg.lstsq(matrix / length, y, rcond=None)
    return np.asarray(solution / length)


def off_by(matrix: Array, y: Array, coefficients: Array) -> float:
    """How far plain OLS is off: the largest difference, each against 1 or the coefficient, whichever is larger."""
    if deficient(matrix):
        return inf
    return float(np.max(np.abs(fitted(matrix, y) - coefficients) / np.maximum(np.abs(coefficients), 1.0), initial=0.0))


def on_line(matrix: Array, line: Line, generator: np.random.Generator) -> Array:
    """The response (rows,): the line at every row plus residuals, corrected once for what rounding did to the solution."""
    y = matrix @ line.coefficients + residuals(matrix, line.sigma, generator)
    if not deficient(matrix):
        y = y + matrix @ (line.coefficients - fitted(matrix, y))
    return np.asarray(y)
