"""Records by class, in exact integers: what class sums, counts and second moments are sums of.

A record of class k is u = (x - C)/H, with C and H the middle and half-range of the public bounds, moved into the ball |u| <= R. It
fills the block of its class, and all others are 0. With B = 2^20 steps for R and T steps for a count, a row is (S u in block k, T in
place k):

- Under add/remove one row has squared length |S u|^2 + T^2, at most B^2 + T^2.
- Under substitution in the same class the counts cancel and |S u - S u'| <= 2 B. In two classes the blocks do not overlap, and the
  squared distance is |S u|^2 + |S u'|^2 + 2 T^2, at most 2 B^2 + 2 T^2. So the sensitivity is exactly 2 B for any T <= B: counts at T =
  B cost nothing more.

Under add/remove counts do cost, so that they are taken at T = B/2: sqrt(1.25) B in all where T = B would give sqrt(2) B.

Source: Shen, Tong, Wang 2026 have means and proportions; sums and counts in one release: docs/methods/curves-and-classes.md.

The covariance of class means and shares where several rows of a unit count: a Gram matrix of units, one column of scores each.

At released means c_kj and shares q_k the score of a unit is, over its usable rows with their weights v (`core.units.privacy_unit`),

    g_kj = sum v (u_j - c_kj)/d_j over its rows of class k,    s_k = sum v (1[class k] - q_k),

with d_j a released standard deviation. So the sum of g g' over units is n_k n_l times the covariance of the means of classes k and l,
in units of d. That of s s' is n^2 times that of the shares. |g| is clipped at G, |s| at S = sqrt(2) times the rows that count, and
(g/G, s/S) is coded with |m|^2 <= 2 2^40.

Guarantee: one unit moves the Gram matrix by at most 2 2^40 in the Frobenius norm, sqrt(2) times that under substitution (`core.Gram`).
This holds for any c, q and G, because they follow from what was drawn before. Source: cluster-robust covariances (Liang, Zeger 1986).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from math import floor, sqrt
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from confide._arrays import Array
from confide.core import Beginning, RecordMap, SparseMap, Total
from confide.core.exact import digest, pack
from confide.core.units.privacy_unit import rows_in_units, usable
from confide.methods.classification.design import ClassDesign
from confide.schema import Categorical, ModelMatrix, Schema
from confide.sums.clusters.cluster_covariance import Counting, limited, summed_by_unit
from confide.sums.coding import BITS, BOUND, Codes, round_within, scaled, steps

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
    """What maps of records by class share: a record's numbers fill the block of its class, all others are 0."""

    own: ClassDesign
    radius: float

    @property
    def columns(self) -> tuple[str, ...]:
        return self.own.design.columns

    @property
    def derived_by(self) -> ModelMatrix:
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
        """S: integer steps in one half-range."""
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
        """Integer steps in one squared half-range."""
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


#: Scores of one unit: classes times features and one.
MOST_SCORES = 256
_FINER, _LEAST = float(1 << 12), 1e-6
# |g| is cut at so many times its usual size, or further out where noise is at most this part of what a class gives to be measured.
_REACH, _AFFORDED = 3.0, 0.1
# The least part of the variance of as many records.
_FLOOR, _UNIT_FLOOR = 0.7, 0.25


@dataclass(frozen=True)
class UnitClassScores(RecordMap):
    """One unit as its scores in integer steps, those of means class by class and then those of shares: width classes (features + 1).

    From earlier noisy numbers: means (classes, features) in half-ranges, row by row, shares (classes,) and scales d (features,); cut:
    G. The digest excludes them, because the bound holds for any.
    """

    own: ClassDesign
    radius: float
    counting: Counting
    means: tuple[float, ...] = ()
    shares: tuple[float, ...] = ()
    scales: tuple[float, ...] = ()
    cut: float = 1.0

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.own.design.columns, self.counting.row)

    @property
    def derived_by(self) -> ModelMatrix:
        return self.own.design

    @property
    def _sizes(self) -> tuple[int, int]:
        return len(self.own.classes), len(self.own.design.terms)

    @property
    def width(self) -> int:
        k, p = self._sizes
        return k * (p + 1)

    @property
    def l2_squared(self) -> int:
        return 2 * BOUND

    @property
    def l1(self) -> int:
        return int(sqrt(self.width * self.l2_squared)) + 1

    @property
    def digest(self) -> str:
        facts = [self.own.digest, pack(self.radius), self.counting.rows, self.counting.row]
        return digest(["class scores of units", *facts])

    @property
    def steps(self) -> tuple[float, float]:
        """Integer steps in one unit of g, and in one of s."""
        k, p = self._sizes
        return steps(1.0, k * p) / self.cut, steps(1.0, k) / (sqrt(2.0) * self.counting.rows)

    def at(self, means: Array, shares: Array, variances: Array, count: float, mu: float) -> UnitClassScores:
        """The map at means (classes, features) and shares (classes,). variances: noisy ones within classes; count: of records; mu: of the
        Gram matrix.
        """
        spread = np.clip(variances, _LEAST, 1.0)
        scales = np.sqrt(spread.max(axis=0))
        usual = sqrt(len(scales)) * self.counting.spread
        afforded = sqrt(_AFFORDED * mu * count / len(means) * float((spread / scales**2).mean()))
        most = self.counting.rows * 2 * sqrt(float((scales**-2.0).sum()))
        return replace(
            self,
            means=tuple(means.ravel().tolist()),
            shares=tuple(shares.tolist()),
            scales=tuple(scales.tolist()),
            cut=min(max(_REACH * usual, afforded), most),
        )

    def __call__(self, codes: Codes) -> Codes:
        own, first = codes[:-1], codes[-1]
        (k, p), there = self._sizes, usable(self, own)
        starts, sizes = rows_in_units(first, there)
        u, inside = members_of(self.own, self.radius, own)
        means = np.array(self.means or (0.0,) * (k * p)).reshape(k, p)
        shares = self.shares or (0.0,) * k
        rows = np.zeros((self.width, own.shape[1]))
        of_g, of_s = self.steps
        scales = self.scales or (1.0,) * p
        for c, who in enumerate(inside):
            for j in range(p):
                np.copyto(rows[c * p + j], (u[j] - means[c, j]) * (of_g * _FINER / scales[j]), where=who)
            rows[k * p + c] = (who - shares[c]) * there * (of_s * _FINER)
        out = summed_by_unit(rows, starts) * (self.counting.weights(sizes) / _FINER)
        out[: k * p] = limited(out[: k * p], float(steps(1.0, k * p)))
        out[k * p :] = limited(out[k * p :], float(steps(1.0, k)))
        return round_within(out, 2 * BOUND)


def unit_covariance(
    scores: UnitClassScores, values: Array, variance: float, sizes: Array, variances: Array, units: float
) -> tuple[Array, Array]:
    """(covariance of shares and means, standard deviation of each variance), in the order of a `ClassModel`, means in half-ranges.

    - values: the noisy Gram matrix in steps; variance: of the noise on its diagonal.
    - sizes: estimated numbers of records by class; variances: of records within classes (classes, features).
    - units: how many count as independent.
    """
    k, p = len(sizes), variances.shape[1]
    of_g, of_s = scores.steps
    scales = np.tile(scores.scales, k)
    scale = np.concatenate([scales / (of_g * np.repeat(sizes, p)), np.full(k, 1 / (of_s * sizes.sum()))])
    whole = values * np.outer(scale, scale) * units / max(units - 1, 1.0)
    noise = sqrt(variance) * scale**2
    # shares first, then the means of each feature
    order = [k * p + c for c in range(k)] + [c * p + j for j in range(p) for c in range(k)]
    whole, noise = whole[np.ix_(order, order)], noise[order]
    share = sizes / sizes.sum()
    records = np.concatenate([share * (1 - share) / sizes.sum(), (variances / sizes[:, None]).T.ravel()])
    clustered = scores.own.design.schema.cluster is not None
    least = _UNIT_FLOOR if scores.counting.rows == 1 and scores.counting.weighted and not clustered else _FLOOR
    own = np.maximum(np.diag(whole), least * np.maximum(records, 0.0) + 1e-300)
    sd = np.sqrt(noise**2 + 2 * own**2 / max(units - 1, 1.0))
    found, axes = np.linalg.eigh((whole + whole.T) / 2)
    whole = (axes * np.maximum(found, 0.0)) @ axes.T
    stretch = np.sqrt(own / np.maximum(np.diag(whole), 1e-300))
    return np.asarray(whole * np.outer(stretch, stretch)), np.asarray(sd)
