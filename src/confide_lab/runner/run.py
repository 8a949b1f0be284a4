"""Run a study: only the cells that are not finished yet, each recorded as it ends."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Protocol

import pandas as pd

from confide.errors import PlanError
from confide.guarantees.validation import is_whole
from confide_lab.runner.parts import Outcome, Parts
from confide_lab.runner.study import Cell, Study, Value
from confide_lab.runner.workers import TICK, outcomes

__all__ = ["cell", "run"]


def run(study: Study, out: str | Path, *, jobs: int = 2, resume: bool = True, progress: bool = True) -> pd.DataFrame:
    """The study's table, one row per cell and replication: settings, replication, measures, seconds, error.

    out: a folder; the parts are in out/name/version. jobs: worker processes; 1 runs in this process. resume: False
    removes the parts of this study and version first. progress: a bar on standard error, on a terminal only.

    A cell is recorded at most a second after it ended; after Ctrl-C or kill -9, the same call goes on from there. A cell
    that fails has the exception's text in "error" and is tried again by the next call. The table is the same for any
    number of jobs, but for "seconds".

    Raises `PlanError` when the study cannot run in worker processes, or jobs is below 1.
    """
    if not is_whole(jobs, 1):
        raise PlanError(f"jobs must be a whole number of at least 1, got {jobs!r}; for instance jobs=2")
    parts = Parts(Path(out) / study.name / str(study.version))
    if not resume:
        parts.clear()
    cells = list(study.cells())
    done = {key for key, outcome in parts.load().items() if outcome.error is None}
    todo = [cell for cell in cells if cell.key not in done]
    waiting: list[Outcome] = []
    written = time.monotonic()
    try:
        with (
            _bar(study.name, len(cells), len(cells) - len(todo), progress) as bar,
            closing(outcomes(study, todo, jobs)) as found,
        ):
            for batch in found:
                waiting += batch
                bar.advance(len(batch))
                if time.monotonic() - written >= TICK:
                    parts.write(waiting)
                    waiting, written = [], time.monotonic()
    finally:
        parts.write(waiting)
    parts.merge()
    return _table(study, cells, parts.load())


def cell(study: Study, settings: Mapping[str, Value], replication: int) -> dict[str, float | str]:
    """Run one cell alone, in this process, without recording it: its measures by name, as `run` has them.

    Raises what the cell raises, and `PlanError` for settings that are not the study's.
    """
    if set(settings) != set(study.grid):
        raise PlanError(f"a cell of {study.name!r} is given by {', '.join(study.grid)}, got {', '.join(settings)}")
    return study.measured(Cell(dict(settings), replication))


def _table(study: Study, cells: Iterable[Cell], found: Mapping[tuple[str, int], Outcome]) -> pd.DataFrame:
    rows, names = [], dict[str, None]()
    for one in cells:
        outcome = found[one.key]
        measures = {**outcome.numbers, **outcome.texts}
        names.update(dict.fromkeys(measures))
        rows.append({**one.coordinates, **measures, "seconds": outcome.seconds, "error": outcome.error})
    return pd.DataFrame(rows, columns=[*study.grid, "replication", *names, "seconds", "error"])


class _Bar(Protocol):
    def advance(self, count: int) -> None: ...


class _Silent:
    def advance(self, count: int) -> None:
        """Show nothing."""


@contextmanager
def _bar(name: str, total: int, done: int, wanted: bool) -> Iterator[_Bar]:
    from rich.console import Console

    console = Console(stderr=True)
    if not wanted or not console.is_terminal or done == total:
        yield _Silent()
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(name, total=total, completed=done)

        class Shown:
            def advance(self, count: int) -> None:
                progress.advance(task, count)

        yield Shown()
