"""Kernel regression (Nadaraya, Watson) at public points, with a nonnegative product kernel and a public bandwidth.

Estimate sum_i K(x_j - x_i) y_i / sum_i K(x_j - x_i) at the m points x_j; gamma the least over the points of (d_j - d0)_+/B, d_j the
kernel sum, B the kernel's largest value; alpha = sqrt(m) 2 R_f B/d0. A signed (higher-order) kernel has twice the constants and is not
offered.

Proof: `confide.aggregates.safety_formulas` for one point; over m points the squares add up. One record moves each d_j by at most B.
Rounding: d_j is a float sum of n terms, wrong by at most n (n + 64) u in units of B.
Source: Shen, Tong, Wang 2026, Algorithm 5, with half the constants. A whole curve under one budget: Gaussian-process noise on numerator and
denominator, which needs no test.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import pi, sqrt
from typing import Any, ClassVar

import numpy as np

from confide._arrays import Array
from confide.aggregates.safety_formulas import kernel_alpha, kernel_peak, rounded_safety
from confide.errors import PlanError
from confide.methods.ptr.safety import SafetyBound

__all__ = ["KernelRegression"]


@dataclass(frozen=True)
class KernelRegression(SafetyBound):
    """points: m tuples of d numbers; bandwidths: d; box: d public pairs that x is clipped to; r_f: y is clipped to [-r_f, r_f]; d0: above
    B.

    kernel: "gaussian" or "epanechnikov". Data: columns x_1..x_d, y.

    >>> bound = KernelRegression(((0.5,),), (0.1,), ((0.0, 1.0),), r_f=1.0, d0=20.0)
    >>> x = np.linspace(0, 1, 101)
    >>> data = bound.prepare(np.stack([x, x], axis=1))
    >>> round(bound.gamma(data), 2), bound.estimate(data).round(6).tolist()
    (20.05, [0.5])
    """

    points: tuple[tuple[float, ...], ...]
    bandwidths: tuple[float, ...]
    box: tuple[tuple[float, float], ...]
    r_f: float
    d0: float
    kernel: str = "gaussian"

    name: ClassVar[str] = "KernelRegression"

    def __post_init__(self) -> None:
        d = len(self.bandwidths)
        if not d or not self.points or any(len(point) != d for point in self.points) or len(self.box) != d:
            raise PlanError(
                "points must hold tuples of as many numbers as there are bandwidths and pairs in the box, at least one each"
            )
        if not all(low < high for low, high in self.box):
            raise PlanError("each pair of the box must be (low, high) with low below high")
        kernel_alpha(self.r_f, self.peak, self.d0, len(self.points))

    @property
    def peak(self) -> float:
        """B."""
        return kernel_peak(self.bandwidths, self.kernel)

    @property
    def dim(self) -> int:  # type: ignore[override]
        return len(self.points)

    @property
    def alpha(self) -> float:  # type: ignore[override]
        return kernel_alpha(self.r_f, self.peak, self.d0, self.dim)

    @property
    def names(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(f"f({', '.join(f'{v:g}' for v in point)}) [{j + 1}]" for j, point in enumerate(self.points))

    def prepare(self, data: Any) -> Array:
        rows = np.nan_to_num(np.array(data, dtype=np.float64), nan=0.0)
        for j, (low, high) in enumerate(self.box):
            rows[:, j] = np.clip(rows[:, j], low, high)
        rows[:, -1] = np.clip(rows[:, -1], -self.r_f, self.r_f)
        return rows

    def weights(self, prepared: Array) -> Array:
        """K of every point and record, shape (m, n)."""
        weights = np.ones((self.dim, len(prepared)))
        for j, h in enumerate(self.bandwidths):
            place = (np.array([point[j] for point in self.points])[:, None] - prepared[None, :, j]) / h
            if self.kernel == "gaussian":
                weights *= np.exp(-place * place / 2) / (sqrt(2 * pi) * h)
            else:
                weights *= np.maximum(1 - place * place, 0.0) * (0.75 / h)
        return weights

    def gamma(self, prepared: Array) -> float:
        n = len(prepared)
        least = float(self.weights(prepared).sum(axis=1).min()) if n else 0.0
        return rounded_safety(max(least - self.d0, 0.0) / self.peak, n * (n + 64) * 2.0**-53)

    def estimate(self, prepared: Array) -> Array:
        weights = self.weights(prepared)
        return np.asarray((weights @ prepared[:, -1]) / weights.sum(axis=1))
