"""Records under a generalized linear model at a known line: score and information of one record in one exact integer statistic.

A record has u = T'z, eta = z'theta and an outcome y. Its family (`fisher_families`) makes a residual r of it, an information h and a
bound m, |r| <= m for any outcome. Of the logit r = y - p, h = p (1 - p), m = max(p, 1 - p), p = 1/(1 + exp(-eta)). With k coefficients
and alpha = kappa/sqrt(k)

    N^2 = alpha^2 h^2 |u|^4 + m^2 |u|^2,   w = min(1, D/N),   A = sum w h u u',   g = sum w r u.

N depends on the features and on theta, never on y: weights do not bias the score where the model holds. T, theta, kappa and D come from
earlier noisy outputs, and for ANY of them one record's part obeys

    |alpha w h u u'|_F^2 + |w r u|^2 <= w^2 (alpha^2 h^2 |u|^4 + m^2 |u|^2) = w^2 N^2 <= D^2.

Counts weigh the two separately (`Family.score_part`, f). Information grows with the mean and takes most of N for extreme records, where
a score of weight D/N is missed in the line though its own length M = m |u| has room. With

    w = max(D/N, min(1, f D/M)) of the score,   v = min(1, D/N, sqrt(D^2 - w^2 M^2)/sqrt(N^2 - M^2)) of the information

where N > D, and w = v = 1 elsewhere, the bound is as before:

    |alpha v h u u'|_F^2 + |w r u|^2 <= v^2 (N^2 - M^2) + w^2 M^2 <= D^2,

since w M <= D: w = D/N leaves v = D/N, and else w M <= f D. Both depend on the features and on theta, never on y, and v <= D/N <= w.
The score is weighed nearer to 1, and what A has less of information than that is made up for by public numbers (`glm/draw`).

Score and information are not extreme together (|r| = 1 only where h = 0, and |r| = 1/2 where h is largest), so that one joint bound
costs less noise than two. In integers, with B = 2^20 and k coefficients,

    a = rint(S sqrt(w h) u), S^2 = (B - sqrt(k)/2 - 1)^2 alpha/D,     b = rint(S' w r u), S' = (B - sqrt(k)/2 - 1)/D,
    released: the symmetric matrix [[sum a a', c sum b], [c sum b', 0]],  c = 741,455 <= 2^19.5.

Sensitivity in the Frobenius norm: one record's square is |a|^4 + 2 c^2 |b|^2. Rows are reduced, whatever the floats were, until
(|a|^2/2^40)^2 + 2 c^2 |b|^2/2^80 <= 1 - 2^-40 in doubles. The squared lengths are sums of integers below 2^53 there, hence exact. The
four roundings of the test err by less than 2^-50, so that the square is at most 2^80: sensitivity 2^40 under add-remove. Under
substitution the triangle inequality gives 2^41, and no smaller factor holds. Two records with opposite saturated scores and no
information (|r| near 1, h near 0) attain it. `Gram` may not be used here: its sqrt(2) rests on positive matrices, and the score's part
has any sign.

The meat's rows are b alone, |w r u| <= w M <= D, with w, r, N at the line where they are summed: all are recomputed together. The
histogram counts N^2 in cells. The excess is sum q min((N/D - 1)+, 1), q = r^2 of the logit and |r|/m of the probit. Of counts it is sum
|r|/m min((1 - w) M/D, 1). It is one number to which a record adds from 0 to 1: it moves by 1 under both relations.

Under a survey's design a record counts by omega = min(w, W)/W in [0, 1] (`weighted_cells`). Its parts of A, g and the meat's rows are
omega w h u u' and omega w r u, and its part of the excess is omega times what it would be. N and w = min(1, D/N) are as without
weights, so that all parts are at most as long as those of omega = 1. Every bound above therefore stays, whatever W is, and is enforced
in integers all the same. W may follow from earlier noisy numbers. In the histogram of N^2 a record counts whole. A record without a
weight counts as nothing.

Float steps are elementwise, column by column; a record's integers must not depend on its batch.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, isqrt, sqrt
from typing import ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from confide._arrays import Array
from confide.core.exact import digest
from confide.methods.regression.glm.fisher_families import LOGIT, Family
from confide.methods.regression.sums.whitened_rows import Frame, InCoordinates
from confide.sums.cells.weighted_cells import CappedWeight, places_of_weights
from confide.sums.coding import (
    BITS,
    BOUND,
    LongRows,
    aligned,
    cell_among,
    lengths,
    leverage,
    only,
    round_within,
)

#: c: 2 c^2 <= 2^40.
CROSS = 741_455
#: Cells of the histogram of N^2, between edges k 2^(j/2) for j from -4 to 20.
INFORMATION_CELLS = 26
_EXPONENTS = range(-4, 21)
# What a joint square may be at most, in units of its bound.
_WITHIN = 1 - 2.0**-40
# Rounding adds at most e = sqrt(k)/2 to a length x, and (x + e)^2 <= (1 + e/(q B)) x^2 + e^2 + q e B for any q > 0, since 2 x e <=
# (e/(q B)) x^2 + q B e. So |h u|^2 and |w u|^2 alone, without a root, show that the joint bound is kept. With q = .8, s^4 + G^2 = 1, s and
# G what a and b have of their reach B - e - 1, this is at most 1 - .43/B for k <= 50: no record of finite numbers is ever looked at twice.
# Roundings are below 2^-45, and squares of coordinates that vanish below 2^-1074 count less than 2^-44 of a step, as h and w have squares.
_SURE, _SURELY, _TOUCHED = 50, 1 - 2.0**-30, 0.8
# Records whose rows, two of each coordinate, lie beside each other in a processor's own cache.
_NEAR = 1 << 12
# The least number that is divided by.
_NOTHING = 1e-300


class FisherParts(NamedTuple):
    """u (k, records); h, r, N (records,); which records count (None: all); m, |u|^2, omega (None: 1) (records,)."""

    u: Array
    information: Array
    residual: Array
    size: Array
    keep: NDArray[np.bool_] | None
    most: Array
    square: Array
    omega: Array | None


@dataclass(frozen=True)
class FisherMap(InCoordinates):
    """What the maps share. alpha weighs information against score in N; bound: D; family: h, r and m of a record; weight: of a design.

    apart: whether the score may have more weight than the information, where the family says so.
    """

    alpha: float = 1.0
    bound: float = 1.0
    family: Family = LOGIT
    weight: CappedWeight | None = None
    apart: bool = True

    def at(self, frame: Frame, alpha: float, bound: float) -> Self:
        """The map in the coordinates and at the line of a frame."""
        return replace(self, frame=frame, alpha=float(alpha), bound=float(bound))

    @property
    def width(self) -> int:
        return self.features

    @cached_property
    def columns(self) -> tuple[str, ...]:
        own = () if self.weight is None else self.weight.columns
        return (*self.design.columns, *(name for name in own if name not in self.design.columns))

    @cached_property
    def digest(self) -> str:
        # the frame, D and a cut are left out: the bounds hold for any, and the plan does not know them yet
        own = [] if self.family == LOGIT else [self.family.name]
        own += [] if self.weight is None else [self.weight.digest]
        return digest([type(self).__name__, self.design.to_dict(), *own])

    @property
    def reach(self) -> float:
        """B - sqrt(k)/2 - 1: what rows are scaled to, with room for rounding."""
        return (1 << BITS) - sqrt(self.features) / 2 - 1

    def parts(self, codes: Array, out: Array | None = None) -> FisherParts:
        """The record's parts at the line. out: where u may be written, shape (k + 1, records)."""
        terms, keep = self.design.codes(codes[: len(self.design.columns)])
        omega, keep = self._omega(codes, keep)
        steps = self.design.response.steps - 1
        rows = self.coordinates(terms, out)
        u = rows[:-1]
        # the last row of the coordinates is t - z'theta, t = 2 c/steps - 1
        eta = terms[-1] * (2.0 / steps)
        eta -= 1.0
        eta -= rows[-1]
        h, r, most = self.family.parts(eta, terms[-1], steps)
        square = leverage(u)
        size = h * square
        size *= self.alpha
        size *= size
        product = most * most
        product *= square
        size += product
        return FisherParts(u, h, r, np.sqrt(size, out=size), keep, most, square, omega)

    def _omega(self, codes: Array, keep: NDArray[np.bool_] | None) -> tuple[Array | None, NDArray[np.bool_] | None]:
        """(omega, which records count and have a weight)."""
        if self.weight is None:
            return None, keep
        rows = codes[[self.columns.index(name) for name in self.weight.columns]]
        omega, there = places_of_weights(self.weight, rows)
        return omega, there if keep is None else keep if there is None else keep & there

    def counted(self, parts: FisherParts) -> tuple[Array, Array]:
        """(omega v, omega w): what information counts, and what the score; one array where they are equal."""
        v, w = self.split(parts.size, parts.most, parts.square)
        if parts.omega is not None:
            v *= parts.omega
            if w is not v:
                w *= parts.omega
        return v, w

    def weights(self, size: Array) -> Array:
        """min(1, D/N)."""
        return np.asarray(self.bound / np.maximum(size, self.bound))

    def split(self, size: Array, most: Array, square: Array) -> tuple[Array, Array]:
        """(v, w) of records from N, m and |u|^2: new arrays, or one where the family weighs both alike."""
        both, reach = self.weights(size), self.family.score_part * self.bound
        if not (self.apart and reach):
            return both, both
        score = lengths(square) * most
        w = np.maximum(both, reach / np.maximum(score, reach))
        # what the score leaves of the bound, for what information asks of it
        left, asked = np.maximum(self.bound**2 - (w * score) ** 2, 0.0), size**2 - score**2
        v = np.sqrt(left / np.maximum(asked, np.maximum(left, _NOTHING)))
        return np.minimum(v, both), w

    def of_points(self, z: Array) -> tuple[Array, Array]:
        """(v, w) of public points, (points,) each, from z (points, k)."""
        return self.split(*self.sizes_of(z))

    def lengths_of(self, z: Array) -> tuple[Array, Array]:
        """(M, N) of public points, (points,) each: the longest that their scores can be, and score and information together."""
        size, most, square = self.sizes_of(z)
        return most * np.sqrt(square), size

    def missed(self, most: Array, square: Array) -> Array:
        """What scores of such points miss of their length at most, in units of D, with residuals up to the largest outcome, (points,)."""
        longest = np.minimum(most, 1.0) * np.sqrt(square)
        return np.asarray(np.maximum(longest / self.bound - (self.family.score_part or 1.0), 0.0))

    def sizes_of(self, z: Array) -> tuple[Array, Array, Array]:
        """(N, m, |u|^2) of public points, (points,) each."""
        assert self.frame is not None
        square = ((z @ self.frame.matrix) ** 2).sum(axis=1)
        eta = z @ self.frame.line
        most = self.family.most(eta)
        size = (self.alpha * self.family.information(eta) * square) ** 2 + most**2 * square
        return np.sqrt(size), most, square


@dataclass(frozen=True)
class FisherRows(FisherMap):
    """One record as (a, b), 2 k rows of integers, with |a|^4 + 2 c^2 |b|^2 <= 2^80."""

    #: |a|^2 + |b|^2 <= 2^40 (x + 1 - x^2) (1 + 2^-20) with x = |a|^2/2^40, at most 5/4 of 2^40.
    l2_squared: ClassVar[int] = BOUND + BOUND // 4 + (BOUND >> 19)

    @property
    def width(self) -> int:
        return 2 * self.features

    @property
    def l1(self) -> int:
        return isqrt(self.width * self.l2_squared) + 1

    @property
    def steps(self) -> tuple[float, float]:
        """(S^2, S'): steps in one unit of A and of g."""
        return self.reach**2 * self.alpha / self.bound, self.reach / self.bound

    def __call__(self, codes: Array) -> Array:
        return self.looked_at(codes)[0]

    def looked_at(self, codes: Array) -> tuple[Array, FisherParts]:
        """Rows and parts of records; u and h of the parts are used up."""
        k, (gram, cross) = self.features, self.steps
        own = aligned(2 * k + 1, codes.shape[1])
        with np.errstate(all="ignore"):
            parts = self.parts(codes, own[k:])
            u, h, r, _, keep = parts[:5]
            v, w = self.counted(parts)
            h *= v
            h *= gram
            np.sqrt(h, out=h)
            w *= r
            w *= cross
            only(h, keep)
            only(w, keep)
            for start in range(0, len(h), _NEAR):
                some = slice(start, start + _NEAR)
                near = own[:-1, some]
                np.multiply(u[:, some], h[some], out=near[:k])
                np.multiply(u[:, some], w[some], out=near[k:])
                np.rint(near, out=near)
            return _jointly_within(own[:-1], h, w, parts.square), parts


def _jointly_within(rows: Array, h: Array, w: Array, square: Array) -> Array:
    """Enforce the joint bound of (a, b) = (h u, w u), rounded to integers, for every column, in place, whatever the entries are.

    square: |u|^2. Up to `_SURE` coordinates lengths alone show that all columns keep it, as long as they are numbers.
    """
    if len(rows) <= 2 * _SURE and _surely_within(square, h, w, sqrt(len(rows) / 2) / 2):
        return rows
    # "not <=" rather than ">": a NaN must count as out of bounds
    bad = ~(_joint_square(rows) <= _WITHIN)
    if bad.any():
        most = 2.0 ** (BITS + 1)
        cut = np.clip(np.nan_to_num(rows[:, bad], nan=0.0, posinf=most, neginf=-most), -most, most)
        while (over := _joint_square(cut) > _WITHIN).any():
            cut[:, over] = np.trunc(cut[:, over] * (1 - 2.0**-10))
        rows[:, bad] = cut
    return rows


def _surely_within(square: Array, h: Array, w: Array, rounding: float) -> bool:
    """Whether lengths h |u| and |w| |u|, each with what rounding may add, keep the joint bound for every column. square: |u|^2."""
    reach = float(1 << BITS)
    more = (1 + rounding / (_TOUCHED * reach)) / BOUND
    rest = (rounding**2 + _TOUCHED * rounding * reach) / BOUND
    a = h * h
    a *= square
    a *= more
    a += rest
    a *= a
    b = w * w
    b *= square
    b *= 2.0 * CROSS**2 / BOUND * more
    a += b
    # what is no number fails
    return bool((a <= _SURELY - 2.0 * CROSS**2 / BOUND * rest).all())


def _joint_square(rows: Array) -> Array:
    """(|a|^2/2^40)^2 + 2 c^2 |b|^2/2^80 of each column."""
    k = len(rows) // 2
    a = np.einsum("ij,ij->j", rows[:k], rows[:k])
    a *= 1.0 / BOUND
    a *= a
    b = np.einsum("ij,ij->j", rows[k:], rows[k:])
    b *= 2.0 * CROSS**2 / BOUND**2
    a += b
    return np.asarray(a)


@dataclass(frozen=True)
class FisherScores(FisherMap):
    """One record as rint(S' w r u), |b|^2 <= 2^40: its Gram matrix is the meat of a robust covariance."""

    @property
    def steps(self) -> float:
        """S': integer steps in one unit of w r u."""
        return self.reach / self.bound

    def cut(self, r: Array, square: Array) -> None:
        """Shorten S' w r in place, where rows are to be shorter than D."""

    def __call__(self, codes: Array) -> Array:
        with np.errstate(all="ignore"):
            parts = self.parts(codes, aligned(self.features + 1, codes.shape[1]))
            rows, r = parts.u, parts.residual
            r *= self.counted(parts)[1]
            r *= self.steps
            only(r, parts.keep)
            self.cut(r, parts.square)
            rows *= r
            return round_within(rows, self.l2_squared, length=lengths(parts.square) * np.abs(r))


@dataclass(frozen=True)
class LongFisherScores(LongRows, FisherScores):
    """The same, limited to a length `limit` of at most D, in `longest` steps less room for rounding, |b|^2 <= longest^2.

    This is what a meat of persons or PSUs is made of. limit: from earlier noisy numbers.
    """

    longest: int = 1 << BITS
    limit: float = inf

    @property
    def steps(self) -> float:
        return self.reach / min(self.limit, self.bound)

    def cut(self, r: Array, square: Array) -> None:
        size = lengths(square)
        size *= np.abs(r)
        np.maximum(size, self.reach, out=size)
        r *= np.divide(self.reach, size, out=size)

    @property
    def reach(self) -> float:
        return self.longest - sqrt(self.features) / 2 - 1

    @cached_property
    def digest(self) -> str:
        return digest([super().digest, self.longest])

    def of_length(self, longest: int) -> Self:
        """The same with scores of so many steps."""
        return replace(self, longest=longest)


@dataclass(frozen=True)
class InformationIndices(FisherMap):
    """The cell of N^2 among public edges k 2^(j/2), j = -4..20, from 1 on, and 0 for a record that is dropped."""

    width: ClassVar[int] = 1
    cells: ClassVar[int] = INFORMATION_CELLS
    l1: ClassVar[int] = INFORMATION_CELLS
    l2_squared: ClassVar[int] = INFORMATION_CELLS**2

    @property
    def edges(self) -> Array:
        """Of N^2, (25,)."""
        return np.asarray(self.features * 2.0 ** (np.array(_EXPONENTS) / 2))

    def __call__(self, codes: Array) -> Array:
        with np.errstate(all="ignore"):
            size, keep = self.parts(codes, aligned(self.features + 1, codes.shape[1]))[3:5]
            size *= size
            return only(cell_among(self.edges.tolist(), size), keep)[None, :]
