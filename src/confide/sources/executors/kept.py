"""Codes of records that workers keep for the passes of one draw, as one process does (`sources.code_cache`).

The first pass reads and codes a portion, and its worker keeps the codes. They are in memory up to the draw's limit, which all portions on
that worker share. Beyond it they are in one temporary file without a name, of at most half of what is free on its disk. Where there is no
room, nothing is kept and each pass reads the records.

They end with the handle of the draw. The file has no name, so that a worker that is killed leaves nothing behind; a file that has one
(`StoredPortion`) lies where the engine removes it. A portion that travels, or that an engine would write to its disk, is the description
of what to read, and codes stay where they are.

The digest of a portion is that of the codes as they were read. So a worker that reads again what another one lost is found out where
the records are other ones by then, no matter how the codes were changed since.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import IO, Any
from weakref import WeakValueDictionary

from confide.schema import Schema
from confide.sources.aggregation import Codes, Input, states_of
from confide.sources.code_cache import Blocks, Packing, Spool
from confide.sources.coder import Coder, columns_behind
from confide.sources.coding import Block
from confide.sources.executors.worker import Change, Digest, Done, Readable, Work


@dataclass(frozen=True)
class Keeping:
    """What workers keep for one draw.

    token: of the draw; rows: of codes; seed: of their digest; memory: MB of each worker.

    folder: of the file, where a worker has it, else that for its temporary files.
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
            most = _half_of_disk(tempfile.gettempdir() if folder is None else folder)
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

    def __init__(self, portion: Any, keeping: Keeping, spool: Spool | None = None) -> None:
        """portion: with `pieces(columns)` and `place`, as parts have; spool: which only this portion uses, instead of that of the draw."""
        self._portion, self._keeping, self._spool = portion, keeping, spool
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

    def coded(self, rows: tuple[str, ...], schema: Schema) -> Iterator[Codes]:
        found: Iterator[Codes] = self._portion.coded(rows, schema)
        return found

    def done(self, work: Work) -> Done:
        """As a pass over the portion would give it, from what is kept where something is."""
        with self._lock:
            blocks = self._changed(work.changes)
            if blocks is not None:
                return Done(states_of(blocks, work.statistics), *self._found)
            return self._read(work)

    def told(self) -> dict[str, Any] | None:
        """Where the codes lie in its file, in whole numbers; None where not all of them are kept in it."""
        places = None if self._blocks is None else self._blocks.places()
        return None if places is None else {"blocks": places, "found": list(self._found)}

    def restore(self, told: Mapping[str, Any], changes: tuple[Change, ...]) -> None:
        """Codes that lie in its file after changes, as `told` says."""
        keeping = self._keeping
        packing = Packing.of(keeping.rows, keeping.schema).renamed(renamed(keeping.rows, changes))
        self._blocks = Blocks(packing, 0, None, self._spool)
        self._blocks.lie_at([(records, place) for records, place in told["blocks"]])
        self._changes, self._found = changes, (told["found"][0], told["found"][1])

    def _changed(self, changes: tuple[Change, ...]) -> Blocks | None:
        """What is kept, after all changes; None where nothing is."""
        blocks, self._blocks = self._blocks, None
        if blocks is None:
            return None
        # a change that fails midway leaves codes of both kinds: nobody holds them any more
        if len(self._changes) > len(changes) or not all(
            blocks.change(dict(one.rows), one.code, 1) for one in changes[len(self._changes) :]
        ):
            blocks.drop(for_good=True)
            return None
        self._blocks, self._changes = blocks, changes
        return blocks

    def _read(self, work: Work) -> Done:
        """Read, code and change the records, and keep the codes where there is room."""
        keeping = self._keeping
        blocks = Blocks(
            Packing.of(keeping.rows, keeping.schema).renamed(work.rows), 0, None, self._spool or _spool_of(keeping)
        )
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


class StoredPortion(Readable):
    """A portion whose codes lie in a file that has a name, for engines on which another process may read it in the next pass.

    The file and its folder are for the worker's own user alone, and lie where the engine removes them when its application ends. A note in
    the folder says what is in the file, by a name for each number of changes. It goes before codes are changed and is back after that: a
    process that ends between leaves a file that nobody reads.
    """

    def __init__(self, label: int, portion: Any, keeping: Keeping, under: str) -> None:
        """portion: as of `KeptPortion`, None where its records cannot be read here; under: where the draw's folder lies."""
        self._portion, self._keeping, self._under = portion, keeping, under
        self._folder, self._label = folder_of(keeping, under), label

    def __repr__(self) -> str:
        return "StoredPortion"

    def coded(self, rows: tuple[str, ...], schema: Schema) -> Iterator[Codes]:
        found: Iterator[Codes] = self._portion.coded(rows, schema)
        return found

    def is_kept(self, changes: tuple[Change, ...]) -> bool:
        """Whether codes lie here that are those after these changes, or become them."""
        return any(self._note(number).exists() for number in range(len(changes) + 1))

    def done(self, work: Work) -> Done:
        """As `KeptPortion.done`."""
        with ExitStack() as opened:
            try:
                file = opened.enter_context(self._file())
            except OSError:  # no room, or another process is at it: read the records, and keep nothing
                return KeptPortion(self._portion, self._keeping, Spool(0, None, 0)).done(work)
            # the files of one draw have half of the disk together, and not each of them half of what the others left
            held = sum(one.stat().st_size for one in self._folder.iterdir() if "-" not in one.name)
            one = KeptPortion(self._portion, self._keeping, Spool(0, None, _half_of_disk(self._under, held), file))
            number = len(work.changes)
            before = next((at for at in range(number, -1, -1) if self._note(at).exists()), None)
            if before is not None:
                one.restore(json.loads(self._note(before).read_text()), work.changes[:before])
            if before != number:  # what the file holds changes now
                for note in self._folder.glob(f"{self._label}-*"):
                    note.unlink()
            found = one.done(work)
            if before != number:
                self._write(one.told(), number)
            return found

    def _note(self, number: int) -> Path:
        return self._folder / f"{self._label}-{number}"

    def _write(self, told: Any, number: int) -> None:
        if told is None:
            return
        part = self._folder / f"{self._label}-part"
        with suppress(OSError):
            with open(part, "w", opener=_private) as note:
                json.dump(told, note)
            part.rename(self._note(number))

    @contextmanager
    def _file(self) -> Iterator[IO[bytes]]:
        """The file of codes, for this process alone. Raises `OSError`."""
        import fcntl

        self._folder.mkdir(mode=0o700, exist_ok=True)
        found = self._folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
            raise OSError
        with open(self._folder / f"{self._label}", "r+b", buffering=0, opener=_private) as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield file


# seconds after which the folder of a draw whose end no worker saw is removed
_OLD = 86_400


def folder_of(keeping: Keeping, under: str) -> Path:
    """Where a draw's files lie on a worker."""
    return Path(under) / f"confide-{os.geteuid()}-{keeping.token}"


def forget(keeping: Keeping, under: str) -> None:
    """Remove the folder of a draw, and those that draws of former days left behind."""
    shutil.rmtree(folder_of(keeping, under), ignore_errors=True)
    for one in Path(under).glob(f"confide-{os.geteuid()}-*"):
        with suppress(OSError):
            if time.time() - one.lstat().st_mtime > _OLD:
                shutil.rmtree(one, ignore_errors=True)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)


def _half_of_disk(folder: str, held: int = 0) -> int:
    """What may still be written of half of a disk. held: bytes that were."""
    with suppress(OSError):
        return (shutil.disk_usage(folder).free - held) // 2
    return 0


class _Reading(Input):
    """Records of a portion, read and coded in this pass, and their codes kept."""

    parts: Sequence[Any]
    rows: tuple[str, ...]
    columns: tuple[str, ...]

    def __init__(self, portion: Any, keeping: Keeping, changes: tuple[Change, ...], blocks: Blocks) -> None:
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
            self._blocks.add(found, found.shape[1])
            return found

        return codes
