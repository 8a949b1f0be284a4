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

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from math import floor, sqrt
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from confide.aggregates.lines.rows import BITS, BOUND, Codes, round_within, scaled, steps
from confide.methods.classification.class_design import ClassDesign
from confide.protocol import Beginning, SparseMap, Total
from confide.protocol.exact import digest, pack
from confide.schema import Categorical, Design, Schema

__all__ = ["ClassRows", "ClassTotal", "SquareRows", "class_pairs", "members_of", "placed"]

_ONE = 1 << BITS
# u in the ball, shape (terms, records), and the class of each record, from 0, the number of classes for one that is dropped. Read only.
Placed: TypeAlias = tuple[Codes, NDArray[np.int64]]
# Places of one number of each record, and the numbers.
Entry: TypeAlias = tuple[NDArray[np.int64], Codes]


def members_of(own: ClassDesign, radius: float, codes: Codes) -> tuple[Codes, list[NDArray[np.bool_]]]:
    """u in the ball, shape (terms, records), and for each class who belongs to it."""
    u, place = placed(own, radius, codes)
    return u, [np.asarray(place == k) for k in range(len(own.classes))]


@dataclass(frozen=True)
class Placing(Beginning):
    """Where records stand: what maps by class compute alike, from the codes of a design's columns to `Placed` records."""

    own: ClassDesign
    radius: float

    def __call__(self, codes: Codes) -> Placed:
        return placed(self.own, self.radius, codes)


def placed(own: ClassDesign, radius: float, codes: Codes) -> Placed:
    """u in the ball, shape (terms, records), and the class of each record, from 0; the number of classes for one that is dropped."""
    rows, keep = scaled(own.design, codes)
    last = len(own.classes) - 1
    number = np.rint((rows[-1] + 1.0) * (last / 2))
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
    if keep is not None:
        number[~keep] = last + 1
    return u, number.astype(np.int64)


@dataclass(frozen=True)
class _ByClass(SparseMap):
    """What maps of records by class share: a record's numbers stand in the block of its class, all others are 0."""

    own: ClassDesign
    radius: float

    @property
    def columns(self) -> tuple[str, ...]:
        return self.own.design.columns

    @property
    def derived_by(self) -> Design:
        return self.own.design

    @property
    def block(self) -> int:
        """Features."""
        return len(self.own.design.terms)

    @property
    def width(self) -> int:
        raise NotImplementedError

    @cached_property
    def begins(self) -> Placing:
        return Placing(self.own, self.radius)

    def sparse_of(self, begun: Placed) -> Iterator[Entry]:
        """For each number of a record its place among the rows, the width for a record that is dropped, and the number."""
        raise NotImplementedError

    def sparse(self, codes: Codes) -> Iterator[Entry]:
        return self.sparse_of(self.begins(codes))

    def _in_blocks(self, rows: Codes, place: NDArray[np.int64]) -> Iterator[Entry]:
        """The entries of rows of features."""
        start = place * self.block
        start[place == len(self.own.classes)] = self.width
        for j, row in enumerate(rows):
            yield np.minimum(start + j, self.width), row

    def __call__(self, codes: Codes) -> Codes:
        out = np.zeros((self.width + 1, codes.shape[1]))
        records = np.arange(codes.shape[1])
        for place, numbers in self.sparse(codes):
            out[place, records] = numbers
        return out[:-1]


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

    def sparse_of(self, begun: Placed) -> Iterator[Entry]:
        u, place = begun
        yield from self._in_blocks(round_within(u * float(self.steps)), place)
        yield place + len(self.own.classes) * self.block, np.full(len(place), float(self.per_count))

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

    def sparse_of(self, begun: Placed) -> Iterator[Entry]:
        u, place = begun
        squares = u * u
        squares *= float(self.steps)
        yield from self._in_blocks(round_within(squares), place)

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
