"""Records of an enforced unit: one pass that brings the rows of each id together and bounds what one unit contributes.

After it a spool holds coded blocks of whole units (`kept.Blocks`), which every later pass, the gate's count and the histogram of
contributions read: one look at the records for one draw. Under "keep" at most `rows` rows of a unit are there, those of the smallest
priorities (`keep`); a row without an id is nowhere. Units are told apart by their canonical ids, never by a hash of them
(`ids`). Ids are dropped when the pass ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from threading import Lock
from typing import TYPE_CHECKING, Any, NoReturn, cast

import numpy as np
from numpy.typing import NDArray

from confide.errors import SourceError
from confide.protocol import Statistic
from confide.protocol.source import Behind
from confide.protocol.units.over import StatisticOver
from confide.protocol.units.whose import CLUSTER_ROW, UNIT_ROW, WHOLE_ROW, by_units
from confide.schema import Categorical, Schema, Unit
from confide.sources.aggregation import BLOCK_ROWS, Codes, named_rows, summed
from confide.sources.grouping.gathered import GROUPED, Gathered, WithIds, packing
from confide.sources.grouping.groups import Groups
from confide.sources.grouping.keep import Bounded, Keep, rule_of_rows
from confide.sources.grouping.pairs import Levels
from confide.sources.kept import Blocks
from confide.sources.parts import guarded

if TYPE_CHECKING:
    from confide.sources.passes import Passes as RecordSource

__all__ = ["GATHERED", "UnitSource", "block_starts", "of_kept_rows", "words_of"]

#: Cells of coded records, ids among them, that are gathered in memory at once.
GATHERED = 1 << 24
_NOT_WHOLE = "the rows of a unit that count were asked for in two ways that the plan does not name"
_OVER = "the draw is over, and with it what was kept of the records; read them in draw(source, plan, meter) alone"


def words_of(schema: Schema) -> tuple[str, ...]:
    """The rows of codes that tell a unit's rows apart: all columns, and the clipping of each numeric one."""
    numeric = [name for name in schema.names if not isinstance(schema[name], Categorical)]
    return (*schema.names, *(f"outside({name})" for name in numeric))


class UnitSource(Behind):
    """A source for one draw whose units are bounded. Made by `RecordSource.bounded`, closed by it.

    It belongs to the private wing, as the source behind it does: it hands records to nobody, cannot be pickled, and shows nothing.
    """

    def __init__(self, source: RecordSource, unit: Unit | None, key: bytes, whole: bool = False) -> None:
        super().__init__(source)
        self._records, self._unit, self._key, self._whole = source, unit, key, whole
        self._lock = Lock()
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
        """The exact number of ids. For the gate alone, and there only under "substitute", where it is public."""
        self._spool()
        return self._units

    def aggregate(self, *statistics: Statistic) -> tuple[NDArray[Any], ...]:
        """As `RecordSource.aggregate`, over the bounded units. Raises `SourceError` after the draw."""
        self._source.check(named_rows(statistics))
        own = of_kept_rows(statistics, self._most, self._whole)
        return summed(self._spool(), own, threads=self._records._threads)

    def close(self) -> None:
        """Drop what is kept, and keep nothing more; a second call does nothing."""
        self._over = True
        with self._lock:
            if self._blocks is not None:
                self._blocks.drop(for_good=True)

    def _spool(self) -> Blocks:
        # the first pass holds the lock: whoever asks meanwhile finds its blocks
        with self._lock:
            if self._over:
                raise SourceError(_OVER)
            if self._blocks is None:
                rule = rule_of_rows(self._key, self._most, self._whole)
                self._blocks, self._units = _clustered(self._records, self._unit, rule)
            return self._blocks

    @property
    def _most(self) -> int:
        return 1 if self._unit is None else self._unit.rows


def of_kept_rows(statistics: Sequence[Statistic], rows: int, whole: bool) -> tuple[Statistic, ...]:
    """The statistics over kept rows, where all rows of units are there: of the first `rows` of each, but for those that weigh them."""
    if whole:
        return tuple(one if by_units(one) else cast(Statistic, _First(one, rows)) for one in statistics)
    if WHOLE_ROW in named_rows(statistics):
        raise SourceError(_NOT_WHOLE)
    return tuple(statistics)


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


def _clustered(source: RecordSource, unit: Unit | None, rule: Keep) -> tuple[Blocks, int]:
    """Blocks of whole, bounded units, and the number of ids. unit: None where each record is one, and has a cluster."""
    words, memory, folder = words_of(source.schema), source._memory << 20, source._spool
    groups = None if source.schema.cluster is None else Groups(source.schema.cluster.column, rule.key)
    rule = replace(rule, groups=groups, levels=Levels.of(unit, source.schema))
    own = () if groups is None else (CLUSTER_ROW,)
    gathered = Gathered(packing((*words, *own), source.schema), GATHERED // (len(words) + 1), memory, folder)
    marks = (UNIT_ROW,) if rule.first is None else (UNIT_ROW, WHOLE_ROW)
    out = Blocks(packing((*words, *own, *marks), source.schema), memory, folder)
    column = None if unit is None else unit.column
    try:
        source._pass(WithIds(source._parts, source.schema, words, column, gathered.add, groups), ())
        units = guarded(GROUPED, partial(_written, gathered.whole_units(rule), out, len(marks)))
        if not out.finish():
            raise SourceError(GROUPED)
        return out, units
    except BaseException:
        out.drop(for_good=True)
        raise
    finally:
        gathered.close()


def _written(portions: Iterator[tuple[int, Bounded]], out: Blocks, marks: int) -> int:
    """Write blocks of whole units, whose sizes are written so many times; the number of units."""
    units = 0
    for ids, (codes, sizes) in portions:
        units += ids
        starts = np.flatnonzero(sizes >= 0)
        if not len(starts):
            continue
        for start, stop in pairwise([*block_starts(starts).tolist(), len(sizes)]):
            own = [row[start:stop] for row in codes]
            out.add(np.array([*own, *[sizes[start:stop]] * marks], dtype=np.float64))
    return units


def block_starts(starts: NDArray[np.intp]) -> NDArray[np.intp]:
    """Where blocks of about `BLOCK_ROWS` rows begin that hold every row of each unit. starts: of the units, from 0 on.

    What weighs or counts all rows of a unit is bounded in blocks of whole units alone.
    """
    return np.unique(starts[np.searchsorted(starts, np.arange(0, starts[-1] + 1, BLOCK_ROWS))])
