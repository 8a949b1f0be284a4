"""Which rows of a unit count, where it has more than the rule allows: those of the smallest priorities.

    seed = BLAKE2b-64(canonical id, key);  h = seed;  for each word: h = mix((h + G) ^ (word M1));  priority = mix((h + G) ^ (j M2))

in unsigned 64-bit arithmetic; mix is the finaliser of SplitMix64 (Steele, Lea, Flood 2014). The words of a row are its codes in all
schema columns, in the schema's order, and then, for each numeric column, whether the value lay outside its bounds; j = 0, 1, ... numbers
the rows of the unit that are equal in all words, so that no statistic can see which of them is called j. So which rows are kept is a
function of the unit's own rows as a multiset and of the key: the same in any order of the records, any batches, files or types of the id,
and no other unit's rows move it. Ties go by words, then j.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["first_rows", "hashed", "numbered", "priorities", "seeds"]

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


def numbered(unit: NDArray[Any], h: Hashes, words: Words) -> NDArray[np.int64]:
    """j of each row: its number among the rows of its unit that are equal in all words. unit: which unit a row is of."""
    j = np.zeros(len(h), dtype=np.int64)
    ordered = np.sort(h)
    twice = ordered[1:][ordered[1:] == ordered[:-1]]
    if not len(twice):
        return j
    # rows that may have equals: few, where columns are finely coded
    at = np.flatnonzero(twice[np.minimum(np.searchsorted(twice, h), len(twice) - 1)] == h)
    words = [word[at] for word in words]
    keys: tuple[NDArray[Any], ...] = (unit[at], h[at])
    order = np.lexsort(keys[::-1])
    if _mixed(order, keys, words):  # rows of one unit with other words and one hash
        keys = (*keys, *words)
        order = np.lexsort(keys[::-1])
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
