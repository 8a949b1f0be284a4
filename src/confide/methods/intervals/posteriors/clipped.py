"""Exact moments of a normal and of a Poisson number that is moved into public bounds: what clipping does is modelled, not ignored.

A normal with mean m and standard deviation s, moved into [-1, 1]: with t = (z - m)/s moved into [a, b] = [(-1 - m)/s, (1 - m)/s],
E t^k = a^k Phi(a) + I_k + b^k Phi(-b), I_k the integral of t^k phi(t) between a and b; variances of z and z^2 follow from central moments
of t, so that nothing is lost where s is small beside m.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, floor, sqrt

import numpy as np
from numpy.typing import NDArray

from confide import _special as special

__all__ = ["ClippedNormal", "ClippedPoisson", "ColumnShape"]

Array = NDArray[np.float64]

# Where phi is 0 to the last digit.
_FAR = 38.0


@dataclass(frozen=True, eq=False)
class ClippedNormal:
    """Moments of clip(N(m, s^2), -1, 1): mean, square = E z^2, and the covariance of (z, z^2). Arrays of one shape."""

    mean: Array
    square: Array
    c11: Array
    c12: Array
    c22: Array

    @classmethod
    def of(cls, m: Array, s: Array) -> ClippedNormal:
        """m: means, s: standard deviations above 0."""
        m, s = np.broadcast_arrays(np.asarray(m, dtype=np.float64), np.asarray(s, dtype=np.float64))
        a, b = np.clip((-1 - m) / s, -_FAR, _FAR), np.clip((1 - m) / s, -_FAR, _FAR)
        below, above = special.ndtr(a), special.ndtr(-b)
        fa, fb = (np.exp(-v * v / 2) / sqrt(2 * np.pi) for v in (a, b))
        # the integrals of t^k phi(t) between a and b
        i0 = 1 - below - above
        i1 = fa - fb
        i2 = i0 + a * fa - b * fb
        a2, b2 = a * a, b * b
        i3 = 2 * i1 + a2 * fa - b2 * fb
        i4 = 3 * i2 + a * a2 * fa - b * b2 * fb
        t1, t2 = a * below + i1 + b * above, a2 * below + i2 + b2 * above
        t3, t4 = a * a2 * below + i3 + b * b2 * above, a2 * a2 * below + i4 + b2 * b2 * above
        v11 = np.maximum(t2 - t1 * t1, 0.0)
        v12 = t3 - t1 * t2
        v22 = np.maximum(t4 - t2 * t2, 0.0)
        square = m * m + 2 * m * s * t1 + s * s * t2
        c11 = s * s * v11
        c12 = 2 * m * c11 + s**3 * v12
        c22 = 4 * m * m * c11 + 4 * m * s**3 * v12 + s**4 * v22
        return cls(m + s * t1, square, c11, c12, np.maximum(c22, 0.0))


@dataclass(frozen=True)
class ColumnShape:
    """Of numbers in [-1, 1] of any distribution: what their standard deviation s does not say.

    lean: the third central moment over s^2; excess: what the fourth central moment is above s^4 and lean^2 s^2 (Pearson: at least 0), over
    s^4; 2 and 0 of a normal.
    """

    lean: float
    excess: float

    def moments(self, m: Array, s: Array) -> ClippedNormal:
        """Of numbers of this shape with means m and standard deviations s; numbers in [-1, 1] have s^2 <= 1 - m^2.

        The third moment is the shape's as far as the bounds allow: with a = 1 + m, E (z + 1)^3 is at least (a^2 + s^2)^2/a (Cauchy and
        Schwarz), so that E (z - m)^3 is at least g s^2, g = s^2/a - a, and likewise from above: where s is larger than the distance of m
        from a bound, as of a column that is at one but for a few, numbers are skewed whatever was released. A mean farther on the side of
        the longer tail has a larger s, which makes its interval longer on that side.
        """
        m, s = np.broadcast_arrays(np.asarray(m, dtype=np.float64), np.asarray(s, dtype=np.float64))
        own = s * s
        below, above = np.maximum(1 + m, 1e-12), np.maximum(1 - m, 1e-12)
        least, most = own / below - below, above - own / above
        # on the edge s^2 = 1 - m^2 both are -2 m, and beyond it there are no such numbers
        third = np.where(least < most, np.clip(self.lean, least, np.maximum(least, most)), -2 * m)
        slope = 2 * m + third
        rest = np.minimum(self.excess * own, (1 + np.abs(m)) ** 2) * own
        return ClippedNormal(m, m * m + own, own, slope * own, slope * slope * own + rest)


@dataclass(frozen=True, eq=False)
class ClippedPoisson:
    """min(X, cap), X Poisson with each rate (g,): probabilities (g, cap + 1), mean and variance (g,)."""

    rates: Array
    cap: int

    @property
    def probabilities(self) -> Array:
        k = np.arange(self.cap, dtype=np.float64)
        log_p = special.xlogy(k, self.rates[:, None]) - self.rates[:, None] - special.gammaln(k + 1)
        own = np.exp(log_p)
        rest = special.gammainc(float(self.cap), np.maximum(self.rates, 1e-300))
        return np.concatenate([own, rest[:, None]], axis=1)

    @property
    def moments(self) -> tuple[Array, Array]:
        """(mean, variance)."""
        k, own = np.arange(self.cap + 1, dtype=np.float64), self.probabilities
        mean = own @ k
        return mean, np.maximum(((k - mean[:, None]) ** 2 * own).sum(axis=1), 0.0)

    def reach(self, n: int) -> tuple[int, int]:
        """Whole numbers between which the sum of n of them lies, for every rate, but for 1e-30."""
        mean, variance = self.moments
        room = 13 * sqrt(n * float(variance.max())) + 4 * self.cap + 32
        return max(floor(n * float(mean.min()) - room), 0), min(ceil(n * float(mean.max()) + room), n * self.cap)

    def expected(self, n: int, function: Callable[[Array], Array]) -> Array:
        """E function(S) for each rate, S the sum of n of them, exact to about 1e-14 of the function's largest value there; (g,).

        function: of whole numbers. The n-th power of the characteristic function at M frequencies is the distribution of S modulo M, and M
        covers where all rates' sums lie but for 1e-30; frequencies at which it is below e^-42 are left out.
        """
        _, variance = self.moments
        first, last = self.reach(n)
        size = 1 << max((last - first + 1).bit_length(), 4)
        weights = np.fft.rfft(function(first + np.arange(size, dtype=np.float64)), size) / size
        weights[1:-1] *= 2
        k, own = np.arange(self.cap + 1), self.probabilities
        used = self._frequencies(own[int(np.argmin(variance))], n, size)
        angles = 2 * np.pi * np.arange(used) / size
        logs = np.log((np.exp(1j * np.outer(angles, k)) @ own.T.astype(np.complex128)) + 1e-300)
        terms = np.exp(n * logs - 1j * angles[:, None] * first)
        # P(S = s) = sum_f phi(f)^n e^(-i f s)/M: phi^n meets the transform of the function
        return np.asarray((terms.T @ weights[:used]).real)

    @staticmethod
    def _frequencies(own: Array, n: int, size: int) -> int:
        """How many of the frequencies matter for the narrowest of the distributions, and so for all."""
        whole, k = size // 2 + 1, np.arange(len(own))
        tried = min(64, whole)
        while tried < whole:
            at = 2 * np.pi * (tried - 1) / size
            if n * np.log(abs(np.exp(1j * at * k) @ own) + 1e-300) < -42:
                break
            tried = min(tried * 2, whole)
        return tried
