"""Class means where every class is large: what efficient propose-test-release tests and releases, in exact integers.

Relation substitute. `rows` are class rows with T = 1 step for a count, so that their sum holds S_k and n_k exactly; |S u| <= B = 2^20. L
is public, at least 2.

    safety      gamma = (min_k n_k - (L - 1))_+ over all public classes. One record changes each n_k by at most 1, hence gamma too.
    gamma > 0   every n_k >= L. The mean of class k moves by at most 2 B/n_k when one of its records is replaced or leaves, since
                S_k/n_k - (S_k - u)/(n_k - 1) = (sum over the others of (u_i - u))/(n_k (n_k - 1)), and by 2 B/(n_k + 1) when one joins. A
                record that changes class does both to two classes, and moves their counts by 1 each. So (means, w counts) move by
                alpha = sqrt(4 B^2 (1/L^2 + 1/(L + 1)^2) + 2 w^2) at most, whatever the size of gamma on the other side.

Released is rint(2^20 (means, w counts)/alpha): it moves by 2^20 steps and sqrt(dimension) for rounding, which is exact in Fractions.
Proportions n_k/n with weight n w are the same block. Source: Shen, Tong, Wang 2026, Algorithm 3, with smaller constants (docs/errata.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil, sqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from confide.aggregates.function_of import FunctionOf
from confide.aggregates.lines.rows import BITS
from confide.aggregates.safety_formulas import class_means_alpha, class_means_gamma, class_weight
from confide.methods.classification.class_rows import ClassRows
from confide.protocol import SAFETY_STEPS

__all__ = ["ClassSafety", "SafeMeans"]

_FINE = 1 << BITS
# What the counts may add to alpha^2, of what the means take.
_SHARE = 0.05


@dataclass(frozen=True)
class _OfSums(FunctionOf):
    """A function of the exact class sums and counts, as the protocol wants a statistic. `of(total)` is its value."""

    map: ClassRows
    least: int

    def _parts(self, total: NDArray[Any]) -> tuple[list[int], list[list[int]]]:
        """Exact counts (classes) and sums (classes, features)."""
        k, p = len(self.map.own.classes), self.map.block
        whole = [int(v) for v in total]
        return [v // self.map.per_count for v in whole[k * p :]], [whole[j * p : (j + 1) * p] for j in range(k)]


@dataclass(frozen=True)
class ClassSafety(_OfSums):
    """The safety gamma in 1024 steps of one unit."""

    moved: ClassVar[int] = SAFETY_STEPS

    def of(self, total: NDArray[Any]) -> NDArray[Any]:
        counts, _ = self._parts(total)
        return np.array([SAFETY_STEPS * class_means_gamma(min(counts), self.least)], dtype=object)

    def moved_squared(self, own: Any, rows: Any) -> Any:
        """The largest in any company: one unit where the class changes."""
        places = slice(len(self.map.own.classes) * self.map.block, None)
        return np.where((rows[places] != own[places, None]).any(axis=0), SAFETY_STEPS**2, 0)


@dataclass(frozen=True)
class SafeMeans(_OfSums):
    """rint(2^20 (means, w counts)/alpha), shape (classes (features + 1),): means class by class, then counts."""

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.map.width,)

    @property
    def moved(self) -> int:
        # each of two roundings is off by a half at most
        return _FINE + ceil(sqrt(self.shape[0]))

    @cached_property
    def weight(self) -> float:
        """w: one count in units of the integer rows."""
        return class_weight(float(self.map.longest), self.least, 1, _SHARE)

    @cached_property
    def alpha(self) -> float:
        """How far (means, w counts) move at most in the integers of the rows."""
        return class_means_alpha(float(self.map.longest), self.least, 1, self.weight)

    def of(self, total: NDArray[Any]) -> NDArray[Any]:
        counts, sums = self._parts(total)
        unit, count_unit = Fraction(_FINE) / Fraction(self.alpha), Fraction(self.weight) * _FINE / Fraction(self.alpha)
        # an empty class has no mean; it is never released, and 0 stands in
        means = [round(unit * value / max(n, 1)) for n, own in zip(counts, sums, strict=True) for value in own]
        return np.array([*means, *(round(count_unit * n) for n in counts)], dtype=object)

    def decode(self, values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(counts, means (classes, features) in half-widths) from values in steps."""
        k = len(self.map.own.classes)
        unit = self.alpha / _FINE
        return values[k * self.map.block :] * unit / self.weight, values[: k * self.map.block].reshape(
            k, -1
        ) * unit / self.map.steps

    def moved_squared(self, own: Any, rows: Any) -> Any:
        """Squares of the largest moves in any company of classes of size L: exact up to floats."""
        k, p = len(self.map.own.classes), self.map.block
        before, after = np.asarray(own, dtype=np.float64), np.asarray(rows, dtype=np.float64)
        same = (before[k * p :, None] == after[k * p :]).all(axis=0)
        one, many = before[: k * p], after[: k * p]
        apart = ((many - one[:, None]) ** 2).sum(axis=0) / self.least**2
        far = (np.linalg.norm(one) + self.map.longest) ** 2 / self.least**2
        joined = (np.linalg.norm(many, axis=0) + self.map.longest) ** 2 / (self.least + 1) ** 2
        squares = np.where(same, apart, far + joined + 2 * self.weight**2)
        return squares * (_FINE / self.alpha) ** 2
