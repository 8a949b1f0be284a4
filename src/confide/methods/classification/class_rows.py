"""Records by class, in exact integers: what class sums, counts and second moments are sums of.

A record of class k is u = (x - C)/H, C and H middle and half-width of the public bounds, moved into the ball |u| <= R, and stands in the
block of its class, all others being 0. With B = 2^20 steps for R and T steps for a count, a row is (S u in block k, T in place k):

    add-remove   one row has squared length |S u|^2 + T^2, at most B^2 + T^2.
    substitute   in the same class the counts cancel and |S u - S u'| <= 2 B. In two classes the blocks do not overlap, and the
                 squared distance is |S u|^2 + |S u'|^2 + 2 T^2, at most 2 B^2 + 2 T^2. So the sensitivity is exactly 2 B
                 for any T <= B: counts at T = B ride for free.

Under add-remove counts are not free, so that they are taken at T = B/2: sqrt(1.25) B in all where T = B would give sqrt(2) B.

Source: Shen, Tong, Wang 2026 have means and proportions; sums and counts in one release: docs/methods/class_means.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import floor, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.aggregates.rows import BITS, BOUND, Codes, round_within, scaled, steps
from confide.methods.classification.class_design import ClassDesign
from confide.protocol import Total
from confide.protocol.exact import digest, pack
from confide.schema import Categorical, Schema

__all__ = ["ClassRows", "ClassTotal", "SquareRows", "class_pairs"]

_ONE = 1 << BITS


def _members(own: ClassDesign, radius: float, codes: Codes) -> tuple[Codes, list[NDArray[np.bool_]]]:
    """u in the ball, shape (terms, records), and for each class who belongs to it."""
    rows, keep = scaled(own.design, codes)
    last = len(own.classes) - 1
    place = np.rint((rows[-1] + 1.0) * (last / 2))
    u = np.ascontiguousarray(rows[1:-1])
    with np.errstate(all="ignore"):
        length = np.zeros(u.shape[1])
        square = np.empty(u.shape[1])
        for row in u:
            np.multiply(row, row, out=square)
            length += square
        np.sqrt(length, out=length)
        np.divide(radius, length, out=length)
        np.minimum(length, 1.0, out=length)
        u *= length
    members = [np.asarray(place == k) for k in range(last + 1)]
    return u, members if keep is None else [who & keep for who in members]


@dataclass(frozen=True)
class _ByClass:
    """What maps of records by class share."""

    own: ClassDesign
    radius: float

    @property
    def columns(self) -> tuple[str, ...]:
        return self.own.design.columns

    @property
    def block(self) -> int:
        """Features."""
        return len(self.own.design.terms)

    def _spread(self, rows: Codes, members: list[NDArray[np.bool_]], width: int) -> Codes:
        """Rows of features into the block of each record's class."""
        out = np.zeros((width, rows.shape[1]))
        for k, who in enumerate(members):
            np.copyto(out[k * self.block : (k + 1) * self.block], rows, where=who)
        return out


@dataclass(frozen=True)
class ClassRows(_ByClass):
    """One record as its S u in the block of its class, then `per_count` in the place of its class: width classes (features + 1).

    per_count: T, from 1 to 2^20.

    >>> import confide as cf
    >>> own = ClassDesign.of("kind ~ x", cf.Schema({"kind": cf.Categorical(["a", "b"]), "x": cf.Numeric(0, 2, steps=3)}))
    >>> ClassRows(own, 1.0)(np.array([[2.0, 0.0], [0.0, 1.0]])).T.tolist()
    [[1048574.0, 0.0, 1048576.0, 0.0], [0.0, -1048574.0, 0.0, 1048576.0]]
    """

    per_count: int = _ONE

    @property
    def width(self) -> int:
        return len(self.own.classes) * (self.block + 1)

    @property
    def steps(self) -> int:
        """S: integer steps in one half-width."""
        return steps(self.radius, self.block)

    @property
    def longest(self) -> int:
        """B: no |S u| is larger."""
        return _ONE

    @property
    def l2_squared(self) -> int:
        return BOUND + self.per_count**2

    @property
    def l1(self) -> int:
        return floor(sqrt(self.block) * _ONE) + 1 + self.per_count

    @property
    def digest(self) -> str:
        return digest(["class rows", self.own.digest, pack(self.radius), self.per_count])

    def __call__(self, codes: Codes) -> Codes:
        u, members = _members(self.own, self.radius, codes)
        u *= float(self.steps)
        out = self._spread(round_within(u), members, self.width)
        for place, who in zip(out[len(members) * self.block :], members, strict=True):
            np.copyto(place, float(self.per_count), where=who)
        return out

    def decode(self, values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(counts (classes,), sums of u (classes, features)) from sums of rows."""
        k = len(self.own.classes)
        return values[k * self.block :] / self.per_count, values[: k * self.block].reshape(k, -1) / self.steps


@dataclass(frozen=True)
class SquareRows(_ByClass):
    """One record as its u_j^2 in the block of its class, in integer steps.

    |u_j| <= 1 and |u| <= R give sum u_j^4 <= max u_j^2 sum u_j^2 <= (R min(1, R))^2.
    """

    l2_squared: int = field(default=BOUND, init=False)

    @property
    def width(self) -> int:
        return len(self.own.classes) * self.block

    @property
    def steps(self) -> int:
        """Integer steps in one squared half-width."""
        return steps(self.radius * min(1.0, self.radius), self.block)

    @property
    def l1(self) -> int:
        return floor(sqrt(self.block) * _ONE) + 1

    @property
    def digest(self) -> str:
        return digest(["class squares", self.own.digest, pack(self.radius)])

    def __call__(self, codes: Codes) -> Codes:
        u, members = _members(self.own, self.radius, codes)
        u *= u
        u *= float(self.steps)
        return self._spread(round_within(u), members, self.width)

    def decode(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sums of u_j^2, shape (classes, features)."""
        return np.asarray(values.reshape(len(self.own.classes), -1) / self.steps)


@dataclass(frozen=True)
class ClassTotal(Total):
    """The sum of class rows, with the exact sensitivity of both relations."""

    def sensitivity_squared(self, relation: str) -> Fraction:
        rows = self.map
        assert isinstance(rows, ClassRows)
        if relation == "substitute":
            return Fraction(max(4 * rows.longest**2, 2 * rows.longest**2 + 2 * rows.per_count**2))
        return Fraction(rows.l2_squared)


def class_pairs(own: ClassDesign, schema: Schema) -> Iterable[tuple[Mapping[str, Any], ...]]:
    """Two opposite corners in one class, and in two. None with derived or categorical features."""
    names = [term.plain for term in own.design.terms]
    if None in names:
        return
    label = schema[own.response]
    first, last = (own.classes[0], own.classes[-1]) if isinstance(label, Categorical) else (label.low, label.high)
    ends = [(float(term.low), float(term.high)) for term in own.design.terms]
    low, high = ({str(name): end[side] for name, end in zip(names, ends, strict=True)} for side in (0, 1))
    yield {**low, own.response: first}, {**high, own.response: first}
    yield {**low, own.response: first}, {**high, own.response: last}
