"""Rows of codes of derived columns, made block by block from the codes of their inputs, as they are after bounds and `on_missing`.

A derived column is unread where one of its inputs in the data is, and clipped where one of them was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from confide.core.lost_values import ABOVE, BELOW, UNREAD
from confide.core.ranges import as_fine
from confide.schema import Categorical, Column, Schema
from confide.schema.derive import Derivation, in_order
from confide.sources.coding import Floats

#: A column of the data in a block, the values that its reader gave, and how its cells were read, where that is asked.
Given: TypeAlias = tuple[Column, Floats, Floats | None]


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

    def __call__(self, codes: NDArray[np.float64], given: Mapping[str, Given]) -> None:
        """Write the rows into the codes of a block."""
        known = {name: given[name][0].code(given[name][1]) for name in self._inputs}
        for step in self._steps:
            values = step.values(known)
            known[step.name] = own = step.column.code(values)
            for at, kind in self._made.get(step.name, ()):
                if kind == "codes":
                    codes[at] = own
                elif kind == "fine":
                    as_fine(values, out=codes[at])
                else:
                    codes[at] = _how_read(step, own, np.array([given[name][2] for name in step.behind]))


def _how_read(step: Derivation, own: Floats, behind: Floats) -> Floats:
    """A row that says how the inputs of a column were read. behind: the same of each, shape (inputs, records)."""
    found = np.zeros(len(own))
    if not isinstance(step.column, Categorical):
        outside = ((behind == BELOW) | (behind == ABOVE)).any(axis=0) & (own >= 0)
        found[outside] = ABOVE
        found[outside & (own < (step.column.steps - 1) / 2)] = BELOW
    found[(behind == UNREAD).any(axis=0)] = UNREAD
    return found
