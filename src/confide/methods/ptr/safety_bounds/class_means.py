"""All class means beside all class proportions, from records of bounded length.

Estimate (n_k/n, mean of class k), classes in the order of their public list; S gives the proportions the weight w. A class that is absent
makes gamma 0. gamma is a count, so that no rounding enters it; the means are float sums, far within the steps that a release adds.

Proof: `confide.aggregates.safety_formulas`.
Source: Shen, Tong, Wang 2026, Algorithm 3, with 2R/n_k in place of 2R/(n_k - 1) and noise weighted by block. Class sums with noise
need no test and are better wherever they fit (docs/methods/ptr.md).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from confide._arrays import Array
from confide.aggregates.safety_formulas import class_means_alpha, class_means_gamma, class_weight, least_class_size
from confide.errors import PlanError
from confide.guarantees.validation import is_whole
from confide.methods.ptr.safety import SafetyBound
from confide.methods.ptr.safety_bounds.eigenvector import shortened

__all__ = ["ClassMeans"]


@dataclass(frozen=True)
class ClassMeans(SafetyBound):
    """p: features; classes: K, at least 2; radius: R; n: public; c0: in (0, 1/K), the share that every class is planned to exceed.

    share: what the proportions may add to alpha^2, relative. Data: columns x_1..x_p, then the class as 0, ..., K - 1.

    >>> bound = ClassMeans(1, 2, radius=1.0, n=40, c0=0.2)
    >>> data = np.array([[0.5, 0.0]] * 25 + [[-0.5, 1.0]] * 15)
    >>> bound.gamma(bound.prepare(data)), bound.estimate(bound.prepare(data)).tolist()
    (7, [0.625, 0.375, 0.5, -0.5])
    """

    p: int
    classes: int
    radius: float
    n: int = field()  # no default: that of the base class is none here
    c0: float = field()
    share: float = 0.05

    name: ClassVar[str] = "ClassMeans"

    def __post_init__(self) -> None:
        for label, value, least in (("p", self.p, 1), ("classes", self.classes, 2), ("n", self.n, 1)):
            if not is_whole(value, least):
                raise PlanError(f"{label} must be a whole number of at least {least}, got {value!r}")
        if not 0 < self.c0 < 1 / self.classes:
            raise PlanError(f"c0 must lie between 0 and 1/K = {1 / self.classes:g}, got {self.c0!r}")
        if not 0 < self.share < 1:
            raise PlanError(f"share must lie between 0 and 1, got {self.share!r}; 0.05 is the default")
        class_means_alpha(self.radius, self.smallest, self.n)

    @property
    def smallest(self) -> int:
        """L, the class size that alpha rests on."""
        return least_class_size(self.c0, self.n)

    @property
    def weight(self) -> float:
        """w, the scale of the proportions."""
        return class_weight(self.radius, self.smallest, self.n, self.share)

    @property
    def alpha(self) -> float:  # type: ignore[override]
        return class_means_alpha(self.radius, self.smallest, self.n, self.weight)

    @property
    def dim(self) -> int:  # type: ignore[override]
        return self.classes * (1 + self.p)

    @property
    def shape(self) -> tuple[float, ...]:  # type: ignore[override]
        return (self.weight,) * self.classes + (1.0,) * (self.classes * self.p)

    @property
    def names(self) -> tuple[str, ...]:  # type: ignore[override]
        shares = tuple(f"share of class {k}" for k in range(self.classes))
        return shares + tuple(f"mean of x{j + 1} in class {k}" for k in range(self.classes) for j in range(self.p))

    def prepare(self, data: Any) -> Array:
        rows = np.array(data, dtype=np.float64)
        rows[:, : self.p] = shortened(rows[:, : self.p], self.radius)
        rows[:, self.p] = np.clip(np.rint(np.nan_to_num(rows[:, self.p], nan=0.0)), 0, self.classes - 1)
        return rows

    def _counts(self, prepared: Array) -> NDArray[np.int64]:
        return np.bincount(prepared[:, self.p].astype(np.int64), minlength=self.classes)

    def gamma(self, prepared: Array) -> int:
        return class_means_gamma(int(self._counts(prepared).min()), self.smallest)

    def estimate(self, prepared: Array) -> Array:
        counts = self._counts(prepared)
        member = np.zeros((self.classes, len(prepared)))
        member[prepared[:, self.p].astype(np.int64), np.arange(len(prepared))] = 1.0
        means = (member @ prepared[:, : self.p]) / counts[:, None]
        return np.concatenate([counts / self.n, means.ravel()])
