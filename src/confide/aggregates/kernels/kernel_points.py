"""Kernel regression at m public points, as efficient propose-test-release needs it: a safety and an estimate of exact integers.

x lies in public cells of each feature; the weight of a record at point j is w_j = rint(W k_j), k_j in [0, 1] the product over the features
of a kernel over its peak at the cell's middle (a public table, so that no float follows the batch). y is v in [-V, V]. w_j is itself a
kernel, 0 <= w_j <= W, and what follows is proved for it, in integers. Relation substitute; d_j = sum w_j, t_j = (sum w_j v)/(d_j V).

    safety      gamma = (min_j d_j - d0)_+/W moves by at most 1, because each d_j does by at most W.
    gamma > 0   every d_j > d0. With w, w' the weights of the record that leaves and of the one that comes, u the rest's weight and g its
                mean, t_j moves by |w (y - g)/(u + w) + w' (g - y')/(u + w')| <= 2 max(w, w')/(u + max(w, w')) <= 2 max(w, w')/d0: with
                a = w/(u + w), b = w'/(u + w') the largest is a + b + |b - a|, and u + w = d_j > d0. Over m points the squares add up to
                (2/d0)^2 sum_j max(w_j, w_j')^2, at most (2/d0)^2 min(m W^2, 2 max_x sum_j w_j(x)^2).

The second bound is smaller where points lie further apart than a bandwidth: a record is near few of them. With several features the
largest sum is bounded by that of one feature alone, the smallest of them, since no factor is above 1. alpha is its root.

Released is rint(2^20 t/alpha), which moves by 2^20 steps and sqrt(m) for rounding. The local moments sum_i w_ij^2 q_ij, q = rint(Q min(1,
r^2/tau^2)) of residuals at the released points, and the sums d_j are sums of nonnegative rows whose squares add up to at most max sum_j
w_j^4 Q^2 and max sum_j w_j^2.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import ceil, isqrt, sqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from confide._arrays import Array
from confide.aggregates.function_of import FunctionOf
from confide.aggregates.lines.rows import Codes, DesignRows, only
from confide.errors import PlanError
from confide.protocol import SAFETY_STEPS, RecordMap
from confide.protocol.exact import digest, pack
from confide.schema import Design

__all__ = ["KERNELS", "WEIGHT", "KernelSafety", "PointCurve", "PointMoments", "PointRows"]


KERNELS = ("gaussian", "epanechnikov")
#: W and V, and Q: their products stay below 2^53.
WEIGHT, VALUE, SQUARE = 1 << 16, 1 << 16, 1 << 16
_FINE = 1 << 20
# Cells to one bandwidth, and at most so many for each feature.
_CELLS, _MOST = 32, 1 << 12


@dataclass(frozen=True)
class PointRows(DesignRows):
    """One record as (w, w v), shape (2 m, rows). points: m tuples of d numbers; bandwidths: d, in units of the features.

    sums: only w, shape (m, rows).
    """

    design: Design
    points: tuple[tuple[float, ...], ...]
    bandwidths: tuple[float, ...]
    kernel: str = "gaussian"
    sums: bool = False
    kind: ClassVar[str] = "kernel points"

    def __post_init__(self) -> None:
        if self.kernel not in KERNELS:
            raise PlanError(
                f"kernel must be one of {', '.join(KERNELS)}, got {self.kernel!r}; signed kernels have other constants"
            )

    @property
    def width(self) -> int:
        return len(self.points) * (1 if self.sums else 2)

    @property
    def stated(self) -> tuple[list[object]]:
        places = [[pack(v) for v in row] for row in self.points]
        return ([places, [pack(h) for h in self.bandwidths], self.kernel, self.sums],)

    @cached_property
    def tables(self) -> tuple[Array, ...]:
        """k of each feature, shape (m, cells)."""
        found = []
        for j, (term, h) in enumerate(zip(self.design.terms, self.bandwidths, strict=True)):
            low, width = float(term.low), float(term.high - term.low)
            cells = min(term.steps, max(ceil(_CELLS * width / h), 1), _MOST)
            edges = -(-np.arange(cells + 1) * term.steps // cells)
            middle = low + (edges[:-1] + edges[1:] - 1) / 2 * (width / (term.steps - 1))
            gap = (np.array([point[j] for point in self.points])[:, None] - middle) / h
            rows = np.exp(-gap * gap / 2) if self.kernel == "gaussian" else np.maximum(1 - gap * gap, 0.0)
            found.append(np.clip(rows, 0.0, 1.0))
        return tuple(found)

    def largest(self, power: int) -> int:
        """A bound on sum_j w_j^power of one record, exact for one feature."""
        found = len(self.points) * WEIGHT**power
        for table in self.tables:
            whole = np.rint(table * float(WEIGHT)).astype(np.int64).astype(object)
            found = min(found, int((whole**power).sum(axis=0).max()))
        return max(int(found), 1)

    @property
    def l2_squared(self) -> int:
        # 2 in place of 1 leaves room for searches that square in doubles
        return self.largest(2) * int(1 if self.sums else 2 + VALUE**2)

    @property
    def l1(self) -> int:
        return self.largest(1) * (1 if self.sums else 1 + VALUE)

    def placed(self, codes: Codes) -> tuple[Array, Array]:
        """w, shape (m, rows), 0 for a record that is dropped, and v."""
        terms, keep = self.design.codes(codes)
        weights = np.full((len(self.points), terms.shape[1]), float(WEIGHT))
        factor = np.ones_like(weights)
        for row, term, table in zip(terms, self.design.terms, self.tables, strict=False):
            cells = table.shape[1]
            cell = np.clip(np.floor(row * cells / term.steps), 0, cells - 1).astype(np.int64)
            factor *= table[:, cell]
        weights *= factor
        np.rint(weights, out=weights)
        only(weights, keep)
        value = np.rint(terms[-1] * (2.0 * VALUE / (self.design.response.steps - 1)) - VALUE)
        return weights, np.clip(value, -float(VALUE), float(VALUE))

    def __call__(self, codes: Codes) -> Codes:
        weights, value = self.placed(codes)
        return weights if self.sums else np.concatenate([weights, weights * value])


@dataclass(frozen=True)
class PointMoments(RecordMap):
    """One record as rint(w_j^2 q_j/2^16): squared weights times squared residuals at a released estimate (`at`), nonnegative."""

    base: PointRows
    tau: float
    curve: tuple[float, ...] = ()

    @property
    def width(self) -> int:
        return len(self.base.points)

    @property
    def unit(self) -> float:
        """Steps of a record at the peak whose residual is tau."""
        return float(WEIGHT**2)

    @property
    def l2_squared(self) -> int:
        # rint(w^2 q/2^16) <= w^2, as q <= 2^16
        return self.base.largest(4)

    @property
    def l1(self) -> int:
        return self.base.largest(2)

    @property
    def columns(self) -> tuple[str, ...]:
        return self.base.columns

    @property
    def digest(self) -> str:
        return digest(["kernel point moments", self.base.digest, pack(self.tau)])

    def at(self, curve: Array) -> PointMoments:
        return replace(self, curve=tuple(float(v) for v in curve))

    def __call__(self, codes: Codes) -> Codes:
        weights, value = self.base.placed(codes)
        for row, own in zip(weights, self.curve or (0.0,) * self.width, strict=True):
            residual = value * (1.0 / VALUE)
            residual -= own
            residual *= 1.0 / self.tau
            residual *= residual
            np.minimum(residual, 1.0, out=residual)
            residual *= float(SQUARE)
            np.rint(residual, out=residual)
            row *= row
            row *= residual
            row *= 1.0 / SQUARE
            np.rint(row, out=row)
        return weights


@dataclass(frozen=True)
class _OfSums(FunctionOf):
    """A function of the exact sums (d, sum w v). `of(total)` is its value."""

    map: PointRows
    d0: int


@dataclass(frozen=True)
class KernelSafety(_OfSums):
    """gamma in 1024 steps of one unit, rounded down; d0 in the integers of the weights."""

    moved: ClassVar[int] = SAFETY_STEPS

    def of(self, total: NDArray[Any]) -> NDArray[Any]:
        least = min(int(v) for v in total[: len(self.map.points)])
        return np.array([max(least - self.d0, 0) * SAFETY_STEPS // WEIGHT], dtype=object)

    def moved_squared(self, own: Any, rows: Any) -> Any:
        """The largest in any company: the weights' change at one point."""
        m = len(self.map.points)
        gap = np.abs(rows[:m] - own[:m, None]).max(axis=0)
        return -(((-gap * SAFETY_STEPS) // WEIGHT) ** 2)


@dataclass(frozen=True)
class PointCurve(_OfSums):
    """rint(2^20 t/alpha), shape (m,)."""

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.map.points),)

    @property
    def moved(self) -> int:
        # alpha is rounded up by more than the floats of its root; each of two roundings is off by a half at most
        return _FINE + isqrt(self.shape[0]) + 1

    @property
    def reach(self) -> int:
        """min(m W^2, 2 max sum_j w_j^2)."""
        return min(len(self.map.points) * WEIGHT**2, 2 * self.map.largest(2))

    @cached_property
    def alpha(self) -> float:
        """How far t moves at most from safe data."""
        return 2 * sqrt(self.reach) / self.d0 * (1 + 2.0**-40)

    def of(self, total: NDArray[Any]) -> NDArray[Any]:
        m, unit = len(self.map.points), Fraction(_FINE) / Fraction(self.alpha)
        below, above = total[:m], total[m:]
        # where no weight is there is no estimate; it is never released, and 0 stands in
        return np.array(
            [round(unit * Fraction(int(a), max(int(b), 1) * VALUE)) for a, b in zip(above, below, strict=True)],
            dtype=object,
        )

    def decode(self, values: Array) -> Array:
        """t from values in steps."""
        return np.asarray(values * (self.alpha / _FINE))

    def moved_squared(self, own: Any, rows: Any) -> Any:
        """Squares of the largest moves, in steps, over companies of weight d0 - w at each point and of mean -1, 0 or 1."""
        m = len(self.map.points)
        before, after = np.asarray(own, dtype=np.float64), np.asarray(rows, dtype=np.float64)
        w, x = before[:m, None], after[:m]
        with np.errstate(all="ignore"):
            y, z = np.where(w > 0, before[m:, None] / w, 0.0) / VALUE, np.where(x > 0, after[m:] / x, 0.0) / VALUE
        rest = self.d0 - w
        best = np.zeros(after.shape[1])
        for g in (-1.0, 0.0, 1.0):
            moved = np.abs(w * (y - g) / (rest + w) + x * (g - z) / (rest + x))
            best = np.maximum(best, (moved**2).sum(axis=0))
        return best * (_FINE / self.alpha) ** 2
