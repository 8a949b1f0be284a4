"""The correlation of two columns from noisy joint moments to order four, with what sampling and noise make of it."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
from scipy import special

from confide._arrays import Array

__all__ = ["PairSums"]


@dataclass(frozen=True, eq=False)
class PairSums:
    """Noisy sums of products of moments, M[i, j] = sum phi_i(u) phi_j(v) with phi_0 = 1, and their noise variances, (5, 5) each."""

    sums: Array
    noise: Array

    @property
    def size(self) -> float:
        return max(float(self.sums[0, 0]), 1.0)

    def moments(self) -> tuple[float, ...]:
        """(mean u, mean v, variance u, variance v, covariance) as released; variances may be negative."""
        m, n = self.sums, self.size
        mu, mv = float(m[1, 0]) / n, float(m[0, 1]) / n
        return mu, mv, 1 - float(m[2, 0]) / n - mu * mu, 1 - float(m[0, 2]) / n - mv * mv, float(m[1, 1]) / n - mu * mv

    def correlation(self) -> tuple[float, float, float]:
        """(r, its sampling variance, its noise variance)."""
        mu, mv, vu, vv, cov = self.moments()
        r = float(np.clip(cov / sqrt(vu * vv), -0.9999, 0.9999))
        # the influence of a record on r as k0 + k1 u + k2 v + k3 u^2 + k4 v^2 + k5 u v
        both = 1 / sqrt(vu * vv)
        k5, k3, k4 = both, -r / (2 * vu), -r / (2 * vv)
        k1, k2 = -mv * both - 2 * mu * k3, -mu * both - 2 * mv * k4
        k0 = mu * mv * both + mu * mu * k3 + mv * mv * k4
        # u^2 is released as 1 - u^2
        weights = {(0, 0): k0 + k3 + k4, (1, 0): k1, (0, 1): k2, (2, 0): -k3, (0, 2): -k4, (1, 1): k5}
        noise = sum(weight**2 * float(self.noise[at]) for at, weight in weights.items()) / self.size**2
        sampling = max((1 - r * r) ** 2, self._influence(r, mu, mv, vu, vv)) / self.size
        return r, sampling, noise

    def _influence(self, r: float, mu: float, mv: float, vu: float, vv: float) -> float:
        """E (ab - r (a^2 + b^2)/2)^2 of standardised columns a and b."""
        raw = self._raw()

        def central(i: int, j: int) -> float:
            total = sum(
                special.comb(i, p) * special.comb(j, q) * (-mu) ** (i - p) * (-mv) ** (j - q) * raw[p, q]
                for p in range(i + 1)
                for q in range(j + 1)
            )
            return float(total) / float(vu ** (i / 2) * vv ** (j / 2))

        m22, m31, m13, m40, m04 = (central(*at) for at in ((2, 2), (3, 1), (1, 3), (4, 0), (0, 4)))
        return float(m22 + r * r / 4 * (m40 + 2 * m22 + m04) - r * (m31 + m13))

    def _raw(self) -> Array:
        """E u^i v^j from the released moments."""
        m = self.sums / self.size
        # u^0, u, u^2, u^3, u^4 in phi_0 to phi_4
        turn = np.array(
            [[1, 0, 0, 0, 0], [0, 1, 0, 0, 0], [1, 0, -1, 0, 0], [0, 1, 0, -1, 0], [1, 0, -1, 0, -1]], dtype=float
        )
        return np.asarray(turn @ m @ turn.T)
