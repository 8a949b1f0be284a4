"""Least squares, projected to a ball: the last column on the others, records rescaled jointly.

A record (x, y) is multiplied by w = min(1, r_x/|x|) of its features alone (then y is clipped to [-r_y, r_y]): weighted least squares with
weights that depend on x, consistent under a linear model. Clipping x alone would bias it. With an intercept the row is w (tau, x), so that
its length is at most sqrt(tau^2 + r_x^2) = R_x, and the first coefficient times tau is the intercept; tau appended to a row that was
clipped first, unscaled, is no least squares for the model. theta = A^-1 b, A = sum x x', projected radially to |theta| <= r_theta; lam
its least eigenvalue is the level L.

Proof: `confide.aggregates.safety_formulas` (lam moves by at most R_x^2; where lam >= t + R_x^2 theta moves by at most
R_x^2 r_theta kappa(r_y/(R_x r_theta))/t). The radial projection is part of it: clipping to a box needs another.
Rounding: A is a float sum of n products, each of its p^2 entries wrong by at most n^2 u R_x^2 (u = 2^-53), its least eigenvalue besides by
64 p u n R_x^2: `error` says 64 p n u + p n^2 u, in units of R_x^2.

Source: Shen, Tong, Wang 2026, Algorithm 4, with smaller constants. Test-free alternative with intervals: `confide.regression.LeastSquares`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import hypot
from typing import Any, ClassVar

import numpy as np

from confide._arrays import Array, finite
from confide.aggregates.safety_formulas import eigenvalue_error, ols_alpha
from confide.errors import PlanError
from confide.guarantees.validation import is_whole
from confide.methods.ptr.safety import CertifiedBound

__all__ = ["LeastSquares"]


@dataclass(frozen=True)
class LeastSquares(CertifiedBound):
    """p: features; r_x, r_y, r_theta: public bounds; level0: lam0, at least R_x^2, or None for "adaptive"; tau: of the intercept, or None.

    r_theta bounds the enlarged parameter (intercept/tau, slopes). Data: columns x_1..x_p, y.

    >>> bound = LeastSquares(1, 1.0, 1.0, 1.0, level0=20.0)
    >>> x = np.linspace(-1, 1, 101)
    >>> data = bound.prepare(np.stack([x, 0.5 * x], axis=1))
    >>> round(bound.gamma(data), 2), bound.estimate(data).round(6).tolist(), round(bound.alpha, 4)
    (13.34, [0.5], 0.1299)
    """

    p: int
    r_x: float
    r_y: float
    r_theta: float
    level0: float | None = None
    tau: float | None = None

    name: ClassVar[str] = "LeastSquares"

    def __post_init__(self) -> None:
        if not is_whole(self.p, 1):
            raise PlanError(f"p must be a whole number of at least 1, got {self.p!r}")
        if self.tau is not None and not 0 < self.tau < float("inf"):
            raise PlanError(f"tau must be above 0 or None for no intercept, got {self.tau!r}; r_x/sqrt(p) is usual")
        if not 0 < self.r_x < float("inf"):
            raise PlanError(f"r_x must be a finite number above 0, got {self.r_x!r}")
        self.alpha_at(self.least if self.level0 is None else self.level0)

    @property
    def dim(self) -> int:  # type: ignore[override]
        return self.p + (self.tau is not None)

    @property
    def names(self) -> tuple[str, ...]:  # type: ignore[override]
        first = () if self.tau is None else ("intercept/tau",)
        return (*first, *(f"x{j + 1}" for j in range(self.p)))

    @property
    def reach(self) -> float:
        """R_x: the length of a row, the intercept's constant included."""
        return hypot(self.r_x, self.tau or 0.0) * (1 + 2.0**-50)

    @property
    def moves(self) -> float:  # type: ignore[override]
        return self.reach**2 * (1 + 2.0**-50)

    @property
    def least(self) -> float:  # type: ignore[override]
        return self.reach**2 * (1 + 2.0**-45)

    def alpha_at(self, t: float) -> float:
        return ols_alpha(self.reach, self.r_y, self.r_theta, t)

    def prepare(self, data: Any) -> Array:
        rows = finite(data)
        square = np.zeros(len(rows))
        for j in range(self.p):  # column by column: a product of matrices would depend on the batch in its last bits
            square += np.minimum(rows[:, j] ** 2, 1e300)
        weight = np.minimum(1.0, self.r_x / np.maximum(np.sqrt(square), 1e-300))
        rows *= weight[:, None]
        rows[:, self.p] = np.clip(rows[:, self.p], -self.r_y, self.r_y)
        return rows if self.tau is None else np.column_stack([weight * self.tau, rows])

    def level(self, prepared: Array) -> float:
        x = prepared[:, :-1]
        return float(np.linalg.eigvalsh(x.T @ x)[0]) if len(x) else 0.0

    def error(self, prepared: Array) -> float:
        return eigenvalue_error(self.dim, len(prepared))

    def estimate(self, prepared: Array) -> Array:
        x, y = prepared[:, :-1], prepared[:, -1]
        theta = np.linalg.lstsq(x.T @ x, x.T @ y, rcond=None)[0]
        return np.asarray(theta * min(1.0, self.r_theta / max(float(np.linalg.norm(theta)), 1e-300)))
