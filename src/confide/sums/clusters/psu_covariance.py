"""The meat of primary sampling units: Gram matrices of PSU sums, where what is protected is one person of a PSU.

A map of records gives each person integers with |a| <= s. Z_i is their sum over PSU i, projected on the ball of radius G and rounded.
Forms:

- persons: M = sum a a'
- uncentered: M = sum_i Z_i Z_i'
- centered: M = sum_h n_h/(n_h - 1) sum_i (Z_hi - Zbar_h)(Z_hi - Zbar_h)', over PUBLIC lists of the n_h sampled PSUs of each stratum h.
  A listed PSU without a record has Z = 0, a record of another PSU is in none.

Guarantee. The projection on a ball moves no two points further apart. So a person who comes or goes moves one Z_i by at most s +
sqrt(p) + 2, p the width. This has four parts: what the limit lets through, the rounding of two vectors, 1 for the last bits of |a| and
1 for whole numbers in the limit. In addition |Z| <= G + sqrt(p)/2. With |aa' - bb'|_F <= |a - b| (|a| + |b|):

- persons: |a a'|_F = |a|^2 <= (s + 1)^2
- uncentered: (s + sqrt(p) + 2) (2 G + sqrt(p))
- centered: as a function of one Z_hi alone M is (Z_hi - Y)(Z_hi - Y)' + constant, Y the mean of the others in the stratum.
  There |Z_hi - Y| <= 2 G + sqrt(p): (s + sqrt(p) + 2) (4 G + 2 sqrt(p)), and p for rounding the stratum's matrix to integers.
- beyond: T_k = sum_i min(max(|Z_i| - 2^k G, 0), 2^k G), k = 0, ..., 4, of the sums before the limit, behind M on the diagonal.
  They say how many PSUs the limit shortens, and how far. Of one Z_i at most one ramp moves at a time, so that sum_k |T_k/2^k| moves by
  at most s + sqrt(p) + 3, the last 1 for the whole root.
- counted: where caps are given, in how many PSUs persons with a score are, at least (`fewest`), behind these. One number of these moves.

One person moves M by at most 2^bits, and T and what is counted by a part 1/r of that each, r = `rough`: sqrt(1 + 1/r^2) 2^bits, and
sqrt(1 + 2/r^2) 2^bits where PSUs are counted. Replaced, a person may leave one PSU and enter another, of another stratum too: twice
that. With counts n_h alone and PSUs that records name, the centered form would not have this bound: its lists are public. The product s
G is fixed in advance and G/s is not: both may be chosen from earlier noisy numbers, in the form that is charged. How fine the integers
are (`bits`: one person moves M by at most 2^bits) follows from the budget, as the samplers of noise have an end. Source: derived here;
the estimators are in Binder 1983 and in R's `survey` (Lumley), with replacement at the first stage.

In how many PSUs, or clusters, the records of each cell of a marginal lie, at least (`fewest`).

Guarantee. A record is in one PSU, and in one cell at most. So one that comes or goes moves one number by 1 at most: sensitivity 1, in
the Euclidean norm and in that of sums. A record that is replaced leaves one number and enters another: sqrt(2), and 2. A unit of k
rows, in as many PSUs, comes or goes row by row: k times that. This holds whatever the caps are, which may come from earlier noisy
numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import floor, isqrt, log2
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from confide._arrays import Array
from confide.core import RecordMap, Statistic
from confide.core.exact import digest
from confide.core.statistic import MapOver
from confide.core.units.privacy_unit import CLUSTER_ROW
from confide.schema import Schema, SurveyDesign
from confide.sums.cells.cell_sums import Axes, Crossing
from confide.sums.cells.moments import Measure
from confide.sums.cells.weighted_cells import CappedWeight, places_of_weights
from confide.sums.clusters.cluster_covariance import COUNTED, RAMPS, moved_ramps, ramps, ramps_of
from confide.sums.columns import codes_of, columns_of

Codes = NDArray[np.float64]

# Of a score: its square, up to 2^56, is exact in doubles to 2^-44 of itself, which is less than a step of its root. Of what one person
# moves M by, so that s is never shorter than it may be; and of the scale of noise.
_LONGEST = 1 << 28
_LEAST_BITS, _MOST_BITS, _NOISE_BITS = 30, 56, 54
_LIMB = 13


class PersonScores(RecordMap, Protocol):
    """A map of one person to her scores, |m| <= longest, that can be coded in any number of steps."""

    @property
    def longest(self) -> int: ...
    def of_length(self, longest: int) -> Self: ...


def bits_for(mu: float) -> int:
    """How many bits of what one person moves a meat by fit under noise for that mu.

    >>> bits_for(1.0), bits_for(0.01)
    (54, 47)
    """
    return max(_LEAST_BITS, min(_MOST_BITS, _NOISE_BITS + floor(log2(mu))))


@dataclass(frozen=True)
class Listed:
    """Which of the public PSUs a record is in: 0, 1, ... in the order of the lists, stratum after stratum; -1 for none.

    >>> import confide as cf
    >>> schema = cf.Schema({"h": cf.Categorical(["n", "s"]), "v": cf.Categorical(["a", "b", "c", "d"])},
    ...     design=cf.SurveyDesign(strata="h", psu="v", psus={"n": ["a", "b"], "s": ["d", "c"]}, size=5))
    >>> own = Listed.of(schema)
    >>> own.numbers(np.array([[0.0, 1.0, 1.0], [1.0, 2.0, 0.0]])).tolist(), own.sizes
    ([1, 3, -1], (2, 2))
    """

    columns: tuple[str, ...]
    pairs: tuple[tuple[int, int], ...]
    sizes: tuple[int, ...]
    digest: str

    @classmethod
    def of(cls, schema: Schema) -> Listed | None:
        """Of a schema's design; None where no lists are public."""
        design = schema.design
        if design is None or design.listed is None or design.psu is None:
            return None
        strata = () if design.strata is None else (design.strata,)
        columns = (*strata, design.psu)
        own = schema[design.psu].levels  # type: ignore[union-attr]
        pairs = []
        for stratum, names in design.listed:
            level = schema[strata[0]].levels.index(stratum) if strata else 0  # type: ignore[union-attr]
            pairs += [(level, own.index(name)) for name in names]
        facts = [schema[name].to_dict() for name in columns]
        sizes = tuple(len(names) for _, names in design.listed)
        return cls(columns, tuple(pairs), sizes, digest(["listed PSUs", facts, [list(pair) for pair in pairs]]))

    def to_list(self) -> list[Any]:
        """For digests."""
        return [self.digest]

    @cached_property
    def _table(self) -> NDArray[np.int64]:
        strata, psus = (max(one) + 1 for one in zip(*self.pairs, strict=True))
        table = np.full((strata + 1, psus + 1), -1, dtype=np.int64)
        for number, pair in enumerate(self.pairs):
            table[pair] = number
        return table

    def numbers(self, codes: Codes) -> NDArray[np.int64]:
        """From the codes of `columns`."""
        psu = codes[-1].astype(np.int64)
        stratum = codes[0].astype(np.int64) if len(self.columns) > 1 else np.zeros(len(psu), dtype=np.int64)
        strata, psus = self._table.shape
        # the last row and column are of no one: also what is missing, -1, lies there
        return np.asarray(self._table[np.minimum(stratum, strata - 1), np.minimum(psu, psus - 1)])

    def __call__(self, codes: Codes) -> NDArray[np.bool_]:
        """Which records are in a listed PSU: a condition as `core.units.subgroup` takes them."""
        return np.asarray(self.numbers(codes) >= 0)


@dataclass(frozen=True)
class PsuRows(MapOver):
    """A map of records and the rows of codes that say which PSU a person is in; of a single person it is the map."""

    map: RecordMap
    listed: Listed | None

    @cached_property
    def columns(self) -> tuple[str, ...]:
        behind = (CLUSTER_ROW,) if self.listed is None else self.listed.columns
        return (*self.map.columns, *(name for name in behind if name not in self.map.columns))

    @cached_property
    def digest(self) -> str:
        return digest(["of PSUs", self.map.digest, None if self.listed is None else self.listed.digest])

    def __call__(self, codes: Codes) -> Codes:
        rows = self.map(codes[: len(self.map.columns)])
        rows[:, self.numbers(codes) < 0] = 0.0
        return rows

    def numbers(self, codes: Codes) -> NDArray[np.int64]:
        """The PSU of each record."""
        if self.listed is None:
            return np.asarray(codes[self.columns.index(CLUSTER_ROW)].astype(np.int64))
        return self.listed.numbers(codes[[self.columns.index(name) for name in self.listed.columns]])


class PsuSums(Statistic):
    """Sums of a map's rows by PSU, exact: what statistics of PSUs are made of."""

    @property
    def map(self) -> PsuRows:
        raise NotImplementedError

    def rows(self, codes: Codes) -> Codes:
        """What is added up, one column for each record."""
        return self.map(codes)

    def zero(self) -> dict[int, NDArray[np.int64]]:
        return {}

    def update(self, state: dict[int, NDArray[np.int64]], codes: Codes) -> dict[int, NDArray[np.int64]]:
        rows, of = self.rows(codes), self.map.numbers(codes)
        numbers, at = np.unique(of, return_inverse=True)
        sums = np.zeros((len(numbers), len(rows)), dtype=np.int64)
        for k, row in enumerate(rows):
            # |row| <= 2^28 and blocks are short: sums of doubles are exact
            sums[:, k] = np.bincount(at, weights=row, minlength=len(numbers)).astype(np.int64)
        for number, total in zip(numbers.tolist(), sums, strict=True):
            if number >= 0:
                state[number] = state[number] + total if number in state else total
        return state

    def merge(self, a: dict[int, Any], b: dict[int, Any]) -> dict[int, Any]:
        for number, total in b.items():
            a[number] = a[number] + total if number in a else total
        return a


class _Meat(Statistic):
    """What both meats share: one person moves M by at most 2^bits in the Frobenius norm, twice that when replaced."""

    scores: PersonScores
    bits: int

    @property
    def shape(self) -> tuple[int, int]:
        return (self.scores.width, self.scores.width)

    def sensitivity_squared(self, relation: str) -> Fraction:
        return Fraction((1 << self.bits) * (2 if relation == "substitute" else 1)) ** 2

    def sensitivity_l1(self, relation: str) -> Fraction:
        # |M|_1 <= p |M|_F
        return Fraction(self.scores.width * (1 << self.bits) * (2 if relation == "substitute" else 1))

    def moved_squared(self, own: Any, rows: Any) -> Any:
        """Of one person in an empty file: her own PSU alone, uncentred."""
        inner = (own[:, None] * rows).sum(axis=0)
        return (rows * rows).sum(axis=0) ** 2 + (own * own).sum() ** 2 - 2 * inner**2


@dataclass(frozen=True)
class PersonCovariance(_Meat):
    """M over persons, shape (width, width)."""

    scores: PersonScores
    bits: int = 40
    norm: str = "frobenius"

    def at(self, scores: PersonScores) -> PersonCovariance:
        """The same guarantee for scores at other estimates."""
        return replace(self, scores=scores.of_length(self.longest))

    @property
    def longest(self) -> int:
        """s, in steps."""
        return min(isqrt(1 << self.bits), _LONGEST) - 1

    @property
    def map(self) -> PersonScores:
        return self.scores

    def zero(self) -> NDArray[Any]:
        return np.zeros(self.shape, dtype=object)

    def update(self, state: NDArray[Any], codes: Codes) -> NDArray[Any]:
        return np.asarray(state + _gram(self.scores(codes).T.astype(np.int64)))

    def merge(self, a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(a + b)

    def value(self, state: NDArray[Any]) -> NDArray[Any]:
        return state


@dataclass(frozen=True)
class PsuCovariance(PsuSums, _Meat):
    """M over PSUs in the first `width` rows and columns, and behind it on the diagonal what its limit removes.

    spread: G/s; `centred`: within the strata of public lists; caps: of the persons in a PSU, those with a score, None where PSUs are
    not counted.

    rough: how many times as far one person moves M as the ramps behind it, whose noise grows with that: 3 costs M 5% more noise, 2
    costs 12%.
    """

    scores: PersonScores
    listed: Listed | None
    bits: int = 40
    spread: float = 1.0
    centred: bool = False
    rough: int = 3
    caps: tuple[int, int] | None = None
    norm: str = "frobenius"

    def at(
        self, scores: PersonScores, spread: float, centred: bool, caps: tuple[int, int] | None = None
    ) -> PsuCovariance:
        """The same guarantee for scores at other estimates, another G/s, either form, and other caps."""
        assert (caps is None) == (self.caps is None)
        own = replace(self, spread=spread, centred=centred, caps=caps)
        return replace(own, scores=scores.of_length(own.longest))

    @cached_property
    def map(self) -> PsuRows:
        return PsuRows(self.scores, self.listed)

    @property
    def shape(self) -> tuple[int, int]:
        width = self.scores.width + RAMPS + (0 if self.caps is None else COUNTED)
        return (width, width)

    def sensitivity_squared(self, relation: str) -> Fraction:
        # that of M, and of T and what is counted by at most 1/rough of 2^bits each
        behind = Fraction(1 if self.caps is None else 2, self.rough**2)
        return super().sensitivity_squared(relation) * (1 + behind)

    def sensitivity_l1(self, relation: str) -> Fraction:
        return super().sensitivity_l1(relation) * Fraction(self.scores.width + 1, self.scores.width)

    @property
    def _root(self) -> int:
        return isqrt(self.scores.width - 1) + 1

    @cached_property
    def _fine(self) -> int:
        """What T_k/2^k counts by, in 1/2^(RAMPS - 1) of a step."""
        return (1 << self.bits) // self.rough // moved_ramps(self.scores.longest + self._root + 3)

    @property
    def ruler(self) -> NDArray[np.float64]:
        """(what a ramp that one PSU has run counts, G) in whole numbers of this statistic, for `TruncationBias.of`.

        Where PSUs are counted also what a person counts, and the caps, for `fewest_behind`.
        """
        cut = self._cut(self.scores.longest)
        counted = () if self.caps is None else (float(self._person), *self.caps)
        return np.array([float(self._fine * moved_ramps(cut)), float(cut), *counted])

    @property
    def _person(self) -> int:
        """What a person counts by."""
        return (1 << self.bits) // self.rough

    @cached_property
    def longest(self) -> int:
        """s, in steps: the largest with which one person moves M by at most 2^bits."""
        low, high = 1, _LONGEST
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self._moved(middle) <= 1 << self.bits else (low, middle - 1)
        return low

    def _cut(self, longest: int) -> int:
        """G, in steps."""
        return min(int(self.spread * longest) + 1, self._widest)

    @property
    def _widest(self) -> int:
        """The longest G at which s of one step moves M by at most 2^bits, so that any G/s whatever leaves one."""
        rest = (1 << self.bits) - (self.scores.width if self.centred else 0)
        of_cut = rest // (self._root + 3)
        return (of_cut - 2 * self._root) // 4 if self.centred else (of_cut - self._root) // 2

    def _moved(self, longest: int) -> int:
        root, cut = self._root, self._cut(longest)
        if self.centred:
            return (longest + root + 2) * (4 * cut + 2 * root) + self.scores.width
        return (longest + root + 2) * (2 * cut + root)

    def value(self, state: dict[int, NDArray[np.int64]]) -> NDArray[Any]:
        cut, width = self._cut(self.scores.longest), self.scores.width
        whole = np.zeros(self.shape, dtype=object)
        sums = {number: total[:width] for number, total in state.items()}
        whole[:width, :width] = self._squares(sums, cut)
        behind = [self._fine * total for total in ramps(sums.values(), cut)]
        if self.caps is not None:
            persons = np.array([total[width] for total in state.values()], dtype=np.int64)
            behind += [self._person * int(v) for v in ramps_of(persons, np.array(self.caps)).sum(axis=1)]
        for k, total in enumerate(behind, width):
            whole[k, k] = total
        return whole

    def rows(self, codes: Codes) -> Codes:
        found = self.map(codes)
        return found if self.caps is None else np.vstack([found, found.any(axis=0)])

    def _squares(self, state: dict[int, NDArray[np.int64]], cut: int) -> NDArray[Any]:
        if not self.centred or self.listed is None:
            return _gram(_stacked([_limited(total, cut) for _, total in sorted(state.items())], self.scores.width))
        whole, start = np.zeros((self.scores.width, self.scores.width), dtype=object), 0
        for size in self.listed.sizes:
            own = [_limited(state[k], cut) for k in range(start, start + size) if k in state]
            start += size
            if own:
                total = np.sum(own, axis=0).astype(object)
                within = size * _gram(_stacked(own, self.scores.width)) - np.multiply.outer(total, total)
                whole = whole + (2 * within + size - 1) // (2 * (size - 1))
        return whole


def _limited(total: NDArray[np.int64], cut: int) -> NDArray[np.int64]:
    """A sum limited to a length and rounded, in whole numbers."""
    squared = sum(v * v for v in total.tolist())
    if squared <= cut**2:
        return total
    root = isqrt(squared) + 1
    return np.array([(2 * v * cut + root) // (2 * root) for v in total.tolist()], dtype=np.int64)


def _stacked(rows: list[NDArray[np.int64]], width: int) -> NDArray[np.int64]:
    return np.stack(rows) if rows else np.zeros((0, width), dtype=np.int64)


def _gram(rows: NDArray[np.int64]) -> NDArray[Any]:
    """sum z z' of rows z, exact: products of limbs of 13 bits, each block of which is exact in doubles."""
    width = rows.shape[1]
    whole = np.zeros((width, width), dtype=object)
    for start in range(0, len(rows), 1 << 20):
        block, limbs = rows[start : start + (1 << 20)], []
        sign, rest = np.sign(block), np.abs(block)
        while rest.any():
            limbs.append((sign * (rest & ((1 << _LIMB) - 1))).astype(np.float64))
            rest = rest >> _LIMB
        for i, one in enumerate(limbs):
            for j, other in enumerate(limbs):
                product = (one.T @ other).astype(np.int64).astype(object)
                whole = whole + product * (1 << (_LIMB * (i + j)))
    return whole


def design_of(schema: Schema) -> SurveyDesign | None:
    """The design that a schema's PSUs follow: its own, or that of its clusters."""
    if schema.design is not None or schema.cluster is None:
        return schema.design
    own = schema.cluster
    return SurveyDesign(psu=own.column, size=own.size, icc=own.icc, largest=own.most, count=own.count)


Caps = tuple[tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True)
class PresentIn(RecordMap):
    """1 in the cell that a record counts in.

    It counts in one with a level of each attribute, a value of `measure` and a weight above 0, where it has to have them.

    >>> import confide as cf
    >>> schema = cf.Schema({"f": cf.Categorical(["a", "b"])})
    >>> PresentIn(Crossing.of(("f",), schema), (0,))(np.array([[1.0, 0.0, -1.0]])).tolist()
    [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]
    """

    crossing: Crossing
    axes: Axes
    measure: Measure | None = None
    weight: CappedWeight | None = None

    l1: ClassVar[int] = 1
    l2_squared: ClassVar[int] = 1

    @property
    def width(self) -> int:
        return self.crossing.cells(self.axes)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        return columns_of(self.crossing, self.measure, self.weight)

    @property
    def digest(self) -> str:
        parts = [None if own is None else own.digest for own in (self.measure, self.weight)]
        return digest(["present in", self.crossing.digest, list(self.axes), *parts])

    def __call__(self, codes: Array) -> Array:
        place = self.crossing.places(codes[: len(self.crossing.columns)], self.axes)
        there = place < self.width
        if self.measure is not None:
            _, keep = self.measure.places(codes_of(self.measure, self.columns, codes))
            there &= True if keep is None else keep
        if self.weight is not None:
            omega, keep = places_of_weights(self.weight, codes_of(self.weight, self.columns, codes))
            there &= (omega > 0) & (True if keep is None else keep)
        out = np.zeros((self.width, codes.shape[1]))
        out[place[there], np.flatnonzero(there)] = 1.0
        return out


@dataclass(frozen=True)
class Contributing(PsuSums):
    """(R_1, R_2), shape (2, cells). present: a map of records to 1 in their cell; listed: the public PSUs, None for an id column.

    caps: (m_1, m_2) by cell, 1 when not given.
    """

    present: RecordMap
    listed: Listed | None
    caps: Caps | None = None
    norm: str = "l2"

    def at(self, caps: NDArray[Any]) -> Contributing:
        """The same guarantee at other caps, (2, cells)."""
        low, high = caps.tolist()
        return replace(self, caps=(tuple(map(int, low)), tuple(map(int, high))))

    @cached_property
    def map(self) -> PsuRows:
        return PsuRows(self.present, self.listed)

    @property
    def shape(self) -> tuple[int, int]:
        return (2, self.present.width)

    def sensitivity_squared(self, relation: str) -> Fraction:
        return Fraction(2 if relation == "substitute" else 1)

    def sensitivity_l1(self, relation: str) -> Fraction:
        return Fraction(2 if relation == "substitute" else 1)

    def value(self, state: dict[int, NDArray[np.int64]]) -> NDArray[Any]:
        caps = np.ones(self.shape, dtype=np.int64) if self.caps is None else np.array(self.caps, dtype=np.int64)
        return np.asarray(sum((ramps_of(own, caps) for own in state.values()), np.zeros(self.shape, dtype=np.int64)))
