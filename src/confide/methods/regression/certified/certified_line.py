"""The least-squares line of records of bounded length, and how far one record moves it where the least eigenvalue is certified.

A record is a row u and a response r, weighted jointly by w = min(1, cap/|z|^2) of its features alone, so that under a linear model
weighting costs no bias: (u, r) = sqrt(w) (z, t). With an intercept z = (1, x~) and t are measured from the middle of the public bounds in
half-widths; without one z = x/H and t = y/H from 0, H the larger of the two bounds in size. Coded rows m = rint(S (u, r)) obey
|m_u|^2 <= U and |m_r| <= T whatever the floats did; X = sqrt(U)/S and Y = T/S are then exact bounds on |u| and |r|.

For phi = A^-1 b, A = sum u u', b = sum u r, projected radially to |phi| <= R, and L the smallest eigenvalue of A, under substitute:

    (a) L moves by at most X^2. A record adds u u', which is positive with norm at most X^2, to a sum that both data sets share (Weyl 1912).
    (b) Where L(A) >= lam + X^2, every neighbour has L(A') >= lam, and phi moves by at most alpha = X^2 R kappa(Y/(X R))/lam.

Proof of (b). For the unprojected lines A'(phi' - phi) = (b' - b) - (A' - A) phi, whose length is at most the largest, over unit vectors
e, of f(u', r') - f(u, r), f(u, r) = (e'u)(r - u'phi). With |phi| = s, angles a, b of u', u to e and c of phi to e, this is
(X^2 s/2)(cos(2b - c) - cos(2a - c)) + X Y (|cos a| + |cos b|) at most; rows shorter than X are no worse in two dimensions or more, where
f has no interior extreme. By sums of half angles it is at most the largest over d of 2 cos d (X^2 s sin d + X Y) = X^2 s kappa(Y/(X s)),
at sin d = (sqrt(q^2 + 8) - q)/4, q = Y/(X s). By symmetry s is the smaller of the two lengths. If s <= R, projection moves points no
further apart, and s kappa(Y/(X s)) grows with s. If s > R, both lie outside the ball and |v/|v| - v'/|v'|| <= |v - v'|/s gives
R X^2 kappa(Y/(X s))/lam, and kappa grows with its argument, which falls in s. The source has 4 for kappa(1) = 2.598, 2 X^2 in (a), and the
length of the projected line in place of s, for which its identity does not hold.

Released is rint(2^20 phi/alpha): it moves by 2^20 steps, sqrt(p) for rounding, and as many again for floats, whatever lam is. The equations
are solved in exact integers; floats enter when phi is scaled, with an error below half a step up to 10^9 records.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, sqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from confide._arrays import Array
from confide.aggregates.function_of import FunctionOf
from confide.aggregates.lines.bounded_rows import smallest_eigenvalue
from confide.aggregates.lines.rows import (
    BITS,
    Box,
    CodedRows,
    Codes,
    only,
    residual,
    round_within,
    scaled,
    steps,
    weights,
)
from confide.aggregates.safety_formulas import ols_alpha
from confide.protocol import SAFETY_STEPS, Gram, Statistic
from confide.protocol.exact import digest, pack
from confide.schema import Design

__all__ = [
    "CertifiedLine",
    "JointRows",
    "LeastEigenvalue",
    "ResidualSquares",
    "Safety",
    "chart",
    "solve_exactly",
]


_FINE = 1 << BITS


def chart(design: Design) -> tuple[Array, Array, float, float]:
    """(middle, half, middle of y, half of y): where rows are measured from, in the data's units; from 0 without an intercept."""
    low = np.array([float(term.low) for term in (*design.terms, design.response)])
    high = np.array([float(term.high) for term in (*design.terms, design.response)])
    middle, half = low + (high - low) / 2, (high - low) / 2
    if not design.intercept:
        middle, half = np.zeros(len(low)), np.maximum(np.abs(low), np.abs(high))
    return middle[:-1], half[:-1], float(middle[-1]), float(half[-1])


def _measured(design: Design, codes: Codes) -> tuple[Codes, NDArray[np.bool_] | None]:
    """Rows (z, t) in the units of `chart`, shape (coefficients + 1, records), and which records count (None: all)."""
    if design.intercept:
        return scaled(design, codes)
    middle, half, _, y_half = chart(design)
    rows, keep = scaled(design, codes, Box(tuple(middle), tuple(half)))
    low, high = float(design.response.low), float(design.response.high)
    rows[-1] *= (high - low) / 2 / y_half
    rows[-1] += (low + (high - low) / 2) / y_half
    return rows[1:], keep


@dataclass(frozen=True)
class JointRows(CodedRows):
    """One record as integers rint(S sqrt(w) (z, t)), w = min(1, cap/|z|^2): shape (coefficients + 1, rows), the response last.

    `longest` is U, `largest` T, `steps` S, as above. cap: at least 1 with an intercept, above 0 without.
    """

    design: Design
    cap: float
    kind: ClassVar[str] = "joint rows"

    @property
    def width(self) -> int:
        return len(self.design.names) + 1

    @property
    def steps(self) -> int:
        """Integer steps in one unit of z and t."""
        return steps(sqrt(self.cap + 1), self.width)

    @property
    def longest(self) -> int:
        """U, a multiple of 2^20: a bound on the squared length of the coded z."""
        own = self.steps * sqrt(self.cap) + sqrt(self.width) / 2 + 1
        return (int(own * own) // _FINE + 1) * _FINE

    @property
    def largest(self) -> int:
        """T: a bound on the size of the coded t."""
        return self.steps + 2

    @property
    def bounds(self) -> tuple[float, float]:
        """(X, Y), rounded up in their last digits."""
        return sqrt(self.longest) / self.steps * (1 + 2.0**-40), self.largest / self.steps * (1 + 2.0**-40)

    @property
    def least(self) -> float:
        """X^2, the least eigenvalue that is worth a certificate."""
        return self.bounds[0] ** 2

    @property
    def stated(self) -> list[object]:
        return [pack(self.cap)]

    def __call__(self, codes: Codes) -> Codes:
        rows, keep = _measured(self.design, codes)
        with np.errstate(all="ignore"):
            factor = weights(rows[:-1], self.cap)
            np.sqrt(factor, out=factor)
            factor *= float(self.steps)
            rows *= only(factor, keep)
            rows = round_within(rows)
            inside = (np.einsum("ij,ij->j", rows[:-1], rows[:-1]) <= self.longest) & (np.abs(rows[-1]) <= self.largest)
        # the bounds must not rest on floats; no record has been seen to break them
        rows[:, ~inside] = 0.0
        return rows


@dataclass(frozen=True)
class ResidualSquares(CodedRows):
    """2^18 clip(t - z'phi, -2, 2)^2 of a record, not weighted: in [0, 2^20] for any phi. `at(phi)` is the map at a released line.

    A response and a line within the bounds are up to two half-ranges apart, and with two-valued responses they often are.
    """

    design: Design
    phi: tuple[float, ...] = ()
    unit: ClassVar[int] = _FINE // 4

    width: ClassVar[int] = 1
    l1: ClassVar[int] = 4 * unit

    @property
    def digest(self) -> str:
        # phi is left out: the bound holds for any, and the plan does not know it yet
        return digest(["residual squares", 2, self.design.to_dict()])

    def at(self, phi: Array) -> ResidualSquares:
        """The map at a line computed from earlier noisy outputs."""
        return replace(self, phi=tuple(float(v) for v in phi))

    def __call__(self, codes: Codes) -> Codes:
        rows, keep = _measured(self.design, codes)
        with np.errstate(all="ignore"):
            r = residual(rows[:-1], rows[-1], self.phi)
            np.clip(r, -2.0, 2.0, out=r)
            r *= r
            r *= float(self.unit)
            return round_within(only(r, keep)[None, :])


@dataclass(frozen=True)
class _OfGram(FunctionOf):
    """A function of the exact Gram matrix of joint rows. `of(gram)` is its value, so that one pass serves several."""

    map: JointRows

    @property
    def behind(self) -> Statistic:
        return Gram(self.map)


@dataclass(frozen=True)
class LeastEigenvalue(_OfGram):
    """The smallest eigenvalue of sum u u' in steps of X^2/2^20, max(0, ceil(L/step) - 1), in exact arithmetic."""

    @property
    def moved(self) -> int:
        return _FINE

    @property
    def step(self) -> int:
        """One step in the integers of the Gram matrix."""
        return self.map.longest // self.moved

    @property
    def unit(self) -> float:
        """Steps in one unit of A."""
        return self.map.steps**2 / self.step

    def of(self, gram: NDArray[Any]) -> NDArray[Any]:
        return np.array([smallest_eigenvalue(gram[:-1, :-1], self.step)], dtype=object)

    def moved_squared(self, own: Any, rows: Any) -> Any:
        """Squared bounds, in steps, over any company: from the longer of the two rows."""
        lengths = np.maximum((rows[:-1] * rows[:-1]).sum(axis=0), (own[:-1] * own[:-1]).sum())
        return (-(-lengths // self.step)) ** 2


@dataclass(frozen=True)
class Safety(LeastEigenvalue):
    """The safety (L - lam0 - X^2)_+ / X^2 in 1024 steps of one unit, rounded down: above 0 only where (b) holds with lam0."""

    lam0: float = 1.0
    moved: ClassVar[int] = SAFETY_STEPS

    def of(self, gram: NDArray[Any]) -> NDArray[Any]:
        floor = ceil((Fraction(self.lam0) * self.map.steps**2 + self.map.longest) / self.step)
        return np.array([max(int(super().of(gram)[0]) - floor, 0)], dtype=object)


@dataclass(frozen=True)
class CertifiedLine(_OfGram):
    """rint(2^20 phi/alpha), phi projected to |phi| <= radius, alpha for a least eigenvalue of `lam` at every neighbour (`at`)."""

    radius: float = 1.0
    lam: float = 1e9

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.map.width - 1,)

    @property
    def moved(self) -> int:
        return _FINE + 2 * ceil(sqrt(self.shape[0]))

    @property
    def alpha(self) -> float:
        """How far phi moves at most where (b) holds; lam is at least X^2."""
        return ols_alpha(*self.map.bounds, self.radius, self.lam)

    def at(self, lam: float) -> CertifiedLine:
        """The line in the steps of another certified eigenvalue, public or from an earlier noisy output, at least X^2."""
        return replace(self, lam=float(lam))

    def of(self, gram: NDArray[Any]) -> NDArray[Any]:
        whole = [[int(v) for v in row] for row in gram]
        numerators, determinant = solve_exactly([row[:-1] for row in whole[:-1]], [row[-1] for row in whole[:-1]])
        top = max(map(abs, numerators))
        if top > determinant << 500:  # nearly singular: only the direction is left, and floats could not hold the rest
            phi = np.array([v / top for v in numerators])
            phi *= self.radius / float(np.linalg.norm(phi))
        else:
            phi = np.array([v / determinant for v in numerators])
        largest = float(np.abs(phi).max())
        if largest > self.radius:
            phi = phi / largest
            phi *= self.radius / float(np.linalg.norm(phi))
        phi *= min(1.0, self.radius / max(float(np.linalg.norm(phi)), self.radius))
        return np.array([int(v) for v in np.rint(phi * (_FINE / self.alpha))], dtype=object)

    def decode(self, values: Array) -> Array:
        """phi, shape (p,), from values in steps."""
        return np.asarray(values * (self.alpha / _FINE))

    def moved_squared(self, own: Any, rows: Any) -> Any:
        """Squares of how far, in steps, the line can move when `own` gives way to each of `rows`: over all lines on the sphere."""
        before, after = np.asarray(own, dtype=np.float64) / self.map.steps, np.asarray(rows, dtype=np.float64)
        after = after / self.map.steps
        one, many = float(np.linalg.norm(before[:-1])), np.linalg.norm(after[:-1], axis=0)
        inner = before[:-1] @ after[:-1]
        turn = np.arccos(np.clip(inner / np.maximum(one * many, 1e-300), -1.0, 1.0))
        angle = np.linspace(0.0, 2 * np.pi, 361)
        first = self.radius * one * np.cos(angle)[:, None] - before[-1]
        second = self.radius * many * np.cos(angle[:, None] - turn) - after[-1]
        squares = (many * second) ** 2 + (one * first) ** 2 - 2 * inner * first * second
        reach = np.sqrt(np.maximum(squares, 0.0).max(axis=0)) / self.lam / self.alpha
        return (reach * _FINE) ** 2


def solve_exactly(matrix: list[list[int]], right: list[int]) -> tuple[list[int], int]:
    """(numerators, determinant) of the solution for a symmetric positive definite matrix of integers, without fractions.

    Zeros over 1 where the matrix is not positive definite. Source: Bareiss 1968, all rows eliminated.

    >>> solve_exactly([[2, 1], [1, 3]], [3, 4])
    ([5, 5], 5)
    """
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    before = 1
    for k in range(len(rows)):
        pivot_row = rows[k]
        pivot = pivot_row[k]
        if pivot <= 0:
            return [0] * len(rows), 1
        for i, row in enumerate(rows):
            if i != k:
                head = row[k]
                rows[i] = [(own * pivot - head * other) // before for own, other in zip(row, pivot_row, strict=True)]
        before = pivot
    return [row[-1] for row in rows], before
