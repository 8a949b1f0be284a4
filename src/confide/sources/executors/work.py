"""What a worker does: records of one portion to codes, codes to states, states to JSON. It shows nothing, whatever happens.

A worker codes records by float steps that are the same for each record alone (rule 5 of the protocol), on one kind of machine. Workers
whose elementwise functions round differently are refused: which of them codes a record would else depend on the others.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide._version import __version__
from confide.errors import SourceError
from confide.protocol import Statistic
from confide.schema import Schema
from confide.sources.aggregation import BLOCK_ROWS, Codes
from confide.sources.coding import Coder, columns_behind
from confide.sources.executors.states import state_to_plain
from confide.sources.parts import Block, Part, guarded

__all__ = ["FAILED", "Portion", "Work", "portions"]

#: All that is ever said of what went wrong on a worker, in its log, in the scheduler's and here. It never travels: a worker says that it
#: failed, and each process has the sentence of its own.
FAILED = "the records could not be read, coded or added up on a worker"

# Tasks of one pass at most: a scheduler takes about a millisecond for each.
_TASKS = 1024
_MIX = np.uint64(0xBF58476D1CE4E5B9)


@dataclass(frozen=True)
class Portion:
    """Some pieces of a part, from `first` on, `pieces` of them (None: all): what one task reads, where it runs."""

    part: Part = field(repr=False)
    first: int = 0
    pieces: int | None = None

    def blocks(self, columns: Sequence[str]) -> Iterator[Block]:
        stop = None if self.pieces is None else self.first + self.pieces
        for piece in islice(self.part.pieces(columns), self.first, stop):
            yield from piece.blocks(BLOCK_ROWS)

    def coded(self, rows: tuple[str, ...], schema: Schema) -> Iterator[Codes]:
        coder = Coder(rows, schema, BLOCK_ROWS)
        for block in self.blocks(columns_behind(rows, schema)):
            yield coder(block)


def portions(parts: Sequence[Part], most: int = _TASKS) -> list[Portion]:
    """What tasks read: row groups of Parquet files, some at a time where there are many, and other parts as they are."""
    sizes = [part.groups for part in parts]
    step = max(ceil(sum(size or 1 for size in sizes) / most), 1)
    found: list[Portion] = []
    for part, size in zip(parts, sizes, strict=True):
        found += [Portion(part)] if size is None else [Portion(part, at, step) for at in range(0, size, step)]
    return found


@dataclass(frozen=True)
class Work:
    """States of statistics over one portion, as JSON: `work(label, portion)`. rows: all that the draw may ask for; seed: of the draw's
    own digest of codes, which tells whether a later pass met other records."""

    schema: Schema = field(repr=False)
    rows: tuple[str, ...]
    statistics: tuple[Statistic, ...] = field(repr=False)
    seed: int = field(repr=False)

    def __call__(self, label: int, portion: Any) -> str:
        """`portion` has `coded(rows, schema)`. Of a failure the document says that there was one, and nothing of it."""
        try:
            return guarded(FAILED, lambda: self._done(label, portion))
        except SourceError:
            return json.dumps({"part": label, "failed": True})

    def _done(self, label: int, portion: Any) -> str:
        picks = [[self.rows.index(name) for name in one.map.columns] for one in self.statistics]
        states = [one.zero() for one in self.statistics]
        digest, records = Digest(len(self.rows), self.seed), 0
        with np.errstate(all="ignore"):
            for codes in portion.coded(self.rows, self.schema):
                records += codes.shape[1]
                digest.add(codes)
                for at, (one, pick) in enumerate(zip(self.statistics, picks, strict=True)):
                    states[at] = one.update(states[at], codes[pick])
        # merged with nothing, a state has flushed what it holds back
        merged = [one.merge(one.zero(), state) for one, state in zip(self.statistics, states, strict=True)]
        done = {"part": label, "records": records, "digest": digest.total, "machine": machine()}
        return json.dumps({**done, "states": [state_to_plain(state) for state in merged]})


class Digest:
    """A number that codes of records add up to, in any order: other records give another one, but for one chance in 2^64."""

    def __init__(self, rows: int, seed: int) -> None:
        factors = np.random.default_rng(seed).integers(0, 1 << 63, rows, dtype=np.uint64)
        self._factors = factors * np.uint64(2) + np.uint64(1)
        self.total = 0

    def add(self, codes: Codes) -> None:
        mixed: NDArray[np.uint64] = np.full(codes.shape[1], 1, dtype=np.uint64)
        for factor, row in zip(self._factors, codes, strict=True):
            mixed += row.astype(np.int64).view(np.uint64) * factor
        mixed ^= mixed >> np.uint64(30)
        mixed *= _MIX
        mixed ^= mixed >> np.uint64(27)
        mixed *= _MIX
        self.total = (self.total + int(np.add.reduce(mixed, dtype=np.uint64))) % (1 << 64)


@lru_cache(maxsize=1)
def machine() -> str:
    """How this machine rounds what record maps are made of, with the versions of what they are written in."""
    x = np.linspace(-30.0, 30.0, 4099)
    y = np.linspace(1e-9, 3e6, 4099)
    made = [np.exp(x), np.tanh(x), np.expm1(x), np.log(y), np.log1p(y), np.sqrt(y), x / y, np.sin(x), np.cos(x), y**0.3]
    versions = f"{__version__} {np.__version__}".encode()
    return hashlib.sha256(b"".join(one.tobytes() for one in made) + versions).hexdigest()
