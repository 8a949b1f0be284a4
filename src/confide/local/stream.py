"""A stream of records that come back: each has one output for each version, stored beside the ledger that was charged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from confide.errors import SourceError
from confide.local.release import ROWS, STREAM, Planned, Rows, arrow_schema, charged, noised, published
from confide.noise import SecureNoise

if TYPE_CHECKING:
    from confide.ledger import Ledger

__all__ = ["Stream"]


@dataclass(frozen=True)
class Stream:
    """One version of a stream: what it promises, and where its outputs are stored.

    Guarantee: that of `Planned`, for the first content that came with an id; every later appearance is post-processing of its stored
    output. A version is charged once, before its first output; another version is another charge, for all that it publishes.
    """

    planned: Planned
    ledger: Ledger

    @classmethod
    def open(cls, planned: Planned, ledger: Ledger, dataset: str | None, charge_delta: float | None) -> Stream:
        """Go on with a version that was charged, or charge it.

        A table of the same parameters (`protect`) pays for none: its rows have noise of their own. What was charged for another data set,
        unit or number of rows is refused here too.
        """
        ledger.check(dataset=dataset, unit=planned.level, rows_per_unit=1)
        if not ledger.charged(planned.named(STREAM)):
            charged(planned, ledger, dataset, charge_delta, STREAM)
        return cls(planned, ledger)

    def batches(
        self, source: Rows, ids: str, progress: Callable[[int], None] | None = None
    ) -> tuple[pa.Schema, list[pa.RecordBatch]]:
        """The protected rows of `source`, in its order: stored outputs for ids that were seen, new ones for others."""
        told, schema = self.planned.protection, source.schema
        store = self.ledger.outputs(self.planned.named(STREAM))
        noise, done = SecureNoise(), []
        for values, named in source.rowwise((*told.protected, *told.public), ROWS, ids):
            if None in named:
                raise SourceError(f"column {ids!r} has rows without an id, and a record without one cannot come back")

            def draw(at: Sequence[int], values: list[NDArray[np.float64]] = values) -> list[bytes]:
                steps = noised(noise, schema, told, [own[at] for own in values])
                raw, size = steps.astype("<i8").tobytes(), 8 * steps.shape[1]
                return [raw[start : start + size] for start in range(0, len(raw), size)]

            kept = np.frombuffer(b"".join(store.keep(named, draw)), dtype="<i8").reshape(
                len(named), len(told.protected)
            )
            done.append(published(schema, told, kept.astype(np.int64), values))
            if progress is not None:
                progress(len(named))
        return arrow_schema(schema, told), done

    def next_version(self) -> Planned:
        """The plan of the next version: every row carries new noise, and both versions together promise less."""
        told = self.planned.protection
        return replace(self.planned, protection=replace(told, version=told.version + 1))
