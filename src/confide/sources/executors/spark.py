"""Passes on Spark: `mapInArrow` over a DataFrame, or over a list of files that its Python workers read themselves.

Units are brought together by `repartition` on the canonical id as binary and `sortWithinPartitions`. The rows of a
portion must come in ascending order of the bytes of their ids, or the pass is an error. Rows of one id are sorted by
their codes, so that a portion that is made again is the same one. Spark runs a failed task again, and counts one
result of each; coded units are persisted on the executors until the release ends, and a block that is lost is made
again. If it is made from other records, that is found (`remote.RemoteSource`) and is an error.

A Spark DataFrame as a part, and what workers do with its batches: to codes, units bounded, states to JSON.
"""

from __future__ import annotations

import json
import os
import pickle
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from secrets import token_hex
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from confide.core.units.privacy_unit import UNIT_ROW
from confide.errors import SourceError
from confide.schema import Schema
from confide.sources.aggregation import BLOCK_ROWS, Codes
from confide.sources.code_cache import Packing, Spool
from confide.sources.coder import Coder, columns_behind
from confide.sources.coding import Block, Part, Piece, cut
from confide.sources.executors.kept import Keeping, KeptPortion, StoredPortion, forget
from confide.sources.executors.worker import (
    Coding,
    Readable,
    Work,
    masked,
    places,
    portions,
    unit_blocks,
    whole_units,
)
from confide.sources.formats.tables import kind_of
from confide.sources.grouping.sampling import Keep

ID, PORTION = "id", "portion"
# Portions of files: some for each core, so that none waits long for the last one, and more where the cluster may still grow.
_EACH, _FEWEST, _MOST = 16, 64, 1024
# Seconds after which Spark has ended the Python workers of a job that was interrupted or failed: it gives them two.
_ENDS = 3.0


@dataclass(frozen=True)
class SparkFrame(Part):
    """A Spark DataFrame as a part: its names and types; its rows are read by Spark's own workers alone."""

    frame: Any = field(repr=False)
    names: tuple[str, ...]
    kinds: tuple[Any, ...]
    type: str = field(default="Spark DataFrame", init=False)
    place: str = field(default="the Spark DataFrame", init=False)
    rereadable: bool = field(default=True, init=False)
    file: None = field(default=None, init=False)

    @classmethod
    def open(cls, frame: Any) -> SparkFrame:
        from pyspark.sql.pandas.types import to_arrow_schema

        schema = to_arrow_schema(frame.schema)
        return cls(frame, tuple(schema.names), tuple(kind_of(one.type) for one in schema))

    def kind(self, name: str) -> Any:
        return self.kinds[self.names.index(name)]

    def verify(self) -> None:
        """Nothing to compare: what is behind a DataFrame is Spark's to keep."""

    def count(self) -> int:
        return int(self.frame.count())

    def pieces(self, names: Sequence[str]) -> Iterator[Piece]:
        raise SourceError('a Spark DataFrame is read by Spark: leave executor= out, or write executor="spark://..."')


@dataclass(frozen=True)
class _Portion(Readable):
    """What a task of Spark is handed, as a portion. cells: of the columns of its batches, where they hold records."""

    batches: Iterable[Any]
    made: Callable[..., Iterator[Codes]]
    cells: Callable[..., Iterator[Block]] | None = None
    place: ClassVar[str] = "a portion"

    def coded(self, rows: tuple[str, ...], schema: Schema) -> Iterator[Codes]:
        return self.made(iter(self.batches), rows, schema)

    def pieces(self, names: Sequence[str]) -> Iterator[Piece]:
        assert self.cells is not None
        yield Piece(self.place, lambda rows, cells=self.cells: cells(iter(self.batches), names))  # type: ignore[misc]


def worked(made: Callable[..., Iterator[Codes]], work: Work, batches: Iterator[Any]) -> Iterator[Any]:
    yield pa.record_batch({"document": [work(_label(), _Portion(batches, made))]})


def _label() -> int:
    """The partition of the task that runs here."""
    from pyspark import TaskContext

    return int(TaskContext.get().partitionId())


# Workers of one machine are many processes, and which of them runs a task of the next pass is Spark's to say. So codes lie in files
# with names. The rows that lead to them are persisted, because Spark runs a task where its rows are.


def _under() -> str:
    """Where files of codes lie: among the blocks of the application, which Spark removes when it ends, also by a kill of the driver.

    In a folder of the user's they would stay, and with the application's own files, too: those of a cluster stay for days, or for ever.
    """
    return os.environ.get("SPARK_LOCAL_DIRS", tempfile.gettempdir()).partition(",")[0]


def stored(keeping: Keeping, batches: Iterator[Any]) -> Iterator[Any]:
    """Code the records of a task of a DataFrame, and keep the codes; what is left of them is one row."""
    label = _label()
    one = StoredPortion(label, _Portion(batches, of_cells, cells), keeping, _under())
    masked(partial(one.done, Work(keeping.schema, keeping.rows, (), keeping.seed)))
    yield pa.record_batch({PORTION: [label.to_bytes(4, "little")]})


def worked_kept(work: Work, keeping: Keeping, readable: bool, batches: Iterator[Any]) -> Iterator[Any]:
    """readable: whether the rows say what to read; else a portion that is not kept here is told as missing."""
    label, held = _label(), list(batches)
    portion = _Portion(held, of_portions, portion_cells) if readable else None
    one = StoredPortion(label, portion, keeping, _under())
    there = readable or one.is_kept(work.changes)
    document = work(label, one) if there else json.dumps({"part": label, "missing": True})
    yield pa.record_batch({"document": [document]})


def worked_changed(work: Work, keeping: Keeping, batches: Iterator[Any]) -> Iterator[Any]:
    """Of records, where what was kept of some is lost: read, coded and changed in this pass, and not kept."""
    one = KeptPortion(_Portion(batches, of_cells, cells), keeping, Spool(0, None, 0))
    yield pa.record_batch({"document": [work(_label(), one)]})


def forgotten(keeping: Keeping, batches: Iterator[Any]) -> Iterator[Any]:
    for _ in batches:
        pass
    forget(keeping, _under())
    yield pa.record_batch({"document": pa.array([""], pa.string())})


def cells(batches: Iterator[Any], names: Sequence[str]) -> Iterator[Block]:
    """Blocks of the named columns of batches."""
    for batch in batches:
        yield from cut(Block(batch.num_rows, [batch.column(name) for name in names]), BLOCK_ROWS)


def of_cells(batches: Iterator[Any], rows: tuple[str, ...], schema: Schema) -> Iterator[Codes]:
    yield from map(Coder(rows, schema, BLOCK_ROWS), cells(batches, columns_behind(rows, schema)))


def _portions(batches: Iterator[Any]) -> Iterator[Any]:
    for batch in batches:
        for one in batch.column(PORTION):
            yield pickle.loads(one.as_py())


def portion_cells(batches: Iterator[Any], names: Sequence[str]) -> Iterator[Block]:
    """Blocks of the named columns of portions, read here."""
    for one in _portions(batches):
        yield from one.blocks(names)


def of_portions(batches: Iterator[Any], rows: tuple[str, ...], schema: Schema) -> Iterator[Codes]:
    for one in _portions(batches):
        yield from one.coded(rows, schema)


def of_codes(own: tuple[str, ...], batches: Iterator[Any], rows: tuple[str, ...], schema: Schema) -> Iterator[Codes]:
    """Spark hands kept rows over in its own batches, which divide units."""
    picks = places(own, rows)
    pieces = ([column.to_numpy() for column in batch.columns] for batch in batches)
    for block in unit_blocks(pieces, own.index(UNIT_ROW)):
        yield np.array([block[at] for at in picks], dtype=np.float64)


def coded(blocks: Callable[..., Iterator[Block]], coding: Coding, batches: Iterator[Any]) -> Iterator[Any]:
    """Canonical ids and codes as columns; rows without an id are dropped."""
    for rows in _guarded(coding(blocks(batches, coding.columns))):
        yield pa.record_batch({ID: rows.ids.cast(pa.binary())} | _columns(rows.codes))


def bounded(rule: Keep, batches: Iterator[Any]) -> Iterator[Any]:
    for codes, sizes in _guarded(rule(rows) for rows in whole_units(batches)):
        yield pa.record_batch(_columns(codes) | {"sizes": pa.array(sizes, pa.int32())})


def _columns(codes: list[Any]) -> dict[str, Any]:
    """Rows of codes as columns: 32 bits, and 64 of the numbers of clusters."""
    return {
        f"c{at}": pa.array(row, pa.int64() if row.dtype == np.int64 else pa.int32()) for at, row in enumerate(codes)
    }


def _guarded(values: Iterator[Any]) -> Iterator[Any]:
    """What fails on a worker is written into Spark's logs: in fixed words."""
    while (one := masked(partial(next, values, None))) is not None:
        yield one


@dataclass(frozen=True)
class _Frame:
    """A DataFrame, and how its batches become codes: `coded(batches, rows, schema)`; blocks: of columns, `blocks(batches, columns)`.

    keeping: of a draw whose codes workers keep; whole: the DataFrame with the records, where this one only leads to their codes.
    """

    frame: Any = field(repr=False)
    coded: Callable[..., Iterator[Codes]]
    blocks: Callable[..., Iterator[Block]] | None = None
    keeping: Keeping | None = None
    whole: Any = field(default=None, repr=False)


class Spark:
    """A Spark session whose Python workers have confide."""

    name = "Spark"

    def __init__(self, session: Any) -> None:
        self._session = session

    @classmethod
    def at(cls, address: str) -> Spark:
        """ "spark://host:7077", or "spark://local[2]" on this machine."""
        try:
            from pyspark.sql import SparkSession
        except ImportError:
            raise SourceError("PySpark is not installed", "run: pip install 'confide[spark]'") from None
        place = address.removeprefix("spark://")
        try:
            if place.startswith("local"):
                # workers of this machine run this Python, and not the first one on the path
                os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
            return cls(
                SparkSession.builder.master(place if place.startswith("local") else f"spark://{place}")
                .appName("confide")
                .getOrCreate()
            )
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException:  # its words have the address, and what stands in it
            pass
        raise SourceError(
            "no Spark answers at that address", 'write executor="spark://host:7077" (in Python also a SparkSession)'
        )

    def takes(self, part: Part) -> bool:
        return isinstance(part, SparkFrame) or part.travels

    def placed(self, parts: Sequence[Part]) -> _Frame:
        frames = [part.frame for part in parts if isinstance(part, SparkFrame)]
        if len(frames) == len(parts) == 1:
            return _Frame(frames[0], of_cells, cells)
        from pyspark import cloudpickle

        made = portions(parts, min(max(_EACH * self._cores(), _FEWEST), _MOST))
        rows = [(label, cloudpickle.dumps(one)) for label, one in enumerate(made)]
        frame = self._session.createDataFrame(rows, f"label int, {PORTION} binary")
        # by label and not by hash: one portion a task
        spread = frame.repartitionByRange(max(len(made), 1), "label").select(PORTION)
        return _Frame(spread, of_portions, portion_cells)

    def size(self, records: _Frame) -> None:
        """Spark vouches for its tasks; those without records may send nothing."""
        return

    def kept(self, records: _Frame, keeping: Keeping) -> _Frame:
        if records.coded is not of_cells:
            return replace(records, frame=records.frame.persist(), keeping=keeping)
        whole = records.frame.select(*map(_named, columns_behind(keeping.rows, keeping.schema)))
        rows = whole.mapInArrow(partial(stored, keeping), f"{PORTION} binary").persist()
        return replace(records, frame=rows, keeping=keeping, whole=whole)

    def _run_kept(self, records: _Frame, work: Work, keeping: Keeping) -> Iterator[str]:
        readable = records.whole is None
        documents = self._documents(records.frame, partial(worked_kept, work, keeping, readable))
        if not readable and any({"missing", "failed"} & set(json.loads(one)) for one in documents):
            documents = self._documents(records.whole, partial(worked_changed, work, keeping))
        return iter(documents)

    def run(self, records: _Frame, work: Work) -> Iterator[str]:
        if records.keeping is not None:
            return self._run_kept(records, work, records.keeping)
        frame = records.frame
        if records.coded is of_cells:
            frame = frame.select(*map(_named, columns_behind(work.rows, work.schema)))
        return iter(self._documents(frame, partial(worked, records.coded, work)))

    def _documents(self, frame: Any, made: Callable[[Iterator[Any]], Iterator[Any]]) -> list[str]:
        """What one job gives. A job that fails, or that the user interrupts, is over when this is: no task keeps codes after the draw."""
        from pyspark import inheritable_thread_target

        own, jobs = self._session, getattr(self._session, "sparkContext", None)
        # the tags of a session that is no remote one are those of one thread
        tagged, ended = (own.addTag, own.interruptTag) if jobs is None else (jobs.addJobTag, jobs.cancelJobsWithTag)
        tag = f"confide-{token_hex(8)}"

        def documents() -> list[str]:
            tagged(tag)
            return [row[0] for row in frame.mapInArrow(made, "document string").collect()]

        with ThreadPoolExecutor(1, thread_name_prefix="confide") as pool:
            job = pool.submit(inheritable_thread_target(own)(documents))
            try:
                found: list[str] = job.result()
                return found
            except BaseException:
                # a job may not have begun yet, and then it is not interrupted by being told so once
                while not job.done():
                    with suppress(Exception):
                        ended(tag)
                    wait([job], _ENDS)
                time.sleep(_ENDS)
                raise

    def grouped(self, records: _Frame, coding: Coding, rule: Keep) -> _Frame:
        frame = records.frame
        assert records.blocks is not None
        if records.coded is of_cells:
            frame = frame.select(*map(_named, dict.fromkeys(coding.columns)))
        codes = [f"c{at}" for at in range(len(coding.rows))]
        # values in order, and the numbers of clusters, have 53 bits
        wide = [kind.itemsize > 4 for kind in Packing.of(coding.rows, coding.schema).types]
        types = [f"{one} {'long' if own else 'int'}" for one, own in zip(codes, wide, strict=True)]
        together = frame.mapInArrow(partial(coded, records.blocks, coding), ", ".join([f"{ID} binary", *types]))
        if coding.column is not None:
            count = 4 * max(int(self._session.conf.get("spark.default.parallelism", "0")), self._cores())
            together = together.repartition(count, ID).sortWithinPartitions(ID, *codes)
        units = together.mapInArrow(partial(bounded, rule), ", ".join([*types, "sizes int"]))
        return _Frame(units.persist(), partial(of_codes, (*coding.rows, UNIT_ROW)))

    def _cores(self) -> int:
        context = getattr(self._session, "sparkContext", None)
        return int(getattr(context, "defaultParallelism", 4))

    def dropped(self, records: _Frame) -> None:
        if records.keeping is not None:
            # As many tasks as there are cores, which Spark spreads over all executors. The rows themselves are not asked: those that a pass
            # did not get to, or failed at, would be read and kept now. Where the application is gone, its files are, too.
            with suppress(Exception):
                self._session.range(1).mapInArrow(partial(forgotten, records.keeping), "document string").collect()
        # a DataFrame of the user's stays where the user keeps it
        if records.keeping is not None or records.blocks is None:
            records.frame.unpersist()


def _named(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
