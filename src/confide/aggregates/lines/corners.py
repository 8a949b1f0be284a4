"""Records in the corners of the public box: where sums move the most."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from confide.schema import Categorical, Design, Schema

__all__ = ["corner_pairs", "ends", "outcome_pairs"]


def ends(schema: Schema, columns: Iterable[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Two records at opposite ends of columns: at the first and the last level, or at the lower and the upper bound.

    >>> import confide as cf
    >>> ends(cf.Schema({"x": cf.Numeric(0, 1), "g": cf.Categorical(["a", "b", "c"])}), ("x", "g"))
    ({'x': 0.0, 'g': 'a'}, {'x': 1.0, 'g': 'c'})
    """
    low, high = ({name: _end(schema[name], sign) for name in columns} for sign in (-1, 1))
    return low, high


def corner_pairs(design: Design, schema: Schema) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Two pairs of records with |z|^2 = 1 + d and |t| = 1; none with derived or categorical terms.

    In the first pair every other feature is mirrored, so that the rows z are as orthogonal as can be: the worst for z z' under substitute.
    In the second the features agree and the responses are opposite: z t and -z t, the worst for z t.
    """
    names = [term.plain for term in (*design.terms, design.response)]
    if None in names:
        return
    plain = [str(name) for name in names]
    if any(isinstance(schema[name], Categorical) for name in plain):
        return
    signs: tuple[tuple[int, ...], ...] = (
        (1,) * len(plain),
        (*((-1) ** (j + 1) for j in range(len(plain) - 1)), 1),
        (*(1,) * (len(plain) - 1), -1),
    )
    corner, mirrored, opposite = (
        {name: _end(schema[name], sign) for name, sign in zip(plain, row, strict=True)} for row in signs
    )
    yield corner, mirrored
    yield corner, opposite


def outcome_pairs(design: Design, schema: Schema) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Records in two corners of the public box with outcomes as far apart as can be, then one corner with both outcomes.

    They pull the coefficients of a regression as far as a bound on one record's score allows.
    """
    low, high = ends(schema, design.columns)
    yield low, high
    yield low, {**low, **{name: high[name] for name in design.response.columns}}


def _end(column: Any, sign: int) -> Any:
    if isinstance(column, Categorical):
        return column.levels[-1 if sign > 0 else 0]
    return float(column.high if sign > 0 else column.low)
