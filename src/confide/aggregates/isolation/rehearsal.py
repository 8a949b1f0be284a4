"""Code on blocks tried by the plan, before anything is charged: on practice records, which are public, and with a block's limits.

On records code that raises, hangs, crashes, is late or says what is no number counts as the public fallback, and nobody is told. On
practice records all of it can be told in full. It is tried in a process of its own first, as what hangs, crashes or takes all memory does
so there, and then here, so that what it imports is loaded before blocks are forked; here its time is taken.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from time import monotonic

import numpy as np

from confide._arrays import Array
from confide.aggregates.isolation.in_place import unheard, worked_on
from confide.aggregates.isolation.isolated import Answers, Room, Work, seeded, tried
from confide.errors import PlanError

__all__ = ["rehearsed"]


_LEAST_SECONDS = 0.1  # of a block: what starting and ending its process takes (`isolated`)
_PRACTICE = 200  # practice records of a block, where the number of records is not known


def rehearsed(
    work: Work,
    practice: Callable[[int], Array],
    k: int,
    n: int | None,
    *,
    answers: Answers,
    room: Room,
    who: str = "the code on blocks",
    blocks: str = "blocks",
    given: str = "",
    must: str = "",
    instead: str = "the fallback is taken",
) -> str:
    """What the plan says of the time that blocks take; `PlanError` where `work` on a practice table of a block's size ends badly.

    work, k, answers, room: as `shards.blocks` is handed them; practice: so many practice records -> their table (records, columns); n: of
    all records, where it is known. In words: who and blocks, what the code and its blocks are called; given: what the table is; must: what
    the code has to give; instead: what becomes of a block that fails.

    Within `in_place` no process is started and time is not looked at; within `fallbacks` nothing is tried.
    """
    size = _PRACTICE if n is None else max(n // k, 1)
    where, here, took = worked_on(), room.here, 0.0
    if where == "processes" and here.each(k) < _LEAST_SECONDS:
        raise PlanError(
            f"seconds={room.seconds:g} leave each of {k} {blocks} {here.each(k):.2g} s, and to start and end its process takes up to "
            f"{_LEAST_SECONDS:g} s: write seconds={ceil(2 * _LEAST_SECONDS * here.waves(k))}, fewer {blocks}, or more jobs on as many "
            f"processors (here {here.jobs})"
        )
    if where != "nowhere":
        ends, took = _ends(work, practice(size), answers, room, apart=where == "processes")
        if ends:
            wanted = must or f"it must give finite numbers of the shape {answers.shape}"
            raise PlanError(
                f"{who} {ends}, on {size} practice records{given} (public, from the schema alone; seconds={room.seconds:g}, "
                f"memory={room.memory} MB); on records nobody would be told, and {instead}: {wanted}"
            )
    if where == "processes" and took > here.running(k):
        raise PlanError(
            f"{who} took {took:.2g} s on practice records of one block's size, and a block has {here.running(k):.2g} s: write "
            f"seconds={int(2 * took * here.waves(k)) + 1}, or more jobs on as many processors (here {here.jobs})"
        )
    guessed = " (n= says how many a block has)" if n is None else ""
    return (
        f"takes {room.seconds:g} s in every case: {k} {blocks}, {room.jobs} side by side, {room.each(k):.3g} s each; {size} practice "
        f"records{guessed} took {took:.2g} s"
    )


def _ends(work: Work, table: Array, answers: Answers, room: Room, *, apart: bool) -> tuple[str, float]:
    """How the work ends, empty where it ends well, and its seconds."""

    def once() -> Array:
        return np.asarray(work(table.copy(), seeded(bytes(16))), dtype=np.float64)

    ends, took = "", []
    with unheard():
        if apart and (ends := tried(once, room)):
            return ends, 0.0
        try:
            for _ in range(2 if apart else 1):
                start = monotonic()
                found = once()
                took.append(monotonic() - start)
        except Exception as error:
            return f"raises {type(error).__name__}: {error}", 0.0
    if found.shape != answers.shape:
        return f"gives numbers of the shape {found.shape}, where {answers.shape} is asked for", 0.0
    return "" if np.isfinite(found).all() else "gives numbers that are not finite", min(took)
