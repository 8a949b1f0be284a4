"""Other people's code on blocks of records: one process for each block, of which nothing comes back but an array of public shape.

One record is in one block. For a DP choice among what the blocks give (medians, votes) it must move one block's answer and no
other's, whatever the code does. Neither an exception nor the time taken may tell of it. So

- a block is worked on in a separate process, forked from a small server. That server was forked after all imports and before the
  records were read from their file: it holds the code, its own block and no other. Records that the caller has in memory already, a
  data frame, are there as well, and code must not reach for them. Standard input, output and error and every other file that was open
  lead nowhere;
- blocks run in waves of `jobs`, each wave at its place in a timetable that is fixed beforehand. At the end of its wave a block is
  killed with all that it started, and the next wave does not begin before its time. So the run takes `seconds` in every case, to the
  processor's pace, where a tenth of a block's time is enough to end it. Give each block a tenth of a second or more. No more blocks run
  side by side than there are processors, and on Linux each has its own, with all that it starts. A block that hangs, or starts a
  hundred others, takes no time from another one;
- on Linux the caller is not told what processor time and memory the blocks took (`getrusage`, the shell's `time`). Anyone who keeps the
  system's own accounts, of a control group or a batch job, sees it;
- a block has its own temporary folder (TMPDIR, and where `tempfile` and joblib write), and what it makes is readable by its owner
  alone. The folders are removed when the run is over, by a process that no one waits for: how much is in them must take no time;
- each of a block's processes may map `memory` MB beyond what the server had. Where the machine itself runs out, a block is ended before
  the caller; it may be another one, so that there must be `jobs` times as much;
- a block that raises, is killed, or leaves anything but finite numbers of the shape asked for counts as the public `fallback`; numbers
  are clipped to [low, high].

It holds code with faults, not code that attacks. All blocks run as the same user, so that one that looks for another's files,
writes some elsewhere or opens connections can still carry records away. One that is run by the administrator can do anything. Code that
keeps what it found under a fixed name, a cache for the next call, does the same without meaning to: one block's numbers become
another's. Code that has not been read belongs in a container without a network.

On simulated records code on blocks needs no processes. Within `in_place`, of the audit and of tests, it runs in the caller's process
and without a clock. The numbers equal those from processes on a machine of any pace, but no block is kept apart, and how long it takes
can be seen. Within `fallbacks_only`, of the gate's rehearsal, it does not run at all, and each block says its fallback: the plan has
tried the code separately (`record_block.BlockWork.rehearse`). A switch holds for the thread that sets it; a release in another one has
its processes.
"""

from __future__ import annotations

import ctypes
import gc
import hashlib
import io
import os
import random
import select
import shutil
import signal
import socket
import struct
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, redirect_stderr, redirect_stdout, suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from math import ceil, prod
from pathlib import Path
from time import monotonic, sleep
from typing import Any, NoReturn, Self

import numpy as np
from threadpoolctl import threadpool_limits

from confide._arrays import Array
from confide._helpers import QUIET
from confide.errors import PlanError, ReleaseError
from confide.guarantees.validation import is_finite, is_whole

#: What is run on a block: (table of the block, its own generator) -> numbers.
Work = Callable[[Array, np.random.Generator], Any]
#: Is told (waves done, waves).
Progress = Callable[[int, int], None]

# Of the server's answer to a start, an end; of what a block finds before its numbers, and leaves before its answer.
_START, _END = b"s", b"e"
_HEAD = struct.Struct("<QQ16s")
_DONE = b"\x01"
# The part of a wave's time in which its blocks run; in the rest they are ended.
_RUNNING = 0.9
# Of Linux: PR_SET_CHILD_SUBREAPER, PR_SET_DUMPABLE.
_SUBREAPER, _DUMPABLE = 36, 4
_LISTED = Path("/proc/thread-self/children")
_PATIENCE = 10.0  # seconds for the server to end what it started
_SAID = 4_000  # bytes of an error's message, less than a pipe holds


@dataclass(frozen=True)
class Answers:
    """What a block may say: finite numbers of `shape`, clipped to [low, high]; `fallback` instead of anything else. All public.

    low, high, fallback: a number, or an array that fits the shape.
    """

    shape: tuple[int, ...]
    low: Any
    high: Any
    fallback: Any

    def read(self, left: bytes) -> Array:
        """The answer in what a block left: a mark, then doubles."""
        size = prod(self.shape)
        found = np.broadcast_to(np.asarray(self.fallback, dtype=np.float64), self.shape)
        if left[:1] == _DONE and len(left) == 1 + 8 * size:
            own = np.frombuffer(left, dtype=np.float64, offset=1).reshape(self.shape)
            found = own if bool(np.isfinite(own).all()) else found
        return np.asarray(np.clip(found, self.low, self.high), dtype=np.float64)


@dataclass(frozen=True)
class Room:
    """What all blocks together may take: public, and taken in full.

    seconds: wall-clock time of all blocks together; memory: MB of each, beyond what is loaded already; jobs: blocks that run side by side.

    >>> room = Room(60, jobs=2)
    >>> room.waves(25), round(room.each(25), 2)
    (13, 4.62)
    """

    seconds: float
    memory: int = 1_024
    jobs: int = 1

    def __post_init__(self) -> None:
        if not is_finite(self.seconds) or not 0 < self.seconds <= 1e7:
            raise PlanError(
                f"seconds must be a number above 0, the time for all blocks together, got {self.seconds!r}; it is taken in full: seconds=60"
            )
        for name, value in (("memory", self.memory), ("jobs", self.jobs)):
            if not is_whole(value, 1):
                raise PlanError(f"{name} must be a whole number of at least 1, got {value!r}")
        if not hasattr(os, "fork"):
            raise PlanError(
                "blocks are worked on in forked processes, which this system does not have", "run it on Linux or macOS"
            )

    def waves(self, blocks: int) -> int:
        """How many times `jobs` blocks run."""
        return max(ceil(blocks / self.jobs), 1)

    def each(self, blocks: int) -> float:
        """Seconds that a block may take."""
        return self.seconds / self.waves(blocks)

    def running(self, blocks: int) -> float:
        """Of these, in how many its code runs: in the rest blocks are ended."""
        return _RUNNING * self.each(blocks)

    @property
    def here(self) -> Room:
        """As this machine has it: no more side by side than processors, where one that works hard would make another one late."""
        return replace(self, jobs=min(self.jobs, len(_processors())))


def tried(work: Callable[[], Any], room: Room) -> str:
    """How a piece of work on test data ends, in a separate process with a block's memory and all of the room's seconds.

    Empty where it ends well; else words such as "raises KeyError: 'theta'". What hangs, crashes or wants more memory than it may have
    does so there and not in the caller. The words say what the work says: hand it public data alone.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    heard, said = os.pipe()
    child = os.fork()
    if child == 0:
        _try(work, room, said)
    os.close(said)
    try:
        ended = bool(select.select([heard], [], [], room.seconds)[0])
        word = os.read(heard, 1 + _SAID) if ended else b""
    finally:
        os.close(heard)
        for kill in (os.killpg, os.kill):
            with suppress(ProcessLookupError, PermissionError):
                kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    if not ended:
        return f"did not end within {room.seconds:g} s"
    return word[1:].decode("utf-8", "replace") if word[:1] == _DONE else "ends the process that it runs in"


def _try(work: Callable[[], Any], room: Room, said: int) -> NoReturn:
    """The process of `tried`. Never returns."""
    try:
        os.setsid()
        nowhere = os.open(os.devnull, os.O_RDWR)
        for standard in range(3):
            os.dup2(nowhere, standard)
        _limit_memory(room.memory << 20)
        try:
            work()
            word = ""
        except Exception as error:
            word = f"raises {type(error).__name__}: {error}"
        os.write(said, _DONE + word.encode("utf-8", "replace")[:_SAID])
    finally:
        os._exit(0)


class Isolated:
    """A server of processes for one piece of work: `with Isolated(work, answers, room) as workers:`, then `workers.run(tables, key)`.

    Enter it before the records are read. Raises `ReleaseError` where the server itself does not run on.
    """

    def __init__(self, work: Work, answers: Answers, room: Room, progress: Progress | None = None) -> None:
        self._work, self._answers, self._room, self._progress = work, answers, room.here, progress

    def __enter__(self) -> Isolated:
        self._line, other = socket.socketpair()
        sys.stdout.flush()
        sys.stderr.flush()
        self._server = os.fork()
        if self._server == 0:
            self._line.close()
            _serve(other, self._work, self._answers, self._room)
        other.close()
        return self

    def __exit__(self, *_: object) -> None:
        self._line.close()  # at which the server ends all blocks, and itself
        latest = monotonic() + _PATIENCE
        while os.waitpid(self._server, os.WNOHANG)[0] == 0:
            if monotonic() > latest:
                os.kill(self._server, signal.SIGKILL)
            sleep(0.001)

    def run(self, tables: Sequence[Array], key: bytes) -> Array:
        """One answer for each table, (blocks, *shape); it takes the room's seconds. key: what the blocks' generators depend on."""
        waves, each = self._room.waves(len(tables)), self._room.each(len(tables))
        start, found = monotonic(), []
        for wave in range(waves):
            # a block that takes long to be ended makes the next wave late, and its blocks have their full time all the same
            begun, first = monotonic(), wave * self._room.jobs
            mine = tables[first : first + self._room.jobs]
            files = [self._begin(table, key, first + i) for i, table in enumerate(mine)]
            _until(begun + _RUNNING * each)
            self._ask(_END)
            found += [self._answer(file) for file in files]
            _until(start + (wave + 1) * each)
            if self._progress is not None:
                with suppress(Exception):  # a fault of whoever is told must not lose what was paid for
                    self._progress(wave + 1, waves)
        return np.array(found).reshape(len(tables), *self._answers.shape)

    def _begin(self, table: Array, key: bytes, place: int) -> int:
        """Start one block; the file in which it leaves its answer."""
        rows = np.ascontiguousarray(table, dtype=np.float64)
        given, left = _nameless(), _nameless()
        with os.fdopen(os.dup(given), "wb") as file:
            file.write(_HEAD.pack(*rows.shape, _own(key, place)))
            file.write(rows.tobytes())
        os.lseek(given, 0, os.SEEK_SET)
        self._ask(_START, given, left)
        os.close(given)
        return left

    def _answer(self, file: int) -> Array:
        """What a block left; every process that could write to it has ended."""
        size = 1 + 8 * prod(self._answers.shape)
        os.lseek(file, 0, os.SEEK_SET)
        with os.fdopen(file, "rb") as left:
            return self._answers.read(left.read(size))

    def _ask(self, what: bytes, *files: int) -> None:
        """Tell the server, and wait for its word."""
        try:
            socket.send_fds(self._line, [what], list(files))
            heard = self._line.recv(1)
        except OSError:
            heard = b""
        if heard != what:
            raise ReleaseError("the server of the blocks' processes stopped")


@dataclass(frozen=True)
class InProcess:
    """`Isolated` without processes: generators, fallbacks and global seeds are the same, memory and time are not looked at."""

    work: Work
    answers: Answers
    room: Room
    progress: Progress | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing was started."""

    def run(self, tables: Sequence[Array], key: bytes) -> Array:
        """One answer for each table, (blocks, *shape)."""
        with silenced():
            found = [self._answer(table, _own(key, place)) for place, table in enumerate(tables)]
        return np.array(found).reshape(len(tables), *self.answers.shape)

    def _answer(self, table: Array, own: bytes) -> Array:
        left = b""
        with suppress(Exception):
            found = np.asarray(self.work(np.array(table, dtype=np.float64), seeded(own)), dtype=np.float64)
            left = _DONE + found.tobytes() if found.shape == self.answers.shape else b""
        return self.answers.read(left)


class FallbackOnly(InProcess):
    """`Isolated` without work: no block is worked on, and each says its fallback."""

    def _answer(self, table: Array, own: bytes) -> Array:
        return self.answers.read(b"")


_RUNNER: ContextVar[type[Isolated | InProcess]] = ContextVar("what runs blocks", default=Isolated)


def block_runner() -> type[Isolated | InProcess]:
    """What runs blocks: `Isolated`, or `InProcess` within `in_place`, `FallbackOnly` within `fallbacks_only`."""
    return _RUNNER.get()


@contextmanager
def _within(runner: type[InProcess]) -> Iterator[None]:
    token = _RUNNER.set(runner)
    try:
        yield
    finally:
        _RUNNER.reset(token)


def in_place() -> AbstractContextManager[None]:
    """No process is started and no time is waited out within."""
    return _within(InProcess)


def fallbacks_only() -> AbstractContextManager[None]:
    """No process is started, no time is waited out and no code of a caller is run on a block within: each block says its fallback."""
    return _within(FallbackOnly)


_SILENCE = threading.RLock()


@contextmanager
def silenced() -> Iterator[None]:
    """A caller's code that runs within prints and warns to nobody, and leaves the global generators as they were, as in a block.

    One thread at a time: output, filters and generators belong to the whole process, and the last to leave puts back what it found.
    """
    with _SILENCE:
        before, nowhere = (random.getstate(), np.random.get_state()), io.StringIO()  # noqa: NPY002
        try:
            with QUIET, redirect_stdout(nowhere), redirect_stderr(nowhere):
                yield
        finally:
            random.setstate(before[0])
            np.random.set_state(before[1])  # noqa: NPY002


def _own(key: bytes, place: int) -> bytes:
    """The 16 bytes that a block's generator depends on."""
    return hashlib.sha256(key + place.to_bytes(8, "little")).digest()[:16]


def _until(moment: float) -> None:
    while (left := moment - monotonic()) > 0:
        sleep(left)


def _nameless() -> int:
    """A file without a name, in memory where the system has that."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("confide")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def _processors() -> list[int]:
    """Those that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


# the server, and a block's process ------------------------------------------------------------------------------------


def _serve(line: socket.socket, work: Work, answers: Answers, room: Room) -> NoReturn:
    """Start and end blocks at the caller's word, until it goes away. Never returns."""
    started: list[int] = []
    folder, place = "", 0
    try:
        os.setsid()  # an interrupt from the keyboard is the caller's alone
        if _LISTED.exists():
            # the system then forgets what a child took, in place of adding it to this process's account and so to the caller's
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        os.umask(0o077)
        with suppress(OSError):
            folder = tempfile.mkdtemp(prefix="confide-")
        _told(_SUBREAPER, 1)
        # a limit of 0 on core files does not hold where the system pipes them to a program: a block that crashes leaves no image
        _told(_DUMPABLE, 0)
        gc.freeze()
        _nowhere_but(line.fileno())
        sys.stdin, sys.stdout, sys.stderr = (os.fdopen(at, mode) for at, mode in enumerate("rww"))
        # nobody would read them, and where the caller made them errors they would end every block
        warnings.simplefilter("ignore")
        with threadpool_limits(1):  # side by side, blocks would only compete
            while True:
                what, files, _, _ = socket.recv_fds(line, 1, 2)
                if what == _START:
                    with suppress(OSError):  # no process is to be had: the answer is the public one
                        child = os.fork()
                        if not child:
                            line.close()
                            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                            _own_folder(folder)
                            _own_processors(place, room.jobs)
                            _block(work, files[0], files[1], answers, room)
                        started.append(child)
                    place += 1
                    for file in files:
                        os.close(file)
                elif what == _END:
                    _end_all(started)
                    place = 0
                else:
                    break
                line.send(what)
    finally:
        _end_all(started)
        with suppress(OSError):
            if folder and not os.fork():
                shutil.rmtree(folder, ignore_errors=True)
        os._exit(0)


def _nowhere_but(kept: int) -> None:
    """Standard input, output and error, and all files that are open but one, lead nowhere.

    They are not closed. Some libraries hold their own pipe and close it where a process is forked (Arrow, once it has read a CSV file).
    They end a process in which it is gone, and so every block.
    """
    nowhere = os.open(os.devnull, os.O_RDWR)
    listed = next((folder for folder in map(Path, ("/proc/self/fd", "/dev/fd")) if folder.is_dir()), None)
    some = range(min(os.sysconf("SC_OPEN_MAX"), 1 << 16))
    known = some if listed is None else [int(entry.name) for entry in listed.iterdir()]
    for file in {0, 1, 2, *known} - {kept, nowhere}:
        with suppress(OSError):
            if file > 2:
                os.fstat(file)  # what is not open stays so
            os.dup2(nowhere, file, inheritable=file <= 2)
    if nowhere > 2:
        os.close(nowhere)


def _told(what: int, value: int) -> None:
    """`prctl`, where the system has it."""
    with suppress(Exception):
        ctypes.CDLL(None).prctl(what, value, 0, 0, 0)


def _first_to_go() -> None:
    """Where the machine runs out of memory the system ends a block, before the server and the caller."""
    _told(_DUMPABLE, 1)  # the file is the administrator's otherwise; no record is here yet
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")
    _told(_DUMPABLE, 0)


def _own_folder(folder: str) -> None:
    """A block's temporary folder; without one it goes on in the common one."""
    if folder:
        with suppress(OSError):
            own = tempfile.tempdir = tempfile.mkdtemp(dir=folder)
            os.environ["TMPDIR"] = os.environ["JOBLIB_TEMP_FOLDER"] = own


def _own_processors(place: int, jobs: int) -> None:
    """A block's share of the processors, by its place in the wave, for it and all that it starts."""
    if hasattr(os, "sched_setaffinity"):
        with suppress(OSError):
            os.sched_setaffinity(0, _processors()[place::jobs])


def _end_all(started: list[int]) -> None:
    """Kill all that was started, however deep, until there is nothing left to wait for."""
    with suppress(ChildProcessError):
        while True:
            for child in _children(started):
                for kill in (os.killpg, os.kill):
                    with suppress(ProcessLookupError, PermissionError):
                        kill(child, signal.SIGKILL)
            # the children of one that was killed are ours from here on
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                sleep(0.001)
    started.clear()


def _children(started: list[int]) -> list[int]:
    """This process's own and inherited children; where the system does not list them, those that were started."""
    with suppress(OSError):
        return [int(child) for child in _LISTED.read_text().split()]
    return started


def _block(work: Work, given: int, left: int, answers: Answers, room: Room) -> NoReturn:
    """Work on one block and leave its answer. Never returns."""
    try:
        os.setsid()  # of its own, for which some systems share out the processors
        _first_to_go()
        with os.fdopen(given, "rb") as file:
            rows, columns, own = _HEAD.unpack(file.read(_HEAD.size))
            table = np.frombuffer(bytearray(file.read()), dtype=np.float64).reshape(rows, columns)
        _limit_memory(room.memory << 20)
        found = np.ascontiguousarray(work(table, seeded(own)), dtype=np.float64)
        if found.shape == answers.shape:
            os.pwrite(left, found.tobytes(), 1)
            os.pwrite(left, _DONE, 0)
    finally:
        os._exit(0)


def seeded(own: bytes) -> np.random.Generator:
    """A block's generator, from its own 16 bytes; code that asks for none has a sequence of the block's too."""
    generator = np.random.default_rng(int.from_bytes(own, "little"))
    np.random.seed(int(generator.integers(1 << 32)))  # noqa: NPY002
    random.seed(int(generator.integers(1 << 62)))
    return generator


def _limit_memory(more: int) -> None:
    """At most so many bytes of address space beyond those in use."""
    import resource

    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        most = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE") + more
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
