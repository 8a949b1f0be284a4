"""Derived columns: functions of other columns of the same record that a schema states, such as an age from a date of birth.

Privacy: a derivation is a function of one record and of the schema, so that records that differ in one row differ in one
row after it, too. Its values lie within bounds that follow from public facts, and each sensitivity uses these bounds alone.

Inputs come first: a cell is read, a code of a missing value is taken out, the value is clipped to its bounds, and
`on_missing` is applied. Only then is a column derived, from what the input's code stands for, so that its bounds hold.
It is missing where an input is. Whole results are exact; others are rounded to the grid of the derived column.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from confide.errors import SchemaError
from confide.schema.columns import Column
from confide.schema.definitions import EXAMPLE, Definition, Floats, Makes
from confide.schema.formulas.names import hidden
from confide.schema.schema import Schema
from confide.schema.settings import is_unicode

MOST, DEEPEST = 200, 8


@dataclass(frozen=True)
class Derivation:
    """How one column follows from others. Made by `derivations`.

    settings: the definition as files have it, in one spelling, and text: as one line. Its `inputs` are the columns that it
    names, and `behind` has the columns of the data that it needs. depth: how many derivations stand one on another.
    """

    name: str
    settings: str | dict[str, Any]
    text: str
    inputs: tuple[str, ...]
    column: Column
    behind: tuple[str, ...]
    depth: int
    makes: Makes = field(repr=False, compare=False)

    def values(self, codes: Mapping[str, Floats]) -> Floats:
        """Values of the column (positions of a categorical one) from the codes of the inputs; NaN where one is missing."""
        own = {name: codes[name] for name in self.inputs}
        missing = np.zeros(len(next(iter(own.values()))), dtype=bool)
        for given in own.values():
            missing |= given < 0
        there = {name: np.where(missing, 0.0, given) for name, given in own.items()} if missing.any() else own
        found = self.makes(there)
        return np.where(missing, np.nan, found) if missing.any() else found

    def codes(self, codes: Mapping[str, Floats]) -> Floats:
        """Codes of the column from those of the inputs."""
        return self.column.code(self.values(codes))


def derivations(given: Any, columns: Mapping[str, Column], ids: Collection[str] = ()) -> dict[str, Derivation]:
    """The derived columns of a schema, in the order in which they were written.

    columns: those of the data; ids: columns that no derivation may name. Raises `SchemaError` for a definition that is not
    a function of one record, that has no public bounds, or that stands in a circle.
    """
    if not isinstance(given, Mapping):
        raise SchemaError(f"derive must be a mapping of names to definitions, got {type(given).__name__}", EXAMPLE)
    if len(given) > MOST:
        raise SchemaError(f"at most {MOST} columns are derived, got {len(given)}", "derive the rest in the data")
    for name in given:
        _check_name(name, columns)
    names = (*columns, *given)
    reads = {name: Definition(name, definition, names, ids) for name, definition in given.items()}
    made: dict[str, Derivation] = {}
    for name in _in_order(reads):
        made[name] = _derivation(name, reads[name], columns, made)
    return {name: made[name] for name in given}


def _derivation(
    name: str, read: Definition, columns: Mapping[str, Column], made: Mapping[str, Derivation]
) -> Derivation:
    """A definition over the columns of the data and those derived before."""
    own = read.made({**columns, **{before: one.column for before, one in made.items()}})
    behind = [one for given in read.inputs for one in (made[given].behind if given in made else (given,))]
    depth = 1 + max((made[given].depth for given in read.inputs if given in made), default=0)
    return Derivation(
        name, own.settings, own.text, read.inputs, own.column, tuple(dict.fromkeys(behind)), depth, own.makes
    )


def in_order(made: Mapping[str, Derivation]) -> Iterator[Derivation]:
    """Derived columns, each behind those that it needs."""
    yield from sorted(made.values(), key=lambda one: one.depth)


def derived_codes(schema: Schema, codes: Mapping[str, Floats]) -> dict[str, Floats]:
    """Codes of columns, with those of all derived columns whose inputs are there and that are not there themselves."""
    found = dict(codes)
    for step in in_order(schema.derive):
        if step.name not in found and set(step.inputs) <= set(found):
            found[step.name] = step.codes(found)
    return found


def named_in(schema: Schema, texts: Any) -> list[Derivation]:
    """The derived columns that some texts name, and those that these need; texts may lie in tuples and mappings."""
    wanted: dict[str, None] = {}
    left = [texts]
    while left:
        one = left.pop()
        if isinstance(one, Mapping):
            left += one.values()
        elif isinstance(one, (list, tuple)):
            left += one
        elif isinstance(one, str):
            wanted |= dict.fromkeys(name for name in hidden(one, schema.names)[1].values() if name in schema.derive)
    for step in reversed(list(in_order(schema.derive))):
        if step.name in wanted:
            wanted |= dict.fromkeys(name for name in step.inputs if name in schema.derive)
    return [own for name, own in schema.derive.items() if name in wanted]


def _check_name(name: Any, columns: Mapping[str, Column]) -> None:
    if not isinstance(name, str) or not name.strip() or "`" in name or not is_unicode(name):
        raise SchemaError(
            f"a derived column's name must be text that is not blank and has no backtick, got {name!r}", EXAMPLE
        )
    if name in columns:
        raise SchemaError(
            f"{name!r} is a column of the data and a derived one too", "give the derived column another name"
        )


def _in_order(reads: Mapping[str, Definition]) -> list[str]:
    """Names, each behind those that it needs; `SchemaError` for a circle, or more than `DEEPEST` that stand one on another."""
    found: dict[str, int] = {}
    left = dict(reads)
    while left:
        ready = [name for name, own in left.items() if all(one in found for one in own.inputs if one in reads)]
        if not ready:
            raise SchemaError(
                f"the derived columns {', '.join(sorted(left)[:8])} need one another in a circle",
                "define one of them without the others",
            )
        for name in ready:
            found[name] = 1 + max((found[one] for one in left.pop(name).inputs if one in reads), default=0)
            if found[name] > DEEPEST:
                raise SchemaError(
                    f"the derived column {name!r} stands on {DEEPEST} others that need one another, at most {DEEPEST} may",
                    "derive it from columns of the data",
                )
    return sorted(found, key=lambda name: found[name])
