"""Sums of independent privacy losses on a grid, by fast Fourier transform, never below the truth.

A loss distribution is an array of masses at step * (first + i). What is asked of a sum of such losses S is, for every
epsilon, the integral of (1 - e^(epsilon - s)) over s > epsilon: the integrand is positive and rises in s, so mass may
be added anywhere and may be moved up, and the answer stays an upper bound. Everything below does one of the two.

*Tilting.* A transform errs by about 1e-16 of the largest mass, which would drown a delta of 1e-12. For t >= 0 the
masses p(s) e^(t s - K(t)), K the logarithm of the moment generating function, sum to 1 and are largest around
K'(t); convolving them and undoing the tilt gives the masses around K'(t) to nearly all digits. Several t cover the
window, and of several upper bounds of one mass the smallest counts.

*Window.* By Chernoff's bound the mass above `high` is at most e^(K(t) - t high) for every t > 0; it is reported as
`beyond`, to be added to the mass at infinity. The mass below `low` likewise, and is added to the lowest point. Mass
that wraps around the end of a transform only adds.

*Round-off.* For a transform of length n the error in the 2-norm is below 8 u log2(n) times the norm of the result, u =
2^-53 (Higham 2002, Theorem 24.2), and a transform of masses that sum to 1 is at most 1 everywhere. So k factors with
masses x give, in the 2-norm and therefore in each mass, at most u (8 log2(n) (k |x| + |z|) + 4 k |z|), z the result;
the last term is for k complex products. This is added to every mass before the tilt is undone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, exp, floor, inf, log, log2

import numpy as np
from numpy.typing import NDArray

from confide._lazy import later

__all__ = ["TAIL", "Factor", "convolve"]

fft = later("scipy.fft")

optimize = later("scipy.optimize")

Floats = NDArray[np.float64]

TAIL = 1e-25  # mass outside the window of a sum, each side; also that of the default window of one loss
_UNIT = 2.0**-53
_TILTS = 4  # besides none: neighbours then differ from the best tilt by a factor below 4 in the round-off bound
_MOST_POINTS = 1 << 21


@dataclass(frozen=True)
class Factor:
    """A loss that is added `times` times: masses at step * (first + i)."""

    masses: Floats
    first: int
    times: int


def convolve(factors: Sequence[Factor], step: float) -> tuple[Floats, int, float] | None:
    """(masses, first, beyond) of the sum of all losses; None where the window has too many points for the step.

    >>> masses, first, beyond = convolve([Factor(np.array([0.5, 0.0, 0.5]), -1, 2)], 1.0)
    >>> first, np.round(masses, 12).tolist(), beyond
    (-2, [0.25, 0.0, 0.5, 0.0, 0.25], 0.0)
    """
    kept = [_Logs(f, step) for f in factors]
    bottom = sum(f.times * f.first for f in factors)
    length = sum(f.times * (len(f.masses) - 1) for f in factors) + 1
    top = bottom + length - 1
    low, below = _reach(kept, -1, bottom, step)
    high, beyond = _reach(kept, +1, top, step)
    high = max(high, low)
    points = high - low + 1
    if points > _MOST_POINTS:
        return None
    longest = max(len(f.masses) for f in factors)
    size = 1 << (max(longest, min(length, ceil(1.5 * points))) - 1).bit_length()
    where = (np.arange(low, high + 1) - bottom) % size
    losses = step * np.arange(low, high + 1, dtype=np.float64)
    best = np.full(points, inf)
    for tilt in _tilts(kept, low * step, high * step):
        np.minimum(best, _tilted_sum(kept, tilt, size, where, losses), out=best)
    masses = np.exp(best)
    masses[0] += below
    return masses, low, beyond


class _Logs:
    """A factor with the logarithms of its masses, zeros left out."""

    def __init__(self, factor: Factor, step: float) -> None:
        self.times = factor.times
        self.size = len(factor.masses)
        self.index = np.flatnonzero(factor.masses)
        self.losses = step * (factor.first + self.index)
        self.logs = np.log(factor.masses[self.index])
        self.largest = float(np.max(np.abs(self.losses), initial=0.0))

    def cumulant(self, tilt: float) -> tuple[float, float]:
        """K(t) and K'(t) of one such loss."""
        exponents = self.logs + tilt * self.losses
        shift = float(np.max(exponents))
        weights = np.exp(exponents - shift)
        total = float(weights.sum())
        return shift + log(total), float(weights @ self.losses) / total

    def tilted(self, tilt: float, cumulant: float) -> Floats:
        """The tilted masses, whose sum is 1."""
        masses = np.zeros(self.size)
        masses[self.index] = np.exp(self.logs + tilt * self.losses - cumulant)
        return masses


def _cumulant(factors: Sequence[_Logs], tilt: float) -> float:
    return sum(f.times * f.cumulant(tilt)[0] for f in factors)


def _reach(factors: Sequence[_Logs], side: int, end: int, step: float) -> tuple[int, float]:
    """How far the window reaches on one side, as a grid index, and a bound on the mass past it.

    Any tilt gives a valid bound; a scan by factors of 2 and one refinement come within a few percent of the best.
    """

    def distance(tilt: float) -> float:
        return (_cumulant(factors, side * tilt) - log(TAIL)) / tilt

    scale = max(f.largest for f in factors) or step
    tilts = [2.0**power / scale for power in range(-16, 17, 2)]
    near = min(tilts, key=distance)
    tilt = min((near * 2 ** (j / 4) for j in range(-7, 8)), key=distance)
    index = ceil(distance(tilt) / step) if side > 0 else floor(-distance(tilt) / step)
    if side * index >= side * end:
        return end, 0.0
    return index, exp(_cumulant(factors, side * tilt) - tilt * side * index * step) * (1 + 1e-9)


def _tilts(factors: Sequence[_Logs], low: float, high: float) -> list[float]:
    """0, and the tilts that put the mean of the sum at equal distances on the way to the top of the window."""

    def mean(tilt: float) -> float:
        return sum(f.times * f.cumulant(tilt)[1] for f in factors)

    start = mean(0.0)
    span = high - start
    tilts = [0.0]
    if not span > 1e-9 * (high - low):
        return tilts
    last = 1e-3 / span
    for part in range(1, _TILTS + 1):
        goal = start + span * (0.98 * part / _TILTS)
        upper = last
        while mean(upper) < goal:
            upper *= 4
            if upper > 1e12:
                return tilts
        if upper > last:
            last = float(optimize.brentq(lambda t, goal=goal: mean(t) - goal, last, upper, rtol=1e-2, xtol=1e-300))
        tilts.append(last)
    return tilts


def _tilted_sum(factors: Sequence[_Logs], tilt: float, size: int, where: NDArray[np.int64], losses: Floats) -> Floats:
    """Logarithms of upper bounds on the masses of the sum, by one tilt."""
    product: NDArray[np.complex128] | None = None
    norms, cumulant, relative = 0.0, 0.0, 8.0
    for f in factors:
        own, _ = f.cumulant(tilt)
        x = f.tilted(tilt, own)
        norms += f.times * float(np.linalg.norm(x))
        cumulant += f.times * own
        depth = float(np.max(np.abs(f.logs))) + abs(tilt) * f.largest + abs(own)
        relative += f.times * (2 * depth + 2 * log2(size) + 8)  # exp and log of one factor, its sum
        transform = _integer_power(np.asarray(fft.rfft(x, size)), f.times)
        product = transform if product is None else product * transform
    assert product is not None
    z = np.asarray(fft.irfft(product, size))
    times, norm = sum(f.times for f in factors), float(np.linalg.norm(z)) * (1 + 1e-9)
    error = 1.1 * _UNIT * (8 * log2(max(size, 2)) * (norms + norm) + 4 * times * norm)
    relative += abs(cumulant) + abs(tilt) * float(np.max(np.abs(losses)))
    logs: Floats = np.log(np.maximum(z[where], 0.0) + error) + (cumulant - tilt * losses) + 2 * _UNIT * relative
    return logs


def _integer_power(base: NDArray[np.complex128], times: int) -> NDArray[np.complex128]:
    """base**times by squaring: at most `times` roundings, unlike the general power, whose angle loses digits."""
    result: NDArray[np.complex128] | None = None
    while True:
        if times & 1:
            result = base if result is None else result * base
        times >>= 1
        if not times:
            assert result is not None
            return result
        base = base * base
