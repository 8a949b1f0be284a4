r"""CSV that a spreadsheet shows and does not run.

A cell that begins with =, +, -, @, a tab or a carriage return is a formula to Excel, LibreOffice and Google Sheets, and a label comes from
whoever wrote the schema. An apostrophe before it makes it text (OWASP, "CSV Injection"); `plain` takes it off again, so that labels read
back as they were. Semicolons and line breaks begin a cell as well where they separate. Numbers stay as they are, labels such as "-9" too.
"""

from __future__ import annotations

import csv
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["csv_text", "plain", "shielded"]

# a formula's first signs, full-width ones too; blanks and marks of no width before them are skipped by some programs
_SIGNS = r"['\s\x00\u200b-\u200f\u2060\ufeff]*[=+\-@\t\r\uff1d\uff0b\uff0d\uff20]"
_RUNS = re.compile(rf"(^|[;\t\r\n])(?={_SIGNS})")
_SHIELDED = re.compile(rf"(^|[;\t\r\n])'(?={_SIGNS})")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")


def shielded(text: str) -> str:
    """A label as it stands in a CSV cell: with an apostrophe where a spreadsheet would run it.

    >>> shielded("=1+1"), shielded("-9"), shielded("a-b"), shielded("'=1")
    ("'=1+1", '-9', 'a-b', "''=1")
    """
    return text if _NUMBER.fullmatch(text) else _RUNS.sub(r"\1'", text)


def plain(cell: str) -> str:
    """The label of a cell that `shielded` wrote.

    >>> plain(shielded("=1+1")), plain(shielded("'=1")), plain("'tis")
    ('=1+1', "'=1", "'tis")
    """
    return _SHIELDED.sub(r"\1", cell)


def csv_text(frame: pd.DataFrame, **options: Any) -> str:
    """A frame as CSV, names of columns, row labels and text cells `shielded`; options as of `DataFrame.to_csv`."""
    safe = frame.copy(deep=False)
    for place, dtype in enumerate(frame.dtypes):
        if dtype.kind == "O":  # text, categories included
            safe.isetitem(place, frame.iloc[:, place].astype(object).map(_cell).to_numpy())
    safe.columns = _labels(frame.columns)
    if options.get("index", True):
        safe.index = _labels(frame.index)
    text = str(safe.to_csv(lineterminator="\n", **options))
    # a carriage return ends a line to every reader, and Python's writer leaves it without quotes
    return text if "\r" not in text else str(safe.to_csv(lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC, **options))


def _labels(index: Any) -> Any:
    if index.nlevels > 1:
        return index.set_levels([level.map(_cell) for level in index.levels])
    return index.map(_cell).rename(index.name)


def _cell(value: Any) -> Any:
    return shielded(value) if isinstance(value, str) else value
