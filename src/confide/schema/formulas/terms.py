"""The columns of a model matrix: each a product of factors, with public bounds and a grid.

Which levels of a categorical factor get a column, so that no column of the model is a sum of others.

A factor f of a term T is coded by contrasts (all levels but the first) where the span of T without f is in the model
already. Where it is not, it is coded with one indicator per level. For example, `1 + g` has the levels but the first,
`0 + g` all levels, `x + x:g` slopes against the first level, `x:g` one slope per level. This is R's marginality rule.
Where R's form of it makes columns that add up to others (`1 + g:h`), a term is divided into several codings that
together span the same and nothing twice. An analysis with noise has no use for columns that cannot be told apart.

Source: N. J. Smith, patsy, "Redundancy and categorical factors" (the algorithm behind statsmodels' formulas).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from functools import cached_property
from itertools import combinations, product
from typing import Any, TypeAlias

from confide.errors import PlanError, SchemaError
from confide.schema.columns import Categorical, Numeric
from confide.schema.formulas.expression import Expression
from confide.schema.formulas.interval_arithmetic import Interval
from confide.schema.schema import Schema

# The categorical factors of a coding, and whether each has all of its levels.
Coding: TypeAlias = dict[Expression, bool]


def codings(
    terms: Sequence[tuple[Expression, ...]], categorical: frozenset[Expression], *, intercept: bool
) -> list[list[Coding]]:
    """For each term, in order, the codings that it adds to the span of the terms before it.

    A term without categorical factors has the one empty coding; a term that adds nothing has none.
    """
    # what is spanned already: for each set of numeric factors, the sets of categorical factors coded by contrasts
    spanned: dict[frozenset[Expression], set[frozenset[Expression]]] = {
        frozenset(): {frozenset()} if intercept else set()
    }
    result = []
    for term in terms:
        labels = [factor for factor in term if factor in categorical]
        before = spanned.setdefault(frozenset(term) - categorical, set())
        fresh = [
            subset
            for size in range(len(labels) + 1)
            for subset in combinations(labels, size)
            if frozenset(subset) not in before
        ]
        before.update(frozenset(subset) for subset in fresh)
        result.append(_joined([dict.fromkeys(subset, False) for subset in fresh]))
    return result


def _joined(parts: list[Coding]) -> list[Coding]:
    """Join a coding with one that has one contrast factor more: together they are that factor with all of its levels."""
    while (pair := _pair(parts)) is not None:
        short, long = pair
        (more,) = parts[long].keys() - parts[short].keys()
        parts[long] = {factor: parts[long][factor] or factor == more for factor in parts[long]}
        del parts[short]
    return parts


def _pair(parts: list[Coding]) -> tuple[int, int] | None:
    for short in range(len(parts)):
        for long in range(short + 1, len(parts)):
            if len(parts[long]) == len(parts[short]) + 1 and parts[short].items() <= parts[long].items():
                return short, long
    return None


Bounds = tuple[float, float]


@dataclass(frozen=True)
class Indicator:
    """The factor that is 1 where a categorical column has one level, and 0 elsewhere."""

    name: str
    column: str
    position: int

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)


@dataclass(frozen=True)
class Value:
    """A numeric factor; `bounds`, when given, hold it within public limits that its columns do not imply."""

    expression: Expression
    bounds: Bounds | None = None

    @property
    def name(self) -> str:
        return self.expression.name

    @property
    def columns(self) -> tuple[str, ...]:
        return self.expression.columns


@dataclass(frozen=True)
class Term:
    """One column of a model matrix, or the response: a product of factors.

    Parameters
    ----------
    name : str
        Name as in statsmodels, such as "age", "region[T.S]", "log(income)" or
        "a:b".
    low, high : float
        Public bounds, in the term's own units.
    steps : int
        Number of grid points between the bounds.
    binary : bool
        True for 0/1 terms: indicators, their products, 0/1 columns.
    columns : tuple of str
        Schema columns that the term needs.
    parts : tuple of Indicator or Value
        Its factors.
    on_missing : {"drop", "midpoint"}
        What happens where the value is missing.

    Examples
    --------
    >>> import confide as cf
    >>> schema = cf.Schema({"y": cf.Numeric(0, 9), "a": cf.Integer(0, 5)})
    >>> cf.schema.ModelMatrix.of("y ~ a", schema).terms[0].name
    'a'
    """

    name: str
    low: float
    high: float
    steps: int
    binary: bool
    columns: tuple[str, ...]
    parts: tuple[Indicator | Value, ...] = field(repr=False)
    on_missing: str = field(repr=False)

    @property
    def plain(self) -> str | None:
        """The numeric column that the term is, on that column's own grid; None for an indicator or a derived term."""
        only = self.parts[0]
        return only.expression.column if len(self.parts) == 1 and isinstance(only, Value) else None

    @cached_property
    def grid(self) -> Numeric:
        """The grid that derived values are coded on; its missing rule is for values that are not finite."""
        return Numeric(self.low, self.high, steps=self.steps, on_missing=self.on_missing)

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe public facts, floats as `float.hex`."""
        return {
            "name": self.name,
            "low": self.low.hex(),
            "high": self.high.hex(),
            "steps": self.steps,
            "binary": self.binary,
            "columns": list(self.columns),
        }


def expanded_terms(
    factors: tuple[Expression, ...], coding: Coding, schema: Schema, formula: str, bounds: Mapping[str, Bounds]
) -> list[Term]:
    """The columns that one coding of a formula's term stands for; the levels of its first factor change fastest."""
    choices = [
        _choices(factor, coding.get(factor), schema, bounds) for factor in factors if _is_used(factor, coding, schema)
    ]
    return [_term(parts[::-1], schema, formula, bounds) for parts in product(*choices[::-1])]


def numeric_term(factor: Expression, schema: Schema, formula: str, bounds: Mapping[str, Bounds]) -> Term:
    """The column of one numeric factor, such as the response."""
    return _term((Value(factor, bounds.get(factor.name)),), schema, formula, bounds)


def _is_used(factor: Expression, coding: Coding, schema: Schema) -> bool:
    label = factor.column is not None and isinstance(schema[factor.column], Categorical)
    return factor in coding or not label


def _choices(
    factor: Expression, full: bool | None, schema: Schema, bounds: Mapping[str, Bounds]
) -> list[Indicator | Value]:
    column = None if factor.column is None else schema[factor.column]
    if not isinstance(column, Categorical):
        return [Value(factor, bounds.get(factor.name))]
    assert factor.column is not None
    name, sign = factor.column, "" if full else "T."
    levels = list(enumerate(column.levels))[0 if full else 1 :]
    return [Indicator(f"{name}[{sign}{level}]", name, position) for position, level in levels]


def _term(parts: tuple[Indicator | Value, ...], schema: Schema, formula: str, bounds: Mapping[str, Bounds]) -> Term:
    name = ":".join(part.name for part in parts)
    columns = tuple(dict.fromkeys(column for part in parts for column in part.columns))
    drops = any(schema[column].on_missing == "drop" for column in columns)
    rule = "drop" if drops else "midpoint"
    if len(parts) == 1 and isinstance(parts[0], Value) and parts[0].expression.column is not None:
        column = schema[parts[0].expression.column]
        assert not isinstance(column, Categorical)
        return Term(name, column.low, column.high, column.steps, _is_binary(parts[0], schema), columns, parts, rule)
    if all(_is_binary(part, schema) for part in parts):
        return Term(name, 0.0, 1.0, 2, True, columns, parts, rule)
    low, high = bounds[name] if name in bounds else _derived_bounds(parts, schema, formula)
    try:
        Numeric(low, high)
    except SchemaError as error:
        raise PlanError(f"the term {name!r} of {formula!r} has bounds that no grid fits: {error}") from None
    return Term(name, low, high, 2**20, False, columns, parts, rule)


def _is_binary(part: Indicator | Value, schema: Schema) -> bool:
    if isinstance(part, Indicator):
        return True
    column = None if part.expression.column is None else schema[part.expression.column]
    if column is None or isinstance(column, Categorical):
        return False
    return (column.low, column.high, column.steps) == (0, 1, 2)


def _derived_bounds(parts: tuple[Indicator | Value, ...], schema: Schema, formula: str) -> Bounds:
    total = Interval.point(1.0)
    for part in parts:
        total = total * (Interval(0.0, 1.0) if isinstance(part, Indicator) else _factor_interval(part, schema, formula))
    name = ":".join(part.name for part in parts)
    if not total.finite:
        raise _unbounded(name, total, parts, schema, formula)
    # rounding outward opens a point to a few units in the last place
    if total.high - total.low <= 4 * math.ulp(max(abs(total.low), abs(total.high))):
        raise PlanError(
            f"the term {name!r} of {formula!r} is constant: it is {total.low:g} for all values within the bounds",
            "take it out, the intercept stands for constants",
        )
    return total.low, total.high


def _factor_interval(part: Value, schema: Schema, formula: str) -> Interval:
    if part.bounds is not None:
        return Interval(*part.bounds)
    found = part.expression.interval(_column_intervals(part.columns, schema))
    if found.empty:
        raise PlanError(
            f"the term {part.name!r} of {formula!r} is not defined for any value within the bounds of the schema, "
            f"{_where((part,), schema)}",
            f"change the term or the bounds, for example abs({part.columns[0]})",
        )
    if not found.finite:
        raise _unbounded(part.name, found, (part,), schema, formula)
    return found


def _column_intervals(columns: tuple[str, ...], schema: Schema) -> dict[str, Interval]:
    found = {}
    for name in columns:
        column = schema[name]
        assert not isinstance(column, Categorical)
        found[name] = Interval(column.low, column.high)
    return found


def _where(parts: tuple[Indicator | Value, ...], schema: Schema) -> str:
    numeric = dict.fromkeys(column for part in parts if isinstance(part, Value) for column in part.columns)
    intervals = _column_intervals(tuple(numeric), schema)
    return ", ".join(f"{name} from {bounds.low:g} to {bounds.high:g}" for name, bounds in intervals.items())


def _unbounded(
    name: str, found: Interval, parts: tuple[Indicator | Value, ...], schema: Schema, formula: str
) -> PlanError:
    """The error for a term without finite bounds, with an argument that works."""
    low = _few_digits(found.low, -1) if math.isfinite(found.low) else None
    high = _few_digits(found.high, 1) if math.isfinite(found.high) else None
    if low is None:
        low = 0.0 if high is not None and high > 0 else (high or 0.0) - 10.0
    high = low + 10.0 if high is None else high
    return PlanError(
        f"the term {name!r} of {formula!r} has no finite bounds ({found.low:g} to {found.high:g}) with {_where(parts, schema)}",
        f"give public ones, for instance term_bounds={{{name!r}: ({low:g}, {high:g})}}, or change the term. "
        "Values outside will be clipped, values that are not finite as missing",
    )


def _few_digits(value: float, way: int) -> float:
    """A number with four digits, rounded down (way -1) or up (1)."""
    if value == 0.0:
        return 0.0
    digits = Decimal(value)
    unit = Decimal(1).scaleb(digits.adjusted() - 3)
    return float(digits.quantize(unit, rounding=ROUND_FLOOR if way < 0 else ROUND_CEILING, context=Context(prec=400)))


def factor_name(term: Term) -> str:
    """A term without its levels: "region" for "region[T.S]", "age:region" for "age:region[T.S]", "age" for "age"."""
    return ":".join(part.column if isinstance(part, Indicator) else part.name for part in term.parts)
