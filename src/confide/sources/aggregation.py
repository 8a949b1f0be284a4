"""One pass over all records: pieces to threads, blocks to codes, codes to statistics, statistics merged.

Everything added up is an exact integer, so the order of pieces, the size of blocks and the number of threads cannot
show.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial, reduce
from math import prod
from operator import itemgetter
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from confide.core import Beginning, Statistic
from confide.schema import Schema
from confide.sources.coder import Coder, columns_behind
from confide.sources.coding import Block, Part, Piece, guarded

Codes: TypeAlias = NDArray[np.float64]

# Rows of a block of an executor, and of whole units.
BLOCK_ROWS = 1 << 14
# Blocks of about a million codes: enough rows to forget what a call costs, and what is made of a block stays in the larger cache.
_FEWEST_ROWS, _MOST_ROWS, _BLOCK_CODES = 1 << 12, 1 << 16, 1 << 20
# As many threads as this process has processors, up to four: each holds a row group of its own.
THREADS = min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1, 4)

# found once: looking for the loaded BLAS libraries takes longer than a small aggregation
_BLAS = ThreadpoolController()


class Input(Protocol):
    """What a pass reads: parts, how one thread turns their blocks into codes, and whether the codes are wanted once more.

    rows: the names of the rows of codes; columns: the columns that the parts give.
    """

    if TYPE_CHECKING:  # what each input has, as attributes or methods of its own

        @property
        def parts(self) -> Sequence[Part]: ...
        @property
        def rows(self) -> tuple[str, ...]: ...
        @property
        def columns(self) -> tuple[str, ...]: ...
        def coder(self, block_rows: int) -> Callable[[Block], Codes]:
            """For one thread. The codes are overwritten by its next call."""
            ...

    def begun(self, block: Block, begins: Beginning, codes: Codes) -> Any:
        """What a beginning gives for the codes of a block. Override where the results of one pass may serve the next."""
        return begins(codes)


class UncachedRecords(Input):
    """Records as they are in tables and files, read and coded in this pass. kept: is handed each block of codes, to copy."""

    parts: Sequence[Part]
    rows: tuple[str, ...]
    columns: tuple[str, ...]

    def __init__(
        self,
        parts: Sequence[Part],
        schema: Schema,
        rows: tuple[str, ...],
        kept: Callable[[Codes], None] | None = None,
    ) -> None:
        self.parts, self.rows = parts, rows
        self.columns = columns_behind(rows, schema)
        self._schema, self._kept = schema, kept

    def coder(self, block_rows: int) -> Callable[[Block], Codes]:
        coder, kept = Coder(self.rows, self._schema, block_rows), self._kept
        if kept is None:
            return coder

        def coded(block: Block) -> Codes:
            codes = coder(block)
            kept(codes)
            return codes

        return coded


def named_rows(statistics: Sequence[Statistic]) -> tuple[str, ...]:
    """The rows of codes that some statistics ask for, each once, in order."""
    return tuple(dict.fromkeys(name for statistic in statistics for name in statistic.map.columns))


def run(
    parts: Sequence[Part],
    schema: Schema,
    statistics: Sequence[Statistic],
    *,
    threads: int = THREADS,
    block_rows: int | None = None,
) -> tuple[NDArray[Any], ...]:
    """One array of exact Python integers for each statistic, over all records of all parts.

    Raises `SourceError`, naming the part and the step, when anything fails on the way.
    """
    return summed(
        UncachedRecords(parts, schema, named_rows(statistics)), statistics, threads=threads, block_rows=block_rows
    )


def summed(
    source: Input, statistics: Sequence[Statistic], *, threads: int = THREADS, block_rows: int | None = None
) -> tuple[NDArray[Any], ...]:
    """`run` over any input whose rows are at least those that the statistics ask for."""
    block_rows = block_rows or _rows_of_a_block(len(source.rows))
    queue = _Queue(source.parts, source.columns)
    follow = _following(statistics)
    added = [at for at in range(len(statistics)) if at not in follow]
    work = partial(_work, queue, source, [statistics[at] for at in added], block_rows)
    _hold_freed_memory()
    # each worker multiplies its own blocks: threads inside BLAS would only compete with it
    with _BLAS.limit(limits=1, user_api="blas"):
        try:
            alone = threads == 1 or queue.short()
            # each its own, also of nothing: that states merge is tried with every number of records
            done = [work() for _ in range(threads)] if alone else _together(work, threads, queue)
        finally:
            queue.end()
    return guarded(
        "the sums over the records could not be put together",
        lambda: tuple(
            one.value(s) for one, s in zip(statistics, _merged(statistics, added, follow, done), strict=True)
        ),
    )


def states_of(source: Input, statistics: Sequence[Statistic]) -> list[Any]:
    """The states of which `summed` gives the values, for those who send them elsewhere: by one thread, in its own errors."""
    queue = _Queue(source.parts, source.columns)
    follow = _following(statistics)
    added = [at for at in range(len(statistics)) if at not in follow]
    _hold_freed_memory()
    with _BLAS.limit(limits=1, user_api="blas"):
        try:
            done = _work(queue, source, [statistics[at] for at in added], _rows_of_a_block(len(source.rows)))
        finally:
            queue.end()
    # merged with nothing, a state has flushed what it holds back
    return _merged(statistics, added, follow, [[statistics[at].zero() for at in added], done])


def _rows_of_a_block(columns: int) -> int:
    """Records of a block of so many columns."""
    rows = _MOST_ROWS
    while rows > _FEWEST_ROWS and rows * columns > _BLOCK_CODES:
        rows //= 2
    return rows


def _hold_freed_memory() -> None:
    """Let what one block's sums were made in serve the next block's.

    The C library of Linux gives freed arrays of a MB or more back to the system, which clears each page of the next
    one. It stops when it has seen a larger array come and go. This array is of just less than the 32 MB that it
    learns from, and nothing touches it.
    """
    np.empty((1 << 22) - (1 << 10))


class _Queue:
    """The pieces of all parts, handed to whichever thread asks next."""

    def __init__(self, parts: Sequence[Part], columns: Sequence[str]) -> None:
        self._lock = Lock()
        self._streams = iter([(part.place, part.pieces(columns)) for part in parts])
        self._current: tuple[str, Iterator[Piece]] | None = next(self._streams, None)
        self._ahead: list[Piece] = []
        self.closed = False

    def short(self) -> bool:
        """Whether there is one piece at most: what is left for a second thread is nothing, and starting two takes 1 ms."""
        self._ahead = [piece for piece in (self.take(), self.take()) if piece is not None]
        return len(self._ahead) < 2

    def take(self) -> Piece | None:
        """The next piece, None when there is no more."""
        with self._lock:
            if self._ahead and not self.closed:
                return self._ahead.pop(0)
            while self._current is not None and not self.closed:
                place, pieces = self._current
                piece: Piece | None = guarded(f"{place} could not be read", partial(next, pieces, None))
                if piece is not None:
                    return piece
                self._current = next(self._streams, None)
        return None

    def close(self) -> None:
        """Hand out nothing more: some worker failed, or the user interrupted."""
        self.closed = True

    def end(self) -> None:
        """No thread asks any more: what a failed pass left open, such as a query, is closed now and not when it is forgotten."""
        close = getattr(self._current and self._current[1], "close", None)
        if close is not None:
            with suppress(Exception):
                close()


def _together(work: Callable[[], list[Any]], threads: int, queue: _Queue) -> list[list[Any]]:
    with ThreadPoolExecutor(threads, thread_name_prefix="confide") as pool:
        futures = [pool.submit(work) for _ in range(threads)]
        try:
            return [future.result() for future in futures]
        finally:
            queue.close()


def _work(queue: _Queue, source: Input, statistics: Sequence[Statistic], block_rows: int) -> list[Any]:
    """What one thread does: the state of each statistic over the pieces that it could get."""
    coder = source.coder(block_rows)
    alike = _alike(statistics, source.rows)
    states = [statistic.zero() for statistic in statistics]
    try:
        with np.errstate(all="ignore"):
            while (piece := queue.take()) is not None:
                blocks = piece.blocks(block_rows)
                while not queue.closed and (
                    block := guarded(f"{piece.place} could not be read", partial(next, blocks, None))
                ):
                    codes = guarded(f"{piece.place} could not be coded", partial(coder, block))
                    begun = partial(source.begun, block)
                    for own in alike:
                        guarded(f"{piece.place} could not be summed up", partial(own.update, states, codes, begun))
    except BaseException:
        queue.close()
        raise
    return states


@dataclass(frozen=True)
class _Alike:
    """Statistics that ask for the same rows of codes and begin alike (`Beginning`), or one alone."""

    rows: slice | list[int]
    begins: Beginning | None
    members: list[tuple[int, Any]]

    def update(self, states: list[Any], codes: Codes, begun: Callable[[Beginning, Codes], Any] | None = None) -> None:
        own = codes[self.rows]
        # a view of what the other statistics are handed next
        own.flags.writeable = False
        if self.begins is None:
            for at, statistic in self.members:
                states[at] = statistic.update(states[at], own)
            return
        found = self.begins(own) if begun is None else begun(self.begins, own)
        for at, statistic in self.members:
            states[at] = statistic.take(states[at], found)


def _alike(statistics: Sequence[Statistic], rows: tuple[str, ...]) -> list[_Alike]:
    """The statistics of a pass, those that begin alike together."""
    found: list[_Alike] = []
    for at, statistic in enumerate(statistics):
        picked, begins = _picked(statistic.map.columns, rows), _begins(statistic)
        for other in found:
            if begins is not None and other.rows == picked and other.begins == begins:
                other.members.append((at, statistic))
                break
        else:
            found.append(_Alike(picked, begins, [(at, statistic)]))
    return found


def _begins(statistic: Any) -> Beginning | None:
    """A statistic's beginning; None for one that adds up blocks in another way, which its parent's `take` would go past."""
    first = next((kind for kind in type(statistic).__mro__ if {"update", "take"} & set(vars(kind))), None)
    return statistic.begins if first is not None and "take" in vars(first) else None


def _picked(columns: tuple[str, ...], rows: tuple[str, ...]) -> slice | list[int]:
    """Which rows of the common matrix a statistic asks for: a slice, which takes no copy, where they are neighbors in order."""
    places = [rows.index(name) for name in columns]
    first = places[0] if places else 0
    return slice(first, first + len(places)) if places == list(range(first, first + len(places))) else places


def _following(statistics: Sequence[Statistic]) -> dict[int, tuple[int, Callable[[Any], Any]]]:
    """The statistics that follow from finer ones of the pass, each with the place of the smallest and how (`marginal_of`)."""
    found = {}
    for at, one in enumerate(statistics):
        ways = ((place, one.marginal_of(other)) for place, other in enumerate(statistics) if place != at)
        finer = [(prod(statistics[place].shape), place, way) for place, way in ways if way is not None]
        if finer:
            _, place, way = min(finer, key=itemgetter(0))
            found[at] = place, way
    return found


def _merged(
    statistics: Sequence[Statistic],
    added: Sequence[int],
    follow: Mapping[int, tuple[int, Callable[[Any], Any]]],
    done: list[list[Any]],
) -> list[Any]:
    """The state of each statistic over all that was done."""
    states = {at: reduce(statistics[at].merge, own) for at, own in zip(added, zip(*done, strict=True), strict=True)}

    def state(at: int) -> Any:
        if at not in states:
            finer, way = follow[at]
            states[at] = way(state(finer))
        return states[at]

    return [state(at) for at in range(len(statistics))]
