"""Passes on Dask: one task for each portion; workers read files themselves, and keep codes until the release ends.

A worker that dies is replaced by others, which read again what it held. A task that ran twice has one result.
Whatever Dask gives up is an error after the charge, and so are a scheduler that does not answer and a cluster without
workers, within a minute. Codes of records are kept as `executors.kept` says; those of whole units lie in the memory of
workers, and in their own spill folders where Dask puts them there.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import count
from secrets import token_hex
from typing import Any

from confide.errors import SourceError
from confide.sources.coding import Part
from confide.sources.executors.kept import Keeping, KeptPortion
from confide.sources.executors.worker import FAILED, Coding, Portion, UnitGroup, Work, bounded, dealt, masked, portions
from confide.sources.grouping.sampling import Keep

#: Seconds for which a scheduler is looked for, and for which one may have no worker.
_WAIT = 20
# A clustering pass has as many tasks as there are portions times groups: at a millisecond each, some seconds at most.
_PORTIONS, _GROUPS = 128, 64
# Of a pass over records: some for each thread, so that none waits long for the last one, and more where the cluster may still grow.
_EACH, _FEWEST, _MOST = 16, 64, 1024
#: Seconds for which a pass may have no worker, or a scheduler may not answer, and those after which it is asked whether it has any.
_LOST, _ASK = 60.0, 2.0
# Between two looks at what is done: short at first, because passes over few records take milliseconds.
_SHORTEST, _LONGEST = 0.002, 0.05


class Dask:
    """Dask's distributed scheduler. client: of `distributed`."""

    name = "Dask"

    def __init__(self, client: Any) -> None:
        self._client = client

    @classmethod
    def at(cls, address: str) -> Dask:
        """ "dask://host:8786", a scheduler; "dask://", two workers of this machine, for trying out."""
        try:
            from distributed import Client
        except ImportError:
            raise SourceError("Dask is not installed", "run: pip install 'confide[dask]'") from None
        place = address.removeprefix("dask://")
        try:
            if place:
                return cls(Client(f"tcp://{place}", timeout=_WAIT, set_as_default=False))
            return cls(Client(n_workers=2, threads_per_worker=1, dashboard_address=None, set_as_default=False))
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException:  # its words have the address, and what stands in it
            pass
        raise SourceError(
            "no Dask scheduler answers at that address",
            'write executor="dask://host:8786" (in Python also a distributed.Client)',
        )

    def takes(self, part: Part) -> bool:
        return part.travels

    def placed(self, parts: Sequence[Part]) -> list[Any]:
        # without a worker a task would wait for ever
        self._client.wait_for_workers(1, timeout=_WAIT)
        most = min(max(_EACH * sum(self._threads().values()), _FEWEST), _MOST)
        return list(portions(parts, most))

    def size(self, records: list[Any]) -> int:
        return len(records)

    def kept(self, records: list[Any], keeping: Keeping) -> list[Any]:
        return self._mapped(partial(KeptPortion, keeping=keeping), [records])

    def run(self, records: list[Any], work: Work) -> Iterator[str]:
        from distributed import as_completed

        tasks = self._mapped(work, [range(len(records)), records])
        found = as_completed(tasks, loop=self._client.loop, with_results=True)
        try:
            there = asked = time.monotonic()
            pause = _SHORTEST
            while found.count():
                done = found.next_batch(block=False)
                for task, document in done:
                    if task.status != "finished":
                        raise SourceError(FAILED)
                    yield document
                now = time.monotonic()
                if done:
                    there, asked, pause = now, now, _SHORTEST
                    continue
                if now - asked > _ASK:
                    asked = now
                    if self._threads():
                        there = now
                    elif now - there > _LOST:
                        raise SourceError(FAILED)
                time.sleep(pause)
                pause = min(2 * pause, _LONGEST)
        finally:
            found.clear()
            self.dropped(tasks)

    def _threads(self) -> dict[str, int]:
        """The workers and how many threads each has. Raises where the scheduler does not answer."""
        client = self._client
        threads: dict[str, int] = client.sync(client.scheduler.ncores, workers=None, callback_timeout=_WAIT)
        return threads

    def grouped(self, records: list[Any], coding: Coding, rule: Keep) -> list[Any]:
        if coding.column is None:
            return self._submitted(_alone, [(one, coding, rule) for one in records])
        coarse = _coarser(records, _PORTIONS)
        groups = min(max(4 * len(self._threads()), len(coarse), 2), _GROUPS)
        split = self._submitted(_dealt, [(one, coding, groups) for one in coarse])
        own = [self._submitted(_group_of, [(one, label) for one in split]) for label in range(groups)]
        return self._submitted(_bounded, [(label, groups, own[label], coding.rows, rule) for label in range(groups)])

    def dropped(self, records: list[Any]) -> None:
        for one in records:
            if hasattr(one, "release"):
                with suppress(Exception):
                    one.release()

    def _mapped(self, function: Any, arguments: Sequence[Sequence[Any]]) -> list[Any]:
        run = token_hex(8)
        keys = [f"confide-{run}-{number}" for number in range(len(arguments[0]))]
        tasks: list[Any] = self._client.map(function, *arguments, key=keys, pure=False, retries=2)
        return tasks

    def _submitted(self, function: Any, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        # a key of its own for each: Dask would hand an earlier result to a task that looks the same
        run, number = token_hex(8), count()
        return [
            self._client.submit(function, *one, key=f"confide-{run}-{next(number)}", pure=False, retries=2)
            for one in arguments
        ]


def _coarser(records: list[Portion], most: int) -> list[tuple[Portion, ...]]:
    """At most so many lists of portions."""
    return [tuple(records[at::most]) for at in range(min(most, len(records)))]


# What fails on a worker is written into its log and told to the scheduler: in fixed words.
def _alone(portion: Portion, coding: Coding, rule: Keep) -> UnitGroup:
    own = masked(partial(dealt, portion, coding, 1))
    return masked(partial(bounded, 0, 1, own, coding.rows, rule))


def _dealt(several: tuple[Portion, ...], coding: Coding, groups: int) -> list[list[Any]]:
    parts = [masked(partial(dealt, one, coding, groups)) for one in several]
    return [[own[label] for own in parts if own[label] is not None] for label in range(groups)]


def _bounded(label: int, groups: int, dealt_to: list[list[Any]], rows: tuple[str, ...], rule: Keep) -> UnitGroup:
    return masked(partial(bounded, label, groups, [one for own in dealt_to for one in own], rows, rule))


def _group_of(split: list[list[Any]], label: int) -> list[Any]:
    return split[label]
