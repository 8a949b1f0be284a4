"""A block's numbers in the rows and columns in which a paper prints them: theirs beside ours, cell by cell.

>>> layout = Layout(("n",), ("method",), quantity="error", title="Table 2")
>>> made = layout.grid([
...     {"setting": {"n": n}, "method": m, "quantity": "error", "value": n / 2, "paper": 5.0} for n in (10, 20) for m in ("a", "b")])
>>> made.columns, [row for row, _ in made.rows], made.rows[0][1][0]["value"]
([('a',), ('b',)], [(10,), (20,)], 5.0)
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from confide_lab.quantities import Record

__all__ = ["LETTER", "RESTORED", "Grid", "Layout"]

#: The letter: what the paper's text says was run. Restored: the setting that its numbers turn out to have, with the erratum that says so.
LETTER, RESTORED = "letter", "restored"


@dataclass(frozen=True)
class Grid:
    """Column keys, and rows as (key, one record or None for each column)."""

    columns: list[tuple[Any, ...]]
    rows: list[tuple[tuple[Any, ...], list[Record | None]]]


@dataclass(frozen=True)
class Layout:
    """Which records stand where. rows, columns: names of settings, "method", "quantity", or "statistic" and "place" for quantities that
    are called statistic[place]; where: name -> the values that are kept; quantity: one, or "" for all; reading: "letter" or
    "restored"; another one is shown and not counted.
    """

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    where: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    quantity: str = ""
    title: str = ""
    reading: str = LETTER

    def kept(self, records: Sequence[Record]) -> list[Record]:
        """The records that this layout shows."""
        return [
            r
            for r in records
            if (not self.quantity or r["quantity"] == self.quantity)
            and all(_coordinate(r, name) in values for name, values in self.where.items())
        ]

    def grid(self, records: Sequence[Record]) -> Grid:
        """The records in rows and columns, both in the order of the records, or of `where` where it names them."""
        cells: dict[tuple[tuple[Any, ...], tuple[Any, ...]], Record] = {}
        for r in self.kept(records):
            cells[self._key(r, self.rows), self._key(r, self.columns)] = r
        rows = self._ordered([row for row, _ in cells], self.rows)
        columns = self._ordered([column for _, column in cells], self.columns)
        return Grid(columns, [(row, [cells.get((row, column)) for column in columns]) for row in rows])

    def _key(self, r: Record, names: tuple[str, ...]) -> tuple[Any, ...]:
        return tuple(_coordinate(r, name) for name in names)

    def _ordered(self, keys: list[tuple[Any, ...]], names: tuple[str, ...]) -> list[tuple[Any, ...]]:
        found = list(dict.fromkeys(keys))
        # in the order that `where` names, else as they come
        places = [list(self.where.get(name) or dict.fromkeys(key[k] for key in found)) for k, name in enumerate(names)]
        return sorted(
            found, key=lambda key: tuple(known.index(value) for known, value in zip(places, key, strict=True))
        )


def _coordinate(r: Record, name: str) -> Any:
    if name in ("method", "quantity"):
        return r[name]
    if name in ("statistic", "place"):
        found = re.fullmatch(r"(.*)\[(.*)\]", r["quantity"])
        if name == "place":
            return found[2] if found else ""
        return found[1] if found else r["quantity"]
    return r["setting"].get(name)
