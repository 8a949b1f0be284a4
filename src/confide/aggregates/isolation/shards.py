"""Disjoint blocks of records for computations that are no sums: any estimator, any classifier, each on a block of its own.

How a record finds its block. Under substitute by its position after a permutation, (n div k) or one more records a block: the order that
is permuted is that of the records' contents, and a permutation drawn evenly without looking at them makes all orders of a multiset
equally likely, whatever order it began with. So the orders of two neighbours can be drawn together such that they differ at one position,
and what protects against one record of one block protects against one record, by joint convexity. Under add-remove by a keyed hash of its
content: for any key, one record more in the data is one record more in exactly one block (`keyed_hashes`). A hash would not do under
substitute, where two blocks would change, nor positions under add-remove, where all would.

The permutation is sorted 128-bit words of SHAKE-256 under the key; two of n words are alike with a chance below n^2/2^129.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from confide._arrays import Array
from confide.aggregates.isolation.collected import Collected
from confide.aggregates.isolation.in_place import runner
from confide.aggregates.isolation.isolated import Answers, Room, Work
from confide.protocol import Noise, RecordMap, Source

__all__ = ["BY", "Tabled", "blocks", "divided", "fresh_key", "keyed_hashes"]


#: Relation -> how a record finds its block.
BY = {"substitute": "position", "add-remove": "identity"}
# A key is normal integers of sd 2^40, hashed.
_KEY = (Fraction(1 << 80), 8)


class Tabled(RecordMap, Protocol):
    """A record map whose rows can be read as a table in the columns' units, (n, columns)."""

    def table(self, rows: Array) -> Array: ...


def blocks(
    source: Source,
    record: Tabled,
    k: int,
    key: bytes,
    by: str,
    work: Work,
    *,
    answers: Answers,
    room: Room,
    progress: Callable[[int, int], None] | None = None,
) -> Array:
    """What `work` says of each of k disjoint blocks of the records, (k, *answers.shape); one record moves one of them.

    record: how records become tables; key: 32 bytes, drawn anew for each release and kept; by: one of `BY`, that of the relation. It takes
    `room.seconds` beyond the reading. `aggregates.isolated` says how a block is worked on, and what becomes of one that fails; so the
    method's plan tries the same work on practice records first (`rehearsal.rehearsed`).
    """
    with runner(work, answers, room, progress) as workers:
        (rows,) = source.aggregate(Collected(record))
        return workers.run([record.table(own) for own in divided(rows, k, key, by)], key)


def fresh_key(noise: Noise) -> bytes:
    """A fresh key of 32 bytes, from noise that knows no records (`meter.noise`); it never leaves the release."""
    drawn = ",".join(str(int(v)) for v in noise.grid_gaussian(*_KEY))
    return hashlib.sha256(f"confide/split/{drawn}".encode()).digest()


def divided(rows: Array, k: int, key: bytes, by: str) -> list[Array]:
    """Rows (columns, n) as `Collected` gives them, in k parts.

    >>> [part.shape[1] for part in divided(np.arange(10.0)[None], 3, bytes(32), "position")]
    [4, 3, 3]
    """
    n = rows.shape[1]
    if by == "position":
        words = np.frombuffer(hashlib.shake_256(b"confide/order/" + key).digest(16 * n), dtype=np.uint64).reshape(2, n)
        return [rows[:, places] for places in np.array_split(np.lexsort(words), k)]
    # the upper half of a hash, times k, over 2^32
    place = (keyed_hashes(rows, key) >> np.uint64(32)) * np.uint64(k) >> np.uint64(32)
    order = np.argsort(place, kind="stable")
    ends = np.searchsorted(place[order], np.arange(1, k, dtype=np.uint64))
    return [rows[:, places] for places in np.split(order, ends)]


def keyed_hashes(rows: Array, key: bytes) -> NDArray[np.uint64]:
    """A hash of each row and of how many rows like it stand before it; rows: (columns, n) in canonical order.

    The c-th copy of a record r has the hash h(r, c). For any fixed h one record more in the data is one more hash, and all others stay what
    they were: if r is there c times, only the (c + 1)-th copy is new. Without the copy's number all copies would share a hash, which is as
    private, and makes poor parts of records of few kinds. The mixing is elementwise and protects nothing.
    """
    n = rows.shape[1]
    first = np.ones(n, dtype=bool)
    first[1:] = (rows[:, 1:] != rows[:, :-1]).any(axis=0)
    starts = np.maximum.accumulate(np.where(first, np.arange(n), 0))
    copy = (np.arange(n) - starts).astype(np.uint64)
    keys = np.frombuffer(key, dtype=np.uint64)
    mixed = np.full(n, keys[0])
    for row in (*rows.astype(np.int64).view(np.uint64), copy):
        mixed = _stir(mixed ^ row) + keys[1]
    return _stir(_stir(mixed ^ keys[2]) ^ keys[3])


def _stir(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of SplitMix64, elementwise."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(values ^ (values >> np.uint64(31)))
