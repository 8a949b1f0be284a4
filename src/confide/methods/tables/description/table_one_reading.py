"""Rows of Table One: what a numeric column or a level says of all records and of each group, and standardised differences.

d = D/S, D the difference of two means, S^2 the mean of two variances. By the delta method its variance is

    V(D)/S^2 + d^2 V(S^2)/(4 S^4) - d C(D, S^2)/S^3,

V(S^2) a quarter of the sum of the variances of s_g^2, C half of C(m_1, s_1^2) - C(m_2, s_2^2); each is sampling, (m4 - s^4)/n and m3/n, and
noise. Of levels m = p and s^2 = p (1 - p), so that all follows from the variance of p.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import inf, nan

import numpy as np
from numpy.typing import NDArray

from confide import _special as special
from confide._arrays import Array
from confide.methods.quantiles.reading import QuantileGroup
from confide.methods.tables.cells.intervals import MeanSums, share_interval
from confide.results.noise_share import noise_share
from confide.results.pages.table import DASH

__all__ = ["Cells", "Level", "Numeric", "Row", "standardised"]


# Sds of its noise that a variance stands above, for differences in units of it, and where a distribution tells it as well.
_STANDS = 5.0
# Half of a 95 % interval in standard errors.
_Z = 1.959963984540054


@dataclass(frozen=True, eq=False)
class Cells:
    """Numbers of one row: of all records, then of each group; (g + 1,) each. texts: as they are printed; share: the noise share of 95 %
    intervals; weak: cells of means of too few records for so skewed a column, none where it is left out.
    """

    name: str
    estimates: Array
    errors: Array
    low: Array
    high: Array
    open: NDArray[np.bool_]
    texts: tuple[str, ...]
    share: Array
    weak: NDArray[np.bool_] | None = None


@dataclass(frozen=True, eq=False)
class Row:
    """A row. part: the share of the sampling variance that counts, 0 for these very records."""

    name: str


@dataclass(frozen=True, eq=False)
class Numeric(Row):
    """A numeric column: sums in [-1, 1] units of all records and each group; quartiles: cumulative counts of the same, or none.

    An sd that does not stand above its noise is no figure to print: what is left of its square may be the least that there can be. Where
    there are quartiles it is then that of their distribution (`QuantileGroup.sd`).
    """

    sums: MeanSums
    middle: float
    half: float
    part: float
    quartiles: tuple[QuantileGroup, ...] = ()

    @property
    def sizes(self) -> Array:
        return self.sums.n

    @property
    def size_variance(self) -> Array:
        return self.sums.v0

    @cached_property
    def binned(self) -> NDArray[np.bool_]:
        """Where the sd is that of the distribution: sums that pass at three sds of their noise were mostly helped by it."""
        stands = self.sums.clear & (self.sums.plain_variance > _STANDS * np.sqrt(self.sums.variance_noise))
        return np.asarray(~stands & bool(self.quartiles))

    @cached_property
    def sd(self) -> Array:
        """In the column's units, NaN where noise hides it."""
        found = self.half * self.sums.sd
        return np.where(self.binned, [group.sd for group in self.quartiles], found) if self.quartiles else found

    def cells(self, alpha: float) -> list[Cells]:
        """The mean with its sd, and the median with its quartiles."""
        z = float(-special.ndtri(alpha / 2))
        low, high = self.sums.interval(z, self.part)
        mean, sd = self.middle + self.half * self.sums.mean, self.sd
        texts = tuple(
            f"{_short(m, s)} ({DASH if np.isnan(s) else _short(s, s)})" for m, s in zip(mean, sd, strict=True)
        )
        own = Cells(
            f"{self.name}: mean",
            mean,
            self.half * self.sums.standard_error(self.part),
            self.middle + self.half * low,
            self.middle + self.half * high,
            (low <= -1) & (high >= 1),
            texts,
            _share(*(one.interval(_Z, self.part) for one in (self.sums, self.sums.quiet))),
            self.sums.skewed if self.part else None,
        )
        return [own, self._median(alpha)] if self.quartiles else [own]

    def _median(self, alpha: float) -> Cells:
        found = [group.quantiles(np.array([0.25, 0.5, 0.75]), alpha) for group in self.quartiles]
        texts = []
        for one in found:
            first, middle, third = (_short(v, one.estimates[2] - one.estimates[0]) for v in one.estimates)
            texts.append(f"{middle} [{first}, {third}]")
        estimates, low, high, open_ = (
            np.array([getattr(one, name)[1] for one in found]) for name in ("estimates", "low", "high", "open")
        )
        share = np.concatenate([group.noise_share(np.array([0.5])) for group in self.quartiles])
        return Cells(f"{self.name}: median", estimates, np.full(len(found), nan), low, high, open_, tuple(texts), share)

    def difference(self, one: int, other: int, alpha: float) -> tuple[float, float, float]:
        """Standardised, between two groups: estimate, low, high; nothing is said where a variance is lost in its noise.

        There S is what noise made of it, and no interval about D/S holds d. At five sds, because of releases of which few pass most were
        helped by noise (`_STANDS`).
        """
        sums = self.sums
        pair = [one, other]
        square = sums.plain_variance[pair]
        if not (square > _STANDS * np.sqrt(sums.variance_noise[pair])).all():
            return nan, -inf, inf
        sampled = self.part / sums.size[pair]
        m, q = sums.mean[pair], 1.0 - square - sums.mean[pair] ** 2
        v0, v1 = sums.v0[pair] / sums.size[pair] ** 2, sums.v1[pair] / sums.size[pair] ** 2
        of_mean = sampled * sums.variance[pair] + v1 + m * m * v0
        of_square = sampled * sums.spread_sampling[pair] + sums.variance_noise[pair]
        together = sampled * sums.joint_sampling[pair] - 2 * m * v1 - m * (q + 2 * m * m) * v0
        return standardised(m, square, of_mean, of_square, together, alpha)


@dataclass(frozen=True, eq=False)
class Level(Row):
    """A level of a categorical column: numbers with it and with any level, of all records and each group; noise variance of one number.

    With weights numbers are sums of omega = w/W, weights: sum omega^2/sum omega of the records with the level and of all of them, and
    heaviest is W.
    """

    counts: Array
    bases: Array
    variance: Array
    levels: int
    part: float
    weights: tuple[Array | float, Array | float] = (1.0, 1.0)
    heaviest: float = 1.0

    @property
    def sizes(self) -> Array:
        return self.bases

    @property
    def size_variance(self) -> Array:
        return self.variance * self.levels

    @property
    def _share(self) -> Array:
        return np.clip(self.counts / np.maximum(self.bases, 1.0), 0.0, 1.0)

    @property
    def _noise(self) -> Array:
        """Noise variance of Y - p N, N the sum of all levels."""
        p = self._share
        return np.asarray(self.variance * (1 - 2 * p + self.levels * p * p) / np.maximum(self.bases, 1.0) ** 2)

    @property
    def _square(self) -> Array:
        """N times the sampling variance of the share: p (1 - p) without weights."""
        own, of_base = self.weights
        p = self._share
        return np.asarray(p * (own + (of_base - 2 * own) * p))

    def cells(self, alpha: float) -> list[Cells]:
        """The share; printed with the number."""
        z, p = float(-special.ndtri(alpha / 2)), self._share
        noises = self.variance, self.variance * self.levels, self.variance
        low, high = share_interval(self.counts, self.bases, *noises, z, self.part, *self.weights)
        errors = np.sqrt(self.part * self._square / np.maximum(self.bases, 1.0) + self._noise)
        numbers = self.heaviest * self.counts
        texts = tuple(f"{count:,.0f} ({share:.1%})" for count, share in zip(numbers, p, strict=True))
        # counts of records alone lie between 0 and those of all
        bases, nothing = np.maximum(self.bases, 1.0), (0.0 * self.variance,) * 3
        share = _share(
            share_interval(self.counts, self.bases, *noises, _Z, self.part, *self.weights),
            share_interval(np.clip(self.counts, 0.0, bases), bases, *nothing, _Z, self.part, *self.weights),
        )
        return [Cells(self.name, p, errors, low, high, (low <= 0) & (high >= 1), texts, share)]

    def difference(self, one: int, other: int, alpha: float) -> tuple[float, float, float]:
        """Standardised, between two groups: estimate, low, high; nothing is said where the variances are lost in their noise."""
        pair = [one, other]
        p = self._share[pair]
        square = p * (1 - p)
        if not square.sum() > _STANDS * float(np.sqrt(((1 - 2 * p) ** 2 * self._noise[pair]).sum())):
            return nan, -inf, inf
        of_mean = (
            self.part * np.maximum(self._square[pair], 1e-4) / np.maximum(self.bases[pair], 1.0) + self._noise[pair]
        )
        slope = 1 - 2 * p
        return standardised(p, square, of_mean, slope**2 * of_mean, slope * of_mean, alpha)


def _share(whole: tuple[Array, Array], alone: tuple[Array, Array]) -> Array:
    """The noise share, from ends with noise and without."""
    return noise_share(whole[1] - whole[0], alone[1] - alone[0])


def standardised(
    means: Array, squares: Array, of_mean: Array, of_square: Array, together: Array, alpha: float
) -> tuple[float, float, float]:
    """d with its interval, from two means, variances, and the variances and covariances of their estimates."""
    scale = float(np.sqrt(squares.mean()))
    d = float(means[0] - means[1]) / scale
    cross = -d * float(together[0] - together[1]) / 2 / scale**3
    variance = float(of_mean.sum()) / scale**2 + d * d * float(of_square.sum()) / 16 / scale**4 + cross
    half = float(-special.ndtri(alpha / 2)) * float(np.sqrt(max(variance, 0.0)))
    return d, d - half, d + half


def _short(value: float, spread: float) -> str:
    """A number with as many digits as its spread deserves."""
    if not np.isfinite(value) or not spread > 0:
        return f"{value:.4g}"
    digits = max(0, 1 - int(np.floor(np.log10(spread))))
    return f"{value:,.{min(digits, 8)}f}"
