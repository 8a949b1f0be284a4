"""What a worker does: records of one portion to codes, codes to states, states to JSON. It shows nothing, whatever happens.

A worker codes records by float steps that are the same for each record alone (rule 5 of the protocol), on one kind of machine. Workers
whose elementwise functions round differently are refused: which of them codes a record would else depend on the others.

States of statistics as JSON: what alone comes back from workers.

A state is made of integers: arrays of them, in tuples, in the fields of dataclasses or by keys
(`core.units.privacy_unit`). It is read into the shape of the statistic's own zero, so what arrives chooses no types
and no sizes of parts. No code is unpickled on the way back. A state that holds anything else, such as the records
that a method of order statistics or likelihoods collects, is refused before a release is charged.

Whole units on workers: rows dealt out by a hash of the canonical id, brought together, and bounded by the same rule as everywhere.

The hash only decides where rows meet: units are told apart by their canonical ids, byte by byte (`units.Keep`). Where they do not meet, as
with workers whose hashes differ, that is found and is an error, since the bound on a unit would not hold.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, is_dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial
from itertools import islice, pairwise
from math import ceil
from threading import Lock
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from confide._version import __version__
from confide.core import RecordMap, Statistic
from confide.core.units.privacy_unit import CLUSTER_ROW, UNIT_ROW, WHOLE_ROW, Keyed
from confide.errors import SourceError
from confide.schema import Schema, Unit
from confide.sources.aggregation import BLOCK_ROWS, Codes, Input, states_of
from confide.sources.code_cache import Packing
from confide.sources.coder import Coder, columns_behind
from confide.sources.coding import Block, Part, Piece, guarded
from confide.sources.grouping.ids import HashedGroups, Rows, joined
from confide.sources.grouping.sampling import Keep
from confide.sources.grouping.units import WithIds, block_starts, identified

T = TypeVar("T")

_DOUBT = "a worker sent something that is not a state of this statistic"


def state_to_plain(state: Any) -> Any:
    """A state as lists, mappings and whole numbers; the same text for the same state, whatever was met first.

    >>> state_to_plain((np.array([[1, 2]]), 3))
    [[[1, 2]], 3]
    """
    if isinstance(state, np.ndarray) and state.dtype.kind in "iu":
        return state.tolist()
    if isinstance(state, np.ndarray) and state.dtype == object and all(isinstance(one, int) for one in state.flat):
        return state.tolist()
    if isinstance(state, Keyed):
        return [[int(key), state_to_plain(part)] for key, part in sorted(state.items())]
    if isinstance(state, tuple):
        return [state_to_plain(one) for one in state]
    if is_dataclass(state) and not isinstance(state, type):
        return {field.name: state_to_plain(getattr(state, field.name)) for field in fields(state)}
    if isinstance(state, (int, np.integer)) and not isinstance(state, bool):
        return int(state)
    raise TypeError("a state that leaves a worker is made of whole numbers")


def state_from_plain(zero: Any, data: Any) -> Any:
    """The state in the shape of the zero of its statistic. Raises `SourceError` for anything else.

    >>> state_from_plain((np.zeros((1, 2), int), 0), [[[1, 2]], 3])
    (array([[1, 2]]), 3)
    """
    if isinstance(zero, np.ndarray):
        return _array(zero, data)
    if isinstance(zero, Keyed):
        return _keyed(zero, data)
    if isinstance(zero, tuple) and isinstance(data, list) and len(data) == len(zero):
        return tuple(state_from_plain(own, one) for own, one in zip(zero, data, strict=True))
    if is_dataclass(zero) and not isinstance(zero, type) and isinstance(data, dict):
        names = [field.name for field in fields(zero)]
        if sorted(data) == sorted(names):
            return replace(zero, **{name: state_from_plain(getattr(zero, name), data[name]) for name in names})
    if isinstance(zero, (int, np.integer)) and isinstance(data, int) and not isinstance(data, bool):
        return data
    raise SourceError(_DOUBT)


def _keyed(zero: Keyed, data: Any) -> Keyed:
    pairs = isinstance(data, list) and all(isinstance(one, list) and len(one) == 2 for one in data)
    if not pairs or any(type(key) is not int for key, _ in data) or len({key for key, _ in data}) < len(data):
        raise SourceError(_DOUBT)
    found = Keyed(zero.zero)
    for key, part in data:
        found[key] = state_from_plain(zero.zero(), part)
    return found


def _array(zero: Any, data: Any) -> Any:
    found = np.array(data, dtype=object)
    if found.shape != zero.shape or not all(type(one) is int for one in found.flat):
        raise SourceError(_DOUBT)
    if zero.dtype == object:
        return found
    limits = np.iinfo(zero.dtype)
    if found.size and not limits.min <= min(found.flat) <= max(found.flat) <= limits.max:
        raise SourceError(_DOUBT)
    return found.astype(zero.dtype)


def check_states(statistics: Any, where: str) -> None:
    """Raise `SourceError` for statistics whose states are not integers; public facts alone are looked at."""
    for statistic in statistics:
        if not _is_whole(statistic):
            raise SourceError(
                f"this method looks at the records themselves, not at sums, and {where} sends sums alone",
                "read the records here: cf.read(data, schema) without executor=",
            )


def _is_whole(statistic: Statistic) -> bool:
    try:
        state_to_plain(statistic.zero())
    except TypeError:
        return False
    return True


#: All that is ever said of what went wrong on a worker, in its log, in the scheduler's and here. It never travels: a worker says that it
#: failed, and each process has the sentence of its own.
FAILED = "the records could not be read, coded or added up on a worker"


def masked(action: Callable[[], T]) -> T:
    """`guarded`, in that sentence. An exit is a failure too: it would end the worker, with its words in the log."""
    try:
        return guarded(FAILED, action)
    except SystemExit:
        pass
    raise SourceError(FAILED)


# Tasks of one pass at most: a scheduler takes about a millisecond for each.
_TASKS = 1024
_MIX = np.uint64(0xBF58476D1CE4E5B9)


class Done(NamedTuple):
    """What was added up of a portion: states, the number of records, and a digest of their codes."""

    states: list[Any]
    records: int
    digest: int


class Readable(ABC):
    """Base of what one task reads."""

    @abstractmethod
    def coded(self, rows: tuple[str, ...], schema: Schema) -> Iterator[Codes]:
        """Blocks of codes, each overwritten by the next one."""

    def done(self, work: Work) -> Done:
        """States of the statistics of a pass. Override where codes are kept for the next one."""
        read = _CodedOnce(self, work)
        states = states_of(read, work.statistics)
        return Done(states, read.records, read.digest.total)


class _CodedOnce(Input):
    """The blocks of codes of one portion, counted and digested: an input of a pass, and its only part."""

    place = "a portion"

    def __init__(self, portion: Readable, work: Work) -> None:
        self.rows: tuple[str, ...] = work.rows
        self.columns: tuple[str, ...] = ()
        self.digest, self.records = Digest(len(work.rows), work.seed), 0
        self._blocks = partial(portion.coded, work.rows, work.schema)

    @property
    def parts(self) -> Any:
        return (self,)

    def pieces(self, names: Sequence[str]) -> Iterator[Piece]:
        yield Piece(self.place, lambda rows: (Block(codes.shape[1], [codes]) for codes in self._blocks()))

    def coder(self, block_rows: int) -> Callable[[Block], Codes]:
        return self._counted

    def _counted(self, block: Block) -> Codes:
        codes: Codes = block.columns[0]
        self.records += block.rows
        self.digest.add(codes)
        return codes


@dataclass(frozen=True)
class Portion(Readable):
    """Some pieces of a part, from `first` on, `count` of them (None: all): what one task reads, where it runs."""

    part: Part = field(repr=False)
    first: int = 0
    count: int | None = None
    place: ClassVar[str] = "a portion"

    def pieces(self, columns: Sequence[str]) -> Iterator[Piece]:
        stop = None if self.count is None else self.first + self.count
        return islice(self.part.pieces(columns), self.first, stop)

    def blocks(self, columns: Sequence[str]) -> Iterator[Block]:
        for piece in self.pieces(columns):
            yield from piece.blocks(BLOCK_ROWS)

    def coded(self, rows: tuple[str, ...], schema: Schema) -> Iterator[Codes]:
        coder = Coder(rows, schema, BLOCK_ROWS)
        for block in self.blocks(columns_behind(rows, schema)):
            yield coder(block)


def portions(parts: Sequence[Part], most: int = _TASKS) -> list[Portion]:
    """What tasks read: row groups of Parquet files, some at a time where there are many, and other parts as they are."""
    sizes = [part.groups for part in parts]
    step = max(ceil(sum(size or 1 for size in sizes) / most), 1)
    found: list[Portion] = []
    for part, size in zip(parts, sizes, strict=True):
        found += [Portion(part)] if size is None else [Portion(part, at, step) for at in range(0, size, step)]
    return found


@dataclass(frozen=True)
class Change:
    """Other codes in the place of kept ones (`Source.coded_again`). rows: former and new names; code: of a row's new name."""

    rows: tuple[tuple[str, str], ...]
    code: Callable[[str, Codes], Codes] = field(repr=False)


@dataclass(frozen=True)
class Work:
    """States of statistics over one portion, as JSON: `work(label, portion)`. `rows`: all that the draw may ask for.
    `seed`: of the draw's own digest of codes, which tells whether a later pass met other records. `changes`: since codes were kept.
    """

    schema: Schema = field(repr=False)
    rows: tuple[str, ...]
    statistics: tuple[Statistic, ...] = field(repr=False)
    seed: int = field(repr=False)
    changes: tuple[Change, ...] = field(default=(), repr=False)

    def __call__(self, label: int, portion: Readable) -> str:
        """Of a failure the document says that there was one, and nothing of it."""
        try:
            return masked(lambda: self._done(label, portion))
        except SourceError:
            return json.dumps({"part": label, "failed": True})

    def _done(self, label: int, portion: Readable) -> str:
        with _HELD:
            states, records, digest = portion.done(self)
        done = {"part": label, "records": records, "digest": digest, "machine": machine()}
        return json.dumps({**done, "states": [state_to_plain(state) for state in states]})


class _HeldMemory:
    """While some pass runs, let what one block's sums were made in serve the next block's (`aggregation`), on Dask's workers too.

    They are started with MALLOC_TRIM_THRESHOLD_, which sends each freed array back to the system at once: three quarters of what a pass
    took. After that the C library does again as it was told.
    """

    # of glibc's malloc.h, with its own defaults; arrays of a block are smaller than 32 MB, the most that it takes
    _TRIM, _MMAP, _DEFAULT, _MOST = -1, -3, 1 << 17, 1 << 25

    def __init__(self) -> None:
        self._lock, self._inside = Lock(), 0

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                self._set(2 * self._MOST, self._MOST)

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                told = [os.environ.get(f"MALLOC_{name}_THRESHOLD_", "") for name in ("TRIM", "MMAP")]
                self._set(*(int(one) if one.isdecimal() else self._DEFAULT for one in told))

    def _set(self, trim: int, mmap: int) -> None:
        if not os.environ.get("MALLOC_TRIM_THRESHOLD_", "").isdecimal():
            return
        with suppress(OSError, AttributeError, TypeError):  # another C library
            mallopt = ctypes.CDLL(None).mallopt
            mallopt(self._TRIM, trim)
            mallopt(self._MMAP, mmap)


_HELD = _HeldMemory()


class Digest:
    """A number that codes of records add up to, in any order: other records give another one, but for one chance in 2^64."""

    def __init__(self, rows: int, seed: int) -> None:
        factors = np.random.default_rng(seed).integers(0, 1 << 63, rows, dtype=np.uint64)
        self._factors = factors * np.uint64(2) + np.uint64(1)
        self.total = 0

    def add(self, codes: Codes) -> None:
        mixed: NDArray[np.uint64] = np.full(codes.shape[1], 1, dtype=np.uint64)
        for factor, row in zip(self._factors, codes, strict=True):
            mixed += row.astype(np.int64).view(np.uint64) * factor
        mixed ^= mixed >> np.uint64(30)
        mixed *= _MIX
        mixed ^= mixed >> np.uint64(27)
        mixed *= _MIX
        self.total = (self.total + int(np.add.reduce(mixed, dtype=np.uint64))) % (1 << 64)


@lru_cache(maxsize=1)
def machine() -> str:
    """How this machine rounds what record maps are made of, with the versions of what they are written in."""
    x = np.linspace(-30.0, 30.0, 4099)
    y = np.linspace(1e-9, 3e6, 4099)
    made = [np.exp(x), np.tanh(x), np.expm1(x), np.log(y), np.log1p(y), np.sqrt(y), x / y, np.sin(x), np.cos(x), y**0.3]
    versions = f"{__version__} {np.__version__}".encode()
    return hashlib.sha256(b"".join(one.tobytes() for one in made) + versions).hexdigest()


_ORDER = "the rows of one id did not come one after the other from the engine that brought them together"
_CUT = "the rows of one unit did not come together from the engine that kept them"
_APART = "the rows of one id did not meet on one worker; workers need equal versions of pandas and confide"


def group_of(ids: pa.Array, groups: int) -> NDArray[np.intp]:
    """The group of each id: a keyed hash of its bytes that is the same on any machine."""
    import pandas as pd

    coded = ids.dictionary_encode()
    known = np.array(coded.dictionary.to_pylist(), dtype=object)
    hashed = pd.util.hash_array(known, categorize=False) if len(known) else np.zeros(0, np.uint64)
    return np.asarray((hashed % np.uint64(groups)).astype(np.intp)[coded.indices.to_numpy()])


@dataclass(frozen=True)
class Coding:
    """How a worker codes records before they are brought together: with their ids, and their clusters where the schema has them.

    coded: the rows of codes but for that of the clusters (`grouping.units.rows_of`).
    """

    schema: Schema = field(repr=False)
    groups: HashedGroups | None
    coded: tuple[str, ...]

    @property
    def column(self) -> str | None:
        """The id column of the units; None where each record is one, which then stay in their portions."""
        return self.schema.unit.column if isinstance(self.schema.unit, Unit) else None

    @property
    def rows(self) -> tuple[str, ...]:
        """The rows of codes of records, and that of the clusters."""
        return self.coded if self.groups is None else (*self.coded, CLUSTER_ROW)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the data must give."""
        return self._input([]).columns

    def __call__(self, blocks: Iterator[Block]) -> Iterator[Rows]:
        """The rows of each block that have an id, codes packed."""
        held: list[tuple[pa.Array, Codes]] = []
        coder, packed = self._input(held).coder(BLOCK_ROWS), Packing.of(self.rows, self.schema)
        with np.errstate(all="ignore"):
            for block in blocks:
                coder(block)
                rows = identified(*held.pop(), packed)
                if len(rows):
                    yield rows

    def _input(self, held: list[tuple[pa.Array, Codes]]) -> WithIds:
        def took(ids: pa.Array, codes: Codes) -> None:
            held.append((ids, codes))

        return WithIds((), self.schema, self.coded, self.column, took, self.groups)


def dealt(portion: Portion, coding: Coding, groups: int) -> list[Rows | None]:
    """The rows of a portion that have an id, group by group, coded; None for a group of which it has none."""
    held = list(coding(portion.blocks(coding.columns)))
    if not held:
        return [None] * groups
    rows = joined(held)
    of = group_of(rows.ids, groups)
    order = np.argsort(of, kind="stable")
    cuts = np.searchsorted(of[order], np.arange(groups + 1))
    return [rows.take(order[cuts[at] : cuts[at + 1]]) if cuts[at] < cuts[at + 1] else None for at in range(groups)]


def whole_units(batches: Iterator[Any]) -> Iterator[Rows]:
    """Batches of ids and codes, in ascending order of the ids' bytes, as rows that hold every row of each unit.

    Raises `SourceError` where an id is below the one before it: the rows of a unit might then not be together.
    """
    held: list[Rows] = []
    for batch in batches:
        if not batch.num_rows:
            continue
        ids, *codes = batch.columns
        rows = Rows(ids.cast(pa.large_binary()), [np.asarray(row) for row in codes])
        last = held[-1].ids[-1].as_py() if held else b""
        if last > rows.ids[0].as_py() or pc.any(pc.greater(rows.ids[:-1], rows.ids[1:])).as_py():
            raise SourceError(_ORDER)
        begins = pc.index(rows.ids, rows.ids[-1]).as_py()
        if begins or (held and last != rows.ids[0].as_py()):
            yield joined([*held, rows.take(np.arange(begins))] if begins else held)
            held = []
        held.append(rows.take(np.arange(begins, len(rows))))
    if held:
        yield joined(held)


def places(own: tuple[str, ...], rows: tuple[str, ...]) -> list[int]:
    """Where the rows of codes of bounded units lie; the same one says where units begin, whichever of their rows are there."""
    return [own.index(UNIT_ROW if name == WHOLE_ROW else name) for name in rows]


def unit_blocks(pieces: Iterator[list[NDArray[Any]]], mark: int) -> Iterator[list[NDArray[Any]]]:
    """Rows of codes, unit after unit and cut anywhere by an engine, in blocks that hold every row of each unit.

    mark: which of them says where units begin. Raises `SourceError` where what comes first is not the beginning of a
    unit.
    """
    held: list[NDArray[Any]] = []
    for piece in pieces:
        if not len(piece[mark]):
            continue
        held = [np.concatenate(both) for both in zip(held, piece, strict=True)] if held else piece
        starts = np.flatnonzero(held[mark] >= 0)
        if not len(starts) or starts[0]:
            raise SourceError(_CUT)
        cuts = block_starts(starts).tolist()
        for start, stop in pairwise(cuts):
            yield [row[start:stop] for row in held]
        held = [row[cuts[-1] :] for row in held]
    if held:
        yield held


@dataclass(frozen=True)
class UnitGroup(Readable):
    """Codes of whole, bounded units, with the row `UNIT_ROW`: what later passes of a draw read on a worker."""

    rows: tuple[str, ...]
    codes: list[NDArray[Any]] = field(repr=False)

    def coded(self, rows: tuple[str, ...], schema: Schema) -> Iterator[Codes]:
        picks = places(self.rows, rows)
        for own in unit_blocks(iter([self.codes] if self.codes else []), self.rows.index(UNIT_ROW)):
            yield np.array([own[at] for at in picks], dtype=np.float64)


def bounded(label: int, groups: int, portions: Sequence[Rows | None], rows: tuple[str, ...], rule: Keep) -> UnitGroup:
    """One group's rows of all portions, bounded."""
    held = [one for one in portions if one is not None]
    if not held:
        return UnitGroup((*rows, UNIT_ROW), [])
    whole = joined(held)
    if (group_of(whole.ids, groups) != label).any():
        raise SourceError(_APART)
    codes, sizes = rule(whole)
    return UnitGroup((*rows, UNIT_ROW), [*codes, sizes])


@dataclass(frozen=True)
class _Unit(RecordMap):
    """1 for the first row of each unit."""

    columns: tuple[str, ...] = (UNIT_ROW,)
    width: int = 1
    l1: int = 1
    l2_squared: int = 1
    digest: str = "ids"

    def __call__(self, codes: Codes) -> Codes:
        return np.asarray((codes >= 0) * 1.0)


@dataclass(frozen=True)
class Ids(Statistic):
    """The number of ids, for the gate's count alone: it is never drawn."""

    map: _Unit = _Unit()
    shape: ClassVar[tuple[int, ...]] = (1,)
    norm: ClassVar[str] = "l2"

    def sensitivity_squared(self, relation: str) -> Fraction:
        return Fraction(1)

    sensitivity_l1 = sensitivity_squared

    def zero(self) -> NDArray[np.int64]:
        return np.zeros(1, dtype=np.int64)

    def update(self, state: NDArray[np.int64], codes: Codes) -> NDArray[np.int64]:
        return np.asarray(state + self.map(codes).sum(axis=1).astype(np.int64))

    def merge(self, a: NDArray[np.int64], b: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.asarray(a + b)

    def value(self, state: NDArray[np.int64]) -> NDArray[Any]:
        return state.astype(object)
