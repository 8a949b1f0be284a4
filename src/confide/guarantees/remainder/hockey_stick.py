"""The hockey-stick divergence of two normal laws on arrays, with what is missing to 1, both to 2^-40 of themselves.

g_r(a) = H_a(N(r, 1) || N(0, 1)), a = e^t. With A = t/r - r/2, B = A + r, M Mills' ratio and phi the normal density,

    g = phi(A) (M(A) - M(B)),     1 - g = Phi(A) + phi(A) M(B)     for t >= 0,     g(-t) = 1 - e^-t (1 - g(t)).

Neither is ever taken from the other where it is the smaller one: far out g is tiny, and for a large r 1 - g is. Where M(A) and M(B) are
within a hundredth of each other their difference is the integral of 1 - x M(x).
"""

from __future__ import annotations

import numpy as np

from confide._arrays import Array
from confide._special import erfcx, ndtr

__all__ = ["ACCURACY", "divergence"]


#: What a divergence may be wrong by, relative to itself and to what is missing to 1 (measured: below 2^-43 up to A = 38).
ACCURACY = 2.0**-40
# Gauss-Legendre on [0, 1]: an interval on which M falls by a hundredth is short against the distance to where it bends.
_NODES, _WEIGHTS = (np.polynomial.legendre.leggauss(8)[0] + 1) / 2, np.polynomial.legendre.leggauss(8)[1] / 2
_NEAR = 0.01
# Beyond it 1 - x M(x) loses digits, and its asymptotic series has them all.
_SERIES_FROM = 16.0
_SERIES_TERMS = 31


def divergence(t: Array, r: float) -> tuple[Array, Array]:
    """g_r(e^t) and 1 - g_r(e^t) for an array of log orders and r above 0; 0 where a number underflows.

    >>> import numpy as np
    >>> [round(float(x[0]), 6) for x in divergence(np.array([1.0]), 1.0)]
    [0.126937, 0.873063]
    """
    size = np.abs(t)
    low = size / r - r / 2
    high = low + r
    density = np.exp(-low * low / 2) / np.sqrt(2 * np.pi)
    beyond = _mills(high)
    missing = ndtr(low) + density * beyond
    left = np.where(low > -1.0, density * _drop(np.maximum(low, -1.0), high, r, beyond), 1 - missing)
    shrink, lost = np.exp(-size), -np.expm1(-size)
    mirrored = t < 0
    return (
        np.asarray(np.where(mirrored, lost + shrink * left, left)),
        np.asarray(np.where(mirrored, shrink * missing, missing)),
    )


def _mills(x: Array) -> Array:
    return np.asarray(np.sqrt(np.pi / 2) * erfcx(x / np.sqrt(2)))


def _drop(low: Array, high: Array, r: float, beyond: Array) -> Array:
    """M(low) - M(high), high = low + r."""
    above = _mills(low)
    result = above - beyond
    near = result < _NEAR * above
    if near.any():
        x = low[near][..., None] + r * _NODES
        square = np.maximum(x, _SERIES_FROM) ** -2.0
        series = np.ones_like(square)
        for odd in range(_SERIES_TERMS, 1, -2):
            series = 1 - odd * square * series
        slope = np.where(x < _SERIES_FROM, 1 - x * _mills(x), square * series)
        result[near] = r * (slope @ _WEIGHTS)
    return np.asarray(result)
