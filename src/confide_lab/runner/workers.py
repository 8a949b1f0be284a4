"""Cells on several processes: one cell at a time to each, a worker that dies costs its own cell and is replaced."""

from __future__ import annotations

import os
import pickle
import signal
import threading
import time
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import connection, get_context, parent_process
from typing import Any

from threadpoolctl import threadpool_limits

from confide.errors import PlanError
from confide_lab.runner.parts import Outcome
from confide_lab.runner.study import Cell, Study

__all__ = ["outcome_of", "outcomes"]

# A new interpreter for each worker: nothing of the parent (threads, locks, connections) is half there.
_CONTEXT = get_context("spawn")
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")
#: Seconds between two looks at the workers, at most.
TICK = 1.0


def outcomes(study: Study, cells: Iterable[Cell], jobs: int) -> Generator[list[Outcome], None, None]:
    """What comes of the cells, as it comes; an empty list at least once a second, for whoever waits.

    With one job the cells run here, in this process. Closing the iterator ends the workers.
    """
    todo = iter(cells)
    if jobs == 1:
        with threadpool_limits(1):
            for cell in todo:
                yield [outcome_of(study, cell)]
        return
    _check_sent(study)
    workers: list[_Worker] = []
    try:
        for cell in todo:
            workers.append(_Worker(study, cell))
            if len(workers) == jobs:
                break
        while workers:
            ready = connection.wait([worker.pipe for worker in workers], TICK)
            found = []
            for worker in [worker for worker in workers if worker.pipe in ready]:
                outcome = worker.take()
                if outcome is None:
                    continue
                found.append(outcome)
                after = next(todo, None)
                if after is None or not worker.alive:
                    worker.stop()
                    workers.remove(worker)
                    if after is not None:
                        workers.append(_Worker(study, after))
                else:
                    worker.give(after)
            yield found
    finally:
        for worker in workers:
            worker.stop()


def outcome_of(study: Study, cell: Cell) -> Outcome:
    """Run one cell; whatever it raises is its outcome."""
    begun = time.perf_counter()
    settings, replication = cell.key
    try:
        found = study.measured(cell)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a panic of a compiled library is no Exception; one cell must not end the others
        text = f"{type(error).__name__}: {error}"
        return Outcome(settings, replication, time.perf_counter() - begun, text)
    return Outcome(
        settings,
        replication,
        time.perf_counter() - begun,
        None,
        {name: value for name, value in found.items() if not isinstance(value, str)},
        {name: value for name, value in found.items() if isinstance(value, str)},
    )


class _Worker:
    """A process, the pipe to it, and the cell that it has."""

    def __init__(self, study: Study, cell: Cell) -> None:
        self.pipe, theirs = _CONTEXT.Pipe()
        self._process = _CONTEXT.Process(target=_work, args=(study, theirs))
        with _one_thread_each():
            self._process.start()
        theirs.close()
        self._begun = False
        self.alive = True
        self._cell = cell
        self.give(cell)

    def give(self, cell: Cell) -> None:
        """Send the next cell."""
        self._cell = cell
        with suppress(OSError):  # it died; `take` will say so
            self.pipe.send(cell)

    def take(self) -> Outcome | None:
        """What the worker says: None that it has begun, else the outcome of its cell, which may be its own death."""
        try:
            said: Outcome | None = self.pipe.recv()
        except (EOFError, OSError):
            self._process.join()
            self.alive = False
            if not self._begun:
                raise PlanError(
                    "a worker process could not load the study: measure must be a function at the top level of a "
                    "module that can be imported, and a script must start its run under if __name__ == '__main__'; or "
                    "run(study, out, jobs=1)"
                ) from None
            settings, replication = self._cell.key
            return Outcome(settings, replication, 0.0, f"the worker process died (exit code {self._process.exitcode})")
        self._begun = True
        return said

    def stop(self) -> None:
        """End the process, whatever it does."""
        self.pipe.close()
        self._process.kill()
        self._process.join()


def _work(study: Study, pipe: connection.Connection[Any, Any]) -> None:
    """A worker's life: cells in, outcomes out, until the parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent ends the workers
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with threadpool_limits(1):
        pipe.send(None)
        while True:
            try:
                cell = pipe.recv()
            except (EOFError, OSError):
                return
            pipe.send(outcome_of(study, cell))


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Workers inherit the environment; libraries read it when they are loaded."""
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value


def _check_sent(study: Study) -> None:
    try:
        pickle.dumps(study)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise PlanError(
            f"the study cannot be sent to worker processes ({error}): measure must be a function at the top level of a "
            "module; or run(study, out, jobs=1)"
        ) from None
