"""Passes on Spark: `mapInArrow` over a DataFrame, or over a list of files that its Python workers read themselves.

Units are brought together by `repartition` on the canonical id as binary and `sortWithinPartitions`; the rows of a portion must come in
ascending order of the bytes of their ids, or the pass is an error. Spark runs a failed task again, and counts one result of each; coded
units are persisted on the executors until the release ends, and a block that is lost is made again: from other records, it is found
(`remote.RemoteSource`) and is an error.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from confide.errors import SourceError
from confide.protocol.whose import UNIT_ROW
from confide.sources.aggregation import Codes
from confide.sources.coding import columns_behind
from confide.sources.executors.spark_tasks import (
    ID,
    PORTION,
    SparkFrame,
    bounded,
    coded,
    of_cells,
    of_cells_with_ids,
    of_codes,
    of_portions,
    of_portions_with_ids,
    worked,
)
from confide.sources.executors.work import Work, portions
from confide.sources.parts import Part
from confide.sources.units import Keep

__all__ = ["Spark", "SparkFrame"]


@dataclass(frozen=True)
class _Frame:
    """A DataFrame, and how its batches become codes: `coded(batches, rows, schema)`; with_ids: the same with canonical ids."""

    frame: Any = field(repr=False)
    coded: Callable[..., Iterator[Codes]]
    with_ids: Callable[..., Iterator[tuple[Any, Codes]]] | None = None


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
            raise SourceError("PySpark is not installed; run: pip install 'confide[spark]'") from None
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
            'no Spark answers at that address; write executor="spark://host:7077", or give a SparkSession'
        )

    def takes(self, part: Part) -> bool:
        return isinstance(part, SparkFrame) or bool(getattr(part, "travels", False))

    def placed(self, parts: Sequence[Part]) -> _Frame:
        frames = [part.frame for part in parts if isinstance(part, SparkFrame)]
        if len(frames) == len(parts) == 1:
            return _Frame(frames[0], of_cells, of_cells_with_ids)
        from pyspark import cloudpickle

        made = portions(parts)
        rows = [(label, cloudpickle.dumps(one)) for label, one in enumerate(made)]
        frame = self._session.createDataFrame(rows, f"label int, {PORTION} binary")
        # by label and not by hash: one portion a task
        spread = frame.repartitionByRange(max(len(made), 1), "label").select(PORTION)
        return _Frame(spread, of_portions, of_portions_with_ids)

    def size(self, records: _Frame) -> None:
        """Spark vouches for its tasks; those without records may send nothing."""
        return

    def run(self, records: _Frame, work: Work) -> Iterator[str]:
        names = columns_behind([row for row in work.rows if row != UNIT_ROW], work.schema)
        frame = records.frame.select(*map(_named, names)) if records.coded is of_cells else records.frame
        found = frame.mapInArrow(partial(worked, records.coded, work), "document string").collect()
        return iter([row[0] for row in found])

    def grouped(self, records: _Frame, work: Work, column: str, rule: Keep) -> _Frame:
        frame = records.frame
        assert records.with_ids is not None
        if records.coded is of_cells:
            names = dict.fromkeys((column, *columns_behind(work.rows, work.schema)))
            frame = frame.select(*map(_named, names))
        codes = [f"c{at}" for at in range(len(work.rows))]
        with_ids = frame.mapInArrow(
            partial(coded, records.with_ids, work, column),
            f"{ID} binary, " + ", ".join(f"{one} int" for one in codes),
        )
        count = 4 * max(int(self._session.conf.get("spark.default.parallelism", "0")), self._cores())
        together = with_ids.repartition(count, ID).sortWithinPartitions(ID)
        units = together.mapInArrow(partial(bounded, rule), ", ".join(f"{one} int" for one in [*codes, "sizes"]))
        return _Frame(units.persist(), partial(of_codes, (*work.rows, UNIT_ROW)))

    def _cores(self) -> int:
        context = getattr(self._session, "sparkContext", None)
        return int(getattr(context, "defaultParallelism", 4))

    def dropped(self, records: _Frame) -> None:
        records.frame.unpersist()


def _named(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
