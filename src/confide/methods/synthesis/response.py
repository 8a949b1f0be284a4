"""A response on a given line: residuals that are orthogonal to the model matrix of the file, so that plain OLS returns the line."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, sqrt

import numpy as np

from confide._arrays import Array

__all__ = ["Line", "Matrix"]


# Columns whose part of its own is below this share of their length are no columns of their own.
_SINGULAR = 1e-10


@dataclass(frozen=True, eq=False)
class Line:
    """Coefficients (p,) in the order of the design's names and the residual sd, both in the units of the data.

    covariance (p, p): of the coefficients, sampling and privacy noise; None where the release gives no valid one.
    """

    coefficients: Array
    sigma: float
    covariance: Array | None = None

    def drawn(self, generator: np.random.Generator) -> Line:
        """A line drawn from the normal distribution of this one; itself when there is no covariance."""
        if self.covariance is None:
            return self
        values, vectors = np.linalg.eigh((self.covariance + self.covariance.T) / 2)
        scaled = vectors * np.sqrt(np.maximum(values, 0.0))
        return Line(self.coefficients + scaled @ generator.standard_normal(len(values)), self.sigma, self.covariance)


@dataclass(frozen=True, eq=False)
class Matrix:
    """A model matrix (rows, p) with an orthonormal basis (rows, rank) of its columns, each scaled to length 1 first."""

    values: Array
    length: Array
    basis: Array

    @classmethod
    def of(cls, values: Array) -> Matrix:
        """With its basis."""
        length = np.sqrt((values**2).sum(axis=0))
        length = np.where(length > 0, length, 1.0)
        if not values.size:
            return cls(values, length, np.zeros((len(values), 0)))
        left, sizes, _ = np.linalg.svd(values / length, full_matrices=False)
        return cls(values, length, left[:, : int((sizes > _SINGULAR * max(sizes[0], 1e-300)).sum())])

    @property
    def deficient(self) -> bool:
        """Whether OLS has no single solution, or no degree of freedom left for the residuals."""
        rows, p = self.values.shape
        return bool(rows < p + 2 or self.basis.shape[1] < p)

    def fitted(self, y: Array) -> Array:
        """Plain OLS of y, on columns scaled to length 1."""
        solution, *_ = np.linalg.lstsq(self.values / self.length, y, rcond=None)
        return np.asarray(solution / self.length)

    def residuals(self, sigma: float, generator: np.random.Generator) -> Array:
        """Normal residuals (rows,), exactly orthogonal to the matrix, of which OLS estimates the sd `sigma` exactly."""
        rows, rank = self.basis.shape
        found: Array = generator.standard_normal((rows,))
        for _ in range(2):  # once more for what rounding left
            found = found - self.basis @ (self.basis.T @ found)
        size = float(np.sqrt(found @ found))
        return found * (sigma * sqrt(rows - rank) / size) if rows > rank and size > 0 else np.zeros(rows)

    def on_line(self, line: Line, generator: np.random.Generator) -> Array:
        """The response (rows,): the line at every row plus residuals, corrected once for what rounding did to the solution."""
        y = self.values @ line.coefficients + self.residuals(line.sigma, generator)
        return np.asarray(y if self.deficient else y + self.values @ (line.coefficients - self.fitted(y)))

    def off_by(self, y: Array, coefficients: Array) -> float:
        """How far plain OLS is off: the largest difference, each against 1 or the coefficient, whichever is larger."""
        if self.deficient:
            return inf
        off = np.abs(self.fitted(y) - coefficients) / np.maximum(np.abs(coefficients), 1.0)
        return float(np.max(off, initial=0.0))
