"""Canonical ids: which cells of an id column name the same unit.

The canonical id is bytes, and a function of one cell and its declared type alone, never of other cells, files or
batches. Whole numbers are decimal text, dates ISO text, text and binary their bytes, neither trimmed nor folded. Text
of the form `-?(0|[1-9][0-9]*)(.0+)?` is that whole number, and -0 is 0. So 7, 7.0 and "7" are one unit in any mix of
files. These are not ids: a an empty text, and text that means a missing value in files without types (NA, N/A,
NaN, nan, null, NULL, None, <NA>). Nor are a fractional, infinite or boolean cell and a float of 2^53 or more, which
no longer tells neighboring integers apart. In columns of Python objects whole Decimals are whole numbers and UUIDs
their text.

Nothing here raises on a value, and no id leaves this room.

Records with their ids while units are brought together: in memory, or dealt out to files without names.

Which rows of a unit count, where it has more than the rule allows: those of the smallest priorities.

    seed = BLAKE2b-64(canonical id, key);  h = seed;  for each word: h = mix((h + G) ^ (word M1));  priority = mix((h + G) ^ (j M2))

in unsigned 64-bit arithmetic; mix is the finalizer of SplitMix64 (Steele, Lea, Flood 2014). The words of a row are
its codes in all schema columns, in the schema's order, and then, for each numeric column, whether the value lay
outside its bounds. The rows of the unit that are equal in all words are numbered by j = 0, 1, ..., in the order of
their values (`fine(NAME)`). The range step can tell these apart where the words cannot. So no statistic can see which
of those that are left equal is called j. Which rows are kept is a function of the unit's own rows as a multiset and
of the key. It is the same in any order of the records, any batches, files or types of the id. No other unit's rows
change it. Ties go by words, then j. Where every statistic of a plan weighs all rows of a unit, up to 65,536, the words
are the rows of codes that the plan names. So which rows of a larger unit count depends on the plan, too.

Which cluster records are in: numbers for the ids of clusters, and one cluster for each unit.

A unit is in one cluster: of those that its rows name, the one whose id has the smallest hash under the key. Its other
rows are dropped, before its rows are bounded. So the cluster follows from the unit's own rows and the key. Numbers
mean nothing outside the pass and are in nothing that is released; ids are dropped when the pass ends, and a record
without one is dropped. A unit of such records alone has no row that counts, and is still one of the units whose
number may be public. In one process numbers are given in the order in which ids are met (`Groups`). Workers cannot
ask which numbers are taken. There they are 53 bits of the ids' hashes (`HashedGroups`), and two of C clusters are
confused with a chance of C^2/2^54, which affects no guarantee.
"""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from functools import cached_property
from threading import Lock
from typing import IO, Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from confide.sources.coding import Cells, Coded, from_arrow, is_text, matches_type, scalar, text_array, to_arrow

# Files at once: each then has to hold a 64th of the records, so that 64 times the memory's limit are finished in one round, and 4,096 times
# where each is dealt out once more.
_FILES = 64
_CONTENT = np.uint64(0x9FB21C651E98DF25)


_ODD, _MIX = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)
# Ids of more words of eight bytes are hashed one by one.
_WORDS = 8


def hashes(cells: pa.Array, seed: int = 1) -> NDArray[np.uint64]:
    """A hash of each cell, of large binaries: equal cells have one. What stands for a missing cell is of no use.

    >>> one, other, again = hashes(pa.array([b"7", b"07", b"7"], pa.large_binary())).tolist()
    >>> one == again, one == other
    (True, False)
    """
    rows = len(cells)
    ends = (
        np.frombuffer(cells.buffers()[1], dtype=np.int64, count=rows + 1, offset=8 * cells.offset)
        if rows
        else np.zeros(1, np.int64)
    )
    raw, starts, sizes = cells.buffers()[2], ends[:-1], np.diff(ends)
    # eight bytes more, so that a word may begin at the last byte
    padded = np.zeros(int(ends[-1] - ends[0]) + 8, dtype=np.uint8)
    padded[:-8] = np.frombuffer(raw, dtype=np.uint8)[ends[0] : ends[-1]] if raw is not None else 0
    words: NDArray[np.uint64] = np.ndarray(len(padded) - 7, dtype="<u8", buffer=padded.data, strides=(1,))
    with np.errstate(over="ignore"):
        found = sizes.astype(np.uint64) * _ODD ^ np.uint64(seed)
        for at in range(min(_WORDS, -(-int(sizes.max(initial=0)) // 8))):
            (on,) = np.nonzero(sizes > 8 * at)
            left = np.minimum(sizes[on] - 8 * at, 8).astype(np.uint64)
            word = words[starts[on] - ends[0] + 8 * at] & (~np.uint64(0) >> (np.uint64(64) - np.uint64(8) * left))
            found[on] = _stirred(found[on] ^ word)
        for at in np.flatnonzero(sizes > 8 * _WORDS).tolist():
            found[at] ^= np.frombuffer(
                hashlib.blake2b(cells[at].as_py() or b"", digest_size=8).digest(), dtype=np.uint64
            )[0]
        return _stirred(found)


def _stirred(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A step of SplitMix64: each bit of a word reaches all that follow and, by the shifts, those before."""
    words = (words + _ODD) * _MIX
    words ^= words >> np.uint64(27)
    words *= _ODD
    return words ^ (words >> np.uint64(31))


@dataclass(frozen=True)
class Rows:
    """Some records: their canonical ids (large_binary, no null), and their codes, one array of whole numbers for each row of codes."""

    ids: pa.Array = field(repr=False)
    codes: list[NDArray[Any]] = field(repr=False)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def bytes(self) -> int:
        """What they take in memory."""
        return int(self.ids.nbytes) + sum(row.nbytes for row in self.codes)

    def take(self, at: NDArray[Any]) -> Rows:
        """The rows at these places, in this order."""
        return Rows(self.ids.take(to_arrow(at)), [row[at] for row in self.codes])

    def by_id(self, seed: int = 1) -> NDArray[Any]:
        """The file of each record: equal ids have one file. Which ids share a file changes no integer, only where they wait."""
        return (hashes(self.ids, seed) % np.uint64(_FILES)).astype(np.uint8)

    def by_content(self, words: int | None = None) -> NDArray[Any]:
        """The file of each record of one unit or a few: rows that are equal in their first codes, so many, have one file."""
        h = np.zeros(len(self), dtype=np.uint64)
        with np.errstate(over="ignore"):
            for row in self.codes[:words]:
                h = (h ^ row.astype(np.int64).view(np.uint64)) * _CONTENT
                h ^= h >> np.uint64(29)
        return (h % np.uint64(_FILES)).astype(np.uint8)


def joined(parts: Sequence[Rows]) -> Rows:
    """Records one after the other."""
    if len(parts) == 1:
        return parts[0]
    return Rows(
        pa.concat_arrays([part.ids for part in parts]),
        [np.concatenate(rows) for rows in zip(*(part.codes for part in parts), strict=True)],
    )


class Files:
    """Records dealt out to files, each of which is written, then read once; nobody else can open them, and they end with the process."""

    def __init__(self, folder: str | None) -> None:
        self._folder = folder
        self._files: list[IO[bytes]] = []
        self._writers: list[Any] = []
        self._counts = [0] * _FILES

    @property
    def parts(self) -> int:
        return _FILES

    def rows(self, part: int) -> int:
        """How many records a file holds."""
        return self._counts[part]

    def add(self, rows: Rows, parts: NDArray[Any]) -> None:
        """Each record into its file."""
        if not self._files:
            self._open(rows)
        order = np.argsort(parts, kind="stable")
        ends = np.cumsum(np.bincount(parts, minlength=_FILES))
        dealt = rows.take(order)
        batch = pa.record_batch([dealt.ids, *map(to_arrow, dealt.codes)], names=self._names(rows))
        for part, (start, stop) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
            if stop > start:
                self._writers[part].write_batch(batch.slice(start, stop - start))
                self._counts[part] += int(stop - start)

    def _open(self, rows: Rows) -> None:
        kinds = [pa.large_binary(), *(pa.from_numpy_dtype(row.dtype) for row in rows.codes)]
        schema = pa.schema(list(zip(self._names(rows), kinds, strict=True)))
        for _ in range(_FILES):
            # closed by close
            file = tempfile.TemporaryFile(prefix="confide-", dir=self._folder, buffering=0)  # noqa: SIM115
            self._files.append(file)
            self._writers.append(pa.ipc.new_stream(pa.PythonFile(file, mode="w"), schema))

    @staticmethod
    def _names(rows: Rows) -> list[str]:
        return [str(at) for at in range(1 + len(rows.codes))]

    def read(self, part: int) -> Iterator[Rows]:
        """The records of a file, in portions; it takes no more afterward."""
        self._writers[part].close()
        self._files[part].seek(0)
        for batch in pa.ipc.open_stream(pa.PythonFile(self._files[part], mode="r")):
            ids, *codes = batch.columns
            yield Rows(ids, [from_arrow(row) for row in codes])

    def close(self) -> None:
        """Give the files back."""
        for file in self._files:
            with suppress(OSError):
                file.close()
        self._files, self._writers = [], []


_EXACT = 2.0**53
_DIGITS = 400
_MISSING = (b"NA", b"N/A", b"NaN", b"nan", b"null", b"NULL", b"None", b"<NA>")
_WHOLE = re.compile(rb"(-?(?:0|[1-9][0-9]*))(?:\.0+)?")


def is_id(kind: Any) -> bool:
    """Whether cells of this physical type can be ids: whole numbers, floats, text, binary, dates and dictionaries of these.

    >>> is_id(np.dtype("int64")), is_id(pa.date32()), is_id(pa.bool_()), is_id(np.dtype("bool"))
    (True, True, False, False)
    """
    t = pa.types
    return matches_type(kind, "iufOUS", (t.is_integer, t.is_floating, t.is_date, t.is_null, is_text, _is_binary))


def canonical(cells: Cells) -> pa.Array:
    """The canonical ids of a piece of a column as Arrow large_binary, null where there is none.

    >>> canonical(np.array([7.0, 7.5, np.nan])).to_pylist(), canonical(pa.array(["7", "07", "-0.00", ""])).to_pylist()
    ([b'7', None, None], [b'7', b'07', b'0', None])
    """
    if isinstance(cells, Coded):
        known = canonical(cells.cells)
        positions = np.asarray(cells.positions, dtype=np.int64)
        return known.take(to_arrow(positions, positions < 0))
    found = _numpy(cells) if isinstance(cells, np.ndarray) else _arrow(cells)
    empty = pc.equal(found, scalar(b"", found))
    return pc.if_else(empty, pa.nulls(1, found.type)[0], found) if pc.any(empty).as_py() else found


def _numpy(cells: NDArray[Any]) -> pa.Array:
    kind = cells.dtype.kind
    if kind == "f":
        return _floats(cells)
    if kind in "iu":
        return _decimal(to_arrow(cells))
    return text_array([_cell(cell) for cell in cells.tolist()], pa.large_binary())


def _arrow(cells: Any) -> pa.Array:
    kind = cells.type
    if pa.types.is_dictionary(kind):
        return canonical(cells.dictionary).take(cells.indices)
    if pa.types.is_integer(kind):
        return _decimal(cells)
    if pa.types.is_floating(kind):
        return _floats(from_arrow(cells.cast(pa.float64(), safe=False)))
    if pa.types.is_date(kind):
        return text_array([_cell(cell) for cell in cells.to_pylist()], pa.large_binary())
    if is_text(kind):
        return _plain_text(_bytes(cells))
    return _bytes(cells) if _is_binary(kind) else pa.nulls(len(cells), pa.large_binary())


def _bytes(cells: pa.Array) -> pa.Array:
    """Text or binary as large_binary: the same bytes, valid as text or not."""
    if cells.type == pa.string_view():
        cells = cells.cast(pa.large_string())
    return cells.cast(pa.large_binary())


def _decimal(cells: pa.Array) -> pa.Array:
    return cells.cast(pa.large_string()).cast(pa.large_binary())


def _floats(values: NDArray[Any]) -> pa.Array:
    values = values.astype(np.float64, copy=False)
    with np.errstate(all="ignore"):
        whole = (np.abs(values) < _EXACT) & (values == np.trunc(values))
    return _decimal(to_arrow(np.where(whole, values, 0.0).astype(np.int64), ~whole))


def _plain_text(cells: pa.Array) -> pa.Array:
    """Text that is a whole number in other words becomes that number: few cells are, and only those are looked at."""
    missing = pc.is_in(cells, value_set=text_array(_MISSING, cells.type))
    if pc.any(missing).as_py():
        cells = pc.if_else(missing, pa.nulls(1, cells.type)[0], cells)
    odd = pc.or_kleene(pc.match_substring(cells, pattern=b".0"), pc.equal(cells, scalar(b"-0", cells)))
    at = np.flatnonzero(from_arrow(odd, False))
    if not at.size:
        return cells
    mask = np.zeros(len(cells), dtype=bool)
    mask[at] = True
    plain = text_array([_text(cell) for cell in cells.take(to_arrow(at)).to_pylist()], cells.type)
    return pc.replace_with_mask(cells, to_arrow(mask), plain)


def _text(text: bytes) -> bytes | None:
    if text in _MISSING:
        return None
    found = _WHOLE.fullmatch(text)
    if found is None:
        return text
    return b"0" if found[1] == b"-0" else found[1]


def _cell(cell: object) -> bytes | None:
    """The canonical id of one Python object."""
    if isinstance(cell, str):
        return _text(cell.encode("utf-8", "surrogatepass"))
    if isinstance(cell, bytes):
        return cell
    if isinstance(cell, (bool, np.bool_)):
        return None
    if isinstance(cell, (int, np.integer)):
        return _digits(int(cell))
    if isinstance(cell, (float, np.floating)):
        value = float(cell)
        return _digits(int(value)) if abs(value) < _EXACT and value == int(value) else None
    if isinstance(cell, Decimal):
        return _digits(int(cell)) if _is_whole(cell) else None
    if isinstance(cell, UUID):
        return str(cell).encode()
    if isinstance(cell, date) and not isinstance(cell, datetime):
        return cell.isoformat().encode()
    return None


def _is_whole(cell: Decimal) -> bool:
    # a number of a million digits is no id, and must not take the time to write it out
    return cell.is_finite() and cell.adjusted() <= _DIGITS and cell == cell.to_integral_value()


def _digits(number: int) -> bytes | None:
    """Decimal text; an integer of thousands of digits, which Python refuses to write out, is its hexadecimal text."""
    try:
        return str(number).encode()
    except ValueError:
        return hex(number).encode()


def _is_binary(kind: pa.DataType) -> bool:
    t = pa.types
    return bool(t.is_binary(kind) or t.is_large_binary(kind) or t.is_fixed_size_binary(kind))


Words = Sequence[NDArray[Any]]
Hashes = NDArray[np.uint64]

_G, _M1, _M2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93), np.uint64(0xA0761D6478BD642F)
_A, _B = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def seeds(ids: Sequence[bytes], key: bytes) -> Hashes:
    """One seed for each canonical id."""
    digests = b"".join(hashlib.blake2b(one, key=key, digest_size=8).digest() for one in ids)
    return np.frombuffer(digests, dtype="<u8").astype(np.uint64)


def hashed(seed: Hashes, words: Words) -> Hashes:
    """What id and words of each row come to; seed: that of its unit.

    >>> seven = seeds([b"7"], bytes(range(32)))
    >>> h = hashed(seven, [np.array([0]), np.array([5]), np.array([-1])])
    >>> [f"{int(n):x}" for n in (*seven, *priorities(h, np.array([0])), *priorities(h, np.array([1])))]
    ['2f8a9a4638fdccf6', '21ef163d526b79fa', 'f38109cf81a6b68b']
    """
    h = seed.copy()
    with np.errstate(over="ignore"):
        for word in words:
            h += _G
            h ^= word.astype(np.int64).view(np.uint64) * _M1
            _mix(h)
    return h


def priorities(h: Hashes, j: NDArray[Any]) -> Hashes:
    """The priority of each row, from `hashed` and its number among its equals."""
    with np.errstate(over="ignore"):
        out = (h + _G) ^ (j.astype(np.uint64) * _M2)
        _mix(out)
    return out


def _mix(z: Hashes) -> None:
    z ^= z >> np.uint64(30)
    z *= _A
    z ^= z >> np.uint64(27)
    z *= _B
    z ^= z >> np.uint64(31)


def numbered(unit: NDArray[Any], h: Hashes, words: Words, beside: Words = ()) -> NDArray[np.int64]:
    """j of each row: its number among the rows of its unit that are equal in all words, in the order of what is beside.

    unit: which unit a row is of; beside: further codes, such as values in order.
    """
    j = np.zeros(len(h), dtype=np.int64)
    ordered = np.sort(h)
    twice = ordered[1:][ordered[1:] == ordered[:-1]]
    if not len(twice):
        return j
    # rows that may have equals: few, where columns are finely coded
    at = np.flatnonzero(twice[np.minimum(np.searchsorted(twice, h), len(twice) - 1)] == h)
    words, beside = [word[at] for word in words], [code[at] for code in beside[::-1]]
    keys: tuple[NDArray[Any], ...] = (unit[at], h[at])
    order = np.lexsort((*beside, *keys[::-1]))
    if _mixed(order, keys, words):  # rows of one unit with other words and one hash
        keys = (*keys, *words)
        order = np.lexsort((*beside, *keys[::-1]))
    j[at[order]] = _places(_changes(order, keys))
    return j


def first_rows(unit: NDArray[Any], priority: Hashes, words: Words, j: NDArray[Any], most: int) -> NDArray[np.intp]:
    """The rows of the `most` smallest priorities of each unit, unit after unit."""
    # unit and the first bits of the priority in one number: one sort, and rows that it cannot tell apart are met once in 10^4 tables
    bits = np.uint64(max(int(unit.max()).bit_length(), 1))
    packed = (unit.astype(np.uint64) << (np.uint64(64) - bits)) | (priority >> bits)
    order = np.argsort(packed)
    if not _changes(order, (packed,)).all():
        order = np.lexsort((j, *words[::-1], priority, unit))
    return order[_places(_changes(order, (unit,))) < most]


def _places(first: NDArray[np.bool_]) -> NDArray[np.intp]:
    """The number of each row since the last one that is first."""
    place = np.arange(len(first))
    return place - np.maximum.accumulate(np.where(first, place, 0))


def _changes(order: NDArray[Any], keys: Words) -> NDArray[np.bool_]:
    """Where a row, in order, differs from the one before it in some key."""
    new = np.zeros(len(order), dtype=bool)
    new[:1] = True
    for key in keys:
        own = key[order]
        new[1:] |= own[1:] != own[:-1]
    return new


def _mixed(order: NDArray[Any], keys: Words, words: Words) -> bool:
    """Whether rows that are equal in the keys, and so next to each other, differ in some word."""
    (equal,) = np.nonzero(~_changes(order, keys))
    one, other = order[equal], order[equal - 1]
    return any(bool((word[one] != word[other]).any()) for word in words)


class Groups:
    """Numbers for the canonical ids of clusters, in the order in which they are met, and the order of their hashes.

    >>> groups = Groups("school", bytes(32))
    >>> groups(np.array(["north", "south", "", "north"], dtype=object)).tolist()
    [0, 1, -1, 0]
    """

    def __init__(self, column: str, key: bytes) -> None:
        self.column, self._key = column, key
        self._lock = Lock()
        self._known: dict[bytes, int] = {}

    def __call__(self, cells: Any) -> NDArray[np.int64]:
        """The number of the cluster of each record, -1 without one."""
        coded = canonical(cells).dictionary_encode()
        with self._lock:
            own = [self._known.setdefault(one, len(self._known)) for one in coded.dictionary.to_pylist()]
        # the place behind the last is that of no id
        places = from_arrow(coded.indices, len(own))
        return np.asarray(np.array([*own, -1], dtype=np.int64)[places])

    @cached_property
    def ranks(self) -> NDArray[np.intp]:
        """The place of each number in the order of the hashes of the ids; asked once all are known."""
        ids = list(self._known)
        order = sorted(zip(seeds(ids, self._key).tolist(), ids, range(len(ids)), strict=True))
        ranks = np.empty(len(ids), dtype=np.intp)
        ranks[[number for *_, number in order]] = np.arange(len(ids))
        return ranks

    def inside(self, rows: Rows) -> NDArray[np.intp]:
        """The places of rows that name their unit's cluster; its number is the last row of codes."""
        # the place behind the last is that of no cluster
        return _least(rows, np.append(self.ranks, -1)[rows.codes[-1]])


@dataclass(frozen=True)
class HashedGroups:
    """Numbers for the canonical ids of clusters that any worker gives alike, in the order of their hashes.

    >>> HashedGroups("school", bytes(32))(np.array(["north", "south", "", "north"], dtype=object)).tolist()
    [5292062062010796, 4052352860532859, -1, 5292062062010796]
    """

    column: str
    key: bytes = field(repr=False)

    def __call__(self, cells: Any) -> NDArray[np.int64]:
        """The number of the cluster of each record, -1 without one."""
        coded = canonical(cells).dictionary_encode()
        known = coded.dictionary.to_pylist()
        # codes are doubles: whole numbers up to 2^53
        own = (seeds(known, self.key) >> np.uint64(11)).astype(np.int64)
        return np.asarray(np.append(own, -1)[from_arrow(coded.indices, len(known))])

    def inside(self, rows: Rows) -> NDArray[np.intp]:
        """As that of `Groups`."""
        return _least(rows, rows.codes[-1])


def _least(rows: Rows, places: NDArray[Any]) -> NDArray[np.intp]:
    """The rows that name the first of their unit's clusters. places: of clusters in their order, -1 for none."""
    unit, ids = numbered_units(rows)
    least = np.full(len(ids), np.iinfo(np.int64).max)
    there = places >= 0
    np.minimum.at(least, unit[there], places[there])
    return np.flatnonzero(places == least[unit])


def numbered_units(rows: Rows) -> tuple[NDArray[Any], pa.Array]:
    """The number of each row's unit, and the ids of the units; ids are compared byte by byte."""
    coded = rows.ids.dictionary_encode()
    return from_arrow(coded.indices), coded.dictionary
