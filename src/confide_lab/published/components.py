"""Principal components by propose-test-release and their rivals: Redberg, Zhu, Wang 2023, C.4 (Theorem C.13), Analyze Gauss, noisy rows.

Rows have length at most 1; neighbours add or remove one. The printed ones are to the letter; the corrected ones have exact Gaussian noise,
noise that is isotropic in the Frobenius norm, and the projector's own sensitivity log(d/(d - 1))/sqrt(2) at a gap d.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.guarantees import gaussian_mu
from confide_lab.published.marks import published

__all__ = [
    "captured",
    "corrected_gauss",
    "corrected_projector",
    "noisy_rows",
    "printed_gauss",
    "printed_projector",
    "projector_move",
]

Array = NDArray[np.float64]


def projector_move(gap: float, relation: str = "add-remove") -> float:
    """How far one record moves the projector on the leading components, Frobenius norm, at a gap of eigenvalues of sum x x'.

    >>> round(projector_move(3.0), 3), round(projector_move(20.0), 4), round(projector_move(3.0, "substitute"), 3)
    (0.287, 0.0363, 0.777)
    """
    less = 1 if relation == "add-remove" else 2
    return log(gap / (gap - less)) / sqrt(2)


def captured(x: Array, basis: Array) -> float:
    """The variance of x along an orthonormal basis, over the largest that so many directions can have."""
    moments = x.T @ x
    best = np.linalg.eigvalsh(moments)[::-1][: basis.shape[1]].sum()
    return float(np.trace(basis.T @ moments @ basis) / best)


def _leading(matrix: Array, k: int) -> Array:
    return np.asarray(np.linalg.eigh((matrix + matrix.T) / 2)[1][:, ::-1][:, :k])


def _isotropic(p: int, sd: float, rng: np.random.Generator) -> Array:
    g = sd * rng.standard_normal((p, p))
    return np.asarray((g + g.T) / 2)


def corrected_gauss(x: Array, k: int, rng: np.random.Generator, *, epsilon: float, delta: float) -> Array:
    """Analyze Gauss with exact calibration and isotropic noise; the leading k eigenvectors."""
    return _leading(x.T @ x + _isotropic(x.shape[1], 1 / gaussian_mu(epsilon, delta), rng), k)


@published(
    "(epsilon, delta)-DP",
    "sd sqrt(2 ln(1.25/delta))/epsilon is a theorem for epsilon up to 1, and the full variance off the diagonal is not needed",
)
def printed_gauss(x: Array, k: int, rng: np.random.Generator, *, epsilon: float, delta: float) -> dict[str, Any]:
    """Analyze Gauss as printed."""
    p = x.shape[1]
    g = sqrt(2 * log(1.25 / delta)) / epsilon * rng.standard_normal((p, p))
    return {"basis": _leading(x.T @ x + np.triu(g) + np.triu(g, 1).T, k)}


def corrected_projector(
    x: Array, k: int | Sequence[int], rng: np.random.Generator, *, epsilon: float, delta: float, share: float = 0.2
) -> Array | None:
    """A private lower bound of the gap, then the projector with noise for it; None where the bound is too low.

    k: the number of components, or several to choose from by the exponential mechanism on the gaps, for half of the test's share.
    """
    values, test = np.linalg.eigvalsh(x.T @ x)[::-1], share * epsilon
    if not isinstance(k, int):
        gaps = np.array([values[j - 1] - values[j] for j in k])
        k = int(k[int(np.argmax(gaps + rng.gumbel(0, 2 / (test / 2), len(gaps))))])
        test /= 2
    spent = share * epsilon
    gap = values[k - 1] - values[k]
    noisy = gap + rng.laplace(0, 1 / test) - log(1 / delta) / test
    if noisy <= 1.5:
        return None
    projector = _leading(x.T @ x, k)
    sd = projector_move(noisy) / gaussian_mu(epsilon - spent, delta / 2)
    return _leading(projector @ projector.T + _isotropic(x.shape[1], sd, rng), k)


@published(
    "(epsilon, delta)-DP (Theorem C.13)",
    "the relation is not stated, nor that a gap above 2 is needed; Delta = sqrt(2)/(gap - 2) is up to five times the projector's move",
    "the classical constant of Gaussian noise, for epsilon below 1; noise off the diagonal has twice the variance that is needed",
    "joint tuning of k and noise is not private without the cost of choosing k",
)
def printed_projector(
    x: Array, k: int, rng: np.random.Generator, *, epsilon: float, delta: float, share: float = 0.2
) -> dict[str, Any]:
    """Returns basis, None where the noisy gap is not above 2."""
    values = np.linalg.eigvalsh(x.T @ x)[::-1]
    gap, test, p = values[k - 1] - values[k], share * epsilon, x.shape[1]
    noisy = gap + rng.laplace(0, 1 / test) - log(1 / delta) / test
    if noisy <= 2:
        return {"basis": None}
    projector = _leading(x.T @ x, k)
    sd = sqrt(2) * sqrt(2 * log(1.25 / (delta / 2))) / ((epsilon - test) * (noisy - 2))
    g = sd * rng.standard_normal((p, p))
    return {"basis": _leading(projector @ projector.T + np.triu(g) + np.triu(g, 1).T, k)}


def noisy_rows(x: Array, k: int, rng: np.random.Generator, *, epsilon: float, delta: float) -> Array:
    """Input perturbation: each row with its own noise of sd 2/mu, any two rows being at most 2 apart."""
    noisy = x + 2 / gaussian_mu(epsilon, delta) * rng.standard_normal(x.shape)
    return _leading(noisy.T @ noisy, k)
