"""Which cluster records are in: numbers for the ids of clusters, and one cluster for each unit.

A unit is in one cluster: of those that its rows name, the one whose id has the smallest hash under the key; its other rows are dropped,
before its rows are bounded. So the cluster follows from the unit's own rows and the key. Numbers are given in the order in which ids are
met, mean nothing outside the pass and never leave; ids are dropped when the pass ends, and a record without one is dropped.
"""

from __future__ import annotations

from functools import cached_property
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from confide.sources.ids import canonical
from confide.sources.priorities import seeds
from confide.sources.spill import Rows

__all__ = ["Groups", "numbered_units"]


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
        unit, ids = numbered_units(rows)
        own = self.ranks[rows.codes[-1]]
        least = np.full(len(ids), np.iinfo(np.intp).max)
        np.minimum.at(least, unit, own)
        return np.flatnonzero(own == least[unit])


def numbered_units(rows: Rows) -> tuple[NDArray[Any], pa.Array]:
    """The number of each row's unit, and the ids of the units; ids are compared byte by byte."""
    coded = rows.ids.dictionary_encode()
    return coded.indices.to_numpy(), coded.dictionary
