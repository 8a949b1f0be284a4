"""Which cluster records are in: numbers for the ids of clusters, and one cluster for each unit.

A unit is in one cluster: of those that its rows name, the one whose id has the smallest hash under the key; its other rows are dropped,
before its rows are bounded. So the cluster follows from the unit's own rows and the key. Numbers mean nothing outside the pass and are in
nothing that is released; ids are dropped when the pass ends, and a record without one is dropped. A unit of such records alone has no row
that counts, and is still one of the units whose number may be public. In one process numbers are given in the order in which ids are met
(`Groups`). Workers have nobody to ask which numbers are taken: there they are 53 bits of the ids' hashes
(`HashedGroups`), and two of C clusters are taken for one with a chance of C^2/2^54, which no guarantee minds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from confide.sources.grouping.ids import canonical
from confide.sources.grouping.priorities import seeds
from confide.sources.grouping.spill import Rows

__all__ = ["Groups", "HashedGroups", "numbered_units"]


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
        places = coded.indices.fill_null(len(own)).to_numpy()
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
        return np.asarray(np.append(own, -1)[coded.indices.fill_null(len(known)).to_numpy()])

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
    return coded.indices.to_numpy(), coded.dictionary
