"""The records of one draw, coded once: later passes read integer codes, and neither decode files nor clip and round again.

The first pass reads the source and keeps each block of codes as whole numbers of 8, 16 or 32 bits (as many as the
public number of steps needs). They are in memory up to a public limit, and beyond it in a temporary file. Codes are
integers, so that a later pass hands the same doubles to the statistics as a pass over the source would. It also sees
the same records: what happens to the source after the first pass no longer matters. While there is memory left, what
several passes would compute alike from a block is kept, too (`core.Beginning`): for least squares with many features
the whitened rows of the last three passes.

Nothing of it outlives the draw. The file has no name, or loses it when it is made (`tempfile.TemporaryFile`:
O_TMPFILE, or an unlink at once), and only its owner may open it. So a crash or a kill leaves nothing behind. The
memory is dropped when the draw ends, whichever way, and a method that kept the source gets an error. The file's size
shows how many records there are to anyone who can watch this machine's disk or memory meanwhile, as the source's own
size does. Nothing that is published follows from it. Where the file cannot be written, as on a full disk, nothing is
kept and each pass reads the source: an error would tell of a size.

What a source for one draw needs of the records behind it: passes over them, and where codes may be kept.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from math import inf
from threading import Lock
from typing import IO, Any, NoReturn, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from confide.core import Beginning, Source, Statistic
from confide.core.ranges import fine_row
from confide.core.statistic import WrappedSource
from confide.core.units.privacy_unit import CLUSTER_ROW
from confide.errors import SourceError
from confide.schema import Schema
from confide.sources.aggregation import Codes, Input, named_rows, summed
from confide.sources.coder import Room, apart, doubles_of
from confide.sources.coding import Block, Part, Piece, guarded


class Passes(Source, Protocol):
    """A source that can be asked for single passes (`RecordSource`). Inside this room alone."""

    @property
    def schema(self) -> Schema: ...
    @property
    def _parts(self) -> tuple[Part, ...]: ...
    @property
    def _threads(self) -> int: ...
    @property
    def _memory(self) -> int: ...
    @property
    def _spool(self) -> str | None: ...
    def _aggregate(
        self, statistics: Sequence[Statistic], rows: tuple[str, ...], kept: Callable[[Codes], None] | None = None
    ) -> tuple[NDArray[Any], ...]: ...
    def _pass(self, records: Input, statistics: Sequence[Statistic]) -> tuple[NDArray[Any], ...]: ...


#: Megabytes of codes that one draw keeps in memory: 2 million records of 22 columns of 2^20 steps.
MEMORY = 192
# Up to this part of it, the first blocks stay the doubles that sums are made of: to unpack them anew costs a tenth of a pass.
_DOUBLES = 1 / 2
# Bytes that are asked of the system at once, and that blocks lie in side by side. NumPy asks for large pages where an array has more than
# 4 MB: the system then hands out, and clears, a few pages of 2 MB instead of hundreds of small ones for each block, a tenth of a draw.
_SLAB = 1 << 25

_Bytes = NDArray[np.uint8]
OVER = "the draw is over, and with it what was kept of the records; read them in draw(source, plan, meter) alone"


class KeptSource(WrappedSource):
    """A source for one draw, whose records are read and coded in the first pass. Made by `RecordSource.kept`, closed by it.

    It is private, like the source behind it. It hands records to no one, cannot be pickled, and shows nothing.
    """

    def __init__(self, source: Passes, rows: Sequence[str], memory: int, folder: str | None) -> None:
        super().__init__(source)
        self._records = source
        self._rows = tuple(dict.fromkeys(rows))
        self._blocks = Blocks(Packing.of(self._rows, source.schema), memory << 20, folder)
        self._lock = Lock()
        self._whole = self._over = False

    def __repr__(self) -> str:
        return repr(self._source)

    def __reduce__(self) -> NoReturn:
        raise TypeError("records do not leave the process that reads them: a source of one draw is not pickled")

    def aggregate(self, *statistics: Statistic) -> tuple[NDArray[Any], ...]:
        """As `RecordSource.aggregate`, to the bit. Rows of codes that are not kept are read from the source.

        Raises `SourceError` after the draw.
        """
        if self._over:
            raise SourceError(OVER)
        more = [row for row in named_rows(statistics) if row not in self._rows]
        # the first pass holds the lock: whoever asks meanwhile finds its blocks
        with self._lock:
            if not self._whole:
                # a pass that failed may have left blocks, whose records would count twice
                self._blocks.drop()
                add, own, rows = self._blocks.add, len(self._rows), (*self._rows, *more)
                sums = self._records._aggregate(statistics, rows, lambda codes: add(codes[:own], codes.shape[1]))
                self._whole = self._blocks.finish()
                return sums
        if more:
            return self._source.aggregate(*statistics)
        return summed(self._blocks, statistics, threads=self._records._threads)

    def coded_again(self, rows: Mapping[str, str], code: Callable[[str, Codes], Codes]) -> bool:
        """As `Source.coded_again`, in place. Where that fails nothing is kept any more, and passes read the source."""
        with self._lock:
            if not self._whole or renamed(self._rows, rows) is None:
                return False
            self._whole = self._blocks.change(rows, code, self._records._threads)
            if not self._whole:
                self._blocks.drop()
            self._rows = self._blocks.rows
            return self._whole

    def close(self) -> None:
        """Drop what is kept, and keep nothing more, should a pass still run in some thread; a second call does nothing."""
        self._over = True
        self._blocks.drop(for_good=True)


@dataclass(frozen=True)
class Packing:
    """How a block of codes, float64 (rows, records), lies in bytes: row after row, each with its type, at a multiple of 8 bytes."""

    rows: tuple[str, ...]
    types: tuple[np.dtype[Any], ...]

    @classmethod
    def of(cls, rows: tuple[str, ...], schema: Schema) -> Packing:
        # a code is -1 or from 0 to steps - 1; a row of how cells were read from 0 to 3; values in order have 53 bits
        fine = dict.fromkeys((CLUSTER_ROW, *map(fine_row, schema.names)), 1 << 53)
        steps = [schema[row].steps if row in schema.names else fine.get(row, 4) for row in rows]
        kinds = ((128, np.int8), (32768, np.int16), (1 << 31, np.int32), (1 << 53, np.int64))
        return cls(rows, tuple(np.dtype(next(kind for most, kind in kinds if s <= most)) for s in steps))

    def renamed(self, rows: Sequence[str]) -> Packing:
        """With other names; a row that has another one held values of 8 bytes, and holds codes of at most `MAX_STEPS` steps."""
        each = zip(rows, self.rows, self.types, strict=True)
        return Packing(tuple(rows), tuple(kind if row == own else np.dtype(np.int32) for row, own, kind in each))

    def _places(self, records: int) -> Iterator[tuple[np.dtype[Any], int, int]]:
        """Type, first byte and the byte behind the last of each row."""
        start = 0
        for kind in self.types:
            stop = start + records * kind.itemsize
            yield kind, start, stop
            start = -(-stop // 8) * 8

    def bytes(self, records: int) -> int:
        """The size of a block."""
        return sum(-(-records * kind.itemsize // 8) * 8 for kind in self.types)

    def pack(self, codes: Sequence[NDArray[Any]] | Codes, records: int, out: _Bytes | None = None) -> _Bytes:
        """The block as bytes, into `out` where it is given; codes are whole numbers within the type of their row."""
        packed = np.zeros(self.bytes(records), dtype=np.uint8) if out is None else out
        for row, (kind, start, stop) in zip(codes, self._places(records), strict=True):
            packed[start:stop].view(kind)[:] = row
        return packed

    def typed(self, packed: _Bytes, records: int) -> list[NDArray[Any]]:
        """The rows as they lie in a packed block, each in its own type, without a copy."""
        return [packed[start:stop].view(kind)[:records] for kind, start, stop in self._places(records)]

    def unpack(self, packed: _Bytes, codes: Codes) -> Codes:
        """The same doubles as were packed, into `codes`."""
        for row, (kind, start, stop) in zip(codes, self._places(codes.shape[1]), strict=True):
            row[:] = packed[start:stop].view(kind)
        return codes


def renamed(names: Sequence[str], rows: Mapping[str, str]) -> tuple[str, ...] | None:
    """Rows of codes by their new names; None where one is not there, or a name would be there twice."""
    new = tuple(rows.get(name, name) for name in names)
    return new if set(rows) <= set(names) and len(set(new)) == len(new) else None


class Spool:
    """Where blocks of codes are kept: so many bytes of memory, then a temporary file without a name, which its owner alone may open.

    most: bytes that the file may have; None for as many as there is room for. file: instead of one that is made and closed here.
    """

    def __init__(self, memory: int, folder: str | None, most: int | None = None, file: IO[bytes] | None = None) -> None:
        self.memory, self._folder, self._most = memory, folder, most
        self._lock = Lock()
        self._file, self._given = file, file is not None
        self._used = self._written = 0

    def take(self, size: int, most: float = inf) -> bool:
        """Take so many bytes of memory, while no more than `most` are used; whether they were there. Less than 0 are given back."""
        with self._lock:
            if self._used + size > most:
                return False
            self._used += size
            return True

    def write(self, packed: _Bytes, at: int | None = None) -> int:
        """Write a block, behind the others or where it was. Returns where it begins. Raises `OSError` or `ValueError`."""
        with self._lock:
            start = self._written if at is None else at
            # a block in the place of another one needs no room, however little there is by now
            if at is None and self._most is not None and start + packed.nbytes > self._most:
                raise OSError
            if self._file is None:
                self._file = tempfile.TemporaryFile(prefix="confide-", dir=self._folder, buffering=0)  # noqa: SIM115
            rest = packed.data
            self._file.seek(start)
            while rest.nbytes:
                rest = rest[self._file.write(rest) :]
            self._written = max(self._written, start + packed.nbytes)
            return start

    def read(self, start: int, out: _Bytes) -> _Bytes:
        """Fill `out` with what was written there. Raises `SourceError` or `OSError` where that is gone."""
        with self._lock:
            if self._file is None:
                raise SourceError(OVER)
            self._file.seek(start)
            rest: Any = out.data
            while rest.nbytes:
                got = self._file.readinto(rest)  # type: ignore[attr-defined]
                if not got:
                    raise OSError
                rest = rest[got:]
        return out

    def close(self) -> None:
        """Forget what was written. A file that is made here ends with it, too."""
        with self._lock:
            if self._file is not None and not self._given:
                with suppress(OSError):
                    self._file.close()
            self._file, self._written = None, 0


class Blocks(Part, Input):
    """Blocks of codes, written once by any thread and then read as often as wanted: an input of `summed`, and its only part."""

    type = "codes"
    place = "what was kept of the records"
    names: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    rereadable = True
    file = None

    def __init__(self, packing: Packing, memory: int, folder: str | None, spool: Spool | None = None) -> None:
        """`spool`: which several of them share, instead of a separate one."""
        self._packing = packing
        self._own = spool is None
        self._spool = Spool(memory, folder) if spool is None else spool
        self._used = 0
        self._lock = Lock()
        self._ended = False
        self._reset()

    def _reset(self) -> None:
        # a block in memory, as doubles or packed, or where in the file it begins
        self._blocks: list[tuple[int, Codes | _Bytes | int]] = []
        # by the place of the block
        self._results: dict[int, tuple[Beginning, Any]] = {}
        self._slab, self._free = np.empty(0, dtype=np.uint8), 0
        self._failed = False
        self._spool.take(-self._used)
        self._used = 0
        if self._own:
            self._spool.close()

    # writing --------------------------------------------------------------------------------------------------------

    def add(self, codes: Sequence[NDArray[Any]] | Codes, records: int) -> None:
        """Keep a block of so many records; where there is no room for it keep none."""
        rows = len(codes)
        if self._failed or not records:
            return
        kept: Codes | _Bytes | int
        if (room := self._room(rows * apart(records) * 8, self._spool.memory * _DOUBLES)) is not None:
            kept = doubles_of(room.view(np.float64), rows, records)
            for own, row in zip(kept, codes, strict=True):
                own[:] = row
            kept.setflags(write=False)
        elif (room := self._room(self._packing.bytes(records), self._spool.memory)) is not None:
            kept = self._packing.pack(codes, records, room)
        else:
            packed = self._packing.pack(codes, records)
            with self._lock:
                if self._ended:
                    return
                try:
                    kept = self._spool.write(packed)
                except (OSError, ValueError):  # a full disk, a folder that is not there, a file that a limit closed
                    self._failed = True
                    return
        with self._lock:
            if not self._ended:
                self._blocks.append((records, kept))

    def _room(self, size: int, most: float) -> _Bytes | None:
        """So many bytes that begin at a line of the cache, while no more than `most` are used; None when there is no more."""
        with self._lock:
            if self._ended or not self._spool.take(size, most):
                return None
            self._used += size
            if self._free + size > len(self._slab):
                self._slab = np.empty(max(_SLAB, size + 64), dtype=np.uint8)
                self._free = -self._slab.ctypes.data % 64
            start = self._free
            self._free += -(-size // 64) * 64
            return self._slab[start : start + size]

    def change(self, rows: Mapping[str, str], code: Callable[[str, Codes], Codes], threads: int) -> bool:
        """Codes of columns in the place of kept values; False where the file could not be written. rows: former and new names."""
        made = self._packing.renamed([rows.get(row, row) for row in self.rows])
        changed = [(at, rows[row]) for at, row in enumerate(self.rows) if row in rows]

        def change(place: int) -> None:
            records, kept = cast("tuple[int, Any]", self._blocks[place])
            own = self.coder(records)(Block(records, [kept, place]))
            own.setflags(write=True)
            with np.errstate(all="ignore"):
                for at, name in changed:
                    own[at] = code(name, own[at])
            own.setflags(write=False)
            if isinstance(kept, int):
                self._spool.write(made.pack(own, records), kept)
            elif kept.dtype != np.float64:
                made.pack(own, records, kept)

        with ThreadPoolExecutor(threads, thread_name_prefix="confide") as pool:
            try:
                list(pool.map(change, range(len(self._blocks))))
            except (OSError, ValueError, SourceError):
                return False
        self._packing = made
        return True

    def places(self) -> list[tuple[int, int]] | None:
        """The records of each block and where in the file it begins; None where some lie in memory."""
        found = [(records, kept) for records, kept in self._blocks if isinstance(kept, int)]
        return found if len(found) == len(self._blocks) else None

    def lie_at(self, places: Sequence[tuple[int, int]]) -> None:
        """Blocks that lie in the spool's file already."""
        self._blocks = list(places)

    def finish(self) -> bool:
        """Whether all blocks of the pass that ended are kept; if not, none is."""
        if self._failed:
            self._reset()
            return False
        return True

    def drop(self, *, for_good: bool = False) -> None:
        """Forget everything; for_good: and take no more blocks."""
        with self._lock:
            self._ended |= for_good
            self._reset()

    # reading --------------------------------------------------------------------------------------------------------

    @property
    def rows(self) -> tuple[str, ...]:
        return self._packing.rows

    @property
    def parts(self) -> Sequence[Part]:
        return (self,)

    def kind(self, name: str) -> Any:
        return None

    def verify(self) -> None:
        """Nothing to compare: nobody else can change what is kept."""

    def count(self) -> int:
        return sum(records for records, _ in self._blocks)

    def pieces(self, names: Sequence[str]) -> Iterator[Piece]:
        for place, (records, block) in enumerate(list(self._blocks)):
            yield Piece(self.place, partial(self._block, records, block, place))

    def _block(self, records: int, block: Codes | _Bytes | int, place: int, rows: int) -> Iterator[Block]:
        yield Block(records, [block, place])

    def begun(self, block: Block, begins: Beginning, codes: Codes) -> Any:
        """What a beginning gives for the codes of a block. One that stays is kept with the codes while there is memory."""
        if not begins.stays:
            return begins(codes)
        stays: Any = begins
        place = block.columns[1]
        before = self._results.get(place)
        found = None if before is None else stays.after(*before, codes)
        if found is not None:
            return found
        room = None if before else self._room(stays.rows * apart(block.rows) * 8, self._spool.memory)
        if room is None:
            return begins(codes)
        found = stays(codes, doubles_of(room.view(np.float64), stays.rows, block.rows))
        with self._lock:
            if not self._ended:
                self._results[place] = begins, found
        return found

    def coder(self, block_rows: int) -> Callable[[Block], Codes]:
        """Reads and unpacks blocks into one room of this thread."""
        room = Room(len(self.rows), block_rows)
        read = np.empty(0, dtype=np.uint8)

        def codes(block: Block) -> Codes:
            nonlocal read
            packed = block.columns[0]
            if isinstance(packed, np.ndarray) and packed.dtype == np.float64:
                return packed
            if isinstance(packed, int):
                size = self._packing.bytes(block.rows)
                if len(read) < size:
                    read = np.empty(size, dtype=np.uint8)
                packed = guarded(
                    "codes in a temporary file could not be read again",
                    partial(self._spool.read, packed, read[:size]),
                )
            return self._packing.unpack(packed, room.block(block.rows))

        return codes
