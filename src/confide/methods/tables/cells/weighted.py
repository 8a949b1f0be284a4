"""Weighted means: sums of omega and of omega^2 by cell, omega = w/W, and what intervals and tests make of them.

The weighted mean m = sum omega u/sum omega has, to first order, the sampling variance sum omega^2 (u - m)^2/(sum omega)^2; its
skewness follows from sum omega^2 (u - m)^3. Both are released beside the sums for nothing (`aggregates.cells.weighted_cells`). The
effective number of records is Kish's, (sum omega)^2/sum omega^2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from confide.methods.tables.cells.intervals import MeanSums

__all__ = ["UnitSums", "WeightedSums", "mean_weights"]

Array = NDArray[np.float64]

_LEAST = 1e-4
# Of a cell's own weights and those of all records: as many records of the latter as this many noise sds of the cell's number.
_BORROWED = 4.0


def mean_weights(n: Array, squares: Array, noise_sd: Array | float, overall: float) -> Array:
    """sum omega^2/sum omega of each cell, moved towards that of all records where the cell is near its noise.

    >>> mean_weights(np.array([100.0, 0.0]), np.array([50.0, 3.0]), 1.0, 0.3).round(3).tolist()
    [0.492, 1.0]
    """
    borrowed = _BORROWED * noise_sd
    own = (np.maximum(squares, 0.0) + borrowed * overall) / np.maximum(np.maximum(n, 0.0) + borrowed, 1e-9)
    return np.asarray(np.clip(own, _LEAST, 1.0))


@dataclass(frozen=True, eq=False)
class WeightedSums(MeanSums):
    """`MeanSums` of weighted records, N = sum omega, and the same sums with omega^2: n2, s2, q2, c2, d2, of twice the noise variance."""

    n2: Array
    s2: Array
    q2: Array
    c2: Array
    d2: Array

    @cached_property
    def _squares(self) -> Array:
        """sum omega^2 (u - m)^2."""
        m = self.mean
        return np.asarray(self.n2 - self.q2 - 2 * m * self.s2 + m * m * self.n2)

    @cached_property
    def _squares_noise(self) -> Array:
        m = self.mean
        return np.asarray(2 * self.v0 * (1.0 + m * m) ** 2 + 2 * self.v1 * (1.0 + 4 * m * m))

    @cached_property
    def sampling_variance(self) -> Array:
        """sum omega^2 (u - m)^2/N."""
        top = np.maximum(1.0 - self.mean**2, _LEAST)
        return np.asarray(np.clip(self._squares / self.size, _LEAST * self._thin, top))

    @cached_property
    def variance(self) -> Array:
        """The same with half its noise sd, as intervals take it."""
        top = np.maximum(1.0 - self.mean**2, _LEAST)
        raw = (np.maximum(self._squares, 0.0) + np.sqrt(self._squares_noise) / 2) / self.size
        return np.asarray(np.clip(raw, _LEAST * self._thin, top))

    @cached_property
    def quiet(self) -> Self:
        m, (found, error) = self.mean, self._third
        third = np.sign(found) * np.maximum(np.abs(found) - error, 0.0)
        squares = np.maximum(self._squares, np.sqrt(self._squares_noise) / 2)
        whole = squares + 2 * m * self.s2 - m * m * self.n2
        c2 = self.s2 - (third + 3 * m * whole - 3 * m * m * self.s2 + m**3 * self.n2)
        return replace(super().quiet, q2=self.n2 - whole, c2=c2)

    @cached_property
    def _thin(self) -> Array:
        """sum omega^2/sum omega, at most 1: what a record's weight takes off the least variance."""
        return np.asarray(np.clip(self.n2 / self.size, 0.01, 1.0))

    @cached_property
    def effective(self) -> Array:
        """Kish's effective number of records, between 1 and what noise leaves."""
        floor = np.maximum(self.n2, self.size * _LEAST)
        return np.asarray(np.maximum(self.size**2 / floor, 1.0))

    @cached_property
    def _third(self) -> tuple[Array, Array]:
        """(sum omega^2 (u - m)^3, its noise sd)."""
        m = self.mean
        found = (self.s2 - self.c2) - 3 * m * (self.n2 - self.q2) + 3 * m * m * self.s2 - m**3 * self.n2
        noise = 2 * self.v1 * ((1 + 3 * m * m) ** 2 + 1 + 9 * m * m) + 2 * self.v0 * (3 * m + m**3) ** 2
        return found, np.sqrt(noise)

    @cached_property
    def _cubed(self) -> Array:
        """sum omega^3 f/sum omega^2 f as if weights told nothing of the values: it lies between sum omega^2/sum omega and 1."""
        return np.asarray(np.minimum(1.5 * self._thin, 1.0))

    @property
    def lean(self) -> Array:
        """sum omega^3 (u - m)^3 over sum omega^2 (u - m)^2, moved towards the far bound by half the noise of the former."""
        third, noise = self._third
        return np.asarray(self._cubed * (third - np.sign(self.mean) * noise / 2) / (self.variance * self.size))

    @cached_property
    def skewed(self) -> NDArray[np.bool_]:
        """Fewer records than three squared skewnesses of the weighted sum."""
        return np.asarray(3 * self.bend**2 > 1)

    @property
    def bend(self) -> Array:
        third, noise = self._third
        seen = self._cubed * np.maximum(np.abs(third) - noise, 0.0)
        return np.asarray(seen / (self.variance * self.size) ** 1.5)

    @cached_property
    def clear(self) -> NDArray[np.bool_]:
        return np.asarray(super().clear & (self._squares > 3 * np.sqrt(self._squares_noise)))

    @cached_property
    def spread_sampling(self) -> Array:
        """sum omega^2 ((u - m)^2 - s^2)^2/N, with half the noise sd of its largest part."""
        m, square = self.mean, self.plain_variance
        fourth = (
            (self.n2 - self.q2 - self.d2)
            - 4 * m * (self.s2 - self.c2)
            + 6 * m * m * (self.n2 - self.q2)
            - 4 * m**3 * self.s2
            + m**4 * self.n2
        )
        noise = np.sqrt(2 * self.fourth_noise) * self.size / 2
        found = fourth + noise - 2 * square * self._squares + square**2 * self.n2
        return np.asarray(np.maximum(found, 0.0) / self.size)

    @property
    def joint_sampling(self) -> Array:
        """sum omega^2 (u - m) ((u - m)^2 - s^2)/N."""
        found, _ = self._third
        return np.asarray((found - self.plain_variance * (self.s2 - self.mean * self.n2)) / self.size)

    def redrawn(self, mean: Array, own: Array, noises: Sequence[Array]) -> WeightedSums:
        """Draws of a release, (runs, cells), of records of the same weights."""
        size = np.broadcast_to(np.maximum(self.size, 2.0), own.shape)
        squares = np.broadcast_to(size * self._thin, own.shape)
        spread = own / self._thin
        parts = (
            size,
            size * mean,
            size * (1.0 - spread - mean**2),
            squares,
            squares * mean,
            squares * (1.0 - spread - mean**2),
        )
        # the sums of omega^2 are differences of two released ones: of the second kind's noise and of the first's
        first = list(noises[:3])
        second = [one + other for one, other in zip(noises[:3], noises[3:], strict=True)]
        n, s, q, n2, s2, q2 = (part + noise for part, noise in zip(parts, (*first, *second), strict=True))
        nothing = np.zeros(own.shape)
        return WeightedSums(n, s, q, nothing, nothing, self.v0, self.v1, n2, s2, q2, nothing, nothing)

    def total(self, middle: float, half: float, part: float) -> tuple[Array, Array, Array]:
        """(the sum of omega (middle + half u), its noise variance, its sampling variance sum omega^2 (middle + half u)^2)."""
        estimate, noise, _ = super().total(middle, half, part)
        squares = half**2 * (self.n2 - self.q2) + 2 * half * middle * self.s2 + middle**2 * self.n2
        return estimate, noise, part * np.maximum(squares, 0.0)


@dataclass(frozen=True, eq=False)
class UnitSums(WeightedSums):
    """The same of units, omega the part of a unit's rows in the cell, u their mean. rough: the noise variance of what least squares does
    not put together, over that of N and S."""

    rough: float = field(kw_only=True)

    @cached_property
    def _squares_noise(self) -> Array:
        return np.asarray(self.rough * super()._squares_noise)

    @cached_property
    def _third(self) -> tuple[Array, Array]:
        found, noise = super()._third
        return found, noise * np.sqrt(self.rough)
