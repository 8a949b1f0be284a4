"""The projector on the leading eigenvector of X'X, from rows of bounded length.

The level is the gap lam_1 - lam_2. Released is u u' as the vector of its diagonal and sqrt(2) times what is above it, so that the Euclidean
norm is the Frobenius norm; `matrix` turns it back.

Proof. Replacing a record adds E = x'x'^T - x x^T, a difference of PSD matrices of norm at most r_x^2, so |E| <= r_x^2 in the operator norm,
and each eigenvalue moves by at most r_x^2 (Weyl): the gap by at most 2 r_x^2 (C1). By Davis-Kahan in the form that needs the gap of one
side alone (Yu, Wang, Samworth 2015), sin(u, u') <= 2 |E|/gap(X), and |u u' - u'u'^T|_F = sqrt(2) sin: at most 2 sqrt(2) r_x^2/gap(X)
(C2), without an offset for the other side.
Rounding: the Gram matrix is a float sum; `error` as for least squares, in units of 2 r_x^2.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from confide._arrays import Array, finite
from confide.aggregates.safety_formulas import eigenvalue_error, eigenvector_alpha
from confide.errors import PlanError
from confide.guarantees.validation import is_whole
from confide.methods.ptr.safety import CertifiedBound

__all__ = ["LeadingEigenvector"]


@dataclass(frozen=True)
class LeadingEigenvector(CertifiedBound):
    """p: columns, at least 2; r_x: rows are shortened to this length; gap0: the gap that is planned on, or None for mode="adaptive".

    >>> bound = LeadingEigenvector(2, 1.0, gap0=10.0)
    >>> rows = bound.prepare(np.array([[1.0, 0.0]] * 30))
    >>> bound.gamma(rows) > 9.9, bound.matrix(bound.estimate(rows)).round(6).tolist()
    (True, [[1.0, 0.0], [0.0, 0.0]])
    """

    p: int
    r_x: float
    gap0: float | None = None

    name: ClassVar[str] = "LeadingEigenvector"

    def __post_init__(self) -> None:
        if not is_whole(self.p, 2):
            raise PlanError(f"p must be a whole number of at least 2, got {self.p!r}")
        eigenvector_alpha(self.r_x, 1.0 if self.gap0 is None else self.gap0)

    @property
    def dim(self) -> int:  # type: ignore[override]
        return self.p * (self.p + 1) // 2

    @property
    def names(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(f"P[{i + 1},{j + 1}]" for i, j in zip(*_above(self.p), strict=True))

    @property
    def moves(self) -> float:  # type: ignore[override]
        return 2 * self.r_x**2 * (1 + 2.0**-50)

    @property
    def least(self) -> float:  # type: ignore[override]
        # below a gap of 2 r_x^2 the bound says nothing: two projectors are at most sqrt(2) apart
        return 1e-9 * self.r_x**2

    @property
    def level0(self) -> float | None:  # type: ignore[override]
        # one-sided: the gap of X alone counts, so nothing is lost to the neighbour's
        return None if self.gap0 is None else self.gap0 - self.moves

    def alpha_at(self, t: float) -> float:
        return eigenvector_alpha(self.r_x, t + self.moves)

    def prepare(self, data: Any) -> Array:
        return shortened(data, self.r_x)

    def level(self, prepared: Array) -> float:
        if not len(prepared):
            return 0.0
        values = np.linalg.eigvalsh(prepared.T @ prepared)
        return float(values[-1] - values[-2])

    def error(self, prepared: Array) -> float:
        return eigenvalue_error(self.p, len(prepared))

    def estimate(self, prepared: Array) -> Array:
        leading = np.linalg.eigh(prepared.T @ prepared)[1][:, -1]
        i, j = _above(self.p)
        return np.asarray(np.where(i == j, 1.0, sqrt(2.0)) * np.outer(leading, leading)[i, j])

    def matrix(self, vector: Any) -> Array:
        """The symmetric matrix of a vector of this form, shape (p, p): the released one is no projector, its leading eigenvector is the
        estimate."""
        i, j = _above(self.p)
        whole = np.zeros((self.p, self.p))
        whole[i, j] = np.asarray(vector) / np.where(i == j, 1.0, sqrt(2.0))
        return whole + np.triu(whole, 1).T


def shortened(data: Any, longest: float) -> Array:
    """Rows shortened to a length of at most `longest`, each by itself; what is not finite becomes 0."""
    rows = finite(data)
    square = np.zeros(len(rows))
    for column in rows.T:
        square += np.minimum(column * column, 1e300)
    length = np.sqrt(square)
    rows *= np.minimum(1.0, longest / np.maximum(length, 1e-300))[:, None]
    return rows


def _above(p: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    i, j = np.triu_indices(p)
    return i, j
