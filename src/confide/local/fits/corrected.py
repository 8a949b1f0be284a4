r"""Corrected losses: functions of protected rows whose mean is that of a loss of the true rows.

What is published of a row is X1 = X + (1 - keep) S, keep = 1 with probability zeta, S symmetric Laplace of covariance diag(lam^2). An
index t = x'b then carries Laplace noise of variance Q = sum lam_j^2 b_j^2, and with X2 = X1 + S', S' of covariance zeta diag(lam^2),
drawn by whoever analyses, of the same variance in every row. With l'' the second derivative in the index:

    naive  l(t1)                                       what noise does when nothing is corrected
    DR     l(t1) / zeta + (1 - 1 / zeta) l(t2)         any loss
    SDR    l(t1) - (1 - zeta) / 2 Q l''(t2)            twice differentiable
    SL     l(t2) - Q / 2 l''(t2)                       the same; with zeta = 0 X2 is X1
    RB     l(t1) / zeta + (1 - 1 / zeta) G(t1; zeta Q / 2)     the mean of DR, SDR and SL over S': never of larger variance

A column of levels is told truly with probability k, else as one of its L levels at random. A record then stands L times, once with each
level z, weighed by u_z = (1{z is told} - (1 - k) / L) / k, whose mean is 1 at the true level and 0 at the others. Levels and noise are
drawn independently, so that the weighed sum of corrected losses has the mean of the loss of the true record, whatever the loss; of two
such columns the weights are products.

Unbiased: the distribution of X1 is zeta that of X plus (1 - zeta) that of X + S, and X2 has that of X + S; and E of a function g of
X + S, minus half the Laplacian of g in the scales lam, is E g(X), as 1 + q / 2 is the inverse of the characteristic function of S.
Source: Lu, Chen, Qiu 2026, sections 4 and 5 (DR, SDR, SL); RB is derived here: errata, the section on protected records; so are the
weights of levels, by the inverse of the matrix of what is told.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from confide._arrays import Array
from confide.errors import PlanError
from confide.local.fits.losses import Loss

__all__ = ["METHODS", "Corrected", "Rows"]


METHODS = ("naive", "DR", "SDR", "SL", "RB")


@dataclass(frozen=True, eq=False)
class Rows:
    """Protected rows as an analyst has them, in units of the declared domains.

    x (n, p) terms and y (n,) response; lam (p,): noise standard deviation of each term, 0 where it is public; lam_y: of the response;
    zeta: the probability that a row was published without noise. Where columns of levels were protected each of the `len(rows)` records
    stands `copies` times in a row, as it was told first, with weights (n,).
    """

    x: Array
    y: Array
    lam: Array
    lam_y: float
    zeta: float
    weights: Array | None = None
    copies: int = 1

    def noised_again(self, generator: np.random.Generator) -> Self:
        """X2 of the module: one more draw, of covariance zeta diag(lam^2), so that all rows carry the same noise.

        It is post-processing of what is published, and nothing rests on its randomness being secret.
        """
        if self.zeta == 0:
            return self
        n, p = len(self), self.x.shape[1]
        radius = np.repeat(np.sqrt(self.zeta * generator.standard_exponential(n)), self.copies)
        noise = np.repeat(generator.standard_normal((n, p + 1)), self.copies, axis=0)
        return replace(
            self,
            x=self.x + radius[:, None] * noise[:, :p] * self.lam,
            y=self.y + radius * noise[:, p] * self.lam_y,
        )

    def as_told(self) -> Self:
        """Each record once, with the levels that were told."""
        if self.weights is None:
            return self
        return replace(self, x=self.x[:: self.copies], y=self.y[:: self.copies], weights=None, copies=1)

    def weighed(self, values: Array) -> Array:
        """Values of rows (n,) or (n, k), times their weights."""
        if self.weights is None:
            return values
        return values * (self.weights if values.ndim == 1 else self.weights[:, None])

    def by_record(self, values: Array) -> Array:
        """Values of rows (n, ..), weighed and added up over the copies of a record."""
        if self.weights is None:
            return values
        return np.asarray(self.weighed(values).reshape(len(self), self.copies, *values.shape[1:]).sum(axis=1))

    def mean(self, values: Array) -> float:
        """The mean over records of values (n,), or of one value for all."""
        return float(self.weighed(values).mean()) * self.copies

    def __len__(self) -> int:
        return len(self.y) // self.copies


@dataclass(frozen=True, eq=False)
class Corrected:
    """The corrected mean loss of protected rows under one of `METHODS`: value with gradient, scores and curvature.

    rows are X1, again X2 (`Rows.noised_again`; the same object at zeta = 0). The parameters are those of `rows.x`, shape (p,).
    """

    loss: Loss
    method: str
    rows: Rows
    again: Rows

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise PlanError(f"method must be 'auto' or one of {', '.join(METHODS)}, got {self.method!r}; write 'auto'")
        if self.method in ("DR", "RB") and self.rows.zeta == 0:
            raise PlanError(
                f"{self.method} weighs rows by 1 / zeta, and these records were protected with zeta = 0; write method='SL'"
            )

    def noise(self, theta: Array) -> tuple[float, Array]:
        """Q, the noise variance of the index at zeta = 0, and its gradient. That of the response counts where l depends on y - t."""
        squares = np.square(self.rows.lam)
        own = self.rows.lam_y**2 if self.loss.location else 0.0
        return float(squares @ np.square(theta)) + own, 2 * squares * theta

    def value(self, theta: Array) -> tuple[float, Array]:
        """The mean corrected loss and its gradient (p,)."""
        q, dq = self.noise(theta)
        mean, gradient = 0.0, np.zeros_like(theta)
        for rows, (value, by_t, by_q) in self._parts(theta, q):
            mean += rows.mean(value)
            gradient += rows.x.T @ rows.weighed(by_t) / len(rows) + rows.mean(by_q) * dq
        return mean, gradient

    def scores(self, theta: Array) -> Array:
        """The gradient of each record's corrected loss, shape (records, p)."""
        q, dq = self.noise(theta)
        scores = np.zeros((len(self.rows), len(theta)))
        for rows, (_, by_t, by_q) in self._parts(theta, q):
            scores += rows.by_record(by_t[:, None] * rows.x + np.multiply.outer(np.broadcast_to(by_q, by_t.shape), dq))
        return scores

    def curvature(self, theta: Array, steps: Array) -> Array:
        """The second derivative of the mean corrected loss, by central differences of its gradient, symmetric (p, p)."""
        columns = []
        for k, step in enumerate(steps):
            move = np.zeros_like(theta)
            move[k] = step
            columns.append((self.value(theta + move)[1] - self.value(theta - move)[1]) / (2 * step))
        rough = np.stack(columns)
        return np.asarray((rough + rough.T) / 2)

    def _parts(self, theta: Array, q: float) -> list[tuple[Rows, tuple[Array, Array, Array]]]:
        """Weighted losses as (rows, (value, d/dt, d/dQ)); their sum over the list is the corrected loss."""
        zeta, one, two = self.rows.zeta, self.rows, self.again
        match self.method:
            case "naive":
                told = one.as_told()
                return [(told, self._plain(told, theta, 1.0))]
            case "DR":
                return [(one, self._plain(one, theta, 1 / zeta)), (two, self._plain(two, theta, 1 - 1 / zeta))]
            case "SDR":
                return [(one, self._plain(one, theta, 1.0)), (two, self._less_bend(two, theta, q, 1 - zeta, 0.0))]
            case "SL":
                return [(two, self._less_bend(two, theta, q, 1.0, 1.0))]
        t = one.x @ theta
        mean, slope, grown = self.loss.smoothed(t, one.y, zeta * q / 2)
        rest = 1 - 1 / zeta
        return [
            (one, self._plain(one, theta, 1 / zeta)),
            (one, (rest * mean, rest * slope, rest * zeta / 2 * grown)),
        ]

    def _plain(self, rows: Rows, theta: Array, weight: float) -> tuple[Array, Array, Array]:
        value, slope = self.loss.first(rows.x @ theta, rows.y)
        return weight * value, weight * slope, np.zeros(1)

    def _less_bend(self, rows: Rows, theta: Array, q: float, share: float, own: float) -> tuple[Array, Array, Array]:
        """own times the loss less half of `share` of its bend."""
        value, slope, bend, third = self.loss.derivatives(rows.x @ theta, rows.y)
        half = share / 2
        return own * value - half * q * bend, own * slope - half * q * third, -half * bend
