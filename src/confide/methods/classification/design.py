"""A formula whose response is a class: "species ~ length + width"."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from confide._arrays import Array
from confide.core.exact import digest
from confide.errors import PlanError
from confide.results.classes import class_names
from confide.schema import Categorical, Integer, ModelMatrix, Schema
from confide.schema.formulas.formula import cut
from confide.schema.formulas.names import column_named, sides
from confide.sums.coding import Box

# An integer column with more values is hardly a class.
_MOST_CLASSES = 64


@dataclass(frozen=True)
class FeatureGroup:
    """Terms of which at most one is 1 in a record: the levels of a factor but its base, or one 0/1 column. `terms`: positions."""

    name: str
    terms: tuple[int, ...]


@dataclass(frozen=True)
class ClassDesign:
    """The features of a formula as a `ModelMatrix`, and the public classes of its response.

    The response is a categorical column, or an integer one of at most 64 values. Its codes are the positions of the classes, so that
    `design` stands over a schema in which the response is the integer column of these codes.

    >>> schema = Schema({"kind": Categorical(["a", "b"]), "x": {"kind": "numeric", "low": 0, "high": 4}})
    >>> own = ClassDesign.of("kind ~ x", schema)
    >>> own.classes, own.features, own.design.columns
    (('a', 'b'), ('x',), ('x', 'kind'))
    """

    response: str
    classes: tuple[str, ...]
    design: ModelMatrix

    @classmethod
    def of(cls, formula: str, schema: Any, *, term_bounds: Mapping[str, Any] | None = None) -> ClassDesign:
        """The design of a formula; `PlanError` for one that cannot be planned from public facts."""
        whole = Schema.of(schema)
        name = _response(formula, whole)
        column = whole[name]
        if isinstance(column, Categorical):
            classes = column.levels
            rule: Any = "drop" if column.on_missing == "drop" else float(column.levels.index(column.on_missing))
            codes = Integer(0, len(classes) - 1, on_missing=rule)
        elif isinstance(column, Integer) and column.steps <= _MOST_CLASSES:
            classes = tuple(str(int(column.low) + k) for k in range(column.steps))
            codes = column
        else:
            raise PlanError(
                f"the response {name!r} of {cut(formula)!r} must have public classes",
                f'write {name!r}: Categorical(["yes", "no"]) in the schema',
            )
        columns = {**whole.columns, name: codes}
        shadow = whole.with_columns(columns)
        design = ModelMatrix.of(formula, shadow, term_bounds=term_bounds)
        if not design.terms:
            raise PlanError(f"the formula {cut(formula)!r} names no feature", f'write "{name} ~ a + b"')
        own = cls(name, classes, design)
        named = class_names(own.classes, own.features)
        twice = next((one for one in named if named.count(one) > 1), None)
        if twice is not None:
            raise PlanError(
                f"two numbers of {cut(formula)!r} would be called {twice!r}",
                "rename a class or a column in the data and the schema",
            )
        return own

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the terms, in order."""
        return tuple(term.name for term in self.design.terms)

    @cached_property
    def chart(self) -> tuple[Array, Array]:
        """(middle, half), shapes (terms,): features are measured from the middle of their public bounds in half-ranges."""
        return Box.of(self.design).arrays

    @cached_property
    def groups(self) -> tuple[FeatureGroup, ...]:
        """The 0/1 terms: the levels of a factor together, any other one alone."""
        found: dict[str, list[int]] = {}
        for place, term in enumerate(self.design.terms):
            if term.binary:
                single = len(term.parts) == 1 and term.plain is None
                found.setdefault(term.columns[0] if single else term.name, []).append(place)
        return tuple(FeatureGroup(name, tuple(places)) for name, places in found.items())

    @property
    def measured(self) -> tuple[int, ...]:
        """Positions of the terms that are not 0/1."""
        return tuple(place for place, term in enumerate(self.design.terms) if not term.binary)

    @property
    def digest(self) -> str:
        """Of the public facts: classes and terms."""
        return digest(["classes", self.response, list(self.classes), self.design.to_dict()])


def _response(formula: Any, schema: Schema) -> str:
    if not isinstance(formula, str):
        raise PlanError(f"a formula is text, got {type(formula).__name__}", 'write "kind ~ a + b"')
    both = sides(formula)
    if len(both) != 2:
        raise PlanError(f"a formula has exactly one ~, {cut(formula)!r} has {len(both) - 1}", 'write "kind ~ a + b"')
    name = column_named(both[0], schema.names)
    if name not in schema.names:
        raise PlanError(
            f"the response of {cut(formula)!r} must be one column of the schema, whose classes are public, got {name!r}; the schema has: "
            f"{', '.join(schema.names)}"
        )
    return name
