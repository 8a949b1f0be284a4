"""From noisy kernel sums to a curve with bands: all post-processing, in units of K(x, x) = 1 and half-ranges of the response.

N and D are the noisy numerator and denominator, each with noise of sd s; f = N/max(D, 2). The error of f at x is that of
sum_i K_i (y_i - f(x)) over D, whose sampling variance is E sum_i K_i^2 (y_i - f(x))^2. With e_i = y_i - f(x_i) that is

    M(x) = sum_i K_i^2 e_i^2 + sum_i K_i^2 (f(x_i) - f(x))^2,

the cross term has mean zero. The first sum is released (residuals at the released curve, clipped at tau), one sd of its own noise added
before it is floored at 0 (three for a band that holds the whole curve: some place along it has a moment that noise made small); the second
follows from the released curve, with D/(h sqrt(2 pi)) for the records' density. Neither can make M larger than the response's bounds allow:
sum_i K_i^2 (1 - f^2), with |f| made smaller by one sd.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import pi, sqrt

import numpy as np

from confide._arrays import Array
from confide.aggregates.kernels.kernel_cells import UNIT, Axis, ResidualRows
from confide.errors import PlanError
from confide.protocol import Noisy
from confide.schema import Design

__all__ = ["Smooth", "moments_at", "one_feature", "shares", "turning"]


#: D below this many records at the kernel's peak is a quotient of nothing.
_FLOOR = 2.0


def one_feature(design: Design, method: str) -> None:
    """`PlanError` unless the formula has exactly one numeric feature."""
    if len(design.terms) != 1 or design.terms[0].binary:
        many = ", ".join(term.name for term in design.terms) or "none"
        raise PlanError(
            f'{method} takes one numeric feature, as in "y ~ x", got: {many}; for several features at chosen points write '
            f"cf.curves.EfficientPTRKernel({design.formula!r}, points=..., bandwidth=...)"
        )


@dataclass(frozen=True)
class Smooth:
    """A released curve: noisy sums at the nodes of an axis (2, nodes), in units of one record at the peak, and the sd of each number."""

    axis: Axis
    sums: Array
    sd: float

    @classmethod
    def of(cls, axis: Axis, noisy: Noisy) -> Smooth:
        unit = UNIT * axis.unit
        return cls(axis, noisy.decode().reshape(2, -1) / unit, sqrt(noisy.variance) / unit)

    def parts(self, x: Array) -> tuple[Array, Array, Array]:
        """(D, N, s) at x: s is the sd of the noise of either, sd |a(x)|."""
        weights = self.axis.weights(x)
        return weights @ self.sums[0], weights @ self.sums[1], self.sd * np.linalg.norm(weights, axis=1)

    def curve(self, x: Array) -> Array:
        """f at x, in half-ranges of the response, within [-1, 1]."""
        below, above, _ = self.parts(x)
        return np.asarray(np.clip(above / np.maximum(below, _FLOOR), -1.0, 1.0))


def moments_at(smooth: Smooth, x: Array, residuals: ResidualRows, noisy: Noisy, *sds: float) -> list[Array]:
    """M at x, once for each number of sds of its own noise that it is raised by."""
    unit = UNIT * residuals.axis.unit / residuals.tau**2
    sums, sd = noisy.decode() / unit, sqrt(noisy.variance) / unit
    weights = residuals.axis.weights(x)
    released, error = weights @ sums, sd * np.linalg.norm(weights, axis=1)
    own, (total, first, second), spare = smooth.curve(x), *_squares(smooth, x)
    moved = np.maximum(second - 2 * own * first + own * own * total, 0.0)
    denominator, _, s = smooth.parts(x)
    apart = s / np.maximum(denominator, _FLOOR) * np.sqrt(1 + own * own)
    most = (total + spare) * (1 - np.maximum(np.abs(own) - apart, 0.0) ** 2)
    return [np.minimum(np.maximum(released + k * error, 0.0) + moved, most) for k in sds]


def _squares(smooth: Smooth, x: Array) -> tuple[tuple[Array, Array, Array], float]:
    """Sums of K_i^2 times 1, f(x_i) and f(x_i)^2 at x, as the released curve has them; and the largest sd of the noise of D."""
    axis, h = smooth.axis, smooth.axis.h
    # the density is a smoothed one, so that some of it lies beyond the box: there the records are those at its ends
    gap = h / 8
    wide = np.arange(axis.low - 3 * h, axis.high + 3 * h + gap, gap)
    inside = np.clip(wide, axis.low, axis.high)
    below, _, noise = smooth.parts(wide)
    mass = np.maximum(below, 0.0) * (gap / (h * sqrt(2 * pi)))
    at = smooth.curve(inside)
    kernel = np.exp(-(((x[:, None] - inside) / h) ** 2))
    return (kernel @ mass, kernel @ (mass * at), kernel @ (mass * at * at)), float(noise.max())


def shares(smooth: Smooth, x: Array, half: float) -> Array:
    """For y = -1 or 1: the sampling variance of f if f is v, as a + b v + c v^2 in units of half-ranges `half`, shape (3, points).

    E sum K_i^2 (y_i - v)^2 = sum K_i^2 (1 - 2 f(x_i) v + v^2), and f(x_i) is v and what the curve turns within the squared kernel: where
    that makes the variance larger it is counted.
    """
    (total, first, _), spare = _squares(smooth, x)
    below, own = smooth.parts(x)[0], smooth.curve(x)
    size = (total + spare) / np.maximum(below, _FLOOR) ** 2
    turned = first / np.maximum(total, 1e-12) - own
    slope = np.where(turned * own < 0, -2 * turned, 0.0)
    return np.array([half**2 * size, half * slope * size, -size])


def turning(smooth: Smooth, x: Array, sampling: Array, noise: Array) -> float:
    """Bound on how far the normalised error's process turns over the curve (Rice; Johansen, Johnstone 1990).

    The error at x is sqrt(noise) (e_N - f e_D)/sqrt(1 + f^2) + sqrt(sampling) e_S, all three of unit variance, the first two with speed
    1/h, the last with 1/(sqrt(2) h) where records are many: at most 1/h, and what the two mixing angles turn, added up.
    """
    own = smooth.curve(x)
    angles = (np.arctan(own), np.arctan2(np.sqrt(sampling), np.sqrt(noise)))
    turned = sum(float(np.abs(np.diff(angle)).sum()) for angle in angles)
    return (smooth.axis.high - smooth.axis.low) / smooth.axis.h + turned
