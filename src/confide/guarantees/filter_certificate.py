"""Whether H_a(D x G_r') <= H_a(G_r) + leak at EVERY order a = e^t >= 1, proved on intervals and not on a grid.

D has finitely many losses l_i with P-masses p_i. The loss of D x G_r' under P then has the density sum p_i phi((t - l_i - r'^2/2)/r')/r',
that of G_r the density phi((t - r^2/2)/r)/r, and their ratio is, with c = 1/r'^2 - 1/r^2 and C = log(r/r') + (r^2 - r'^2)/8,

    ratio(t) = exp(C + S(t) - c t^2/2),     S(t) = log sum p_i exp(-l_i/2 - l_i^2/(2 r'^2) + t l_i/r'^2),  convex in t.

1. *Tail.* H_a = integral over u > t of (1 - e^(t-u)) density(u) du, so ratio <= 1 from T on proves all t >= T. On an interval of width h
   log ratio is at most the larger of its ends + c h^2/8 (S below its chord). From t on it is at most log ratio(t) + c (V - t)^2/2 with
   V = max l_i/(r'^2 c), since S' <= max l_i/r'^2; beyond V it falls.
2. *Middle.* Where the left side is already below `leak` nothing is left to prove. Before that, D(a) = H_a(G_r) -
   H_a(D x G_r') has D''(a) = density(t) (1 - ratio(t))/a^2, density that of G_r. On an interval of log orders from
   t to t + h, D is above the smaller of its ends less (e^h - 1)^2/8 of the largest density (1 - ratio), where D
   bends upward at all. Log ratio is at least its tangent of S in the middle - c t^2/2, which is concave, at its
   lower end. Because it is the *difference* whose bend counts, a few dozen intervals prove what takes thousands
   with chords and tangents of the two separate sides.

Ends are rounded outwards by 2^-40 of g and of 1 - g (above); an interval that is not proved is halved.

The hockey-stick divergence of two normal laws on arrays, with what is missing to 1, both to 2^-40 of themselves.

g_r(a) = H_a(N(r, 1) || N(0, 1)), a = e^t. With A = t/r - r/2, B = A + r, M Mills' ratio and phi the normal density,

    g = phi(A) (M(A) - M(B)),     1 - g = Phi(A) + phi(A) M(B)     for t >= 0,     g(-t) = 1 - e^-t (1 - g(t)).

Neither is ever taken from the other where it is the smaller one: in the tails g is tiny, and for a large r 1 - g is.
Where M(A) and M(B) are within a hundredth of each other their difference is the integral of 1 - x M(x).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum, log, pi, sqrt

import numpy as np

from confide._arrays import Array
from confide._helpers import later
from confide._special import erfcx, ndtr

special = later("scipy.special")  # Gaussian releases need no certificate

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


# The normal deviate beyond which a divergence underflows, and how often and how far intervals may be halved.
_DEEPEST = 36.0
_ROUNDS = 22
_MOST = 20_000
# Of log ratio: exponents up to 10^4 are formed in doubles. The tail is taken from where the ratio is this far below 1.
_LOG_ACCURACY = 2.0**-36
_FALLEN = 2.0**-28
_CHUNK = 1 << 19


@dataclass(frozen=True, eq=False)
class Inequality:
    """One order of one step. `losses`, `masses`: of D under P, shape (n,), masses summing to 1 or a little more; r above
    after above 0. `price`: r^2 - after^2, given apart so that no digits are lost. `leak`: what the left side may
    exceed the right by.
    """

    losses: Array
    masses: Array
    r: float
    after: float
    price: float
    leak: float

    def proved(self, margin: float) -> bool:
        """Whether the inequality is proved at every order from 1 on, with room of `margin` of min(g, 1 - g) at least in the middle."""
        end = self._middle_end()
        return end is not None and self._tail(end[0], end[1], margin) and self._middle(end[0], margin)

    def gaps(self, t: Array) -> Array:
        """H_a(G_r) + leak - H_a(D x G_r') at log orders t >= 0, never too large, over min(g, 1 - g): negative where it fails."""
        gap, scale = self._gap(t)
        return gap / scale

    def _gap(self, t: Array) -> tuple[Array, Array]:
        right, above = divergence(t, self.r)
        left, below = np.empty_like(t), np.empty_like(t)
        step = max(1, _CHUNK // len(self.losses))
        for i in range(0, len(t), step):
            part = divergence(t[i : i + step, None] - self.losses, self.after)
            left[i : i + step], below[i : i + step] = part[0] @ self.masses, part[1] @ self.masses
        excess = max(0.0, fsum(self.masses) - 1) + 2.0**-50
        by_part = right * (1 - ACCURACY) - left * (1 + ACCURACY)
        by_rest = below * (1 - ACCURACY) - above * (1 + ACCURACY) - excess
        return np.maximum(by_part, by_rest) + self.leak, np.maximum(np.minimum(right, above), 1e-300)

    # ------------------------------------------------------------------------------------------------- the densities

    @property
    def _bend(self) -> float:
        """c = 1/r'^2 - 1/r^2"""
        return self.price / (self.r * self.after) ** 2

    @property
    def _vertex(self) -> float:
        """V: beyond it the ratio falls."""
        return float(self.losses.max()) * self.r**2 / self.price

    def _sums(self, t: Array) -> tuple[Array, Array]:
        """C + S and S' at log orders, arrays of the shape of t."""
        square = self.after**2
        with np.errstate(divide="ignore"):
            weights = np.log(self.masses) - self.losses / 2 - self.losses**2 / (2 * square)
        constant = -log(1 - self.price / self.r**2) / 2 + self.price / 8
        value, slope = np.empty_like(t), np.empty_like(t)
        step = max(1, _CHUNK // len(self.losses))
        for i in range(0, len(t), step):
            terms = weights + t[i : i + step, None] * self.losses / square
            total = special.logsumexp(terms, axis=1)
            value[i : i + step] = constant + total
            slope[i : i + step] = np.exp(terms - total[:, None]) @ self.losses / square
        return value, slope

    def _log_ratio(self, t: Array) -> Array:
        return np.asarray(self._sums(t)[0] - self._bend * t * t / 2)

    # ------------------------------------------------------------------------------------------------------ the tail

    def _middle_end(self) -> tuple[float, bool] | None:
        """Up to where differences are formed, and whether the left side is below the leak from there on; None where there is no end.

        Not rounded: what it says is proved by `_tail`.
        """
        last = self.r**2 / 2 + _DEEPEST * self.r
        grid = np.concatenate([np.linspace(0.0, last, 97), np.geomspace(last, max(self._vertex, 2 * last), 33)[1:]])
        ratios = self._log_ratio(grid)
        above = np.flatnonzero(ratios > -_FALLEN)
        end = float(grid[min(above[-1] + 1, len(grid) - 1)]) if len(above) else float(grid[1])
        if self.leak > 0:
            small = np.flatnonzero(self._left(grid[:97]) <= self.leak)
            if len(small) and grid[small[0]] < end:
                return float(grid[small[0]]), True
        return (end, False) if end <= last else None

    def _left(self, t: Array) -> Array:
        """The left side, rounded up."""
        return np.asarray(divergence(t[:, None] - self.losses, self.after)[0] @ self.masses * (1 + ACCURACY))

    def _tail(self, start: float, below_leak: bool, margin: float) -> bool:
        if below_leak:
            return bool(self._left(np.array([start]))[0] <= self.leak)
        room = margin + _LOG_ACCURACY
        bend, vertex = self._bend, self._vertex
        points = (
            np.concatenate([[start], np.geomspace(start, max(vertex, start), 25)[1:]])
            if vertex > start
            else np.array([start])
        )
        for _ in range(_ROUNDS):
            ratios = self._log_ratio(points)
            # the first point from which on a parabola bounds all that follows
            closed = ratios + bend * np.maximum(vertex - points, 0.0) ** 2 / 2 <= -room
            if not closed.any():
                return False
            points, ratios = points[: int(np.argmax(closed)) + 1], ratios[: int(np.argmax(closed)) + 1]
            if (ratios > -room).any():
                return False
            widths = np.diff(points)
            open_ = np.maximum(ratios[1:], ratios[:-1]) + bend * widths**2 / 8 > -room
            if not open_.any():
                return True
            if len(points) > _MOST:
                return False
            points = np.sort(np.concatenate([points, (points[:-1] + widths / 2)[open_]]))
        return False

    # ---------------------------------------------------------------------------------------------------- the middle

    def _middle(self, end: float, margin: float) -> bool:
        count = max(24, int(4 * end / self.r))
        points = np.linspace(0.0, end, count + 1)
        gap, scale = self._gap(points)
        low, high, gaps = points[:-1], points[1:], (gap[:-1], gap[1:])
        scales = scale[:-1], scale[1:]
        for _ in range(_ROUNDS):
            room = np.minimum(gaps[0], gaps[1]) - margin * np.maximum(*scales)
            if (room < 0).any() or len(low) > _MOST:
                # an end that fails, or nearly so: no halving mends it, but for a scale that falls a lot within the interval
                own = np.minimum(gaps[0] - margin * scales[0], gaps[1] - margin * scales[1])
                if (own < 0).any() or len(low) > _MOST:
                    return False
            left_open = room < self._bends(low, high)
            if not left_open.any():
                return True
            low, high = low[left_open], high[left_open]
            gaps = gaps[0][left_open], gaps[1][left_open]
            scales = scales[0][left_open], scales[1][left_open]
            middle = low + (high - low) / 2
            gap, scale = self._gap(middle)
            low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
            gaps = np.concatenate([gaps[0], gap]), np.concatenate([gap, gaps[1]])
            scales = np.concatenate([scales[0], scale]), np.concatenate([scale, scales[1]])
        return False

    def _bends(self, low: Array, high: Array) -> Array:
        """How far D may be below the smaller of its ends on each interval, rounded up."""
        middle, width = low + (high - low) / 2, high - low
        value, slope = self._sums(middle)
        least = np.minimum(
            value - slope * width / 2 - self._bend * low**2 / 2, value + slope * width / 2 - self._bend * high**2 / 2
        )
        peak = np.clip(self.r**2 / 2, low, high)
        density = np.exp(-(((peak - self.r**2 / 2) / self.r) ** 2) / 2) / (self.r * sqrt(2 * pi))
        upwards = np.maximum(-np.expm1(np.minimum(least - _LOG_ACCURACY, 0.0)), 0.0)
        return np.asarray(np.expm1(width) ** 2 / 8 * density * upwards * (1 + ACCURACY))
