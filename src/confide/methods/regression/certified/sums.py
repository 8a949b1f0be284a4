"""Moments of records whose length is clipped: sums of z z', of z t and of z clip(t - z'theta), and the smallest eigenvalue of the first.

A record is u = min(1, B/|z|) z with z = (1, x~), and the response t in [-1, 1]. Both are coded as integers (`sums.coding`): m = rint(S
u) with |m|^2 <= 2^40, and r = rint(2^20 t) with r^2 <= 2^40. One exact Gram matrix of (m, r) holds every sum; a spend is a part of it:

features : sum m m', with |m m'|_F = |m|^2 <= 2^40. Two of these matrices differ by at most sqrt(2) times that, being positive.
response : sum m r, with |m r| <= 2^40. Two of these vectors differ by at most twice that.
eigenvalue : the smallest eigenvalue of sum m m', in steps of 2^20: at most 2^20 steps under both relations.

The eigenvalue. A record adds m m', which is positive with norm at most 2^40. So the smallest eigenvalue of G + m m' lies between that
of G and that plus 2^40 (Weyl 1912). Replacing m by k moves it from G + m m' to G + k k', two numbers between those same bounds. The
number released is max(0, ceil(lambda/2^20) - 1). Because ceil and max keep order, and adding the whole number 2^20 commutes with ceil,
it moves by at most 2^40/2^20 = 2^20. Floats do not decide it: it is the largest k >= 0 for which k = 0 or G - k 2^20 I is positive
definite. Sylvester's criterion decides that in integers (Bareiss 1968), and floats only say where to look first.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import isfinite, isqrt, sqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from confide.core import Gram
from confide.core.exact import pack
from confide.errors import PlanError
from confide.schema import ModelMatrix
from confide.sums.coding import BITS, BOUND, CodedRows, Codes, only, residual, round_within, scaled, shortening, steps
from confide.sums.integer_functions import FunctionOf

_KINDS = ("features", "response", "eigenvalue")
# The response's own integers: |t| <= 1 in these steps.
_UNIT = 1 << BITS


def largest_length(design: ModelMatrix) -> float:
    """sqrt(1 + terms): no z = (1, x~) within the public bounds is longer."""
    return sqrt(1 + len(design.terms))


@dataclass(frozen=True)
class BoundedRows(CodedRows):
    """One record as integers (m, r): m = rint(S u), u = min(1, length/|z|) z, r = rint(2^20 t); width terms + 2, the response last.

    length : float
        Bound B on |u|, above 0; from `largest_length` on nothing is clipped.
    joint : bool
        Clip the whole row (z, t) to length B instead and code it with one S, so that |(m, r)|^2 <= 2^40. Without it |m|^2 <= 2^40 and
        r^2 <= 2^40.

    `steps` is S.

    >>> import numpy as np, confide as cf
    >>> design = cf.schema.ModelMatrix.of("y ~ x", cf.Schema({"x": cf.Numeric(0, 1, steps=3), "y": cf.Numeric(0, 1, steps=3)}))
    >>> rows = BoundedRows(design, 1.0)
    >>> np.round(rows(np.array([[2.0], [0.0]])) / [[rows.steps], [rows.steps], [2**20]], 3).T  # z = (1, 1), t = -1
    array([[ 0.707,  0.707, -1.   ]])
    """

    design: ModelMatrix
    length: float
    joint: bool = False
    kind: ClassVar[str] = "bounded rows"

    def __post_init__(self) -> None:
        if not (isfinite(self.length) and 1e-3 <= self.length <= 1e3):
            raise PlanError(
                f"the bound on a row's length must be from 0.001 to 1000, got {self.length!r}; rows (1, x~) have x~ in "
                "[-1, 1]. Leave it out and nothing is clipped"
            )

    @property
    def width(self) -> int:
        return len(self.design.terms) + 2

    @property
    def steps(self) -> int:
        """Integer steps in one unit of z."""
        return steps(self.length, self.width)

    @property
    def l2_squared(self) -> int:
        return BOUND if self.joint else 2 * BOUND

    @property
    def l1(self) -> int:
        return isqrt(self.width * self.l2_squared) + 1

    @property
    def stated(self) -> list[object]:
        return [pack(self.length), self.joint]

    def __call__(self, codes: Codes) -> Codes:
        rows, keep = scaled(self.design, codes)
        with np.errstate(all="ignore"):
            factor = shortening(rows if self.joint else rows[:-1], self.length)
            factor *= float(self.steps)
            present = np.ones(rows.shape[1]) if keep is None else keep.astype(np.float64)
            factor *= present
            if self.joint:
                rows *= factor
                return round_within(rows)
            rows[:-1] *= factor
            rows[-1] *= float(_UNIT)
            rows[-1] *= present
            rows[:-1] = round_within(rows[:-1])
            rows[-1:] = round_within(rows[-1:])
        return rows


@dataclass(frozen=True)
class ClippedResidualRows(CodedRows):
    """One record as S u clip(t - z'theta, -clip, clip) in integers, u = min(1, length/|z|) z: |m|^2 <= 2^40 for any theta.

    length: as in `BoundedRows`; clip: above 0, in half-ranges of the response; theta (terms + 1,): () for 0, `at(theta)` for a line that
    was computed from earlier noisy outputs. The residual is that of the clipped row, t - u'theta, as in the source of the method.
    `unit` is the number of integer steps in one scaled unit.
    """

    design: ModelMatrix
    length: float
    clip: float
    theta: tuple[float, ...] = ()
    kind: ClassVar[str] = "clipped residual rows"

    def __post_init__(self) -> None:
        BoundedRows(self.design, self.length)
        if not (isfinite(self.clip) and 1e-3 <= self.clip <= 1e3):
            raise PlanError(
                f"the bound on a residual must be from 0.001 to 1000 half-ranges of the response, got {self.clip!r}; 1 is the usual one"
            )

    @property
    def width(self) -> int:
        return len(self.design.terms) + 1

    @property
    def unit(self) -> float:
        """Integer steps in one unit of u times one half-range of the response."""
        return float(steps(self.length * self.clip, self.width))

    @property
    def stated(self) -> list[object]:
        # theta is left out: the bound holds for any, and the plan does not know it yet
        return [pack(self.length), pack(self.clip)]

    def at(self, theta: NDArray[np.float64]) -> ClippedResidualRows:
        """The map at another line, shape (terms + 1,), in scaled units."""
        return replace(self, theta=tuple(float(v) for v in theta))

    def __call__(self, codes: Codes) -> Codes:
        rows, keep = scaled(self.design, codes)
        with np.errstate(all="ignore"):
            score = rows[:-1]
            score *= shortening(score, self.length)
            r = residual(score, rows[-1], self.theta)
            np.clip(r, -self.clip, self.clip, out=r)
            r *= self.unit
            score *= only(r, keep)
            return round_within(score)


@dataclass(frozen=True)
class Part(FunctionOf):
    """One part of the exact Gram matrix of bounded rows, as a statistic: "features", "response" or "eigenvalue".

    map: not joint. `of(whole)` takes the part from the Gram matrix of the same map, so that one pass serves all parts.
    Shapes: (p, p), (p,), (1,) with p = terms + 1. Sensitivities and their proofs: see the head of this file.
    """

    map: BoundedRows
    kind: str

    def __post_init__(self) -> None:
        if self.kind not in _KINDS or self.map.joint:
            raise PlanError(f"a part is one of {', '.join(_KINDS)} of rows that are not joint, got {self.kind!r}")

    @property
    def _size(self) -> int:
        return self.map.width - 1

    @property
    def shape(self) -> tuple[int, ...]:
        return {"features": (self._size, self._size), "response": (self._size,), "eigenvalue": (1,)}[self.kind]

    @property
    def norm(self) -> str:  # type: ignore[override]
        return "frobenius" if self.kind == "features" else "l2"

    def sensitivity_squared(self, relation: str) -> Fraction:
        if self.kind == "eigenvalue":
            return Fraction(BOUND)
        factor = 1 if relation != "substitute" else 2 if self.kind == "features" else 4
        return Fraction(BOUND) ** 2 * factor

    def sensitivity_l1(self, relation: str) -> Fraction:
        # |v|_1 <= sqrt(entries) |v|_2, rounded up
        entries = int(np.prod(self.shape))
        return Fraction(isqrt(int(self.sensitivity_squared(relation)) * entries) + 1)

    def moved_squared(self, own: Any, rows: Any) -> Any:
        """Squared changes when the record with row `own` gives way to each of `rows`; of the eigenvalue, the most in any company."""
        (before, response), (after, responses) = (own[:-1], own[-1]), (rows[:-1], rows[-1])
        if self.kind == "response":
            return ((after * responses - (before * response)[:, None]) ** 2).sum(axis=0)
        lengths, length = (after * after).sum(axis=0), (before * before).sum()
        if self.kind == "eigenvalue":
            return (-(-np.maximum(lengths, length) // _UNIT)) ** 2
        return lengths**2 + length**2 - 2 * (before[:, None] * after).sum(axis=0) ** 2

    @property
    def behind(self) -> Gram:
        return moments(self.map)

    def of(self, whole: NDArray[Any]) -> NDArray[Any]:
        """This part of the exact Gram matrix of (m, r), shape (terms + 2, terms + 2)."""
        if self.kind == "response":
            return np.asarray(whole[:-1, -1])
        features = np.asarray(whole[:-1, :-1])
        return features if self.kind == "features" else np.array([smallest_eigenvalue(features, _UNIT)], dtype=object)

    def decode(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """From integers to scaled units: of z z', of z t, of the eigenvalue."""
        return values / self.unit

    @property
    def unit(self) -> float:
        """Integers in one scaled unit of this part."""
        own = float(self.map.steps)
        return {"features": own * own, "response": own * _UNIT, "eigenvalue": own * own / _UNIT}[self.kind]


def moments(rows: BoundedRows) -> Gram:
    """The exact Gram matrix of (m, r), from which every `Part` is taken."""
    return Gram(rows, entry_bits=BITS)


def smallest_eigenvalue(gram: NDArray[Any], step: int) -> int:
    """The largest k >= 0 such that k = 0 or gram - k step I is positive definite, for a symmetric matrix of integers; exact.

    It is max(0, ceil(lambda/step) - 1) with lambda the smallest eigenvalue.

    >>> smallest_eigenvalue(np.array([[5, 1], [1, 5]], dtype=object), 1), smallest_eigenvalue(np.array([[5, 1], [1, 5]], dtype=object), 3)
    (3, 1)
    """
    whole = [[int(v) for v in row] for row in gram]
    # k = low is right or 0, k = high is too much: no eigenvalue is above the smallest diagonal entry
    low, high = 0, -(-min(whole[i][i] for i in range(len(whole))) // step)
    guess = float(np.linalg.eigvalsh(np.array(whole, dtype=np.float64))[0]) / step
    k, reach = int(np.ceil(guess)) - 1 if isfinite(guess) else 1, 1
    raised = lowered = False
    while high - low > 1:
        k = min(max(k, low + 1), high - 1)
        if positive_definite(_less(whole, k * step)):
            low, raised = k, True
        else:
            high, lowered = k, True
        # outward from where floats see it, ever faster, until it is between two tests; then by halves
        k = (low + high) // 2 if raised and lowered else low + reach if raised else high - reach
        reach *= 2
    return low


def _less(matrix: list[list[int]], amount: int) -> list[list[int]]:
    """matrix - amount I."""
    return [[value - amount * (i == j) for j, value in enumerate(row)] for i, row in enumerate(matrix)]


def positive_definite(matrix: list[list[int]]) -> bool:
    """Whether a symmetric matrix of integers is positive definite: all leading minors above 0, by elimination without fractions.

    Source: Bareiss 1968, whose pivots are the leading minors (Sylvester's criterion).

    >>> positive_definite([[2, 1], [1, 2]]), positive_definite([[1, 1], [1, 1]])
    (True, False)
    """
    rows = [list(row) for row in matrix]
    before = 1
    for k, pivot_row in enumerate(rows):
        pivot = pivot_row[k]
        if pivot <= 0:
            return False
        for i in range(k + 1, len(rows)):
            row, ahead = rows[i], pivot_row[i]
            # symmetric: only the part right of the diagonal is needed
            row[i:] = [
                (own * pivot - ahead * other) // before for own, other in zip(row[i:], pivot_row[i:], strict=True)
            ]
        before = pivot
    return True
