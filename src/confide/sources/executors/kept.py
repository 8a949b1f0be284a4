"""Codes of records that workers keep for the passes of one draw, as one process does (`sources.code_cache`).

The first pass reads and codes a portion, and its worker keeps the codes: in memory up to the draw's limit, which all portions on that
worker share, and beyond it in one temporary file without a name, of at most half of what is free on its disk. Where there is no room,
nothing is kept and each pass reads the records.

They end with the handle of the draw. The file has no name, so that a worker that is killed leaves nothing behind. A portion that
travels, or that an engine would write to a disk of its own, is the description of what to read, and codes stay where they are.

The digest of a portion is that of the codes as they were read. So a worker that reads again what another one lost is found out where
the records are other ones by then, no matter how the codes were changed since.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any
from weakref import WeakValueDictionary

from confide.schema import Schema
from confide.sources.aggregation import Codes, Input, states_of
from confide.sources.code_cache import Blocks, Packing, Spool
from confide.sources.coder import Coder, columns_behind
from confide.sources.coding import Block
from confide.sources.executors.worker import Change, Digest, Done, Portion, Readable, Work


@dataclass(frozen=True)
class Keeping:
    """What workers keep for one draw. token: of the draw; rows: of codes; seed: of their digest; memory: MB of each worker; folder: of the
    file, where a worker has it, else that for its temporary files.
    """

    token: str = field(repr=False)
    rows: tuple[str, ...]
    schema: Schema = field(repr=False)
    seed: int = field(repr=False)
    memory: int
    folder: str | None = field(repr=False)


# of the draws that are open on this worker; a spool is forgotten, and its file with it, when the last of its portions is
_SPOOLS: WeakValueDictionary[str, Spool] = WeakValueDictionary()
_LOCK = Lock()


def _spool_of(keeping: Keeping) -> Spool:
    with _LOCK:
        found = _SPOOLS.get(keeping.token)
        if found is None:
            folder = keeping.folder if keeping.folder is not None and Path(keeping.folder).is_dir() else None
            most = 0
            with suppress(OSError):
                most = shutil.disk_usage(tempfile.gettempdir() if folder is None else folder).free // 2
            found = _SPOOLS[keeping.token] = Spool(keeping.memory << 20, folder, most)
        return found


def renamed(rows: Sequence[str], changes: Sequence[Change]) -> tuple[str, ...]:
    """What rows of codes are called after changes."""
    for change in changes:
        names = dict(change.rows)
        rows = [names.get(row, row) for row in rows]
    return tuple(rows)


class KeptPortion(Readable):
    """A portion whose codes the worker keeps that first reads it. Its pickle is that of a portion that was not read yet."""

    def __init__(self, portion: Portion, keeping: Keeping) -> None:
        self._portion, self._keeping = portion, keeping
        self._lock = Lock()
        self._blocks: Blocks | None = None
        self._changes: tuple[Change, ...] = ()
        self._found: tuple[int, int] = (0, 0)

    def __repr__(self) -> str:
        return "KeptPortion"

    def __reduce__(self) -> Any:
        return KeptPortion, (self._portion, self._keeping)

    def __sizeof__(self) -> int:
        # what Dask takes it for: large enough to leave it where it is, small enough not to write it to a disk; no number of records
        return 1 << 20

    def coded(self, rows: tuple[str, ...], schema: Schema) -> Any:
        return self._portion.coded(rows, schema)

    def done(self, work: Work) -> Done:
        """As a pass over the portion would give it, from what is kept where something is."""
        with self._lock:
            blocks = self._changed(work.changes)
            if blocks is not None:
                return Done(states_of(blocks, work.statistics), *self._found)
            return self._read(work)

    def _changed(self, changes: tuple[Change, ...]) -> Blocks | None:
        """What is kept, after all changes; None where nothing is."""
        blocks, self._blocks = self._blocks, None
        if blocks is None:
            return None
        # a change that fails midway leaves codes of both kinds: nobody holds them any more
        if len(self._changes) > len(changes) or not all(_change(blocks, one) for one in changes[len(self._changes) :]):
            blocks.drop(for_good=True)
            return None
        self._blocks, self._changes = blocks, changes
        return blocks

    def _read(self, work: Work) -> Done:
        """Read, code and change the records, and keep the codes where there is room."""
        keeping = self._keeping
        blocks = Blocks(Packing.of(keeping.rows, keeping.schema).renamed(work.rows), 0, None, _spool_of(keeping))
        read = _Reading(self._portion, keeping, work.changes, blocks)
        try:
            states = states_of(read, work.statistics)
        except BaseException:
            blocks.drop(for_good=True)
            raise
        if blocks.finish():
            self._blocks, self._changes = blocks, work.changes
        self._found = read.records, read.digest.total
        return Done(states, *self._found)


def _change(blocks: Blocks, change: Change) -> bool:
    names = dict(change.rows)
    return blocks.change([(at, names[row]) for at, row in enumerate(blocks.rows) if row in names], change.code, 1)


class _Reading(Input):
    """Records of a portion, read and coded in this pass, and their codes kept."""

    parts: Sequence[Any]
    rows: tuple[str, ...]
    columns: tuple[str, ...]

    def __init__(self, portion: Portion, keeping: Keeping, changes: tuple[Change, ...], blocks: Blocks) -> None:
        self.parts, self.rows = (portion,), blocks.rows
        self.columns = columns_behind(keeping.rows, keeping.schema)
        self.digest, self.records = Digest(len(keeping.rows), keeping.seed), 0
        self._keeping, self._blocks = keeping, blocks
        self._steps = [
            (at, new, change.code)
            for number, change in enumerate(changes)
            for at, (old, new) in enumerate(
                zip(renamed(keeping.rows, changes[:number]), renamed(keeping.rows, changes[: number + 1]), strict=True)
            )
            if old != new
        ]

    def coder(self, block_rows: int) -> Callable[[Block], Codes]:
        coder = Coder(self._keeping.rows, self._keeping.schema, block_rows)

        def codes(block: Block) -> Codes:
            found = coder(block)
            self.records += found.shape[1]
            self.digest.add(found)
            for at, name, code in self._steps:
                found[at] = code(name, found[at])
            self._blocks.add(found)
            return found

        return codes
