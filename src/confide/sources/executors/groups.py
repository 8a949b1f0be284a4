"""Whole units on workers: rows dealt out by a hash of the canonical id, brought together, and bounded by the same rule as everywhere.

The hash only decides where rows meet: units are told apart by their canonical ids, byte by byte (`units.Keep`). Where they do not meet, as
with workers whose hashes differ, that is found and is an error, since the bound on a unit would not hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from confide.errors import SourceError
from confide.protocol import RecordMap, Statistic
from confide.protocol.units.whose import CLUSTER_ROW, UNIT_ROW, WHOLE_ROW
from confide.schema import Schema, Unit
from confide.sources.aggregation import BLOCK_ROWS, Codes
from confide.sources.executors.work import Portion
from confide.sources.grouping.gathered import WithIds, identified, packing
from confide.sources.grouping.groups import HashedGroups
from confide.sources.grouping.keep import Keep
from confide.sources.grouping.spill import Rows, joined
from confide.sources.grouping.units import block_starts, words_of
from confide.sources.parts import Block

__all__ = ["Coding", "Group", "Ids", "bounded", "dealt", "group_of", "places", "unit_blocks", "whole_units"]

_ORDER = "the rows of one id did not come one after the other from the engine that brought them together"
_CUT = "the rows of one unit did not come together from the engine that kept them"
_APART = "the rows of one id did not meet on one worker; workers need equal versions of pandas and confide"


def group_of(ids: pa.Array, groups: int) -> NDArray[np.intp]:
    """The group of each id: a keyed hash of its bytes that is the same on any machine."""
    import pandas as pd

    coded = ids.dictionary_encode()
    known = np.array(coded.dictionary.to_pylist(), dtype=object)
    hashed = pd.util.hash_array(known, categorize=False) if len(known) else np.zeros(0, np.uint64)
    return np.asarray((hashed % np.uint64(groups)).astype(np.intp)[coded.indices.to_numpy()])


@dataclass(frozen=True)
class Coding:
    """How a worker codes records before they are brought together: with their ids, and their clusters where the schema has them."""

    schema: Schema = field(repr=False)
    groups: HashedGroups | None = None

    @property
    def column(self) -> str | None:
        """The id column of the units; None where each record is one, which then stay in their portions."""
        return self.schema.unit.column if isinstance(self.schema.unit, Unit) else None

    @property
    def rows(self) -> tuple[str, ...]:
        """The rows of codes that tell records apart, and that of the clusters."""
        return words_of(self.schema) if self.groups is None else (*words_of(self.schema), CLUSTER_ROW)

    @property
    def columns(self) -> tuple[str, ...]:
        """What is asked of the data."""
        return self._input([]).columns

    def __call__(self, blocks: Iterator[Block]) -> Iterator[Rows]:
        """The rows of each block that have an id, codes packed."""
        held: list[tuple[pa.Array, Codes]] = []
        coder, packed = self._input(held).coder(BLOCK_ROWS), packing(self.rows, self.schema)
        with np.errstate(all="ignore"):
            for block in blocks:
                coder(block)
                rows = identified(*held.pop(), packed)
                if len(rows):
                    yield rows

    def _input(self, held: list[tuple[pa.Array, Codes]]) -> WithIds:
        def took(ids: pa.Array, codes: Codes) -> None:
            held.append((ids, codes))

        return WithIds((), self.schema, words_of(self.schema), self.column, took, self.groups)


def dealt(portion: Portion, coding: Coding, groups: int) -> list[Rows | None]:
    """The rows of a portion that have an id, group by group, coded; None for a group of which it has none."""
    held = list(coding(portion.blocks(coding.columns)))
    if not held:
        return [None] * groups
    rows = joined(held)
    of = group_of(rows.ids, groups)
    order = np.argsort(of, kind="stable")
    cuts = np.searchsorted(of[order], np.arange(groups + 1))
    return [rows.take(order[cuts[at] : cuts[at + 1]]) if cuts[at] < cuts[at + 1] else None for at in range(groups)]


def whole_units(batches: Iterator[Any]) -> Iterator[Rows]:
    """Batches of ids and codes, in ascending order of the ids' bytes, as rows that hold every row of each unit.

    Raises `SourceError` where an id is below the one before it: the rows of a unit might then not be together.
    """
    held: list[Rows] = []
    for batch in batches:
        if not batch.num_rows:
            continue
        ids, *codes = batch.columns
        rows = Rows(ids.cast(pa.large_binary()), [np.asarray(row) for row in codes])
        last = held[-1].ids[-1].as_py() if held else b""
        if last > rows.ids[0].as_py() or pc.any(pc.greater(rows.ids[:-1], rows.ids[1:])).as_py():
            raise SourceError(_ORDER)
        begins = pc.index(rows.ids, rows.ids[-1]).as_py()
        if begins or (held and last != rows.ids[0].as_py()):
            yield joined([*held, rows.take(np.arange(begins))] if begins else held)
            held = []
        held.append(rows.take(np.arange(begins, len(rows))))
    if held:
        yield joined(held)


def places(own: tuple[str, ...], rows: tuple[str, ...]) -> list[int]:
    """Where the rows of codes of bounded units lie; the same one says where units begin, whichever of their rows are there."""
    return [own.index(UNIT_ROW if name == WHOLE_ROW else name) for name in rows]


def unit_blocks(pieces: Iterator[list[NDArray[Any]]], mark: int) -> Iterator[list[NDArray[Any]]]:
    """Rows of codes, unit after unit and cut anywhere by an engine, in blocks that hold every row of each unit.

    mark: which of them says where units begin. Raises `SourceError` where what comes first is no unit's beginning.
    """
    held: list[NDArray[Any]] = []
    for piece in pieces:
        if not len(piece[mark]):
            continue
        held = [np.concatenate(both) for both in zip(held, piece, strict=True)] if held else piece
        starts = np.flatnonzero(held[mark] >= 0)
        if not len(starts) or starts[0]:
            raise SourceError(_CUT)
        cuts = block_starts(starts).tolist()
        for start, stop in pairwise(cuts):
            yield [row[start:stop] for row in held]
        held = [row[cuts[-1] :] for row in held]
    if held:
        yield held


@dataclass(frozen=True)
class Group:
    """Codes of whole, bounded units, with the row `UNIT_ROW`: what later passes of a draw read on a worker."""

    rows: tuple[str, ...]
    codes: list[NDArray[Any]] = field(repr=False)

    def coded(self, rows: tuple[str, ...], schema: Schema) -> Iterator[Codes]:
        picks = places(self.rows, rows)
        for own in unit_blocks(iter([self.codes] if self.codes else []), self.rows.index(UNIT_ROW)):
            yield np.array([own[at] for at in picks], dtype=np.float64)


def bounded(label: int, groups: int, portions: Sequence[Rows | None], rows: tuple[str, ...], rule: Keep) -> Group:
    """One group's rows of all portions, bounded."""
    held = [one for one in portions if one is not None]
    if not held:
        return Group((*rows, UNIT_ROW), [])
    whole = joined(held)
    if (group_of(whole.ids, groups) != label).any():
        raise SourceError(_APART)
    codes, sizes = rule(whole)
    return Group((*rows, UNIT_ROW), [*codes, sizes])


@dataclass(frozen=True)
class _Unit(RecordMap):
    """1 for the first row of each unit."""

    columns: tuple[str, ...] = (UNIT_ROW,)
    width: int = 1
    l1: int = 1
    l2_squared: int = 1
    digest: str = "ids"

    def __call__(self, codes: Codes) -> Codes:
        return np.asarray((codes >= 0) * 1.0)


@dataclass(frozen=True)
class Ids(Statistic):
    """The number of ids, for the gate's count alone: it is never drawn."""

    map: _Unit = _Unit()
    shape: ClassVar[tuple[int, ...]] = (1,)
    norm: ClassVar[str] = "l2"

    def sensitivity_squared(self, relation: str) -> Fraction:
        return Fraction(1)

    sensitivity_l1 = sensitivity_squared

    def zero(self) -> NDArray[np.int64]:
        return np.zeros(1, dtype=np.int64)

    def update(self, state: NDArray[np.int64], codes: Codes) -> NDArray[np.int64]:
        return np.asarray(state + self.map(codes).sum(axis=1).astype(np.int64))

    def merge(self, a: NDArray[np.int64], b: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.asarray(a + b)

    def value(self, state: NDArray[np.int64]) -> NDArray[Any]:
        return state.astype(object)
