"""Tables of the command line: cells are literal text, and nothing is cut when the output goes to a pipe."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from confide.cli.session import Session, printable

__all__ = ["facts", "table"]

# A pipe has no width: wide enough for any line, so that rich neither folds nor cuts.
_PIPE = 100_000


def table(session: Session, heads: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[str] = ()) -> None:
    """Print a table, the columns named in `right` to the right. In a narrow terminal cells are folded, not cut."""
    if session.json:
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    made = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for head in heads:
        made.add_column(Text(head), overflow="fold", justify="right" if head in right else "left")
    for row in rows:
        # Text, not str: a str would be read as markup, and [T.S] would vanish from a name
        made.add_row(*(Text(printable(cell)) for cell in row))
    console = Console(width=None if sys.stdout.isatty() else _PIPE, markup=False, highlight=False, emoji=False)
    with console.capture() as held:
        console.print(made)
    sys.stdout.write("\n".join(line.rstrip() for line in held.get().rstrip("\n").split("\n")) + "\n")


def facts(session: Session, pairs: Sequence[tuple[str, object]]) -> None:
    """Print labelled facts, one on each line, values aligned."""
    width = max((len(label) for label, _ in pairs), default=0) + 2
    session.say("\n".join(f"{label:<{width}}{value}" for label, value in pairs))
