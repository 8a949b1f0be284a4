"""A stream of records that come back: each has one output for each version, stored beside the ledger that was charged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import starmap
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from confide._arrays import Array
from confide.errors import SourceError
from confide.local.release import ROWS, STREAM, Planned, Rows, arrow_schema, charged, noised, published
from confide.noise import SecureNoise

if TYPE_CHECKING:
    from confide.ledger import Ledger
    from confide.ledger.history.outputs import Outputs
    from confide.schema import Schema

__all__ = ["Stream"]


#: Numbers that are gathered and put in the order of their ids before they are stored. The store keeps its rows in that order: ids that
#: come in another would touch all of its pages with each transaction.
_CELLS = 2**20


@dataclass(frozen=True)
class Stream:
    """One version of a stream: what it promises, and where its outputs are stored.

    Guarantee: that of `Planned`, for the first content that came with an id; every later appearance is post-processing of its stored
    output. A version is charged once, before its first output; another version is another charge, for all that it publishes.
    """

    planned: Planned
    ledger: Ledger

    @classmethod
    def open(cls, planned: Planned, ledger: Ledger, about: Mapping[str, Any], charge_delta: float | None) -> Stream:
        """Go on with a version that was charged, or charge it. about: what the charge is about (`gate.terms.pins`).

        A table of the same parameters (`protect`) pays for none: its rows have noise of their own. What was charged for another data set,
        unit or number of rows is refused here too.
        """
        ledger.check(**about)
        if not ledger.charged(planned.named(STREAM)):
            charged(planned, ledger, about, charge_delta, STREAM)
        return cls(planned, ledger)

    def batches(
        self, source: Rows, ids: str, progress: Callable[[int], None] | None = None
    ) -> tuple[pa.Schema, list[pa.RecordBatch]]:
        """The protected rows of `source`, in its order: stored outputs for ids that were seen, new ones for others."""
        told, schema = self.planned.protection, source.schema
        names = (*told.protected, *told.public)
        blocks = _gathered(source.rowwise(names, ROWS, ids), max(ROWS, _CELLS // len(names)))
        store, done = self.ledger.outputs(self.planned.named(STREAM)), []
        for some in starmap(
            partial(self._protected, schema, store, ids, progress), blocks
        ):  # one block is held at a time
            done += some
        return arrow_schema(schema, told), done

    def _protected(
        self,
        schema: Schema,
        store: Outputs,
        ids: str,
        progress: Callable[[int], None] | None,
        values: list[Array],
        named: pa.Array,
    ) -> list[pa.RecordBatch]:
        """Rows in their order, their outputs stored in the order of their ids."""
        if named.null_count:
            raise SourceError(f"column {ids!r} has rows without an id, and a record without one cannot come back")
        told = self.planned.protection
        kept = np.empty((len(named), len(told.protected)), dtype=np.int64)
        in_order = pc.sort_indices(named).to_numpy()  # stable: of rows with one id the first is drawn
        for some in _pieces(len(named)):
            at = in_order[some]
            outputs = store.keep(named.take(pa.array(at)).to_pylist(), self._draw(schema, values, at))
            kept[at] = np.frombuffer(b"".join(outputs), dtype="<i8").reshape(len(at), -1)
            if progress is not None:
                with suppress(Exception):  # a fault of whoever is told must not lose what was paid for
                    progress(len(at))
        return [published(schema, told, kept[some], [own[some] for own in values]) for some in _pieces(len(named))]

    def _draw(
        self, schema: Schema, values: Sequence[Array], at: NDArray[np.uint64]
    ) -> Callable[[Sequence[int]], list[bytes]]:
        """What draws the outputs of some of the rows `at`."""

        def draw(new: Sequence[int]) -> list[bytes]:
            steps = noised(SecureNoise(), schema, self.planned.protection, [own[at[new]] for own in values])
            raw, size = steps.astype("<i8").tobytes(), 8 * steps.shape[1]
            return [raw[start : start + size] for start in range(0, len(raw), size)]

        return draw

    def next_version(self) -> Planned:
        """The plan of the next version: every row carries new noise, and both versions together promise less."""
        told = self.planned.protection
        return replace(self.planned, protection=replace(told, version=told.version + 1))


def _gathered(blocks: Iterable[tuple[list[Array], Any]], rows: int) -> Iterator[tuple[list[Array], pa.Array]]:
    """Blocks of columns and ids put together, until there are `rows` of them."""
    some: list[tuple[list[Array], Any]] = []
    for block in blocks:
        some.append(block)
        if sum(len(ids) for _, ids in some) >= rows:
            yield _together(some)
    if some:
        yield _together(some)


def _together(some: list[tuple[list[Array], Any]]) -> tuple[list[Array], pa.Array]:
    """The blocks as one; the list is empty then."""
    columns, ids = zip(*some, strict=True)
    some.clear()
    return [np.concatenate(parts) for parts in zip(*columns, strict=True)], pa.concat_arrays(ids)


def _pieces(count: int) -> Iterator[slice]:
    """Rows of one transaction each."""
    return (slice(start, start + ROWS) for start in range(0, count, ROWS))
