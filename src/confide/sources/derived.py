"""Rows of codes of derived columns, made block by block from the codes of their inputs, as they are after bounds and `on_missing`.

A derived column is unread where one of its inputs in the data is, and clipped where one of them was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from confide.core.lost_values import ABOVE, BELOW, UNREAD
from confide.core.ranges import as_fine
from confide.schema import Categorical, Column, Schema
from confide.schema.derive import Derivation, in_order
from confide.sources.coding import Cells, Floats, Held, unread


class Given(NamedTuple):
    """A column of the data in a block: its cells, and the values that its reader gave them."""

    column: Column
    values: Floats
    cells: Cells
    held: Held

    @property
    def outside(self) -> NDArray[np.bool_]:
        """Where a value lay outside the bounds."""
        if isinstance(self.column, Categorical):
            return np.zeros(len(self.values), dtype=bool)
        return self.column.outside(self.values)


class DerivedRows:
    """The rows of derived columns that a coder was asked for. made: by column, where they lie and how each is made."""

    def __init__(self, schema: Schema, made: Mapping[str, Sequence[tuple[int, str]]]) -> None:
        needed = dict.fromkeys(made)
        steps = list(in_order(schema.derive))
        for step in reversed(steps):
            if step.name in needed:
                needed |= dict.fromkeys(step.inputs)
        self._steps = [step for step in steps if step.name in needed]
        self._inputs = [name for name in needed if name not in schema.derive]
        self._made = made

    def __call__(self, codes: NDArray[np.float64], cells: Mapping[str, tuple[Column, Floats, Cells, Held]]) -> None:
        """Write the rows into the codes of a block. cells: the columns of the data in it, as `Given` names them."""
        given = {name: Given(*own) for name, own in cells.items()}
        known = {name: given[name].column.code(given[name].values) for name in self._inputs}
        for step in self._steps:
            values = step.values(known)
            known[step.name] = own = step.column.code(values)
            for at, kind in self._made.get(step.name, ()):
                if kind == "codes":
                    codes[at] = own
                elif kind == "fine":
                    as_fine(values, out=codes[at])
                else:
                    codes[at] = _lost(kind, step, own, [given[name] for name in step.behind])


def _lost(kind: str, step: Derivation, own: Floats, behind: Sequence[Given]) -> Floats:
    """A row that says how the inputs of a column were read: "unread", "outside", or "read", which says both."""
    found = np.zeros(len(own))
    if kind != "unread" and not isinstance(step.column, Categorical):
        outside: NDArray[np.bool_] = np.logical_or.reduce([one.outside for one in behind])
        if kind == "outside":
            return outside.astype(np.float64)
        middle = (step.column.steps - 1) / 2
        found[outside & (own >= 0)] = ABOVE
        found[outside & (own >= 0) & (own < middle)] = BELOW
    if kind != "outside":
        lost = np.logical_or.reduce([unread(one.values, one.cells, one.held) > 0 for one in behind])
        found[lost] = 1.0 if kind == "unread" else UNREAD
    return found
