"""Kernel smooths of records as exact integers: one vector whose noise is a Gaussian process over the whole curve.

x lies in one of `cells` public cells, y is v in [-V, V] steps. A Gaussian kernel of bandwidth h is the square of one of bandwidth
h/sqrt(2): with nodes u_k a distance h/2 apart, a_k(x) = exp(-(x - u_k)^2/h^2)/sqrt(C), C = sqrt(2 pi),

    sum_k a_k(x) a_k(x') = exp(-(x - x')^2/(2 h^2)) = K(x, x')   within 2 exp(-2 pi^2) + 2 Phi(-6) < 1e-8   (`lost`)

for x, x' in the box. The sum is the trapezoidal rule of a Gaussian of SD h/2 over nodes that reach 3 h beyond the box. Its aliases are
exp(-2 pi^2 k^2), k = 1, 2, ... (Poisson), and its tails are tails beyond 6 SDs. So with A = rint(S a) on the cells,

    W_D = sum_i V A(x_i),  W_N = sum_i v_i A(x_i),   D(x) = a(x)'W_D/(V S),  N(x) = a(x)'W_N/(V S)

are the kernel sums at any x. Noise of variance sigma^2 on each number of W is noise on D with covariance sigma^2 K(x, x')/(V S)^2: a
Gaussian process. Nothing else is kept, and any number of points is post-processing.

Sensitivity, in integers. Entries of A are nonnegative, and |A(x)|^2 <= S^2 is enforced. One record is the row r = (V, v) (x) A(x), so
|r|^2 = (V^2 + v^2)|A|^2 <= 2 V^2 S^2. For two records |r - r'|^2 = |r|^2 + |r'|^2 - 2 (V^2 + v v') A'A'. Both factors of the last term
are nonnegative, so it is at most 4 V^2 S^2. In units of K(x, x) = 1 the sensitivity is sqrt(2) under add/remove and 2 under
substitution. Both are attained. A signed kernel would lose the sign of A'A' and with it a factor sqrt(2) under substitution. For rows q
A(x), 0 <= q <= Q, the squares are Q^2 S^2 and 2 Q^2 S^2.

Kernel regression at m public points, as efficient propose-test-release needs it: a safety and an estimate of exact integers.

x lies in public cells of each feature. The weight of a record at point j is w_j = rint(W k_j), with k_j in [0, 1] the product over the
features of a kernel over its peak at the cell's middle. (It is a public table, so that no float follows the batch.) The response is v
in [-V, V]. The weights are themselves a kernel, 0 <= w_j <= W, and what follows is proved for it, in integers. Relation substitute; d_j
= sum w_j, t_j = (sum w_j v)/(d_j V).

    safety      gamma = (min_j d_j - d0)_+/W moves by at most 1, because each d_j does by at most W.

    gamma > 0   every d_j > d0. With w, w' the weights of the record that leaves and of the one that comes, u the rest's weight and g its
                mean, t_j moves by |w (y - g)/(u + w) + w' (g - y')/(u + w')| <= 2 max(w, w')/(u + max(w, w')) <= 2 max(w, w')/d0: with
                a = w/(u + w), b = w'/(u + w') the largest is a + b + |b - a|, and u + w = d_j > d0. Over m points the squares add up to
                (2/d0)^2 sum_j max(w_j, w_j')^2, at most (2/d0)^2 min(m W^2, 2 max_x sum_j w_j(x)^2).

The second bound is smaller where points lie further apart than a bandwidth: a record is near few of them. With several features the
largest sum is bounded by that of one feature alone, the smallest of them, since no factor is above 1. alpha is its root.

Released is rint(2^20 t/alpha), which moves by 2^20 steps and sqrt(m) for rounding. The local moments are sum_i w_ij^2 q_ij, q = rint(Q
min(1, r^2/tau^2)), of residuals at the released points. They and the sums d_j are sums of nonnegative rows, whose squares add up to at
most max sum_j w_j^4 Q^2 and max sum_j w_j^2.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import ceil, exp, isqrt, pi, sqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from confide._arrays import Array, Whole
from confide.core import SAFETY_STEPS, RecordMap
from confide.core.exact import digest, pack
from confide.errors import PlanError
from confide.schema import ModelMatrix
from confide.schema.coded_frame import CodedFrame
from confide.sums.cells.cell_sums import WholeSums
from confide.sums.coding import Codes, DesignRows, only
from confide.sums.integer_functions import FunctionOf

#: V = Q = S: integer steps of the response, of a squared residual and of a row of A.
UNIT = 1 << 16
#: Nodes to one bandwidth, and bandwidths beyond the box that they reach.
HALF, _REACH = 2, 3
# Cells to one bandwidth: rounding x to its cell blurs the kernel by less than one part in 1,000 of its variance.
_CELLS, _MOST = 16, 1 << 14


@dataclass(frozen=True)
class Axis:
    """The public cells of x and the nodes of a kernel with bandwidth h over them.

    steps: of the grid that x is coded on; haar: the indicator of the cell instead of a kernel, for which the nodes are the cells.

    >>> axis = Axis(0.0, 1.0, 1 << 20, 0.05)
    >>> axis.cells, axis.table.shape, float(axis.lost) < 1e-8
    (320, (320, 53), True)
    """

    low: float
    high: float
    steps: int
    h: float
    cells: int = 0
    haar: bool = False

    def __post_init__(self) -> None:
        if not self.cells:
            wanted = ceil(_CELLS * (self.high - self.low) / self.h)
            object.__setattr__(self, "cells", min(self.steps, max(wanted, 1), _MOST))

    @cached_property
    def centres(self) -> Array:
        """The middle of the codes of each cell, in units of x."""
        edges = -(-np.arange(self.cells + 1) * self.steps // self.cells)
        return np.asarray(self.low + (edges[:-1] + edges[1:] - 1) / 2 * ((self.high - self.low) / (self.steps - 1)))

    @cached_property
    def nodes(self) -> Array:
        """u_k."""
        gap = self.h / HALF
        return np.asarray(
            self.low + gap * np.arange(-_REACH * HALF, ceil((self.high - self.low) / gap) + _REACH * HALF + 1)
        )

    @property
    def lost(self) -> float:
        """How far a(x)'a(x') may be from K(x, x')."""
        return 2.01 * exp(-2 * pi**2) + 2 * 9.9e-10

    def weights(self, x: Array) -> Array:
        """a(x), shape (len(x), nodes)."""
        if self.haar:
            place = np.clip(np.floor((x - self.low) / (self.high - self.low) * self.cells), 0, self.cells - 1)
            return np.asarray(place[:, None] == np.arange(self.cells), dtype=np.float64)
        gap = (x[:, None] - self.nodes) / self.h
        # C = h sqrt(pi/2)/(spacing) with spacing h/2
        return np.asarray(np.exp(-gap * gap) / (2 * pi) ** 0.25)

    @property
    def unit(self) -> int:
        """S of `weights` in the integers of `table`: a little below 2^16, so that rounding cannot break the bound."""
        return UNIT if self.haar else UNIT - ceil(sqrt(len(self.nodes)) / 2) - 2

    @cached_property
    def table(self) -> Whole:
        """A, shape (cells, nodes): nonnegative, the squares of each row add up to at most 2^32, whatever the floats did."""
        rows = np.rint(self.weights(self.centres) * self.unit).astype(np.int64)
        np.clip(rows, 0, UNIT, out=rows)
        while (over := (rows * rows).sum(axis=1) > UNIT**2).any():
            rows[over] -= rows[over] > 0
        return rows

    def cell(self, codes: Codes) -> Whole:
        """The cell of each code of x."""
        return np.minimum(np.floor(codes * self.cells / self.steps), self.cells - 1).astype(np.int64)

    def total(self, sums: Whole) -> NDArray[Any]:
        """sum_g sums_g A_g, exactly, as Python integers."""
        # two halves whose products stay far below 2^63 for less than 2^40 records
        high, low = sums >> 24, sums & ((1 << 24) - 1)
        whole: NDArray[Any] = (high @ self.table).astype(object) * (1 << 24) + (low @ self.table).astype(object)
        return whole

    def to_list(self) -> list[object]:
        """For digests."""
        return [pack(self.low), pack(self.high), self.steps, pack(self.h), self.cells, self.haar]


@dataclass(frozen=True)
class KernelRows(DesignRows):
    """One record as (V A, v A), shape (2 nodes, rows); zeros for a record that is dropped."""

    design: ModelMatrix
    axis: Axis
    kind: ClassVar[str] = "kernel rows"

    @property
    def width(self) -> int:
        return 2 * int(self.axis.table.shape[1])

    @property
    def l2_squared(self) -> int:
        return 2 * UNIT**4

    @property
    def l1(self) -> int:
        # |A|_1 is a public number of the table
        return 2 * UNIT * int(self.axis.table.sum(axis=1).max())

    @property
    def stated(self) -> list[object]:
        return [self.axis.to_list()]

    def placed(self, codes: Codes) -> tuple[Whole, Array, Array]:
        """Cell, v and 1 for each record; v and the 1 are 0 for a record that is dropped."""
        terms, keep = self.design.codes(codes)
        value = np.rint(terms[-1] * (2.0 * UNIT / (self.design.response.steps - 1)) - UNIT)
        np.clip(value, -float(UNIT), float(UNIT), out=value)
        present = np.ones(len(value)) if keep is None else keep.astype(np.float64)
        cell = self.axis.cell(np.maximum(terms[0], 0.0))
        return cell, value * present, present

    def __call__(self, codes: Codes) -> Codes:
        cell, value, present = self.placed(codes)
        rows = self.axis.table[cell].T.astype(np.float64)
        return np.concatenate([rows * (present * UNIT), rows * value])


@dataclass(frozen=True)
class ResidualRows(RecordMap):
    """One record as q B, q = rint(Q min(1, (y - f)^2/tau^2)), B the table of the squared kernel; f: at each cell, in half-ranges of y.

    K^2 is a Gaussian kernel of bandwidth h/sqrt(2). `at(f)` is the map at a curve from earlier noisy output; the bound holds for any.
    """

    base: KernelRows
    axis: Axis
    tau: float
    curve: tuple[float, ...] = ()

    @property
    def width(self) -> int:
        return int(self.axis.table.shape[1])

    @property
    def l2_squared(self) -> int:
        return UNIT**4

    @property
    def l1(self) -> int:
        return UNIT * int(self.axis.table.sum(axis=1).max())

    @property
    def columns(self) -> tuple[str, ...]:
        return self.base.columns

    @property
    def digest(self) -> str:
        # the curve is left out: the plan does not know it yet
        return digest(["kernel residuals", self.base.digest, self.axis.to_list(), pack(self.tau)])

    def at(self, curve: Array) -> ResidualRows:
        return replace(self, curve=tuple(float(v) for v in curve))

    def placed(self, codes: Codes) -> tuple[Whole, Array]:
        """Cell and q of each record."""
        cell, value, present = self.base.placed(codes)
        curve = np.array(self.curve) if self.curve else np.zeros(self.axis.cells)
        residual = value * (1.0 / UNIT)
        residual -= curve[cell]
        residual *= 1.0 / self.tau
        residual *= residual
        np.minimum(residual, 1.0, out=residual)
        residual *= float(UNIT)
        residual *= present
        return cell, np.rint(residual)

    def __call__(self, codes: Codes) -> Codes:
        cell, value = self.placed(codes)
        return np.asarray(self.axis.table[cell].T * value)


@dataclass(frozen=True)
class KernelSums(WholeSums):
    """The rows of all records added up, shape (width,): exact sums of each cell first, then one product of integers with the table."""

    map: KernelRows | ResidualRows

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.map.width,)

    @property
    def _parts(self) -> int:
        return 2 if isinstance(self.map, KernelRows) else 1

    def sensitivity_squared(self, relation: str) -> Fraction:
        """l2_squared; twice that under substitution, because rows have no negative inner products."""
        return Fraction(self.map.l2_squared * (2 if relation == "substitute" else 1))

    def sensitivity_l1(self, relation: str) -> Fraction:
        return Fraction(self.map.l1 * (2 if relation == "substitute" else 1))

    def zero(self) -> Whole:
        return np.zeros((self._parts, self.map.axis.cells), dtype=np.int64)

    def update(self, state: Whole, codes: Codes) -> Whole:
        cell, *values = self.map.placed(codes)
        for start in range(0, len(cell), 1 << 30):  # 2^30 entries of at most 2^16 add up exactly in doubles
            piece = slice(start, start + (1 << 30))
            for own, value in zip(state, reversed(values), strict=True):
                own += np.bincount(cell[piece], weights=value[piece], minlength=len(own)).astype(np.int64)
        return state

    def value(self, state: Whole) -> NDArray[Any]:
        if self._parts == 1:
            return self.map.axis.total(state[0])
        return np.concatenate([self.map.axis.total(state[0] * UNIT), self.map.axis.total(state[1])])


KERNELS = ("gaussian", "epanechnikov")
#: W and V, and Q: their products stay below 2^53.
WEIGHT, VALUE, SQUARE = 1 << 16, 1 << 16, 1 << 16
_FINE = 1 << 20
# Cells to one bandwidth, and at most so many for each feature.
_POINT_CELLS, _MOST_POINTS = 32, 1 << 12


@dataclass(frozen=True)
class PointRows(DesignRows):
    """One record as (w, w v), shape (2 m, rows). points: m tuples of d numbers; bandwidths: d, in units of the features.

    sums: only w, shape (m, rows).
    """

    design: ModelMatrix
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
            cells = min(term.steps, max(ceil(_POINT_CELLS * width / h), 1), _MOST_POINTS)
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


# Points of a curve whose kernels are held at once.
_AT_ONCE = 64


def smooth(frame: Any, design: ModelMatrix, points: Array, bandwidths: Array, kernel: str = "gaussian") -> Array:
    """E[K y]/E[K] at points (m, d), shape (m,), for a product of kernels of the given bandwidths (d,); NaN where no record is near."""
    x, y = CodedFrame.checked(frame).rows(design)
    x = x[:, int(design.intercept) :]
    found = np.full(len(points), np.nan)
    for start in range(0, len(points), _AT_ONCE):
        near = np.ones((len(points[start : start + _AT_ONCE]), len(x)))
        for j, h in enumerate(bandwidths):
            gap = (points[start : start + _AT_ONCE, j, None] - x[:, j]) / h
            near *= np.exp(-gap * gap / 2) if kernel == "gaussian" else np.maximum(1 - gap * gap, 0.0)
        total = near.sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            found[start : start + _AT_ONCE] = np.where(total > 0, near @ y / total, np.nan)
    return found
