"""All products of the first four moments of several columns, at the cost of their first two; squared influences on eigenvalues.

A record is m = (T, S phi(u_1), ..., S phi(u_p)), phi(u) = (u, 1 - u^2, u (1 - u^2), u^2 (1 - u^2)) of length at most 1
(`cells.free_moments`). So |m|^2 <= T^2 + p S^2 whether it gives u alone or all four. Its Gram matrix holds every product of moments of
every pair: sensitivity T^2 + p S^2 in the Frobenius norm, sqrt(2) times that under substitution. T = S: sums are weighed like squares.
A record with a missing value under "drop" is zeros.

`InfluenceRows` has one record as min(I_j^2, c_j)/c_j for several components j, each in [0, 1], coded so that the row has length at most
2^20. Here I_j = (a_j'(u - m))^2 - sum_k b_jk (u_k - m_k)^2 - r_j is what a record adds to an eigenvalue. The noisy m, a, b, r, c are
public by then.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide._arrays import Array
from confide.core import RecordMap
from confide.core.exact import digest
from confide.sums.cells.moments import OfMeasures, PairSums, free_moments
from confide.sums.coding import BITS, BOUND, round_within, steps

_STEPS = steps(1.0, 4)
# A variance of fewer noise sds is no divisor: its square root is then off by more than 1/20.
_CLEAR = 10.0


@dataclass(frozen=True)
class JointMomentRows(OfMeasures, RecordMap):
    """(T, S phi(u_1), ..., S phi(u_p)), width 1 + 4 p, T = S just below 2^20.

    >>> import confide as cf
    >>> from confide.sums.cells.moments import Measure
    >>> schema = cf.Schema({"x": cf.Numeric(0, 8, steps=9), "y": cf.Numeric(0, 8, steps=9)})
    >>> rows = JointMomentRows(tuple(Measure.of(name, schema) for name in ("x", "y")))
    >>> (rows(np.array([[0.0], [4.0]])) / rows.steps).ravel().tolist()
    [1.0, -1.0, 0.0, -0.0, 0.0, 0.0, 1.0, 0.0, 0.0]
    """

    @property
    def steps(self) -> int:
        """S and T: integer steps in one unit."""
        return _STEPS

    @property
    def width(self) -> int:
        return 1 + 4 * len(self.measures)

    @property
    def l2_squared(self) -> int:
        return _STEPS**2 + len(self.measures) * BOUND

    @property
    def l1(self) -> int:
        return _STEPS + len(self.measures) * 2 * (1 << BITS)

    @property
    def digest(self) -> str:
        return digest(["joint moments", [measure.digest for measure in self.measures]])

    def __call__(self, codes: Array) -> Array:
        places, keep = self.places(codes)
        out = np.empty((self.width, codes.shape[1]))
        out[0] = float(_STEPS)
        for j, u in enumerate(places):
            own = free_moments(u)
            own *= float(_STEPS)
            out[1 + 4 * j : 5 + 4 * j] = round_within(own)
        out[:, ~keep] = 0.0
        return out


@dataclass(frozen=True, eq=False)
class JointMoments:
    """A noisy Gram matrix of `JointMomentRows` in units of one record, and the variance of its noise on the diagonal; p columns."""

    gram: Array
    variance: float

    @property
    def p(self) -> int:
        return (len(self.gram) - 1) // 4

    @property
    def size(self) -> float:
        """The estimated number of records, at least 1."""
        return max(float(self.gram[0, 0]), 1.0)

    def pair(self, k: int, l: int) -> PairSums:  # noqa: E741
        """Moments of two columns together."""
        places = [0, *range(1 + 4 * k, 5 + 4 * k)], [0, *range(1 + 4 * l, 5 + 4 * l)]
        noise = np.full((5, 5), self.variance / 2)
        noise[0, 0] = self.variance
        return PairSums(self.gram[np.ix_(*places)], noise)

    @cached_property
    def means(self) -> Array:
        """Of u, (p,)."""
        return np.asarray(self.gram[0, 1::4] / self.size)

    @cached_property
    def covariance(self) -> Array:
        """Of u, (p, p), symmetric; not always positive definite."""
        first = self.gram[1::4, 1::4]
        found = first / self.size - np.outer(self.means, self.means)
        np.fill_diagonal(found, 1 - self.gram[0, 2::4] / self.size - self.means**2)
        return np.asarray((found + found.T) / 2)

    @cached_property
    def _variance_sd(self) -> Array:
        """The SD of the noise of each variance, (p,)."""
        variances = 1 - self.gram[0, 2::4] / self.size - self.means**2
        return np.asarray(variance_sd(self.variance, self.size, self.means, variances))

    @cached_property
    def clear(self) -> NDArray[np.bool_]:
        """Of which columns the spread stands so far above its noise that what is divided by it is nearly normal, (p,)."""
        return np.asarray((np.diag(self.covariance) > _CLEAR * self._variance_sd) & self.counted)

    @property
    def counted(self) -> bool:
        """Whether the number of records stands as far above its noise."""
        return bool(self.gram[0, 0] > _CLEAR * sqrt(self.variance))

    @cached_property
    def chosen(self) -> Array:
        """By how much a variance may be too large because it was selected to be clear, as a part of it, (p,).

        Two SDs of the noise at the threshold, where only those pass that are too large, and nothing from four above it on.
        """
        variances = np.maximum(np.diag(self.covariance), 1e-12)
        part = np.clip(2 - (variances / self._variance_sd - _CLEAR) / 2, 0.0, 2.0)
        return np.asarray(part * self._variance_sd / variances)

    def noise_of(self, weights: Array) -> float:
        """The noise variance of sum_kl weights_kl covariance_kl, weights symmetric (p, p), to first order."""
        n, m = self.size, self.means
        diagonal, off = np.diag(weights), weights - np.diag(np.diag(weights))
        products = self.gram[1::4, 1::4] / n
        squares = 1 - self.gram[0, 2::4] / n
        of_pairs = 2 * off[np.triu_indices(self.p, 1)]
        of_means = 2 * weights @ m
        # d cov_kl/dn = -(E u_k u_l - 2 m_k m_l)/n off the diagonal, ((1 - E u^2) + 2 m^2)/n on it
        of_size = -float((off * products).sum()) + float(diagonal @ (1 - squares)) + 2 * float(m @ weights @ m)
        half = float((of_pairs**2).sum() + (of_means**2).sum() + (diagonal**2).sum()) / 2
        return self.variance * (half + of_size**2) / n**2


def variance_sd(noise: float, size: Any, means: Any, variances: Any) -> Any:
    """The SD of the noise of a variance of u, 1 - s/n - m^2: by the noise of s, of the sum behind m, and of the count n.

    noise: variance of the Gram matrix's noise on its diagonal, in units of one record; means, variances: of u. Broadcast.

    >>> round(float(variance_sd(16.0, 1_000, 0.0, 0.1)), 5)
    0.00458
    """
    m2 = np.square(means)
    return np.sqrt(noise * ((1 + 4 * m2) / 2 + (1 - variances + m2) ** 2)) / size


def clear_from(noise: float, means: Any, variances: Any) -> Any:
    """How many records make a column clear all but surely: its variance two SDs of its noise above the threshold. As `variance_sd`.

    >>> round(float(clear_from(16.0, 0.0, 0.1)))
    549
    """
    return (_CLEAR + 2) * variance_sd(noise, 1.0, means, variances) / variances


@dataclass(frozen=True)
class InfluenceRows(OfMeasures, RecordMap):
    """Squared influences on eigenvalues, (components, rows), each a part of its cap.

    In the terms of the module docstring, in u: means (p,) is m, directions (k, p) a, squares (k, p) b, levels (k,) r and caps (k,) c.
    They are zeros in a plan, which does not know them yet; the bound holds for any.
    """

    components: int
    means: tuple[float, ...] = ()
    directions: tuple[tuple[float, ...], ...] = ()
    squares: tuple[tuple[float, ...], ...] = ()
    levels: tuple[float, ...] = ()
    caps: tuple[float, ...] = ()

    @property
    def steps(self) -> int:
        """Integer steps of a full cap: rows of length 2^20 at most."""
        return int(((1 << BITS) - 1) / sqrt(self.components)) - 1

    @property
    def width(self) -> int:
        return self.components

    @property
    def l2_squared(self) -> int:
        return self.components * self.steps**2

    @property
    def l1(self) -> int:
        return self.components * self.steps

    @property
    def digest(self) -> str:
        return digest(["influences", [measure.digest for measure in self.measures], self.components])

    def at(self, means: Array, directions: Array, squares: Array, levels: Array, caps: Array) -> InfluenceRows:
        """The map at noisy numbers."""
        flat = [tuple(float(v) for v in one) for one in (means, levels, caps)]
        wide = [tuple(tuple(float(v) for v in row) for row in one) for one in (directions, squares)]
        return replace(self, means=flat[0], directions=wide[0], squares=wide[1], levels=flat[1], caps=flat[2])

    def __call__(self, codes: Array) -> Array:
        places, keep = self.places(codes)
        out = np.zeros((self.components, codes.shape[1]))
        if not self.caps:
            return out
        for u, m in zip(places, self.means, strict=True):
            u -= m
        with np.errstate(all="ignore"):
            for j in range(self.components):
                score, inner = np.zeros(codes.shape[1]), np.zeros(codes.shape[1])
                for u, a, b in zip(places, self.directions[j], self.squares[j], strict=True):
                    score += u * a
                    inner += u * u * b
                score *= score
                score -= inner
                score -= self.levels[j]
                score *= score
                score *= self.steps / self.caps[j]
                out[j] = np.rint(
                    np.clip(np.nan_to_num(score, nan=0.0, posinf=float(self.steps)), 0.0, float(self.steps))
                )
        out[:, ~keep] = 0.0
        return out
