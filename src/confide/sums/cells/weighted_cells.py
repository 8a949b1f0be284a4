"""Weighted sums by cell: a record counts by its bounded weight, and the squares that its variance needs cost nothing.

omega = w/W in [0, 1], W the public upper bound of the weights. Let m be the block that a record without weight gives to its cell (a
number of 2^20 for counts, free moments for means). Its weighted block is

    (omega m, omega (1 - omega) m),      squared length omega^2 (1 + (1 - omega)^2) |m|^2 <= |m|^2,

because omega^2 (1 + (1 - omega)^2) has the derivative 2 omega (2 omega^2 - 3 omega + 2) > 0 (its discriminant is -7) and is 1 at omega
= 1. The first half adds up to weighted sums; less the second half they are the sums of omega^2 m, from which linearized variances
follow.

- Under add-remove the squared sensitivity is that of m.
- Under substitution two records in one cell have <F, F'> = (omega omega' + omega (1 - omega) omega' (1 - omega')) <m, m'>, a factor in
  [0, 2]. So |F - F'|^2 <= 2 L + 4 (-<m, m'>)+ and what rounding adds. The blocks here have <m, m'> >= -4 sqrt(k) 2^20. For counts m =
  m'. With d = |omega - omega'|, t = |1 - omega - omega'| <= 1 - d the squared distance is then L d^2 (1 + t^2) <= L (1 - t)^2 (1 + t^2)
  <= L. It is one record of the largest weight more or less, as under add-remove.

A weight is a function of the person's own record, by assumption: a weight that was raked or adjusted on this very sample depends on
others. Source: the bound is derived here; the variance is the usual linearized one of a ratio (Kish 1965).

The threshold of weights: a noisy histogram of them, the edge at which the predicted interval is shortest, and what trimming removes.

Weights count as min(w, W). The noise of a weighted mean is W over the mean of min(w, W) times that of equal weights, so that a bound
that few weights reach costs much. Weights above W that are set to W move the weighted mean by exactly

    theta_W - theta = e (theta_W - ybar_t),     e = sum (w - W)+/sum w,  ybar_t the mean weighted by (w - W)+.

That is at most e times the distance of two means, which is assumed to be at most `DISTANCE` standard deviations. Nothing is taken for
granted of the few large weights that noise may hide: the sum of (w - W)+ is released, either

- separately (`TailRows`), once W is chosen. It has noise (b - W) s for a sum whose steps have noise s, the least that any count of
  persons at the bound b could have; or
- from the histogram (regressions): noise s times the root of the sum of (edge - W)+^2, over cells that hold almost no one.

Tables have the first: the histogram then only says where to trim, and what it hides makes no interval too short. A rule for how counts
of a tail fall, instead of the sum, makes shorter intervals, and wrong ones. For example, take k persons at the bound, too few for any
count whose noise has SD s, k about 2 s. They move a mean by 2 k b/sum w SDs, and Pareto's weights, or a small group with its own long
tail, look like others.

Interval. The estimate has the error B + N, N of SD s and |B| <= beta, of which x = beta + noise of SD t is known. This noise is that of
the sum, and that of who is sampled, of variance sum (w - W)+^2 <= (b - W) sum (w - W)+, and is assumed independent of N. Its margin of
error is

    h(x) = max(max(x, -t/2) + z sqrt(s^2 + t^2), s cv(max(x + t/4, 0)/s)),    z the upper alpha of N(0, 1), cv(b) that of |N(b, 1)|.

With the first alone B = beta is missed from below with alpha, as N less that noise is then beyond z SDs, and whatever makes h larger
misses less. The second, for t = 0 that of Armstrong and Kolesar, keeps both sides where beta is small against s. How often h misses at
most, over beta, |B| <= beta and t/s, is computed in a test: alpha.

Guarantee: a person lies in one cell of the histogram. One count moves by 1 when a person comes or goes, and two when one is replaced:
sqrt(2). In the sum of (w - W)+/(b - W) a person is one number in [0, 1]. It moves the sum by at most 1 in either case, whatever W is:
the numbers of two persons differ by no more. The choice of W and e are post-processing. Source: derived here; intervals with a bounded
bias after Armstrong, Kolesar 2018.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil, inf, sqrt
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from confide import _special as special
from confide._arrays import Array
from confide.core import Noisy, RecordMap
from confide.core.exact import digest
from confide.schema import Schema
from confide.schema.formulas.names import quoted
from confide.sums.cells.cell_sums import CellNumber, CellRows
from confide.sums.cells.moments import Measure, MomentRows
from confide.sums.coding import BITS, BOUND
from confide.sums.columns import codes_of, columns_of

Whole = NDArray[np.int64]

_ONE = 1 << BITS


@dataclass(frozen=True)
class CappedWeight(Measure):
    """A column of weights of which larger ones count as `cap`; the cap may come from earlier noisy numbers, as omega is in [0, 1] anyway.

    >>> import confide as cf
    >>> own = CappedWeight(Measure.of("w", cf.Schema({"w": cf.Numeric(0, 8, steps=9)})).design)
    >>> places_of_weights(own.at(2.0), np.array([[0.0, 1.0, 2.0, 8.0]]))[0].tolist()
    [0.0, 0.5, 1.0, 1.0]
    """

    cap: float | None = None

    @classmethod
    def named(cls, column: str, schema: Schema) -> CappedWeight:
        """The weights of a design, uncapped; the design has checked the column."""
        return cls(Measure.of(quoted(column), schema, formula=f"weights={column}").design)

    def at(self, cap: float | None) -> CappedWeight:
        """The same with another cap."""
        return CappedWeight(self.design, cap)

    @property
    def heaviest(self) -> float:
        """The threshold that the largest weights are set to."""
        return float(self.term.high) if self.cap is None else self.cap


def places_of_weights(weight: Measure, codes: Array) -> tuple[Array, NDArray[np.bool_] | None]:
    """(omega = min(w, W)/W in [0, 1], which records have a weight, None for all), from the codes of the weight's columns."""
    u, keep = weight.places(codes)
    most = weight.heaviest if isinstance(weight, CappedWeight) else weight.term.high
    omega = u * (weight.half / most)
    omega += weight.middle / most
    return np.clip(omega, 0.0, 1.0), keep


@dataclass(frozen=True)
class CountRows(CellRows):
    """One record as 2^20 in its cell: a count in steps, as its weighted version has it."""

    block = 1
    count = _ONE
    l2_squared = BOUND
    together = BOUND
    additive = True

    @property
    def columns(self) -> tuple[str, ...]:
        return self.crossing.columns

    @property
    def digest(self) -> str:
        return digest(["counts in steps", self.crossing.digest, list(self.axes)])

    def rows(self, codes: Array) -> tuple[Whole, Array]:
        place = self.crossing.places(codes, self.axes)
        return place, np.full((1, codes.shape[1]), float(_ONE))


@dataclass(frozen=True)
class DoubledRows(CellRows):
    """Base of blocks m that count by omega in [0, 1], as (omega m, omega (1 - omega) m)."""

    inner: CountRows | MomentRows

    @property
    def block(self) -> int:
        return 2 * self.inner.block

    @property
    def l2_squared(self) -> int:
        return self.inner.l2_squared

    @staticmethod
    def doubled(blocks: Array, omega: Array) -> Array:
        """Both halves, before they are whole numbers."""
        half = len(blocks)
        out = np.empty((2 * half, blocks.shape[1]))
        np.multiply(blocks, omega, out=out[:half])
        np.multiply(out[:half], 1.0 - omega, out=out[half:])
        return out


@dataclass(frozen=True)
class WeightedRows(DoubledRows):
    """The block m of a record as (omega m, omega (1 - omega) m); a record without a weight is in no cell.

    >>> import confide as cf
    >>> from confide.sums.cells.cell_sums import Crossing
    >>> schema = cf.Schema({"f": cf.Categorical(["a", "b"]), "w": cf.Numeric(0, 4, steps=5)})
    >>> crossing = Crossing.of(("f",), schema)
    >>> own = WeightedRows(crossing, (0,), CountRows(crossing, (0,)), Measure.of("w", schema))
    >>> (own.rows(np.array([[0.0, 1.0], [4.0, 1.0]]))[1] / 2**20).tolist()
    [[1.0, 0.25], [0.0, 0.1875]]
    """

    weight: Measure

    @property
    def together(self) -> int:
        rounding = 2 * ceil(sqrt(self.l2_squared) + 1) * ceil(sqrt(self.block) + 1) + self.block
        if isinstance(self.inner, CountRows):
            # each of the two numbers is off by at most half a step, in both records
            return self.l2_squared + rounding
        # <m, m'> >= T^2 - k S^2, and what a number of T^2 = k 2^40 loses by rounding
        opposed = max(0, len(self.inner.measures) * BOUND - self.inner.count**2)
        return 2 * self.l2_squared + 4 * opposed + 2 * rounding

    @property
    def l1(self) -> int:
        """omega + omega (1 - omega) <= 1, and half a step for each number."""
        return self.inner.l1 + self.block

    @cached_property
    def columns(self) -> tuple[str, ...]:
        return columns_of(self.inner, self.weight)

    @property
    def digest(self) -> str:
        return digest(["weighted", self.inner.digest, self.weight.digest])

    def rows(self, codes: Array) -> tuple[Whole, Array]:
        own = self.inner.columns
        place, inner = self.inner.rows(codes[: len(own)])
        omega, keep = places_of_weights(self.weight, codes_of(self.weight, self.columns, codes))
        if keep is not None:
            place[~keep] = self.cells
        real = self.doubled(inner, omega)
        out = np.rint(real)
        # rounding may carry a weight just below the largest over the bound: towards zero it cannot
        over = ~(np.einsum("ij,ij->j", out, out) <= self.l2_squared)
        if over.any():
            out[:, over] = np.trunc(real[:, over])
            out[:, ~(np.einsum("ij,ij->j", out, out) <= self.l2_squared)] = 0.0
        return place, out


#: Cells of half an octave below the largest weight, the last one for all below.
CELLS = 21
#: Standard deviations between the mean and that of those whose weights are cut, at most.
DISTANCE = 2.0
# A cell's count in noise sds that is seen, and surely seen; the sd of y in half-ranges.
_ABOVE, _SURE, _SD = 2.0, 3.5, 0.25
#: The distance in half-ranges.
IN_RANGES = DISTANCE * _SD
# A cell of so many noise sds, and a next one of less than so many, look like a bound of weights far below the declared one.
# Of less than so many persons, whatever the noise, the next cell may be empty by chance.
_FULL, _EMPTY, _PERSONS = 16.0, 3.0, 30.0
# In sds of the noise of what is lost: how far below zero it is taken to be at most, what is added where both sides count, and what is
# expected of it above zero.
_LOWEST, _TWO_SIDED, _EXPECTED = 0.5, 0.25, 0.2
# Sds of noise that may hide weight beyond, an error of 5 %; from how many on a cell is one that every later count sees too.
_LIKELY, _CLEAR = 1.645, 8.0
# Halvings after which a bracket of 40 may be as narrow as numbers are.
_HALVED = 50


@dataclass(frozen=True)
class WeightCells(CellNumber):
    """The cell of a person's weight, from 1 (the largest) on, 0 for a person without. cells: `CELLS`, or 1, which counts persons."""

    weight: CappedWeight
    cells: int

    @property
    def columns(self) -> tuple[str, ...]:
        return self.weight.columns

    @property
    def digest(self) -> str:
        return digest(["cells of weights", self.weight.digest, self.cells])

    @property
    def edges(self) -> Array:
        """The upper edges, falling."""
        return np.asarray(float(self.weight.term.high) * 2.0 ** (-np.arange(self.cells) / 2))

    def __call__(self, codes: Array) -> Array:
        u, keep = self.weight.places(codes)
        w = u * self.weight.half
        w += self.weight.middle
        # the number of edges that are at least w: between 1 and all
        found = self.cells - np.searchsorted(self.edges[::-1], w, side="left")
        found = np.clip(found, 1, self.cells).astype(np.float64)
        if keep is not None:
            found[~keep] = 0.0
        return np.asarray(found[None, :])


@dataclass(frozen=True)
class TailRows(RecordMap):
    """(w - W)+/(b - W) of a person, b the bound of weights, in steps of 2^-20, rounded up: 0 to 2^20, 0 without a weight or where W = b.

    W may come from earlier noisy numbers. Of two persons one number in [0, 2^20] each, so that their difference is at most that.

    >>> import confide as cf
    >>> weight = CappedWeight.named("w", cf.Schema({"w": cf.Numeric(0, 8, steps=9)}))
    >>> (TailRows(weight.at(4.0))(np.array([[0.0, 4.0, 5.0, 8.0]])) / 2**20).tolist()
    [[0.0, 0.0, 0.25, 1.0]]
    """

    weight: CappedWeight
    width: ClassVar[int] = 1
    l1: ClassVar[int] = 1 << BITS
    l2_squared: ClassVar[int] = BOUND

    @property
    def columns(self) -> tuple[str, ...]:
        return self.weight.columns

    @property
    def digest(self) -> str:
        return digest(["weight beyond a cap", self.weight.digest])

    def __call__(self, codes: Array) -> Array:
        bound, cap = float(self.weight.term.high), self.weight.heaviest
        u, keep = self.weight.places(codes)
        if not bound > cap:
            return np.zeros((1, len(u)))
        beyond = np.clip((u * self.weight.half + (self.weight.middle - cap)) / (bound - cap), 0.0, 1.0)
        if keep is not None:
            beyond[~keep] = 0.0
        # up, or what is lost would be told a little too small
        return np.asarray(np.ceil(beyond * float(1 << BITS))[None, :])


@dataclass(frozen=True)
class Cap:
    """W, and what trimming removes.

    lost: the share e of all weight, with what noise may hide; persons: their estimated number; over: the sum of (w - W)+ in units of W.

    error: the SD of its noise. Where that sum has its own release, `over` may be below 0.
    """

    weight: float
    lost: float
    persons: float
    over: float = 0.0
    error: float = 0.0

    @classmethod
    def chosen(
        cls,
        counts: Array,
        sd: float,
        edges: Array,
        low: float,
        noise: float,
        cells: int,
        meat: float = 0.0,
        distance: float = IN_RANGES,
    ) -> Cap:
        """From noisy counts, as `predicted` has it.

        >>> counts = np.zeros(21); counts[9:14] = [12.0, 30.0, 90.0, 400.0, 1468.0]
        >>> Cap.chosen(counts, 1.0, 64.0 * 2.0 ** (-np.arange(21) / 2), 0.0, 4.0, 1).weight
        8.0
        """
        return cls.predicted(counts, sd, edges, low, noise, cells, meat, distance)[1]

    @classmethod
    def predicted(
        cls,
        counts: Array,
        sd: float,
        edges: Array,
        low: float,
        noise: float,
        cells: int,
        meat: float = 0.0,
        distance: float = IN_RANGES,
        tail: float | None = None,
    ) -> tuple[float, Cap]:
        """The smallest margin of error of a 95% interval that is to be expected, in half-ranges, and its threshold.

        It is from noisy counts, the SD of their noise, and the noise variance of a cell's sum in half-ranges.

        cells : int
            Of the table.
        meat : float
            The noise of the sampling variance as a part of it, times sum omega (`clusters/cluster_covariance.hidden_part`).
        distance : float
            Of two means, in half-ranges.
        tail : float, optional
            SD of the noise of a sum of (w - W)+ that is yet to be drawn, over b - W, infinite where none is: then the counts choose W
            alone.
        """
        persons = max(float(counts.sum()), 1.0)
        if len(counts) == 1:
            return 0.0, cls(float(edges[0]), 0.0, persons)
        lower = np.append(edges[1:], low)
        inside = np.maximum((edges + np.minimum(lower, edges)) / 2, 1e-300)
        # weights beyond the bound count as the bound
        inside[0] = edges[0]
        seen = _above(counts, sd) if tail is None else _filled(counts, sd)
        weighed = counts if tail is None else seen
        found: list[tuple[float, float, float, Cap]] = []
        for cap in edges[:1].tolist() if tail == inf else edges.tolist():
            # where next to nobody is seen, numbers stay finite
            total = max(float(seen @ np.minimum(inside, cap)), 1e-9 * cap)
            over = max(float(weighed @ np.maximum(inside - cap, 0.0)), 0.0)
            error = sd * float(np.linalg.norm(np.maximum(edges - cap, 0.0)))
            if tail is not None:
                error = 0.0 if tail == inf else tail * (float(edges[0]) - cap)
            # all that is lost may be of one cell's persons
            whole = total / cells + over
            sampling = (
                _SD**2
                * float(seen @ np.minimum(inside, cap) ** 2)
                * cells
                / total**2
                * (1 + meat * cap * cells / total)
            )
            se = max(sqrt(sampling + noise * (cap * cells / total) ** 2), 1e-12)
            # by chance the sample has more of them, or fewer: sum (w - W)+^2 is at most b - W times the sum
            drawn = over * (float(edges[0]) - cap) if error > 0 and tail is not None else 0.0
            unsure = distance * sqrt(error**2 + drawn) / whole
            most = over + _LIKELY * error
            lost = most / max(total + most, 1e-300)
            found.append((distance * over / whole, se, unsure, cls(cap, lost, persons, over / cap, error / cap)))
        bias, se_of, unsure_of = (np.array([own[k] for own in found]) for k in range(3))
        if tail is None:
            # the error of what is lost counts beside other noise
            se_of = np.hypot(se_of, unsure_of)
            halves = worst(bias / se_of, 0.05) * se_of
        else:
            # what is drawn is as often above as below what is expected, and above zero counts
            halves = allowed(se_of, np.maximum(bias, _EXPECTED * unsure_of), unsure_of, 0.05)
        best = 0
        for k, half in enumerate(halves.tolist()):
            if half < halves[best] * (1 - 1e-9):
                best = k
        return float(halves[best]), found[best][3]

    def of_tail(self, over: float, error: float, total: float) -> Cap:
        """With the released sum of (w - W)+ and the SD of its noise; total: the noisy sum of min(w, W).

        >>> Cap(4.0, 0.0, 100.0).of_tail(8.0, 2.0, 400.0)
        Cap(weight=4.0, lost=0.02745021760801381, persons=100.0, over=2.0, error=0.5)
        """
        most = max(over, 0.0) + _LIKELY * error
        lost = most / max(total + most, 1e-300)
        return replace(self, lost=lost, over=over / self.weight, error=error / self.weight)


def moments_of_omega(counts: Array, sd: float, edges: Array, low: float, cap: float) -> tuple[float, float]:
    """(mean, mean square) of omega = min(w, cap)/cap, from the cells that are seen; at least those of a millionth.

    >>> moments_of_omega(np.array([0.0, 50.0, 50.0]), 1.0, np.array([8.0, 4.0, 2.0]), 2.0, 4.0)
    (0.625, 0.40625)
    """
    seen = _above(counts, sd)
    if not seen.any():
        return 1.0, 1.0
    lower = np.append(edges[1:], low)
    omega = np.clip((edges + np.minimum(lower, edges)) / 2 / cap, 1e-6, 1.0)
    return float(seen @ omega / seen.sum()), float(seen @ omega**2 / seen.sum())


def _filled(counts: Array, sd: float) -> Array:
    """The counts that a choice uses: each that is surely seen, and others at most half the one of the next smaller weights.

    Of a dozen cells that hold no one, one is beyond two SDs one time in four, and a choice would follow it.

    >>> _filled(np.array([25.0, 3.0, 12.0, 40.0, 100.0]), 10.0).tolist()
    [1.5, 3.0, 12.0, 40.0, 100.0]
    """
    made = np.maximum(counts, 0.0)
    for k in range(len(counts) - 2, -1, -1):
        if counts[k] <= _SURE * sd:
            made[k] = min(made[k + 1] / 2, made[k])
    return made


def _above(counts: Array, sd: float) -> Array:
    """Counts that are seen."""
    return np.asarray(np.where(counts > _ABOVE * sd, counts, 0.0))


def _beyond(counts: Array, sd: float) -> int:
    """How many cells lie beyond the last full one, where weights end at once; 0 for a tail, and for weights that reach their bound."""
    full = np.flatnonzero(counts > max(_FULL * sd, _PERSONS))
    top = int(full[0]) if len(full) and sd > 0 else 0
    return top if top and counts[top - 1] < _EMPTY * sd else 0


def ended(counts: Array, sd: float, edges: Array) -> float | None:
    """The edge at which the weights end at once, with cells beyond it; None for a tail, and for weights that reach their bound.

    >>> edges = np.array([16.0, 11.3, 8.0, 5.7, 4.0])
    >>> ended(np.array([3.0, -2.0, 40.0, 80.0, 160.0]), 5.0, edges), ended(np.array([3.0, -2.0, 4.0, 90.0, 160.0]), 5.0, edges)
    (None, 5.7)
    """
    beyond = _beyond(counts, sd)
    return float(edges[beyond]) if beyond else None


def hides(counts: Array, sd: float) -> bool:
    """Whether weights end at once and next to nobody is seen farther out: those who may be there are too few for any count."""
    beyond = _beyond(counts, sd)
    return beyond > 0 and bool(counts[:beyond].max() < _CLEAR * sd)


def ended_words(noisy: Noisy, weight: CappedWeight) -> str:
    """What a release says of weights that end far below their bound, "" for others. noisy: their histogram."""
    edges = WeightCells(weight, noisy.values.size).edges
    seen = ended(noisy.decode(), sqrt(noisy.variance), edges)
    if seen is None:
        return ""
    column, bound = weight.columns[0], float(weight.term.high)
    return (
        f"many weights are seen up to {seen:.3g} and few just beyond, though {column} may be up to {bound:.4g}. Noise may "
        f"hide larger ones, which intervals allow for; declare {column} up to the largest weight of the codebook"
    )


def allowed(se: Array, bias: Array, unsure: Array, alpha: float) -> Array:
    """Margins of error at level 1 - alpha of estimates with these standard errors and a bias of at most beta.

    `bias` is beta with noise of SD `unsure`: it may be below 0.

    >>> allowed(np.array([1.0, 1.0, 0.0]), np.array([0.0, 1.0, -3.0]), np.array([0.0, 0.0, 1.0]), 0.05).round(3).tolist()
    [1.96, 2.646, 1.145]
    """
    s = np.maximum(se, 1e-300)
    sides = np.maximum(bias + _TWO_SIDED * unsure, 0.0) / s
    one = np.maximum(bias, -_LOWEST * unsure) - float(special.ndtri(alpha)) * np.hypot(s, unsure)
    # far from 0 both are one-sided, and the first is the larger
    return np.asarray(np.maximum(one, s * worst(np.minimum(sides, 1e6), alpha)))


def worst(bias: Array, alpha: float) -> Array:
    """c with P(|N(b, 1)| <= c) = 1 - alpha, b the bias over the standard error.

    >>> worst(np.array([0.0, 1.0, 10.0]), 0.05).round(2).tolist()
    [1.96, 2.65, 11.64]
    """
    b = np.abs(bias)
    low, high = np.zeros(len(b)), b + 40.0
    for k in range(80):
        middle = (low + high) / 2
        short = special.ndtr(middle - b) - special.ndtr(-middle - b) < 1 - alpha
        ends = np.where(short, middle, low), np.where(short, high, middle)
        # ends that no halving moves any more stay where they are
        if k > _HALVED and np.array_equal(ends[0], low) and np.array_equal(ends[1], high):
            break
        low, high = ends
    return np.asarray((low + high) / 2)
