"""Several draws over one source in lock step: whatever they ask of the records at the same time is one pass.

Each draw runs in a thread of its own, but only one at a time: it goes on until it asks for sums or ends, then the next one does. When all
that are left wait for sums, these are added up in one pass and handed out. So the order of all draws is fixed, and the number of passes is
that of the draw with the most, not the sum.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextvars import copy_context
from dataclasses import dataclass
from threading import Semaphore, Thread
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.protocol.source import Behind, Source
from confide.protocol.statistic import Statistic

__all__ = ["Outcome", "in_rounds"]

Sums = tuple[NDArray[Any], ...]


@dataclass(frozen=True)
class Outcome:
    """What a draw returned, or that it raised: of the error nothing is kept, for its words may come from records."""

    value: Any = None
    failed: bool = False


def in_rounds(source: Source, draws: Mapping[str, Callable[[Source], Any]]) -> dict[str, Outcome]:
    """Run draws, each of which is handed a source, and say how each ended. What a pass over the records raises ends all of them."""
    running = {name: _Running(draw, source) for name, draw in draws.items()}
    try:
        for one in running.values():
            one.start()
        while waiting := [one for one in running.values() if one.asked is not None]:
            _hand_out(source, waiting)
            for one in waiting:
                one.go_on()
    finally:
        for one in running.values():
            one.stop()
    return {name: one.outcome for name, one in running.items()}


def _hand_out(source: Source, waiting: Sequence[_Running]) -> None:
    """One pass for all that was asked; what several ask alike is added up once, and each is given numbers of its own."""
    wanted: list[Statistic] = []
    places = []
    for one in waiting:
        own = []
        for statistic in one.asked or ():
            place = next((i for i, known in enumerate(wanted) if _same(known, statistic)), len(wanted))
            if place == len(wanted):
                wanted.append(statistic)
            own.append(place)
        places.append(own)
    sums = source.aggregate(*wanted)
    for one, own in zip(waiting, places, strict=True):
        one.given = tuple(np.array(sums[place], copy=True) for place in own)


def _same(one: Statistic, other: Statistic) -> bool:
    """Whether two statistics are the same sums: one object, or equal in every field that tells objects of their class apart."""
    if one is other:
        return True
    if type(one) is not type(other) or one.map.digest != other.map.digest:
        return False
    try:
        return bool(one == other)
    except Exception:  # fields without a truth value, such as arrays
        return False


class _Stopped(BaseException):
    """Ends a draw that nobody waits for any more."""


class _Running:
    """One draw in a thread, and the source that it is handed."""

    def __init__(self, draw: Callable[[Source], Any], source: Source) -> None:
        self._draw, self._source = draw, source
        self._turn, self._back = Semaphore(0), Semaphore(0)
        self._stopped = False
        self.asked: tuple[Statistic, ...] | None = None
        self.given: Sums = ()
        self.outcome = Outcome(failed=True)
        # what numpy and others keep by context, such as how they treat a division by zero, holds inside as outside
        self._thread = Thread(target=copy_context().run, args=(self._run,), name="confide-draw", daemon=True)

    # seen from outside ----------------------------------------------------------------------------------------------

    def start(self) -> None:
        self._thread.start()
        self._back.acquire()

    def go_on(self) -> None:
        self.asked = None
        self._turn.release()
        self._back.acquire()

    def stop(self) -> None:
        self._stopped = True
        self._turn.release()
        if self._thread.ident is not None and self.asked is not None:
            self._thread.join()

    # seen from the draw ---------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            self.outcome = Outcome(self._draw(_Shared(self, self._source)))
        except BaseException:  # a panic of a compiled library is no Exception
            self.outcome = Outcome(failed=True)
        finally:
            self._back.release()

    def ask(self, statistics: tuple[Statistic, ...]) -> Sums:
        self.asked = statistics
        self._back.release()
        self._turn.acquire()
        if self._stopped:
            raise _Stopped
        return self.given


class _Shared(Behind):
    """The source of one draw among several."""

    def __init__(self, own: _Running, source: Source) -> None:
        super().__init__(source)
        self._own = own

    def aggregate(self, *statistics: Statistic) -> Sums:
        return self._own.ask(statistics)
