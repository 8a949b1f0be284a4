"""Tables of the command line: cells are literal text, and nothing is cut when the output goes to a pipe."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from confide.cli.session import Session, printable

__all__ = ["facts", "table"]

# A pipe has no width: wide enough for any line, so that rich neither folds nor cuts.
_PIPE = 100_000
# The last column may be folded down to this; the others never are.
_LAST = 24


def table(session: Session, heads: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[str] = ()) -> None:
    """Print a table, the columns named in `right` to the right. A narrow terminal folds the last column, and cuts none."""
    if session.json:
        return
    from rich import box
    from rich.cells import cell_len
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    shown = [[printable(cell) for cell in row] for row in rows]
    made = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    needed = _LAST
    for place, head in enumerate(heads):
        # Text, not str: a str would be read as markup, and [T.S] would vanish from a name
        made.add_column(Text(head), overflow="fold", justify="right" if head in right else "left")
        if place < len(heads) - 1:
            made.columns[-1].no_wrap = True
            needed += max(map(cell_len, (head, *(row[place] for row in shown)))) + 3
    for row in shown:
        made.add_row(*map(Text, row))
    terminal = Console(markup=False, highlight=False, emoji=False)
    width = max(terminal.width, needed) if sys.stdout.isatty() else _PIPE
    console = Console(width=width, markup=False, highlight=False, emoji=False)
    with console.capture() as held:
        console.print(made)
    session.say_as_is("\n".join(line.rstrip() for line in held.get().rstrip("\n").split("\n")))


def facts(session: Session, pairs: Sequence[tuple[str, object]]) -> None:
    """Print labelled facts, one on each line, values aligned."""
    width = max((len(label) for label, _ in pairs), default=0) + 2
    session.say("\n".join(f"{label:<{width}}{value}" for label, value in pairs))
