"""Tables of the command line: cells are literal text, and nothing is cut when the output goes to a pipe."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from math import floor, log10
from typing import TYPE_CHECKING

from confide._helpers import later
from confide.cli.session import Session, printable

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = later("pandas")

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
    """Print labeled facts, one on each line, values aligned."""
    width = max((len(label) for label, _ in pairs), default=0) + 2
    session.say("\n".join(f"{label:<{width}}{value}" for label, value in pairs))


def fine(frame: pd.DataFrame) -> pd.DataFrame:
    """As text, the digits of a row by its standard error; degrees of freedom whole."""

    def row(own: pd.Series[float]) -> list[str]:
        decimals = max(1 - floor(log10(own["std_err"])), 0) if own["std_err"] > 0 else 2
        return [f"{value:,.{0 if name == 'df' else decimals}f}" for name, value in own.items()]

    return pd.DataFrame([row(own) for _, own in frame.iterrows()], index=frame.index, columns=frame.columns)
