"""Progress of long work: a bar on a terminal, elsewhere a line now and then."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["progress_bar"]

_EVERY = 10.0  # seconds


@contextmanager
def progress_bar(name: str) -> Iterator[Callable[[int, int, str], None]]:
    """A bar on stderr in a terminal, elsewhere a line every ten seconds: a large grid may take minutes."""
    if not sys.stderr.isatty():
        from time import monotonic

        last = monotonic()

        def line(done: int, of: int, what: str) -> None:
            nonlocal last
            if monotonic() - last > _EVERY:
                last = monotonic()
                sys.stderr.write(f"{name}: step {done} of {of}, {what}\n")

        yield line
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(name)

        def step(done: int, of: int, what: str) -> None:
            bar.update(task, completed=done, total=of, description=what)

        yield step
