"""Records of an enforced unit: one pass that brings the rows of each id together and bounds what one unit contributes.

After it a spool holds coded blocks of whole units (`code_cache.Blocks`), which every later pass, the gate's count and
the histogram of contributions read. So records are read once for one draw; a draw within it that names other rows of
codes brings them together again. Under "keep" at most `rows` rows of a unit are there, those of the smallest priorities
(`sampling`); a row without an id is nowhere. Units are told apart by their canonical ids, never by a hash of them
(`ids`). Ids are dropped when the pass ends.

Rows are gathered in memory up to a public number of cells and of megabytes, else in 64 files without names (as in
`code_cache`), by a hash of the id. Each file is finished separately. A file too large for that is dealt out once more by
another hash of the id. What is too large then is one unit's, or few units', and is dealt out by a hash of the rows'
codes. So equal rows are together, and each part can be truncated to the 65,536 rows of smallest priority that any
unit may have. Their sizes show to anyone who can watch this machine's disk or memory meanwhile what the source's own
size shows, and how unevenly ids have rows. Nothing that is published follows from it. A full disk is an error with a
fixed sentence: there is no release without the bound.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import count, pairwise
from threading import Lock
from typing import Any, NoReturn, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from confide.core import Statistic
from confide.core.lost_values import read_row
from confide.core.ranges import fine_row
from confide.core.statistic import StatisticOver, WrappedSource
from confide.core.units.privacy_unit import CLUSTER_ROW, UNIT_ROW, WHOLE_ROW, by_units
from confide.errors import SourceError
from confide.schema import Categorical, Schema, Unit
from confide.sources.aggregation import BLOCK_ROWS, Codes, Input, named_rows, summed
from confide.sources.code_cache import OVER, Blocks, Packing, Passes, renamed
from confide.sources.coder import Coder, columns_behind
from confide.sources.coding import Block, Part, guarded, missing_of, text_array, to_arrow
from confide.sources.grouping.ids import Files, Groups, HashedGroups, Rows, canonical, joined
from confide.sources.grouping.sampling import Bounded, Keep, counted

#: Where they cannot be, whatever the reason: the sentence is fixed.
GROUPED = (
    "the rows of each unit could not be brought together (the disk may be full, or the folder of spool= not writable)"
)


class WithIds(Input):
    """Records as they are in tables and files, coded with their ids and clusters. took: is handed the ids and codes of each block, to copy.

    column: of the ids, None where each record is a unit; groups: numbers clusters.
    """

    parts: Sequence[Part]
    rows: tuple[str, ...]
    columns: tuple[str, ...]

    def __init__(
        self,
        parts: Sequence[Part],
        schema: Schema,
        rows: tuple[str, ...],
        column: str | None,
        took: Callable[[pa.Array, Codes], None],
        groups: Groups | HashedGroups | None = None,
    ) -> None:
        self.parts, self.rows = parts, rows
        self._ids = [one for one in (column, None if groups is None else groups.column) if one is not None]
        self.columns = (*self._ids, *columns_behind(rows, schema))
        self._schema, self._took, self._groups, self._numbered = schema, took, groups, column is None
        self._numbers = count()

    def coder(self, block_rows: int) -> Callable[[Block], Codes]:
        coder = Coder(self.rows, self._schema, block_rows)

        def coded(block: Block) -> Codes:
            cells = block.columns[len(self._ids) :]
            codes = coder(Block(block.rows, cells))
            ids = self._of_records(block.rows) if self._numbered else canonical(block.columns[0])
            if self._groups is None:
                self._took(ids, codes)
                return codes
            # rows without a cluster are there until units are counted (`Groups.inside`)
            own = self._groups(block.columns[len(self._ids) - 1])
            self._took(ids, np.concatenate([codes, own[None, :]]))
            return codes

        return coded

    def _of_records(self, rows: int) -> pa.Array:
        """An id for each record of a block, which no other has, in ascending order."""
        block = next(self._numbers)
        return text_array([b"%010d:%010d" % (block, row) for row in range(rows)], pa.large_binary())


def identified(ids: pa.Array, codes: Codes, packing: Packing) -> Rows:
    """The records of a block that have an id, packed."""
    if ids.null_count:
        there = ~missing_of(ids)
        ids, codes = ids.filter(to_arrow(there)), codes[:, there]
    return Rows(ids, packing.typed(packing.pack(codes, codes.shape[1]), codes.shape[1]))


class Gathered:
    """All records with an id, in memory or dealt out to files by a hash of the id."""

    def __init__(self, packing: Packing, rows: int, memory: int, folder: str | None) -> None:
        self._packing, self._limit, self._memory, self._folder = packing, rows, memory, folder
        self._lock = Lock()
        self._held: list[Rows] = []
        self._rows = self._bytes = 0
        self._files: Files | None = None
        self._failed = False

    def add(self, ids: pa.Array, codes: Codes) -> None:
        """A block of records; those without an id are dropped."""
        rows = identified(ids, codes, self._packing)
        if not len(rows):
            return
        with self._lock:
            self._held.append(rows)
            self._rows += len(rows)
            self._bytes += rows.bytes
            if self._rows > self._limit or self._bytes > self._memory:
                self._deal()

    def _deal(self) -> None:
        """What is held into the files; where they cannot be written, an error is raised when the pass ends, without its place."""
        rows, self._held, self._rows, self._bytes = joined(self._held), [], 0, 0
        if self._files is None:
            self._files = Files(self._folder)
        try:
            if not self._failed:
                self._files.add(rows, rows.by_id())
        except (OSError, ValueError, pa.ArrowException):
            self._failed = True

    def whole_units(self, rule: Keep) -> Iterator[tuple[int, Bounded]]:
        """What the rule makes of all rows, in portions that hold every row of a unit, with the number of their units."""
        if self._files is None:
            if self._held:
                held, self._held = self._held, []
                yield counted(rule, joined(held))
            return
        if self._held:
            self._deal()
        if self._failed:
            raise SourceError(GROUPED)
        for one in range(self._files.parts):
            yield from self._finished(self._files, one, rule, again=True)

    def _finished(self, files: Files, one: int, rule: Keep, *, again: bool) -> Iterator[tuple[int, Bounded]]:
        """What the rule makes of a file. again: whether too large a file may be one of many units, and is dealt out by id once more."""
        if not files.rows(one):
            return
        if files.rows(one) <= self._limit:
            yield counted(rule, joined(list(files.read(one))))
            return
        finer, portions, ids = Files(self._folder), [], []
        try:
            for rows in files.read(one):
                finer.add(rows, rows.by_id(seed=2) if again else rows.by_content(rule.words))
            if again:
                for part in range(finer.parts):
                    yield from self._finished(finer, part, rule, again=False)
                return
            for part in range(finer.parts):
                if finer.rows(part):
                    rows = joined(list(finer.read(part)))
                    ids.append(rows.ids.unique())
                    portions.append(rule.cut(rows))
        finally:
            finer.close()
        whole, priority = joined([rows for rows, _ in portions]), np.concatenate([own for _, own in portions])
        yield len(pa.concat_arrays(ids).unique()), rule(whole, priority)

    def close(self) -> None:
        self._held = []
        if self._files is not None:
            self._files.close()


#: Cells of coded records, ids among them, that are gathered in memory at once.
GATHERED = 1 << 24
_NOT_WHOLE = "the rows of a unit that count were asked for in two ways that the plan does not name"
NOT_KEPT = "a row of codes was asked for that the records do not have"


def rows_of(schema: Schema, rule: Keep, asked: Collection[str] | None = None) -> tuple[tuple[str, ...], int]:
    """The rows of codes of a unit's records, and how many of them are the words that tell its rows apart.

    Words are the codes of all columns, and how the cells of each were read. Behind them are the values of numeric
    columns, whose ranges may be found. asked: the rows that a draw names, None for all. Where each statistic weighs all
    rows of a unit, they are the words, and nothing else is coded.
    """
    numeric = [name for name in schema.names if not isinstance(schema[name], Categorical) and schema[name].steps > 2]
    words, values = (*schema.names, *map(read_row, schema.in_data)), tuple(map(fine_row, numeric))
    if asked is not None and rule.first == 0 and rule.levels is None:
        words, values = tuple(row for row in (*words, *values) if row in asked), ()
    return (*words, *(row for row in values if asked is None or row in asked)), len(words)


class UnitSource(WrappedSource):
    """A source for one draw whose units are bounded. Made by `RecordSource.bounded`, closed by it.

    It is private, like the source behind it. It hands records to no one, cannot be pickled, and shows nothing.
    """

    def __init__(self, source: Passes, rule: Keep) -> None:
        super().__init__(source)
        self._records, self._rule = source, rule
        self._lock = Lock()
        self._asked: Sequence[str] | None = None
        self._other: UnitSource | None = None
        self._blocks: Blocks | None = None
        self._units = 0
        self._over = False

    @property
    def rereadable(self) -> bool:
        """Always: the records are read once and their codes kept."""
        return True

    def __repr__(self) -> str:
        return repr(self._source)

    def __reduce__(self) -> NoReturn:
        raise TypeError("records do not leave the process that reads them: a source of one draw is not pickled")

    def count(self) -> int:
        """The exact number of ids. For the gate alone, and there only under substitution, where it is public."""
        self._spool()
        return self._units

    @contextmanager
    def kept(self, rows: Sequence[str], once: Collection[str] = ()) -> Iterator[WrappedSource]:
        """For one draw of several passes: the first keeps these rows of codes alone, where the source can be read again for others."""
        if self._asked is not None or not self._source.rereadable:
            yield WrappedSource(self)  # a draw within this one: what is kept for this one stays as it is
            return
        self._asked = tuple(rows)
        try:
            yield self
        finally:  # codes of some rows, or changed ones, are not those of another draw
            self._forget()
            self._asked = None

    def aggregate(self, *statistics: Statistic) -> tuple[NDArray[Any], ...]:
        """As `RecordSource.aggregate`, over the bounded units. Raises `SourceError` after the draw."""
        self._source.check(named_rows(statistics))
        own, blocks = of_kept_rows(statistics, self._rule), self._spool()
        if not set(named_rows(own)) <= set(blocks.rows):
            if self._asked is None:
                raise SourceError(NOT_KEPT)
            # of a draw within this one, until this one ends
            self._other = self._other or UnitSource(self._records, self._rule)
            return self._other.aggregate(*statistics)
        return summed(blocks, own, threads=self._records._threads)

    def coded_again(self, rows: Mapping[str, str], code: Callable[[str, Codes], Codes]) -> bool:
        """As `Source.coded_again`, in place. Raises `SourceError` where that fails: the records were read once."""
        blocks = self._spool()
        if renamed(blocks.rows, rows) is None:
            return False
        self._over = not blocks.change(rows, code, self._records._threads)
        if self._over:
            raise SourceError(GROUPED)
        return True

    def close(self) -> None:
        """Drop what is kept, and keep nothing more; a second call does nothing."""
        self._over = True
        self._forget()

    def _forget(self) -> None:
        with self._lock:
            if self._blocks is not None:
                self._blocks.drop(for_good=True)
            if self._other is not None:
                self._other.close()
            self._blocks = self._other = None

    def _spool(self) -> Blocks:
        # the first pass holds the lock: whoever asks meanwhile finds its blocks
        with self._lock:
            if self._over:
                raise SourceError(OVER)
            if self._blocks is None:
                self._blocks, self._units = _clustered(self._records, self._rule, self._asked)
            return self._blocks


def of_kept_rows(statistics: Sequence[Statistic], rule: Keep) -> tuple[Statistic, ...]:
    """The statistics over kept rows, where all rows of units are there: of the first of each, but for those that weigh them."""
    rows = rule.first
    if WHOLE_ROW in named_rows(statistics) if rows is None else not rows and not all(map(by_units, statistics)):
        raise SourceError(_NOT_WHOLE)
    if rows is None:
        return tuple(statistics)
    return tuple(one if by_units(one) else cast(Statistic, _First(one, rows)) for one in statistics)


@dataclass(frozen=True)
class _FirstRows:
    """The map of a statistic of the first rows of each unit, and the row of codes that says where units begin."""

    map: Any

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.map.columns, WHOLE_ROW)


@dataclass(frozen=True)
class _First(StatisticOver):
    """A statistic of the first `rows` rows of each unit, which lie in the order of their priorities where there are more."""

    statistic: Statistic
    rows: int

    @property
    def map(self) -> Any:
        return _FirstRows(self.statistic.map)

    def update(self, state: Any, codes: Codes) -> Any:
        begins = codes[-1] >= 0
        place = np.arange(len(begins)) - np.flatnonzero(begins)[np.cumsum(begins) - 1]
        return self.statistic.update(state, np.ascontiguousarray(codes[:-1, place < self.rows]))


def _clustered(source: Passes, rule: Keep, asked: Collection[str] | None) -> tuple[Blocks, int]:
    """Blocks of whole, bounded units, or of records in clusters, and the number of ids. asked: the kept rows of codes, None for all."""
    (coded, words), memory, folder = rows_of(source.schema, rule, asked), source._memory << 20, source._spool
    groups = None if source.schema.cluster is None else Groups(source.schema.cluster.column, rule.key)
    rule, unit = replace(rule, words=words, groups=groups), source.schema.unit
    rows = coded if groups is None else (*coded, CLUSTER_ROW)
    gathered = Gathered(Packing.of(rows, source.schema), GATHERED // (len(coded) + 1), memory, folder)
    marks = (UNIT_ROW,) if rule.first is None else (UNIT_ROW, WHOLE_ROW)
    places = [at for at, row in enumerate(rows) if asked is None or row in asked]
    out = Blocks(Packing.of((*(rows[at] for at in places), *marks), source.schema), memory, folder)
    column = unit.column if isinstance(unit, Unit) else None
    try:
        source._pass(WithIds(source._parts, source.schema, coded, column, gathered.add, groups), ())
        units = guarded(GROUPED, partial(_written, gathered.whole_units(rule), out, places, len(marks)))
        if not out.finish():
            raise SourceError(GROUPED)
        return out, units
    except BaseException:
        out.drop(for_good=True)
        raise
    finally:
        gathered.close()


def _written(portions: Iterator[tuple[int, Bounded]], out: Blocks, places: Sequence[int], marks: int) -> int:
    """Write the rows at these places of blocks of whole units, whose sizes are written so many times; the number of units."""
    units = 0
    for ids, (codes, sizes) in portions:
        units += ids
        starts = np.flatnonzero(sizes >= 0)
        if not len(starts):
            continue
        for start, stop in pairwise([*block_starts(starts).tolist(), len(sizes)]):
            own = [codes[at][start:stop] for at in places]
            out.add([*own, *[sizes[start:stop]] * marks], stop - start)
    return units


def block_starts(starts: NDArray[np.intp]) -> NDArray[np.intp]:
    """Where blocks of about `BLOCK_ROWS` rows begin that hold every row of each unit. starts: of the units, from 0 on.

    What weighs or counts all rows of a unit is bounded in blocks of whole units alone.
    """
    return np.unique(starts[np.searchsorted(starts, np.arange(0, starts[-1] + 1, BLOCK_ROWS))])
