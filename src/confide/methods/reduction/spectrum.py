"""Eigenvalues and eigenvectors of noisy moments, with what a record and the noise move them by."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from confide._arrays import Array
from confide.aggregates.moments.joint_moments import JointMoments

__all__ = ["Spectrum"]


# An eigenvalue below this part of the mean one is no basis for a logarithm.
_LEAST = 1e-3
# Squared influences are cut at so many times their mean under a normal distribution, and more where noise allows.
_FEWEST, _NOISE = 30.0, 0.1


@dataclass(frozen=True, eq=False)
class Spectrum:
    """The k largest eigenvalues of a matrix of noisy moments, in standardised columns or in half-widths of the bounds.

    values (p,), falling, as the noisy matrix has them; vectors (p, p), in columns; spread (p,): what a column is divided by.
    """

    own: JointMoments
    k: int
    correlation: bool
    values: Array
    vectors: Array
    spread: Array

    @classmethod
    def of(cls, own: JointMoments, k: int, correlation: bool, weights: Array | None = None) -> Spectrum:
        """weights (p,): half-widths of the bounds, by which columns of a covariance count; 1 when left out."""
        covariance = own.covariance
        if correlation:
            floor = np.maximum(np.diag(covariance), 1e-9)
            spread = np.sqrt(floor)
        else:
            spread = np.ones(own.p) if weights is None else 1 / np.asarray(weights)
        matrix = covariance / np.outer(spread, spread)
        if correlation:
            matrix = np.clip(matrix, -1.0, 1.0)
            np.fill_diagonal(matrix, 1.0)
        values, vectors = np.linalg.eigh(matrix)
        vectors = (
            vectors[:, ::-1] * np.where(vectors[np.abs(vectors).argmax(axis=0), range(own.p)] < 0, -1.0, 1.0)[::-1]
        )
        return cls(own, k, correlation, values[::-1], vectors, spread)

    @cached_property
    def directions(self) -> Array:
        """a_j = v_j/spread, (k, p): what u is multiplied by."""
        return np.asarray((self.vectors[:, : self.k] / self.spread[:, None]).T)

    @cached_property
    def squares(self) -> Array:
        """b_jk = l_j a_jk^2 for correlations, whose columns are standardised by the records themselves; 0 for covariances."""
        if not self.correlation:
            return np.zeros((self.k, self.own.p))
        return np.asarray(self.values[: self.k, None] * self.directions**2)

    @cached_property
    def levels(self) -> Array:
        """r_j, (k,): influences have mean 0."""
        return np.zeros(self.k) if self.correlation else self.values[: self.k].copy()

    def caps(self, noise: float) -> Array:
        """Where squared influences are cut, (k,): far above their mean, and no further than where noise of this part of a cap, for
        each, is a tenth of a normal distribution's sum."""
        usual = 2 * np.maximum(self.values[: self.k], _LEAST * self._mean) ** 2
        return np.asarray(usual * max(_FEWEST, _NOISE * self.own.size / noise))

    @property
    def _mean(self) -> float:
        return max(float(np.mean(self.values)), 1e-12)

    @cached_property
    def noise(self) -> Array:
        """Noise variances of the k eigenvalues, by the delta method."""
        found = []
        for j, a in enumerate(self.directions):
            weights = np.outer(a, a)
            if self.correlation:
                weights -= np.diag(self.values[j] * a * a)
            found.append(self.own.noise_of(weights))
        return np.array(found)

    @cached_property
    def _apart(self) -> Array:
        """Noise variance of a_i'E a_j, (k, p), of the Gram matrix's noise alone."""
        size = self.own.size
        whole = self.vectors / self.spread[:, None]
        lengths = (whole**2).sum(axis=0)
        return np.asarray(np.outer(lengths[: self.k], lengths) * self.own.variance / 2 / size**2)

    @cached_property
    def corrected(self) -> Array:
        """The k eigenvalues less what noise adds at second order, never below a thousandth of their mean."""
        found = self.values[: self.k].copy()
        for i in range(self.k):
            for j in range(self.own.p):
                if j != i:
                    gap = self.values[i] - self.values[j]
                    # where eigenvalues meet, second order ends; noise pushes them apart by no more than its own size
                    found[i] -= self._apart[i, j] * gap / (gap * gap + 4 * self._apart[i, j])
        return np.maximum(found, _LEAST * self._mean)

    def close(self, errors: Array) -> NDArray[np.bool_]:
        """Which components have a neighbour nearer than three standard errors of the difference, (k,)."""
        below = np.abs(np.diff(self.values))
        out = np.zeros(self.k, dtype=bool)
        for j in range(self.k):
            gaps = [below[i] for i in (j - 1, j) if 0 <= i < len(below)]
            out[j] = min(gaps, default=np.inf) < 3 * sqrt(2) * float(errors[j])
        return out
