"""Code on blocks without its processes: run here and without a clock, or not run at all.

For simulated records alone. Within `in_place`, of the audit and of tests, the numbers are those of the processes, on a machine of any pace:
none keeps a block apart, and how long it takes can be seen. Within `fallbacks`, of the gate's rehearsal, no code of a caller runs, and each
block says its fallback: the code itself was tried by the plan (`rehearsal`). A switch holds for the thread that sets it; a release in
another one has its processes.
"""

from __future__ import annotations

import hashlib
import io
import random
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, redirect_stderr, redirect_stdout
from contextvars import ContextVar
from dataclasses import dataclass

import numpy as np

from confide._arrays import Array
from confide.aggregates.isolation.isolated import Answers, Isolated, Room, Work, seeded

__all__ = ["fallbacks", "in_place", "runner", "unheard", "worked_on"]


# Where blocks are worked on: in processes, here, or nowhere.
_WHERE = ContextVar("where blocks are worked on", default="processes")


def worked_on() -> str:
    """Where blocks are worked on: "processes", "here" within `in_place`, "nowhere" within `fallbacks`."""
    return _WHERE.get()


@contextmanager
def _within(where: str) -> Iterator[None]:
    token = _WHERE.set(where)
    try:
        yield
    finally:
        _WHERE.reset(token)


def in_place() -> AbstractContextManager[None]:
    """No process is started and no time is waited out within."""
    return _within("here")


def fallbacks() -> AbstractContextManager[None]:
    """No process is started, no time is waited out and no code of a caller is run within: each block says its fallback."""
    return _within("nowhere")


def runner(
    work: Work, answers: Answers, room: Room, progress: Callable[[int, int], None] | None = None
) -> Isolated | Here | Nowhere:
    """What runs blocks: processes, this one within `in_place`, nothing within `fallbacks`."""
    match worked_on():
        case "here":
            return Here(work, answers)
        case "nowhere":
            return Nowhere(answers)
    return Isolated(work, answers, room, progress)


@contextmanager
def unheard() -> Iterator[None]:
    """A caller's code that runs within prints and warns to nobody, and leaves the global generators as they were, as in a block."""
    before, nowhere = (random.getstate(), np.random.get_state()), io.StringIO()  # noqa: NPY002
    try:
        with warnings.catch_warnings(action="ignore"), redirect_stdout(nowhere), redirect_stderr(nowhere):
            yield
    finally:
        random.setstate(before[0])
        np.random.set_state(before[1])  # noqa: NPY002


@dataclass(frozen=True)
class Here:
    """`Isolated` without processes: generators, fallbacks and global seeds are the same, memory and time are not looked at."""

    work: Work
    answers: Answers

    def __enter__(self) -> Here:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing was started."""

    def run(self, tables: Sequence[Array], key: bytes) -> Array:
        """One answer for each table, (blocks, *shape)."""
        with unheard():
            found = [
                self._answer(table, hashlib.sha256(key + place.to_bytes(8, "little")).digest()[:16])
                for place, table in enumerate(tables)
            ]
        return np.array(found).reshape(len(tables), *self.answers.shape)

    def _answer(self, table: Array, own: bytes) -> Array:
        try:
            found = np.asarray(self.work(np.array(table, dtype=np.float64), seeded(own)), dtype=np.float64)
            left = b"\x01" + found.tobytes() if found.shape == self.answers.shape else b""
        except Exception:
            left = b""
        return self.answers.read(left)


@dataclass(frozen=True)
class Nowhere:
    """`Isolated` without blocks: none is worked on."""

    answers: Answers

    def __enter__(self) -> Nowhere:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing was started."""

    def run(self, tables: Sequence[Array], key: bytes) -> Array:
        """The fallback for each table, (blocks, *shape)."""
        return np.array([self.answers.read(b"") for _ in tables]).reshape(len(tables), *self.answers.shape)
