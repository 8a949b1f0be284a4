"""Records of a linear model: features and one or several responses, or residuals times features, as weighted rows of exact integers.

A record is z = (1, x~) and t_1, ..., t_m, each in [-1, 1]. Its weight is w = min(1, R2/|z|^2). The box of x~ and R2 may come from
earlier noisy outputs. Because |z| >= 1 holds in any box, w |z|^2 <= R2 and w t_k^2 <= 1 do, too. The integers are coded for the R2 in
use, so that |m|^2 <= 2^40 whatever it is. `adaptive`: R2 (and g2) are not known to the plan, and are not in the digest, like the box.

Joined: the Gram matrix of sqrt(w) (z, sqrt(g2) t_1, ..., sqrt(g2) t_m) also holds the products t_j t_k. A record's part has Frobenius
norm w (|z|^2 + g2 |t|^2) <= R2 + m g2, and sqrt(2) times that under substitution, because positive semi-definite matrices have <P, Q>
>= 0.

Apart (`BlockRows` in a `BlockGram`): without the products t_j t_k, its blocks times public integers; the proof is with `BlockGram`.

Residuals: w r z with r = clip((t_k - z'theta)/limit, -1, 1); |w z| <= sqrt(R2) and |r| <= 1 for every record, any theta, limit and box.

An estimated number of records, and noisy ranges of features: from where to where most of a feature's values lie.

Guarantee of the ranges: each feature that is not binary has a histogram of 64 equal cells between its public bounds, and a record lies in
one cell of each. So one record moves the table by sqrt(F) in the Euclidean norm under add-remove and by sqrt(2 F) under substitution,
F = the number of those features. The box of a feature follows from the noisy table alone.

Binary features keep their public box: measured in units of its spread a rare level would be extreme, and lose its weight.

The Gram matrix of features and a response with a free split of the budget between its blocks.

A record map gives m = (m_u, m_r): p features with |m_u|^2 <= 2^40 and one response with m_r^2 <= 2^40. Released are the features' Gram
matrix, the products of features and response, and the response's square, times the public integers (a, b, c):

    M = sum [[a m_u m_u', b m_u m_r], [b m_r m_u', c m_r^2]]

with one symmetric Gaussian noise. The larger a block's number, the smaller its noise: with noise of variance s^2 on the diagonal the
blocks cost 2^80 a^2/s^2, 2^81 b^2/s^2 and 2^80 c^2/s^2 as squares of mu.

Sensitivity in the Frobenius norm: one record gives a^2 |m_u|^4 + 2 b^2 |m_u|^2 m_r^2 + c^2 m_r^4 <= 2^80 (a^2 + 2 b^2 + c^2). Replacing
a record by another gives the sum of both less twice their inner product a^2 S^2 + 2 b^2 S R + c^2 R^2. Here S = m_u'm_u* and R = m_r m_r*,
both of size at most 2^40. So the square is at most 2^81 ((a^2 + 2 b^2 + c^2) - min over [-1, 1]^2 of a^2 S^2 + 2 b^2 S R + c^2 R^2). The
minimum is 0 when b^2 <= a c, and else lies on the square's edge.

Several responses (m_1, ..., m_k each with m_j^2 <= 2^40) share the features, without their products m_i m_j: with B = 2^40

    a^2 |m_z|^4 + 2 b^2 |m_z|^2 sum_k m_k^2 + c^2 sum_k m_k^4 <= B^2 (a^2 + 2 m b^2 + m c^2).

Under substitution a change has the square of both parts less twice their inner product. With S = m_z'm_z*/B and R_k = m_k m_k*/B in [-1, 1]
that product is B^2 (a^2 S^2 + 2 b^2 S sum_k R_k + c^2 sum_k R_k^2). It is NOT >= 0 for m > 1 (the products t_j t_k that would make the
matrix positive semi-definite are missing). Its least value over the cube is found exactly: every R_k = clip(-b^2 S/c^2) and then S.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from math import floor, isqrt, sqrt
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from confide._arrays import Array
from confide.core import Gram, RecordMap
from confide.core.exact import digest, pack
from confide.schema import ModelMatrix
from confide.sums.cells.cell_sums import WholeSums
from confide.sums.coding import (
    BITS,
    BOUND,
    Box,
    CodedRows,
    Codes,
    DesignRows,
    IndicatorRows,
    only,
    residual,
    round_within,
    scaled,
    steps,
    weights,
)
from confide.sums.integer_functions import FunctionOf


def together(designs: tuple[ModelMatrix, ...], formula: str) -> ModelMatrix:
    """One design for several responses: the common terms, then all responses but the last as terms, and the last as response."""
    first = designs[0]
    responses = [design.response for design in designs]
    bounds = tuple(sorted({pair for design in designs for pair in design.term_bounds}))
    return replace(
        first, formula=formula, terms=(*first.terms, *responses[:-1]), response=responses[-1], term_bounds=bounds
    )


@dataclass(frozen=True)
class LinearRows(CodedRows):
    """One record as sqrt(w) (z, sqrt(g2) t_1, ..., sqrt(g2) t_m) or, with `residual`, as w r z, in integer steps: |m|^2 <= 2^40.

    z = (1, x~) has d + 1 entries; w(|z|^2 + g2 |t|^2) <= cap + m g2 for every record because |z| >= 1, |t_k| <= 1. The Gram matrix of
    the first holds A, b and q, that of the second is the meat of a robust covariance. r = clip((t - z'theta)/limit, -1, 1). For every
    record, any theta, limit and box, |w z| <= sqrt(cap) and |r| <= 1. So the bound holds for those of earlier noisy outputs, and `at`
    gives the map there. The plan holds it at theta = 0 in the public box with the same sensitivity.

    cap : float
        Bound on the weighted squared length of z (at least 1).
    g2 : float
        Squared scale of a response against z.
    outcomes : int
        How many responses there are, of a design made by `together`.
    residual : int, optional
        The response that is multiplied in, from 0.
    recentred : bool
        The plan may measure it in noisy ranges.
    """

    design: ModelMatrix
    cap: float
    g2: float = 1.0
    outcomes: int = 1
    residual: int | None = None
    recentred: bool = False
    adaptive: bool = False
    box: Box | None = None
    theta: tuple[float, ...] = ()
    limit: float = 1.0

    @property
    def features(self) -> int:
        """Columns of x~, without the constant."""
        return len(self.design.terms) - self.outcomes + 1

    @property
    def width(self) -> int:
        return self.features + 1 + (self.outcomes if self.residual is None else 0)

    @property
    def steps(self) -> int:
        """Integer steps in one unit of a scaled row."""
        return steps(sqrt(self.cap + self.outcomes * self.g2 * (self.residual is None)), self.width)

    @property
    def digest(self) -> str:
        # box, theta and limit are left out: the bound holds for any, and the plan does not know them yet
        if self.residual is None:
            return self._digest("weighted rows", "joined rows", (), self.cap, self.g2)
        return self._digest("residual rows", "outcome residuals", (self.residual,), self.cap)

    def _digest(
        self, alone: str, several: str, which: tuple[int, ...], *numbers: float, after: tuple[object, ...] = ()
    ) -> str:
        """Of one response in the public box, or of several or in any box."""
        stated = ["adaptive"] if self.adaptive else [pack(number) for number in numbers]
        if self.outcomes == 1 and not self.recentred:
            return digest([alone, self.design.to_dict(), *stated, *after])
        return digest([several, self.design.to_dict(), self.outcomes, *which, *stated, *after])

    def at(self, theta: Iterable[float] = (), box: Box | None = None, limit: float = 1.0) -> Self:
        """The map at a line in a box, with a limit of residuals, all computed from earlier noisy outputs."""
        return replace(self, theta=tuple(float(v) for v in theta), box=box, limit=float(limit))

    def _weighted(self, codes: Codes) -> tuple[Codes, Codes]:
        """Rows (z, t_1, ..., t_m) and w, 0 for a record that is dropped."""
        box = self.box
        if box is not None:
            public, d = Box.of(self.design), self.features
            box = Box((*box.middle, *public.middle[d:]), (*box.half, *public.half[d:]))
        rows, keep = scaled(self.design, codes, box)
        with np.errstate(all="ignore"):
            return rows, only(weights(rows[: self.features + 1], self.cap), keep)

    def __call__(self, codes: Codes) -> Codes:
        rows, factor = self._weighted(codes)
        p = self.features + 1
        with np.errstate(all="ignore"):
            if self.residual is None:
                np.sqrt(factor, out=factor)
                rows[p:] *= sqrt(self.g2)
            else:
                r = residual(rows[:p], rows[p + self.residual], self.theta)
                if self.limit != 1.0:
                    r /= self.limit
                factor *= np.clip(r, -1.0, 1.0, out=r)
                rows = rows[:p]
            factor *= float(self.steps)
            rows *= factor
            return round_within(rows)


@dataclass(frozen=True)
class BlockRows(LinearRows):
    """One record as sqrt(w) z and sqrt(w) t_k, each in its own integer steps: |m_z|^2 <= 2^40 and every m_k^2 <= 2^40."""

    @property
    def l2_squared(self) -> int:
        return BOUND * (1 + self.outcomes)

    @property
    def l1(self) -> int:
        return floor(sqrt(self.features + 1) * (1 << BITS)) + 1 + self.outcomes * (1 << BITS)

    @property
    def steps(self) -> int:
        """Integer steps in one unit of z."""
        return steps(sqrt(self.cap), self.features + 1)

    @property
    def response_steps(self) -> int:
        """Integer steps in one unit of a response."""
        return steps(1.0, 1)

    @property
    def digest(self) -> str:
        return self._digest("block rows", "block rows", (), self.cap)

    def __call__(self, codes: Codes) -> Codes:
        rows, factor = self._weighted(codes)
        p = self.features + 1
        with np.errstate(all="ignore"):
            np.sqrt(factor, out=factor)
            rows *= factor
            rows[:p] *= float(self.steps)
            rows[p:] *= float(self.response_steps)
            round_within(rows[:p])
            for k in range(p, len(rows)):
                round_within(rows[k : k + 1])
        return rows


#: Cells of each feature's histogram.
CELLS = 64
# The levels of detail: neighboring cells are merged until enough of the records lie in cells above the noise.
_LEVELS = (64, 32, 16, 8)
_ENOUGH = 0.8


def ranged(design: ModelMatrix) -> tuple[int, ...]:
    """The terms that have a range to be found: all that take more than two values."""
    return tuple(j for j, term in enumerate(design.terms) if not term.binary and term.steps > 2)


@dataclass(frozen=True)
class Present(IndicatorRows):
    """1 for every record that the design uses, 0 for one that is dropped for a missing value."""

    design: ModelMatrix
    kind: ClassVar[str] = "present"

    def __call__(self, codes: Array) -> Array:
        _, keep = self.design.codes(codes)
        rows = codes.shape[1]
        return np.ones((1, rows)) if keep is None else keep[None, :].astype(np.float64)


@dataclass(frozen=True)
class CellIndices(DesignRows):
    """The cell of each ranged feature, counted from 1; 0 for a record that is dropped. Shape (ranged features, records)."""

    design: ModelMatrix
    kind: ClassVar[str] = "range cells"
    stated: ClassVar[tuple[int, ...]] = (CELLS,)

    @property
    def width(self) -> int:
        return len(ranged(self.design))

    @property
    def l1(self) -> int:
        return CELLS * self.width

    @property
    def l2_squared(self) -> int:
        return CELLS**2 * self.width

    def __call__(self, codes: Array) -> Array:
        own = ranged(self.design)
        rows = np.empty((len(own), codes.shape[1]))
        for row, cells in zip(rows, self.cells(codes), strict=True):
            np.minimum(cells, CELLS, out=row)
        return rows

    def cells(self, codes: Array) -> Iterator[NDArray[np.int32]]:
        """The rows one after the other, as whole numbers, the upper end in a cell behind the last; each is overwritten by the next."""
        terms, keep = self.design.codes(codes)
        scaled, found = np.empty(terms.shape[1]), np.empty(terms.shape[1], dtype=np.int32)
        for j in ranged(self.design):
            np.multiply(terms[j], CELLS / (self.design.terms[j].steps - 1), out=scaled)
            # what is left behind the point is cut off with the type; a missing code, below 0, is that of a record that does not count
            np.copyto(found, scaled, casting="unsafe")
            found += 1
            if keep is not None:
                found *= keep
            yield found


@dataclass(frozen=True)
class RangeCells(WholeSums):
    """Histograms of the ranged features, shape (features, 64): one record moves one cell of each by 1."""

    map: CellIndices
    norm: ClassVar[str] = "cells"

    @property
    def shape(self) -> tuple[int, int]:
        return (self.map.width, CELLS)

    def sensitivity_squared(self, relation: str) -> Fraction:
        return Fraction(self.map.width * (2 if relation == "substitute" else 1))

    def sensitivity_l1(self, relation: str) -> Fraction:
        return self.sensitivity_squared(relation)

    def update(self, state: NDArray[np.int64], codes: Array) -> NDArray[np.int64]:
        # two features at a time: most of the work is a step for each record and count, however many cells there are
        cells, width = self.map.cells(codes), CELLS + 2
        for place in range(0, len(state), 2):
            pairs = next(cells) * width
            if place + 1 < len(state):
                pairs += next(cells)
            counts = np.bincount(pairs, minlength=width**2).reshape(width, width)
            for row, own in zip(state[place : place + 2], (counts.sum(axis=1), counts.sum(axis=0)), strict=False):
                row += own[1:-1]
                row[-1] += own[-1]
        return state


def private_box(design: ModelMatrix, histograms: Array, sd: float) -> Box:
    """The box of noisy histograms: middle = mean, half of the width = sqrt(3) standard deviations of the cells above the noise.

    histograms: shape (ranged features, 64); `sd`: of the noise in each cell. A uniform feature keeps its width; a feature whose cells
    are all below the noise keeps its public box.
    """
    public = Box.of(design)
    middle, half = list(public.middle), list(public.half)
    for j, counts in zip(ranged(design), histograms, strict=True):
        found = _range(counts, sd)
        if found is not None:
            low, width = public.middle[j] - public.half[j], 2 * public.half[j]
            middle[j] = float(low + width * found[0])
            half[j] = float(min(width * found[1], public.half[j]))
    return Box(tuple(middle), tuple(half))


def found_ranges(histograms: Array, sd: float) -> tuple[bool, ...]:
    """Which ranged features' histograms, shape (features, 64), exceed their noise at some level of detail."""
    return tuple(_range(counts, sd) is not None for counts in histograms)


def _range(counts: Array, sd: float) -> tuple[float, float] | None:
    """(mean, sqrt(3) SD) in units of the feature's width, from 0; None when no level of detail exceeds the noise."""
    total = float(counts.sum())
    for cells in _LEVELS:
        keep = np.where(counts > 2 * sd, counts, 0.0)
        kept = float(keep.sum())
        if kept > 0 and kept >= _ENOUGH * total:
            middles = (np.arange(cells) + 0.5) / cells
            mean = float(keep @ middles) / kept
            spread = float(keep @ (middles - mean) ** 2) / kept
            return mean, sqrt(3 * (spread + 1 / cells**2 / 12))
        counts = counts[0::2] + counts[1::2]
        sd *= sqrt(2)
    return None


# The largest of the public integers (a, b, c): small ones leave room for large noise.
_DIGITS = 1 << 6


def multipliers(features: Fraction, cross: Fraction, square: Fraction) -> tuple[int, int, int]:
    """The integers (a, b, c) under which the three blocks cost about in the ratio features : cross : square; the largest is 64.

    Small integers leave room for large noise; the ratio is met to about 2%, and the cost of what is drawn is exact all the same.

    >>> multipliers(Fraction(1, 4), Fraction(1, 2), Fraction(1, 4)), multipliers(Fraction(1, 4), Fraction(7, 10), Fraction(1, 20))
    ((64, 64, 64), (54, 64, 24))
    """
    largest = max(features, cross / 2, square)
    a, b, c = (
        max(round(sqrt(share / largest) * _DIGITS), 1) for share in (Fraction(features), cross / 2, Fraction(square))
    )
    return a, b, c


def block_numbers(cap: float, g2: float) -> tuple[int, int, int]:
    """Public integers (a, b, c) near the ratio R2 : sqrt(R2 g2) : g2, with b^2 <= a c.

    >>> block_numbers(4.0, 1.0)
    (64, 32, 16)
    """
    top = max(cap, g2)
    a, c = (max(round(_DIGITS * part / top), 1) for part in (cap, g2))
    return a, max(isqrt(a * c), 1), c


@dataclass(frozen=True)
class BlockGram(FunctionOf):
    """The Gram matrix of a map whose last rows are the responses, its blocks times (a, b, c); shape (width, width).

    responses: how many; 0 stands for the products of two different ones.
    """

    map: RecordMap
    blocks: tuple[int, int, int]
    responses: int = 1
    norm: ClassVar[str] = "frobenius"

    @property
    def behind(self) -> Gram:
        return Gram(self.map, entry_bits=BITS)

    @property
    def shape(self) -> tuple[int, int]:
        return (self.map.width, self.map.width)

    def sensitivity_squared(self, relation: str) -> Fraction:
        m = self.responses
        a2, b2, c2 = (Fraction(x) ** 2 for x in self.blocks)
        whole = a2 + 2 * m * b2 + m * c2
        if relation != "substitute":
            return BOUND**2 * whole
        return BOUND**2 * 2 * (whole - least(a2, b2, c2, m))

    def sensitivity_l1(self, relation: str) -> Fraction:
        # |M|_1 <= width |M|_F, and isqrt rounds down
        return Fraction(self.map.width * (isqrt(int(self.sensitivity_squared(relation))) + 1))

    def moved_squared(self, own: Any, rows: Any) -> Any:
        """Squared changes in the Frobenius norm when the record with the row `own` gives way to each of `rows`."""
        a2, b2, c2 = (x * x for x in self.blocks)
        p = self.map.width - self.responses

        def inner(one: Any, other: Any) -> Any:
            features = (one[:p] * other[:p]).sum(axis=0)
            responses = one[p:] * other[p:]
            return a2 * features**2 + 2 * b2 * features * responses.sum(axis=0) + c2 * (responses**2).sum(axis=0)

        own = own[:, None]
        return inner(rows, rows) + inner(own, own) - 2 * inner(own, rows)

    def of(self, sums: NDArray[Any]) -> NDArray[Any]:
        whole = sums.copy()
        a, b, c = self.blocks
        p = self.map.width - self.responses
        whole[:p, :p] *= a
        whole[:p, p:] *= b
        whole[p:, :p] *= b
        whole[p:, p:] = np.diag(np.diag(whole)[p:] * c)
        return whole


def least(a2: Fraction, b2: Fraction, c2: Fraction, m: int) -> Fraction:
    """The minimum of a^2 S^2 + 2 b^2 S sum R_k + c^2 sum R_k^2 over |S|, |R_k| <= 1, exactly.

    For a given S every R_k is best at -b^2 S/c^2, clipped to [-1, 1]. So on |S| <= s0 = min(1, c^2/b^2) the value is S^2 times a number,
    least at an end. Beyond it the value is a^2 S^2 + m (c^2 - 2 b^2 |S|), least at m b^2/a^2 or an end.

    >>> least(Fraction(4), Fraction(2), Fraction(1), 1), least(Fraction(4), Fraction(2), Fraction(1), 2)
    (Fraction(0, 1), Fraction(-2, 1))
    """

    def at(s: Fraction) -> Fraction:
        r = min(b2 * s / c2, Fraction(1))
        return a2 * s * s + m * (c2 * r * r - 2 * b2 * s * r)

    turn = min(c2 / b2, Fraction(1))
    return min(Fraction(0), at(turn), at(min(max(m * b2 / a2, turn), Fraction(1))), at(Fraction(1)))
