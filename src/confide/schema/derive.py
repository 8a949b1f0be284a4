"""Derived columns: functions of other columns of the same record that a schema states, such as an age from a date of birth.

Privacy: a derivation is a function of one record and of the schema, so that records that differ in one row differ in one
row after it, too. Its values lie within bounds that follow from public facts, and each sensitivity uses these bounds alone.

Inputs come first: a cell is read, a code of a missing value is taken out, the value is clipped to its bounds, and
`on_missing` is applied. Only then is a column derived, from what the input's code stands for, so that its bounds hold.
It is missing where an input is. Whole results are exact; others are rounded to the grid of the derived column.

A definition is a line of text or a table. What is not a function of one record is refused, with the reason and what to
write instead. So is what has no bounds, or is not defined for all values within them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from confide._helpers import near_match
from confide.errors import ConfideError, SchemaError
from confide.schema.columns import MAX_STEPS, Categorical, Column, Grid, Integer, Numeric
from confide.schema.dates import Date, day_of, day_text, first_days
from confide.schema.formulas.conditions import parse_predicate
from confide.schema.formulas.design import BLOCK, aligned
from confide.schema.formulas.expression import Expression, parse_expression, refusal
from confide.schema.formulas.interval_arithmetic import Interval
from confide.schema.formulas.names import column_named, hidden, quoted, unknown_names
from confide.schema.schema import Schema
from confide.schema.settings import Provenance, is_number, is_unicode

Floats: TypeAlias = NDArray[np.float64]
Whole: TypeAlias = NDArray[np.int64]
#: Codes of the inputs by name, none missing, to the values of a derived column, or positions in its levels.
Makes: TypeAlias = Callable[[Mapping[str, Floats]], Floats]

EXAMPLE = 'write derive={"age": "years_between(birth, \'2024-07-01\')"}'
_LONGEST = 2_000
_BETWEEN = ("years_between", "days_between")
_PARTS = ("year", "month", "quarter", "weekday")
_FUNCTIONS = ("log", "log1p", "sqrt", "abs")
# The entries of a table, by the one that says what is derived.
_TABLES: dict[str, tuple[str, ...]] = {
    "cut": ("at", "labels"),
    "recode": ("to", "else"),
    "if": (),
    **dict.fromkeys(_FUNCTIONS, ("at_least",)),
    "abs": (),
    **dict.fromkeys(_PARTS, ("levels",)),
}
_SPANS = {"month": (1, 12), "quarter": (1, 4), "weekday": (1, 7)}
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
    for name, depth in _depths(reads).items():
        made[name] = _derivation(name, reads[name], columns, made, depth)
    return {name: made[name] for name in given}


def _derivation(
    name: str, read: Definition, columns: Mapping[str, Column], made: Mapping[str, Derivation], depth: int
) -> Derivation:
    """A definition over the columns of the data and those derived before."""
    own = read.made({**columns, **{before: one.column for before, one in made.items()}})
    behind = [one for given in read.inputs for one in (made[given].behind if given in made else (given,))]
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


def _depths(reads: Mapping[str, Definition]) -> dict[str, int]:
    """How many derivations stand one on another, by name, each behind those that it needs.

    Raises `SchemaError` for a circle, or more than `DEEPEST`.
    """
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
    return found


# definitions ----------------------------------------------------------------------------------------------------------


class Made(NamedTuple):
    """A derived column, how its values follow, and its definition in one spelling: as files have it, and as one line."""

    column: Column
    makes: Makes
    settings: str | dict[str, Any]
    text: str


class Definition:
    """One definition as it was written: first the names in it, then what it makes of their columns."""

    def __init__(self, name: str, given: Any, names: tuple[str, ...], ids: Collection[str]) -> None:
        self.name, self.given, self.ids, self.known = name, given, ids, names
        self.kind = self._kind()
        self.inputs = self._inputs()

    def error(self, problem: str, remedy: str = EXAMPLE) -> SchemaError:
        return SchemaError(f"derived column {self.name!r}: {problem}", remedy)

    def _kind(self) -> str:
        """What a table is of, "text" for a line of text."""
        if isinstance(self.given, str):
            return "text"
        if callable(self.given):
            raise self.error(
                "a Python function cannot be a definition, because a plan, a file and a reader could not check it"
            )
        if not isinstance(self.given, Mapping):
            raise self.error(f"a definition is a text or a table, got {type(self.given).__name__}")
        kinds = [key for key in self.given if key in _TABLES]
        if len(kinds) != 1:
            wrong = next((key for key in self.given if refusal(str(key))), None)
            if wrong is not None:
                raise self.error(f"{wrong} is refused: {refusal(str(wrong))}")
            raise self.error(
                f"a table is of one of {', '.join(_TABLES)}, got {', '.join(map(str, self.given)) or 'none'}",
                'write { cut = "age", at = [18, 65], labels = ["young", "grown", "old"] }',
            )
        allowed = (kinds[0], *_TABLES[kinds[0]])
        for key in self.given:
            if key not in allowed:
                raise self.error(
                    f"unknown entry {key!r}{near_match(str(key), allowed)}; allowed are {', '.join(allowed)}"
                )
        return str(kinds[0])

    @property
    def body(self) -> str:
        """The text that names columns."""
        body = self.given if self.kind == "text" else self.given[self.kind]
        if isinstance(body, str) and 0 < len(body.strip()) <= _LONGEST:
            return body
        raise self.error(
            f"{self.kind} takes the name of a column as text of at most {_LONGEST} characters, got {str(body)[:40]!r}"
        )

    def _inputs(self) -> tuple[str, ...]:
        one = self.kind in ("cut", "recode", *_PARTS)
        found = [column_named(self.body, self.known)] if one else list(hidden(self.body, self.known)[1].values())
        if self.kind == "text" and re.match(rf"\s*({'|'.join(_PARTS)})\s*\(", self.body):
            found = found[:1]  # what follows are the words of levels=true
        for name in found:
            if name in self.ids and name not in self.known:
                raise self.error(f"{name!r} is an id column, and ids are never analyzed", "derive from other columns")
        wanted = quoted(found[0]) if one else self.body
        unknown = unknown_names(
            SchemaError, f"derived column {self.name!r}", wanted, self.known, also=("true", "levels")
        )
        if unknown is not None:
            raise unknown
        return tuple(dict.fromkeys(name for name in found if name in self.known))

    def made(self, columns: Mapping[str, Column]) -> Made:
        """The column over those of the data and those derived before, and how it follows from them."""
        self.columns = dict(columns)
        for name in self.inputs:
            column = self.columns[name]
            if isinstance(column, Grid) and not all(column.declared):
                raise self.error(
                    f"it needs declared bounds of {name!r}, which has none, because its own follow from them",
                    f"write them in the schema, as in {name!r}: cf.Numeric(0, 100), from public knowledge",
                )
        try:
            column, makes, settings, text = getattr(self, f"_{self.kind}", self._function)()
        except ConfideError as error:  # of a column, a formula or a condition
            if str(error.problem).startswith("derived column"):
                raise
            raise self.error(str(error.problem), error.remedy or EXAMPLE) from None
        if not self.inputs:
            raise self.error("it names no column, so it would be one value for all records")
        return Made(self._told(column, text), makes, settings, text)

    def _told(self, column: Column, text: str) -> Column:
        """The column with where its bounds come from: they are as public as those of its inputs. And with a rule for missing values
        that never acts, where no input is ever missing, so that methods know that no record is dropped.
        """
        private = any(self.columns[name].provenance.kind == "private" for name in self.inputs)
        where = Provenance("private" if private else "public", f"derived: {text}")
        drops = any(self.columns[name].on_missing == "drop" for name in self.inputs)
        if drops or (self.kind == "recode" and self.given.get("else") == "missing"):
            return replace(column, provenance=where)
        spare = column.levels[0] if isinstance(column, Categorical) else "midpoint"
        return replace(column, provenance=where, on_missing=spare)

    # text -------------------------------------------------------------------------------------------------------------

    def _text(self) -> Any:
        plain, names = hidden(self.body, self.known)
        try:
            tree = ast.parse(plain.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise self.error(f"{self.body!r} cannot be read") from None
        called = tree.func.id if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) else ""
        if isinstance(tree, (ast.Compare, ast.BoolOp)) or "==" in self.body:
            raise self.error(f"{self.body!r} is a condition", f"write {self.name} = {{ if = {self.body!r} }}")
        if called in ("cut", "recode"):
            rest = {"cut": "at = [18, 65], labels = [...]", "recode": "to = { north = [...], south = [...] }"}[called]
            raise self.error(f"{called} takes a table", f"write {{ {called} = {quoted(self.inputs[0])!r}, {rest} }}")
        if isinstance(tree, ast.Call) and called in _BETWEEN:
            return self._between(called, tree, names)
        if isinstance(tree, ast.Call) and called in _PARTS:
            return self._part(called, *self._levels_of(tree, called, names))
        return self._numeric(self._expression(self.body))

    def _between(self, called: str, tree: ast.Call, names: Mapping[str, str]) -> Any:
        if len(tree.args) != 2 or tree.keywords:
            raise self.error(f"{called} takes two dates, got {len(tree.args)}", f"write {called}(birth, '2024-07-01')")
        sides = [self._side(called, one, names) for one in tree.args]
        ends = [(side, side) if isinstance(side, int) else _ends(self.columns[side]) for side in sides]
        between = _years if called == "years_between" else _days
        low = int(between(np.array([ends[0][1]]), np.array([ends[1][0]]))[0])
        high = int(between(np.array([ends[0][0]]), np.array([ends[1][1]]))[0])
        text = f"{called}({', '.join(repr(day_text(one)) if isinstance(one, int) else quoted(one) for one in sides)})"
        self._varies(low, high, text)
        dates = {side: _lows(self.columns[side]) for side in sides if isinstance(side, str)}

        def makes(codes: Mapping[str, Floats]) -> Floats:
            a, b = (
                np.array([one]) if isinstance(one, int) else codes[one].astype(np.int64) + dates[one] for one in sides
            )
            return between(a, b).astype(np.float64)

        return Integer(low, high), makes, text, text

    def _side(self, called: str, tree: ast.expr, names: Mapping[str, str]) -> int | str:
        if isinstance(tree, ast.Constant) and isinstance(tree.value, str):
            day = day_of(tree.value)
            if day is None:
                raise self.error(f"{tree.value!r} is not a date", "write it as '2024-07-01'")
            return day
        if isinstance(tree, ast.Call) and (reason := refusal(ast.unparse(tree.func))):
            raise self.error(f"{ast.unparse(tree)} is refused: {reason}")
        name = names.get(ast.unparse(tree), "")
        if not name:
            raise self.error(
                f"{called} takes columns of dates, and dates in quotes", f"write {called}(birth, '2024-07-01')"
            )
        return self._date(name, called)

    def _date(self, name: str, called: str) -> str:
        if not isinstance(self.columns.get(name), Date):
            raise self.error(
                f"{called} takes columns of dates, and {name!r} is none",
                f'write {name!r}: cf.Date("1900-01-01", "2006-12-31")',
            )
        return name

    def _varies(self, low: float, high: float, text: str) -> None:
        if low == high:
            raise self.error(
                f"{text} is {low:g} for all values within the bounds, and one value tells nothing", "leave it out"
            )

    def _expression(self, text: str) -> Expression:
        return parse_expression(text, Schema(self.columns), text)

    # parts of dates ---------------------------------------------------------------------------------------------------

    def _levels_of(self, tree: ast.Call, called: str, names: Mapping[str, str]) -> tuple[str, bool]:
        said = {one.arg: ast.unparse(one.value) for one in tree.keywords}
        given = {names.get(str(arg), arg): names.get(value, value) for arg, value in said.items()}
        if len(tree.args) != 1 or set(given) - {"levels"} or given.get("levels", "true") not in ("true", "True"):
            raise self.error(
                f"{called} takes one date, and levels=true", f"write {called}({self.inputs[0]}, levels=true)"
            )
        return names.get(ast.unparse(tree.args[0]), ""), bool(given)

    def _function(self) -> Any:
        """A table of a part of a date, or of a function of numbers."""
        if self.kind in _PARTS:
            levels = self.given.get("levels", False)
            if not isinstance(levels, bool):
                raise self.error(f"levels must be true or false, got {levels!r}", "write levels = true")
            return self._part(self.kind, self.inputs[0], levels)
        least = self.given.get("at_least")
        if least is not None and not is_number(least):
            raise self.error(f"at_least must be a finite number, got {least!r}", "write at_least = 1")
        return self._numeric(self._expression(self.body), self.kind, least)

    def _part(self, called: str, name: str, levels: bool) -> Any:
        column = self.columns[self._date(name, called)]
        part, first = _PART_OF[called], _lows(column)
        low, high = _SPANS.get(called, tuple(int(part(np.array([end]))[0]) for end in _ends(column)))
        text = f"{called}({quoted(name)}{', levels=true' if levels else ''})"
        self._varies(low, high, text)

        def makes(codes: Mapping[str, Floats]) -> Floats:
            found = part(codes[name].astype(np.int64) + first)
            return (found - low if levels else found).astype(np.float64)

        made: Column = Categorical([str(one) for one in range(low, high + 1)]) if levels else Integer(low, high)
        return made, makes, text, text

    # labels -----------------------------------------------------------------------------------------------------------

    def _cut(self) -> Any:
        (name,) = self.inputs
        column, points, labels = self.columns[name], self.given.get("at"), self.given.get("labels")
        example = 'write { cut = "age", at = [18, 65], labels = ["young", "grown", "old"] }'
        if not isinstance(column, Grid):
            raise self.error(
                f"cut takes a column of numbers or dates, and {name!r} has levels", 'write { recode = "region", ... }'
            )
        if (
            not isinstance(points, Sequence)
            or isinstance(points, str)
            or not points
            or not isinstance(labels, Sequence)
        ):
            raise self.error("cut needs points and labels", example)
        given = [column.point(str(point) if isinstance(column, Date) else point) for point in points]
        values = [value for value in given if value is not None]
        if len(values) < len(given) or any(one >= two for one, two in pairwise(values)):
            raise self.error(
                f"at must be increasing {'dates' if isinstance(column, Date) else 'numbers'}, got {list(points)!r}",
                example,
            )
        if not column.low < values[0] or not values[-1] <= column.high:
            raise self.error(
                f"at must lie above {column.said(column.low)} and not beyond {column.said(column.high)}, the bounds of {name!r}",
                example,
            )
        if isinstance(labels, str) or len(labels) != len(values) + 1:
            raise self.error(f"{len(values)} points need {len(values) + 1} labels, got {len(labels)}", example)
        # a point is coded as values are; in whole numbers the first one that is not below it
        whole = isinstance(column, Integer)
        starts = column.code(np.ceil(values) if whole else np.array(values))
        if starts[0] <= 0 or (np.diff(starts) <= 0).any():
            raise self.error(
                f"two points are one on the grid of {name!r}", "give points further apart than a step of the grid"
            )
        shown = [column.said(value) if isinstance(column, Date) else _plain(value) for value in values]
        made = Categorical(labels)
        settings = {"cut": name, "at": shown, "labels": list(made.levels)}
        text = f"cut({quoted(name)}, at={shown}, labels={list(made.levels)})"

        def makes(codes: Mapping[str, Floats]) -> Floats:
            return np.searchsorted(starts, codes[name], side="right").astype(np.float64)

        return made, makes, settings, text

    def _recode(self) -> Any:
        (name,) = self.inputs
        column, to, other = self.columns[name], self.given.get("to"), self.given.get("else")
        example = 'write { recode = "region", to = { north = ["01", "02"] }, else = "missing" }'
        if not isinstance(column, Categorical):
            raise self.error(
                f"recode takes a column of labels, and {name!r} has none", 'write { cut = "age", at = [18], ... }'
            )
        if not isinstance(to, Mapping) or not to:
            raise self.error("recode needs a table of levels and what they stand for", example)
        if "missing" in to and other == "missing":
            raise self.error("else = 'missing' is a level of to and no value too", "give the level another name")
        levels = [str(level) for level in to] + ([other] if other not in (None, "missing", *to) else [])
        places = np.full(column.steps, np.nan if other in (None, "missing") else levels.index(other))
        named: dict[int, str] = {}
        settings: dict[str, list[str]] = {}
        for level, stands in to.items():
            for one in [stands] if isinstance(stands, (str, int)) else stands:
                at = column.index_of(one)
                if at < 0:
                    raise self.error(f"{name!r} has no level {one!r}{near_match(str(one), column.levels)}", example)
                if named.setdefault(at, level) != level:
                    raise self.error(
                        f"the level {one!r} of {name!r} is in {named[at]!r} and in {level!r}", "name it once"
                    )
                places[at] = levels.index(str(level))
                settings.setdefault(str(level), []).append(column.levels[at])
        left = [level for at, level in enumerate(column.levels) if at not in named]
        if left and other is None:
            raise self.error(
                f"the level {left[0]!r} of {name!r} is in none of them", 'name it, or write else = "missing"'
            )
        if not left and other is not None:
            raise self.error(f"every level of {name!r} is named, so else has no use", "leave else out")
        rest = {} if other is None else {"else": other}
        told = f"recode({quoted(name)}, to={settings}{f', else={other!r}' if rest else ''})"
        made = Categorical(levels)
        return made, lambda codes: places[codes[name].astype(np.intp)], {"recode": name, "to": settings, **rest}, told

    def _if(self) -> Any:
        asked = parse_predicate(self.body, Schema(self.columns))
        text = " ".join(self.body.split())

        def makes(codes: Mapping[str, Floats]) -> Floats:
            return asked(np.stack([codes[name] for name in asked.columns])).astype(np.float64)

        return Categorical(["no", "yes"]), makes, {"if": text}, f"if({text})"

    # numbers ----------------------------------------------------------------------------------------------------------

    def _numeric(self, inner: Expression, called: str = "", least: float | None = None) -> Any:
        if inner.column is not None and not called:
            raise self.error(
                f"it is {inner.column!r} itself", "leave it out, or name the column differently in [columns]"
            )
        inputs: dict[str, Any] = {name: self.columns[name] for name in inner.columns}
        if isinstance(self.columns.get(inner.column or ""), (Categorical, Date)):
            raise self.error(
                f"{inner.column!r} is not a column of numbers",
                "write days_between(a, b) of dates, { recode = ... } of labels",
            )
        limits = {name: Interval(column.low, column.high) for name, column in inputs.items()}
        bounds = inner.interval(limits)
        if least is not None:
            bounds = Interval(max(bounds.low, least), max(bounds.high, least))
        whole = inner.whole(limits, {name for name, column in inputs.items() if isinstance(column, Integer)})
        whole = whole and called in ("", "abs") and (least is None or float(least).is_integer())
        self._check_defined(inner, limits, called, bounds)
        if called:
            bounds = abs(bounds) if called == "abs" else getattr(bounds, called)()
        text = (
            inner.name
            if not called
            else f"{called}({inner.name if least is None else f'max({inner.name}, {_plain(least)})'})"
        )
        if not bounds.finite:
            raise self.error(
                f"{text} has no finite bounds ({bounds.low:g} to {bounds.high:g})",
                f'write {{ log = "{self.inputs[0]}", at_least = 1 }}, or bounds that leave out where it is infinite',
            )
        self._varies(bounds.low, bounds.high, text)
        exact = whole and bounds.high - bounds.low < MAX_STEPS
        made: Column = Integer(bounds.low, bounds.high) if exact else Numeric(bounds.low, bounds.high)
        settings: Any = text
        if called and least is not None:
            settings = {called: inner.name, "at_least": _plain(least)}
        return made, lambda codes: _by_blocks(inner, inputs, called, least, codes), settings, text

    def _check_defined(self, inner: Expression, limits: Mapping[str, Interval], called: str, bounds: Interval) -> None:
        """Refuse what is not defined for some values within the bounds: they would be missing silently."""
        undefined = inner.undefined(limits)
        lowest = {"log": 0.0, "log1p": -1.0, "sqrt": 0.0}.get(called)
        if lowest is not None and (bounds.low < lowest or (bounds.low == lowest and called != "sqrt")):
            undefined = f"{called}({inner.name})"
        if undefined:
            raise self.error(
                f"{undefined} is not defined for all values within the bounds of {', '.join(limits)}",
                f'say from where on, as in {{ log = "{self.inputs[0]}", at_least = 1 }}, or change the bounds',
            )


def _plain(value: float) -> int | float:
    """A number in one spelling: 100.0 is 100."""
    return int(value) if float(value).is_integer() and abs(value) < 2**53 else float(value)


def _by_blocks(
    inner: Expression, columns: Mapping[str, Any], called: str, least: float | None, codes: Mapping[str, Floats]
) -> Floats:
    """The function of each record, in aligned blocks of one length: vector loops may treat the ends of an array differently."""
    rows = len(next(iter(codes.values())))
    found = np.empty(rows)
    room = {name: aligned(BLOCK) for name in columns}
    for start in range(0, rows, BLOCK):
        stop = min(start + BLOCK, rows)
        for name, column in columns.items():
            room[name][: stop - start] = codes[name][start:stop]
            room[name][stop - start :] = 0.0
            column.decode_into(room[name], room[name])
        values = inner.evaluate(room)
        with np.errstate(all="ignore"):
            values = values if least is None else np.maximum(values, least)
            values = getattr(np, called)(values) if called else values
        found[start:stop] = values[: stop - start]
    return found


# dates ----------------------------------------------------------------------------------------------------------------


def _lows(column: Any) -> int:
    return int(column.low)


def _ends(column: Any) -> tuple[int, int]:
    return int(column.low), int(column.high)


def _days(a: Whole, b: Whole) -> Whole:
    return b - a


def _years(a: Whole, b: Whole) -> Whole:
    """Completed years from one day to another: the largest whole number that can be added to the first and not be beyond the second.
    It is a floor, so that one day back is -1.

    Of 29 February, anniversaries in other years are on 1 March.
    """
    (year, month, day), (later, other, last) = _civil(a), _civil(b)
    early: NDArray[np.bool_] = (other < month) | ((other == month) & (last < day))
    return later - year - early.astype(np.int64)


def _civil(days: Whole) -> tuple[Whole, Whole, Whole]:
    """Year, month and day of days since 1970-01-01."""
    months = days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
    return 1970 + months // 12, 1 + months % 12, 1 + days - first_days(months)


_PART_OF: dict[str, Callable[[Whole], Whole]] = {
    "year": lambda days: _civil(days)[0],
    "month": lambda days: _civil(days)[1],
    "quarter": lambda days: (_civil(days)[1] + 2) // 3,
    # 1970-01-01 was a Thursday, and Monday is 1
    "weekday": lambda days: (days + 3) % 7 + 1,
}
