"""Passes on Spark: `mapInArrow` over a DataFrame, or over a list of files that its Python workers read themselves.

Units are brought together by `repartition` on the canonical id as binary and `sortWithinPartitions`; the rows of a portion must come in
ascending order of the bytes of their ids, or the pass is an error. Rows of one id are sorted by their codes, so that a portion that is made
again is the same one. Spark runs a failed task again, and counts one result of each; coded
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
from confide.protocol.units.whose import CLUSTER_ROW, UNIT_ROW
from confide.sources.aggregation import Codes
from confide.sources.coding import columns_behind
from confide.sources.executors.groups import Coding
from confide.sources.executors.spark_tasks import (
    ID,
    PORTION,
    SparkFrame,
    bounded,
    cells,
    coded,
    of_cells,
    of_codes,
    of_portions,
    portion_cells,
    worked,
)
from confide.sources.executors.work import Work, portions
from confide.sources.grouping.keep import Keep
from confide.sources.parts import Block, Part

__all__ = ["Spark", "SparkFrame"]


@dataclass(frozen=True)
class _Frame:
    """A DataFrame, and how its batches become codes: `coded(batches, rows, schema)`; blocks: of columns, `blocks(batches, columns)`."""

    frame: Any = field(repr=False)
    coded: Callable[..., Iterator[Codes]]
    blocks: Callable[..., Iterator[Block]] | None = None


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
        return isinstance(part, SparkFrame) or part.travels

    def placed(self, parts: Sequence[Part]) -> _Frame:
        frames = [part.frame for part in parts if isinstance(part, SparkFrame)]
        if len(frames) == len(parts) == 1:
            return _Frame(frames[0], of_cells, cells)
        from pyspark import cloudpickle

        made = portions(parts)
        rows = [(label, cloudpickle.dumps(one)) for label, one in enumerate(made)]
        frame = self._session.createDataFrame(rows, f"label int, {PORTION} binary")
        # by label and not by hash: one portion a task
        spread = frame.repartitionByRange(max(len(made), 1), "label").select(PORTION)
        return _Frame(spread, of_portions, portion_cells)

    def size(self, records: _Frame) -> None:
        """Spark vouches for its tasks; those without records may send nothing."""
        return

    def run(self, records: _Frame, work: Work) -> Iterator[str]:
        frame = records.frame
        if records.coded is of_cells:
            frame = frame.select(*map(_named, columns_behind(work.rows, work.schema)))
        found = frame.mapInArrow(partial(worked, records.coded, work), "document string").collect()
        return iter([row[0] for row in found])

    def grouped(self, records: _Frame, coding: Coding, rule: Keep) -> _Frame:
        frame = records.frame
        assert records.blocks is not None
        if records.coded is of_cells:
            frame = frame.select(*map(_named, dict.fromkeys(coding.columns)))
        codes = [f"c{at}" for at in range(len(coding.rows))]
        types = [
            f"{one} {'long' if row == CLUSTER_ROW else 'int'}" for one, row in zip(codes, coding.rows, strict=True)
        ]
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
        records.frame.unpersist()


def _named(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
