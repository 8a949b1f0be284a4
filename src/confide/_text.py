"""Text that a terminal, a plot and a page can show as it is."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from confide._lazy import later

__all__ = ["as_html", "clean", "near_match", "progress_bar"]

difflib, html = later("difflib"), later("html")

_EVERY = 10.0  # seconds between two lines of progress


def clean(text: str) -> str:
    r"""Text on one line that a terminal, a plot and a page show as it is; what does not print becomes an escape.

    Names come from files that others wrote: control characters could repaint a terminal or turn a line around.

    >>> clean("age\n\x1b[2J")
    'age\\n\\x1b[2J'
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text)


def as_html(text: str) -> str:
    r"""Lines of text for a notebook, in a typewriter's font and with nothing in them that a page would run.

    >>> as_html("mu < 1\nspent")
    '<pre>mu &lt; 1\nspent</pre>'
    """
    return f"<pre>{html.escape(chr(10).join(map(clean, text.splitlines())))}</pre>"


def near_match(name: str, names: tuple[str, ...]) -> str:
    """Words that point at the most similar of some names, or nothing.

    >>> near_match("agee", ("age", "income"))
    " (did you mean 'age'?)"
    """
    lowered = {known.lower(): known for known in reversed(names)}
    found = difflib.get_close_matches(name.lower(), list(lowered), n=1)
    return f" (did you mean {lowered[found[0]]!r}?)" if found else ""


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
