"""What may be asked of records: additive statistics of exact integers, each over a map of ONE record.

A sensitivity is written once, in the map: `l2_squared` bounds the sum of squares of what one record contributes, whatever
the floating point did on the way there. The statistic turns it into its own sensitivity for a relation.

Exactness of the Gram matrix (products of float64 matrices that are exact integers): let |a| <= 2^b and blocks have
2^(53-2b) rows. Then every partial sum, in any order and with fused operations, is an integer of size at most 2^53.
Blocks add up in int64 and are flushed to Python integers before 2^(62-2b) rows.

Where records are, as the rest of the house may see it: exact sums, and nothing else.

Maps and statistics over another one, which says all that they do not say themselves.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from fractions import Fraction
from math import isqrt
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from confide.core.exact import exact_sums, gram
from confide.errors import SourceError

if TYPE_CHECKING:
    from confide.schema import ModelMatrix


Codes = NDArray[np.float64]


class RecordMap(Protocol):
    """Base of maps of one record to integers, deterministic, from public configuration only; the same bits in any batch.

    alike: whether most records have codes of 0 alone, so that a `Total` maps these once.

    `columns` names the schema columns whose codes arrive, in this order; `read(NAME)` stands for how the cells of NAME were read, and
    `fine(NAME)` for its values in order (`sources.coding`). `codes` has shape (columns, rows); -1 marks a missing
    value under "drop". The result has shape (width, rows) and holds exact integers. `l1` and `l2_squared` bound one record.
    """

    alike: ClassVar[bool] = False

    if TYPE_CHECKING:  # what each map has, as fields or properties of its own

        @property
        def columns(self) -> tuple[str, ...]: ...
        @property
        def width(self) -> int: ...
        @property
        def l1(self) -> int: ...
        @property
        def l2_squared(self) -> int: ...
        @property
        def digest(self) -> str: ...
        def __call__(self, codes: Codes, /) -> Codes: ...

    @property
    def begins(self) -> Beginning | None:
        """What it computes first. Override where several maps compute the same first (`Beginning`); it then goes on in `of`."""
        return None

    @property
    def derived_by(self) -> ModelMatrix | None:
        """The design whose terms it computes. Override where a term may have no value for a record that lacks no code."""
        return None

    @property
    def separates(self) -> tuple[str, ...]:
        """Columns in which two records that differ have no number in common. Override where numbers are of the cells of a crossing."""
        return ()


class SparseMap(RecordMap):
    """Base of maps of which a record has few numbers that are not 0: class sums, whose width grows with the classes, records do not.

    `sparse` gives, number by number, the place of each record's number among the rows (the width for none) and the
    number itself. They are what a `Total` adds up, and what the rows are made of. A record's places are different
    ones. Where the map has a beginning, `sparse_of` goes on from its result.
    """

    @abstractmethod
    def sparse(self, codes: Codes, /) -> Iterator[tuple[NDArray[np.int64], Codes]]: ...
    @abstractmethod
    def sparse_of(self, begun: Any, /) -> Iterator[tuple[NDArray[np.int64], Codes]]: ...


class Statistic(Protocol):
    """Base of sums over records: associative and commutative on integers, so that order, batches and threads do not matter.

    by_unit: whether its map is of units, whatever number of rows of each counts.
    """

    by_unit: ClassVar[bool] = False

    if TYPE_CHECKING:  # what each statistic has, as fields, properties or methods of its own

        @property
        def map(self) -> RecordMap: ...
        @property
        def shape(self) -> tuple[int, ...]: ...
        @property
        def norm(self) -> str: ...
        def sensitivity_squared(self, relation: str) -> Fraction: ...
        def sensitivity_l1(self, relation: str) -> Fraction: ...
        def zero(self) -> Any: ...
        def update(self, state: Any, codes: Codes) -> Any: ...
        def merge(self, a: Any, b: Any) -> Any: ...
        def value(self, state: Any) -> NDArray[Any]: ...

    @property
    def begins(self) -> Beginning | None:
        """What it computes first of a block of codes. Override, with `take`, where its map may have a beginning."""
        return None

    @property
    def grain(self) -> Fraction:
        """What its values are multiples of. Override where they are not whole numbers, as sums by weight are."""
        return Fraction(1)

    @property
    def by_rows(self) -> bool:
        """Whether each row of a unit moves it separately although its map is told where units begin. Override where that is so."""
        return False

    def marginal_of(self, other: Statistic, /) -> Callable[[Any], Any] | None:
        """From the state of another statistic of the same pass, merged, to its own, to the bit; None where it does not follow.

        From public configuration only. Override where a finer one tells it without a look at the records.
        """
        return None

    def moved_squared(self, own: Any, rows: Any) -> Any:
        """Squared changes, in its own norm, when the record with the row `own` gives way to each of `rows`.

        own: shape (width,), zeros for no record; rows: (width, m); shape (m,), exact for arrays of Python integers.
        What the searches for the worst neighbors are about. Override where it is not a plain sum, Gram matrix or
        histogram of its map.
        """
        if self.norm == "frobenius":
            inner = (own[:, None] * rows).sum(axis=0)
            return (rows * rows).sum(axis=0) ** 2 + (own * own).sum() ** 2 - 2 * inner**2
        if self.norm == "cells":  # each row of the map is the cell that the record lies in, 0 for none
            return ((rows != own[:, None]) * ((rows > 0) * 1 + (own > 0)[:, None] * 1)).sum(axis=0)
        return ((rows - own[:, None]) ** 2).sum(axis=0)


class Beginning(Protocol):
    """What several maps compute first, and alike: a function of a block of codes, from public configuration only.

    A map that has one (`begins`) goes on from its result in `of`, so that map(codes) is of(begins(codes)), to the
    bit. A statistic of this kind of map has it too, and `take(state, begun)` is `update(state, codes)`. A pass
    computes equal beginnings once for each block. Nothing that is handed to `of` may be written to.

    One that `stays` is likely asked again in later passes of a draw, and a source that keeps codes may keep its
    result too. It is called with room for so many `rows` of a result, and `after(other, begun, codes)` is what it
    gives for the same records by a result of before, to the bit, None where that does not serve.
    """

    if TYPE_CHECKING:

        def __call__(self, codes: Codes, /) -> Any: ...

    @property
    def stays(self) -> bool:
        """Whether later passes likely ask again. Override, with `rows` and `after`, where it is worth its memory."""
        return False


@dataclass
class _Partial:
    """An int64 part that is moved to Python integers before it can overflow."""

    part: NDArray[np.int64]
    total: NDArray[Any]
    rows: int = 0

    def flush(self) -> None:
        if self.rows:
            self.total = self.total + self.part.astype(object)
            self.part[...] = 0
            self.rows = 0


class _ExactSum(Statistic, ABC):
    """What every exact sum of a map shares: it begins at zeros, merges by adding, and ends as Python integers."""

    map: RecordMap

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]: ...

    @property
    def begins(self) -> Beginning | None:
        """The map's beginning, where it has one."""
        return self.map.begins

    def update(self, state: _Partial, codes: Codes) -> _Partial:
        """Add up the records of a block."""
        return self.add(state, self.map(codes))

    def take(self, state: _Partial, begun: Any) -> _Partial:
        """`update`, from the map's beginning on."""
        return self.add(state, self.map.of(begun))  # type: ignore[attr-defined]

    @abstractmethod
    def add(self, state: _Partial, rows: Codes) -> _Partial:
        """Add up rows of the map."""

    def zero(self) -> _Partial:
        return _Partial(np.zeros(self.shape, dtype=np.int64), np.zeros(self.shape, dtype=object))

    def merge(self, a: _Partial, b: _Partial) -> _Partial:
        a.flush()
        b.flush()
        return _Partial(a.part, a.total + b.total)

    def value(self, state: _Partial) -> NDArray[Any]:
        state.flush()
        return state.total


@dataclass(frozen=True)
class Gram(_ExactSum):
    """The exact Gram matrix sum m m' of a record map, shape (width, width), symmetric.

    Sensitivity in the Frobenius norm: |m m'|_F = |m|^2, so its square is l2_squared^2 under add-remove. Under substitution the
    two matrices P, Q are positive semi-definite, <P, Q> >= 0, hence |P - Q|^2 <= |P|^2 + |Q|^2: twice that.

    entry_bits: every |m_j| <= 2^entry_bits; give it when that is tighter than what l2_squared says (blocks are longer then).
    """

    map: RecordMap
    entry_bits: int | None = None
    norm: str = field(default="frobenius", init=False)

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.map.width, self.map.width)

    def sensitivity_squared(self, relation: str) -> Fraction:
        return Fraction(self.map.l2_squared) ** 2 * (2 if relation == "substitute" else 1)

    def sensitivity_l1(self, relation: str) -> Fraction:
        """The sum of |m_i m_j| is l1^2, counted over all entries of the matrix; twice that under substitution."""
        return Fraction(self.map.l1) ** 2 * (2 if relation == "substitute" else 1)

    @property
    def _bits(self) -> int:
        if self.entry_bits is not None:
            return self.entry_bits
        # |a| <= isqrt(l2_squared) <= 2^b
        return max(isqrt(self.map.l2_squared) - 1, 0).bit_length()

    def add(self, state: _Partial, rows: Codes) -> _Partial:
        block = 1 << max(53 - 2 * self._bits, 0)
        limit = 1 << max(62 - 2 * self._bits, 0)
        for start in range(0, rows.shape[1], block):
            piece = rows[:, start : start + block]
            if state.rows + piece.shape[1] > limit:
                state.flush()
            state.part += _gram(piece)
            state.rows += piece.shape[1]
        return state


@dataclass(frozen=True)
class Total(_ExactSum):
    """The exact sum of a record map, shape (width,).

    Squared sensitivity in the Euclidean norm: l2_squared under add-remove. Under substitution |u - v|^2 <= 4
    l2_squared in general. For a map that is never negative <u, v> >= 0 gives 2 l2_squared, and a single such number
    moves by at most its own bound.
    """

    map: RecordMap
    nonnegative: bool = False
    norm: str = field(default="l2", init=False)

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.map.width,)

    def sensitivity_squared(self, relation: str) -> Fraction:
        factor = 1
        if relation == "substitute":
            factor = 4 if not self.nonnegative else (1 if self.map.width == 1 else 2)
        return Fraction(self.map.l2_squared * factor)

    def sensitivity_l1(self, relation: str) -> Fraction:
        """l1 under add-remove; under substitution twice that, unless it is a single number that is never negative."""
        single = self.nonnegative and self.map.width == 1
        return Fraction(self.map.l1) * (2 if relation == "substitute" and not single else 1)

    def update(self, state: _Partial, codes: Codes) -> _Partial:
        if self.map.alike:
            odd = codes.any(axis=0)
            alike = int(odd.size - np.count_nonzero(odd))
            state.part += alike * self.map(np.zeros((len(codes), 1)))[:, 0].astype(np.int64)
            state.rows, codes = state.rows + alike, codes[:, odd]
        if not isinstance(self.map, SparseMap):
            return super().update(state, codes)
        for start in range(0, codes.shape[1], self._sparse_limit):
            state = self._add_sparse(state, self.map.sparse(codes[:, start : start + self._sparse_limit]))
        return state

    def take(self, state: _Partial, begun: Any) -> _Partial:
        if not isinstance(self.map, SparseMap):
            return super().take(state, begun)
        return self._add_sparse(state, self.map.sparse_of(begun))

    @property
    def _sparse_limit(self) -> int:
        """Records of which every partial sum is an integer below 2^53."""
        return max((1 << 53) // (isqrt(self.map.l2_squared) + 1), 1)

    def _add_sparse(self, state: _Partial, entries: Iterable[tuple[NDArray[np.int64], Codes]]) -> _Partial:
        """Add numbers of at most so many records by their places; a number at the place behind the last row is ignored."""
        width, records = self.map.width, 0
        for place, numbers in entries:
            if records == 0:
                records = len(place)
                assert records <= self._sparse_limit
                if state.rows + records > self._sparse_limit:
                    state.flush()
            state.part += np.bincount(place, weights=numbers, minlength=width + 1)[:width].astype(np.int64)
        state.rows += records
        return state

    def add(self, state: _Partial, rows: Codes) -> _Partial:
        bound = isqrt(self.map.l2_squared) + 1
        limit = max((1 << 62) // bound, 1)
        for start in range(0, rows.shape[1], limit):
            piece = rows[:, start : start + limit]
            if state.rows + piece.shape[1] > limit:
                state.flush()
            state.part += _row_sums(piece, bound)
            state.rows += piece.shape[1]
        return state


def _row_sums(rows: Codes, bound: int) -> NDArray[np.int64]:
    """Sums of integers of at most `bound` in size: in doubles while every partial sum stays below 2^53, in any order."""
    if rows.shape[1] * bound < 1 << 53:
        if rows.dtype == np.float64 and exact_sums():
            return (rows @ np.ones(rows.shape[1])).astype(np.int64)
        return np.asarray(rows.sum(axis=1), dtype=np.int64)
    return np.asarray(rows.astype(np.int64).sum(axis=1))


def _gram(rows: Codes) -> NDArray[np.int64]:
    if exact_sums():
        return gram(rows).astype(np.int64)
    whole = rows.astype(np.int64)
    return np.asarray(np.einsum("ik,jk->ij", whole, whole), dtype=np.int64)


class Source(Protocol):
    """Base of streams of records behind the schema's coding.

    `aggregate` runs one pass and returns one array of exact integers for each statistic. `count` is for the gate alone, and
    there only under substitution, where n is public. `check` raises on public facts only: a column that is not there, a
    physical type that no column can have, a file that cannot be opened.
    """

    if TYPE_CHECKING:  # what each source has, as attributes or methods of its own

        @property
        def schema(self) -> Any: ...
        @property
        def dataset(self) -> str | None: ...
        @property
        def rereadable(self) -> bool: ...
        def aggregate(self, *statistics: Statistic) -> tuple[NDArray[Any], ...]: ...
        def count(self) -> int: ...
        def check(self, columns: Sequence[str]) -> None: ...

    def check_statistics(self, statistics: Sequence[Statistic]) -> None:
        """Raise `SourceError` for statistics that it cannot add up, before anything is charged. Override where it adds up some alone."""
        return

    def opened(self) -> AbstractContextManager[Source]:
        """What one release reads. Override where something must be opened for it: a snapshot of a database, the workers' records."""
        return nullcontext(self)

    def bounded(
        self, key: bytes | None = None, *, whole: bool = False, first: bool = True
    ) -> AbstractContextManager[Source]:
        """The records of the schema's enforced unit for one release, at most so many rows of each as it allows. Override where it can.

        key: by which the rows that count are chosen. Where `whole`, all rows of a unit are there, for statistics
        that weigh them. Where `first`, some statistic reads the chosen rows alone.
        """
        raise SourceError(
            f"the schema protects {self.schema.unit.column!r}, and a {type(self).__name__} cannot bound its rows",
            "read the records with cf.read(data, schema)",
        )

    def kept(self, rows: Sequence[str], once: Collection[str] = ()) -> AbstractContextManager[Source]:
        """The records for one draw of several passes over these rows of codes. Override where coding them once is quicker.

        once: the rows that its first pass alone asks for. A draw within another one is handed no codes that it could change.
        """
        return nullcontext(WrappedSource(self))

    def coded_again(self, rows: Mapping[str, str], code: Callable[[str, Codes], Codes]) -> bool:
        """Put other codes in the place of kept ones, for all passes to come: `code` of a row's new name. Override where codes are kept.

        rows: the new name of each row that changes. False where nothing was changed.
        """
        return False


class WrappedSource(Source):
    """A source in front of another one, which answers all that is not said otherwise; it sees every pass, since nothing is kept for it."""

    def __init__(self, source: Source) -> None:
        self._source = source

    @property
    def schema(self) -> Any:
        return self._source.schema

    @property
    def dataset(self) -> str | None:
        return self._source.dataset

    @property
    def rereadable(self) -> bool:
        return self._source.rereadable

    def check(self, columns: Sequence[str]) -> None:
        """As the source behind it."""
        self._source.check(columns)

    def count(self) -> int:
        """As the source behind it: for the gate alone."""
        return self._source.count()

    def aggregate(self, *statistics: Statistic) -> tuple[NDArray[Any], ...]:
        """As the source behind it."""
        return self._source.aggregate(*statistics)


class MappedSource(WrappedSource):
    """A source whose sums are of other statistics than were asked for. of: the one that stands for each."""

    def __init__(self, source: Source, of: Callable[[Statistic], Statistic]) -> None:
        super().__init__(source)
        self._of = of

    def aggregate(self, *statistics: Statistic) -> tuple[NDArray[Any], ...]:
        return self._source.aggregate(*map(self._of, statistics))


class MapOver(RecordMap):
    """Base of frozen dataclasses with a field `map`: a map of the same width and bounds."""

    map: RecordMap

    @property
    def width(self) -> int:
        return self.map.width

    @property
    def l1(self) -> int:
        return self.map.l1

    @property
    def l2_squared(self) -> int:
        return self.map.l2_squared


class StatisticOver(Statistic):
    """Base of frozen dataclasses with a field `statistic`: a statistic of the same shape and norm.

    Sensitivities are the larger of that under the relation and under add-remove, as a record that is replaced may also come or go.
    """

    statistic: Statistic

    @property
    def shape(self) -> tuple[int, ...]:
        return self.statistic.shape

    @property
    def norm(self) -> str:
        return self.statistic.norm

    def sensitivity_squared(self, relation: str) -> Fraction:
        return max(self.statistic.sensitivity_squared(one) for one in ("add-remove", relation))

    def sensitivity_l1(self, relation: str) -> Fraction:
        return max(self.statistic.sensitivity_l1(one) for one in ("add-remove", relation))

    def moved_squared(self, own: Any, rows: Any) -> Any:
        """That of the statistic; by weight, of units of one row."""
        return self.statistic.moved_squared(own, rows)

    def zero(self) -> Any:
        return self.statistic.zero()

    def merge(self, a: Any, b: Any) -> Any:
        return self.statistic.merge(a, b)

    def value(self, state: Any) -> NDArray[Any]:
        return self.statistic.value(state)
