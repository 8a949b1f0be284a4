"""Code on blocks run here and without a clock: the same numbers as in its processes, on a machine of any pace.

For practice records alone, of the audit and of tests: no process keeps a block apart, and how long it takes can be seen. The switch holds
for the thread that sets it; a release in another one has its processes.
"""

from __future__ import annotations

import hashlib
import io
import random
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import numpy as np

from confide._arrays import Array
from confide.aggregates.isolation.isolated import Answers, Isolated, Room, Work, seeded, tried

__all__ = ["in_place", "rehearsed", "runner"]


_SWITCH = ContextVar("blocks in place", default=False)


@contextmanager
def in_place() -> Iterator[None]:
    """No process is started and no time is waited out within."""
    token = _SWITCH.set(True)
    try:
        yield
    finally:
        _SWITCH.reset(token)


def runner(
    work: Work, answers: Answers, room: Room, progress: Callable[[int, int], None] | None = None
) -> Isolated | Here:
    """What runs blocks: processes, or this one within `in_place`."""
    return Here(work, answers) if _SWITCH.get() else Isolated(work, answers, room, progress)


def rehearsed(work: Callable[[], Any], room: Room) -> str:
    """How work on practice records ends (`tried`); nothing is tried beforehand within `in_place`, and it is empty there."""
    return "" if _SWITCH.get() else tried(work, room)


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
        before = random.getstate(), np.random.get_state()  # noqa: NPY002
        try:
            found = [
                self._answer(table, hashlib.sha256(key + place.to_bytes(8, "little")).digest()[:16])
                for place, table in enumerate(tables)
            ]
        finally:
            random.setstate(before[0])
            np.random.set_state(before[1])  # noqa: NPY002
        return np.array(found).reshape(len(tables), *self.answers.shape)

    def _answer(self, table: Array, own: bytes) -> Array:
        generator, nowhere = seeded(own), io.StringIO()
        try:
            with warnings.catch_warnings(action="ignore"), redirect_stdout(nowhere), redirect_stderr(nowhere):
                found = np.asarray(self.work(np.array(table, dtype=np.float64), generator), dtype=np.float64)
            left = b"\x01" + found.tobytes() if found.shape == self.answers.shape else b""
        except Exception:
            left = b""
        return self.answers.read(left)
