"""Subgroups: "age >= 65 & region == 'N'" as a question to the codes of one record.

Comparisons of one column with constants (==, !=, <, <=, >, >=, in, not in, and chains such as 18 <= age < 65), joined by &, | and ~. They
are decided on codes, which are whole numbers, so that a record is in or out whatever machine or batch it is read on. A constant is coded
as a value of its column is: `x >= 65` holds for the code of 65 and those above. A record whose value is missing in any of the columns,
after the column's own `on_missing`, is out, whatever stands beside that comparison.
"""

from __future__ import annotations

import ast
import io
import json
import math
import re
import tokenize
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from confide._helpers import near_match
from confide.errors import PlanError, SchemaError
from confide.schema.columns import Categorical, Column, Integer
from confide.schema.formulas.names import age_of, hidden, quoted, restored, unknown_names
from confide.schema.schema import Schema
from confide.schema.settings import is_number

Codes: TypeAlias = NDArray[np.float64]
#: Codes from the first to the second, both included.
Span: TypeAlias = tuple[int, int]

_EXAMPLE = "write for example where=\"age >= 65 & region == 'N'\""
# Characters, and tokens that may open a level of the tree: Python's own reader has limits near these.
_LONGEST, _DEEPEST = 2_000, 50
# Combinations of codes that are looked at when a subgroup is asked whether it is constant, or how large it may be.
_COMBINATIONS = 1 << 16
_WORDS = {"&": "and", "|": "or", "~": "not"}


@dataclass(frozen=True)
class _Among:
    """The code of one column lies in one of several spans."""

    column: str
    spans: tuple[Span, ...]

    def holds(self, codes: Mapping[str, Codes]) -> NDArray[np.bool_]:
        own = codes[self.column]
        found = np.zeros(own.shape, dtype=np.bool_)
        for low, high in self.spans:
            found |= (own >= low) & (own <= high)
        return found

    def to_list(self) -> list[Any]:
        return ["among", self.column, [list(span) for span in self.spans]]


@dataclass(frozen=True)
class _Joined:
    """Several conditions: "and", "or", or "not" of the one."""

    word: str
    parts: tuple[_Node, ...]

    def holds(self, codes: Mapping[str, Codes]) -> NDArray[np.bool_]:
        found = self.parts[0].holds(codes)
        if self.word == "not":
            return ~found
        for part in self.parts[1:]:
            found = found & part.holds(codes) if self.word == "and" else found | part.holds(codes)
        return found

    def to_list(self) -> list[Any]:
        return [self.word, *(part.to_list() for part in self.parts)]


_Node: TypeAlias = _Among | _Joined


@dataclass(frozen=True)
class Predicate:
    """Which records are meant: a function of the codes of one record. Made by `parse_predicate`.

    text: as it was written; columns: those that it looks at. Two are equal when they ask the same of the same columns.

    >>> from confide.schema import Categorical, Integer
    >>> schema = Schema({"age": Integer(0, 100), "region": Categorical(["N", "S"])})
    >>> old = parse_predicate("age >= 65 & region == 'N'", schema)
    >>> old.columns, old(np.array([[65.0, 64.0, 80.0, -1.0], [0.0, 0.0, 1.0, 0.0]])).tolist()
    (('age', 'region'), [True, False, False, False])
    """

    text: str = field(compare=False)
    columns: tuple[str, ...]
    steps: tuple[int, ...] = field(repr=False)
    tree: _Node = field(repr=False)
    facts: tuple[str, ...] = field(repr=False)

    def __call__(self, codes: Codes) -> NDArray[np.bool_]:
        """Codes of `columns`, shape (columns, rows), to (rows,): True for the records that are meant."""
        found = self.tree.holds(dict(zip(self.columns, codes, strict=True)))
        for own in codes:
            found &= own >= 0
        return found

    def to_list(self) -> list[Any]:
        """For digests: what it asks, and how its columns are read."""
        return [self.tree.to_list(), list(self.facts)]

    def share(self, schema: Schema) -> float:
        """A guess of the share of records that are meant, from public facts: typical spreads and shares where the schema
        states them, else all codes alike. Columns as if independent, and no value missing.
        """
        columns = [(name, schema[name], _pieces(name, self)) for name in self.columns]
        weights = [[_weight(column, span) for span in pieces] for _, column, pieces in columns]
        if math.prod(len(pieces) for *_, pieces in columns) <= _COMBINATIONS:
            inside, total = self(_grid([pieces for *_, pieces in columns])), np.array(weights[0])
            for more in weights[1:]:
                total = np.multiply.outer(total, np.array(more)).ravel()
            return float(total[inside].sum())
        generator = np.random.Generator(np.random.PCG64(1))
        drawn = [
            np.array([low for low, _ in pieces], dtype=np.float64)[
                generator.choice(len(pieces), _COMBINATIONS, p=np.array(own) / sum(own))
            ]
            for (*_, pieces), own in zip(columns, weights, strict=True)
        ]
        return float(self(np.array(drawn)).mean())


def check_where(where: object) -> None:
    """Raise `PlanError` unless a subgroup is text of a sensible length, or None."""
    if where is None:
        return
    if not isinstance(where, str) or not where.strip():
        raise PlanError(f"where must be a condition on columns as text, got {where!r}", f"{_EXAMPLE}")
    # a name in backticks may hold any character, as it may in the schema
    if len(where) > _LONGEST or not re.sub("`[^`]*`", "", where).isprintable():
        raise PlanError(
            f"where must be printable text of at most {_LONGEST} characters, got {len(where)}", f"{_EXAMPLE}"
        )


def parse_predicate(text: str, schema: Schema) -> Predicate:
    """Read a condition over the columns of a schema.

    Raises `SchemaError` for a column or a level that the schema lacks, `PlanError` for what cannot be read, and for a
    comparison that labels or bounds do not allow. Also for a condition that is constant by the schema.
    """
    check_where(text)
    return _read(text, schema.bare)


@lru_cache(maxsize=256)
def _read(text: str, schema: Schema) -> Predicate:
    reader = _Reader(schema, text)
    tree = reader.node(reader.parsed())
    columns = tuple(name for name in schema.names if name in reader.columns)
    facts = tuple(json.dumps(schema[name].to_dict(), sort_keys=True) for name in columns)
    found = Predicate(text.strip(), columns, tuple(schema[name].steps for name in columns), tree, facts)
    _check_constant(found)
    return found


class _Reader:
    """From text to a tree of conditions; collects the columns."""

    def __init__(self, schema: Schema, text: str) -> None:
        self.schema, self.text = schema, text
        self.columns: set[str] = set()
        self.plain, self.names = hidden(text, schema.names)

    def parsed(self) -> ast.expr:
        """Python's tree, where `&`, `|` and `~` bind less than comparisons, as in a pandas query."""
        try:
            words = []
            for token in tokenize.generate_tokens(io.StringIO(self.plain.strip()).readline):
                operator = token.type == tokenize.OP
                words.append(
                    (tokenize.NAME, f" {_WORDS[token.string]} ") if operator and token.string in _WORDS else token[:2]
                )
            if sum(word.strip() in ("(", "[", "not") for _, word in words) > _DEEPEST:
                raise self._refused(f"it has more than {_DEEPEST} brackets and negations")
            return ast.parse(tokenize.untokenize(words).strip(), mode="eval").body
        except (SyntaxError, tokenize.TokenError, ValueError, RecursionError, MemoryError):
            raise self._refused("it cannot be read; equality is ==, and labels stand in quotes") from None

    def node(self, tree: ast.expr) -> _Node:
        if isinstance(tree, ast.BoolOp):
            word = "and" if isinstance(tree.op, ast.And) else "or"
            return _Joined(word, tuple(self.node(value) for value in tree.values))
        if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.Not):
            return _Joined("not", (self.node(tree.operand),))
        if isinstance(tree, ast.Compare):
            return self._compared(tree)
        if isinstance(tree, (ast.Name, ast.Attribute)):
            name = self._column(tree)
            raise self._refused(f"{name!r} stands alone; compare it, as in {quoted(name)} == 1")
        raise self._refused(f"{self._shown(tree)!r} is not a comparison of a column with constants")

    def _compared(self, tree: ast.Compare) -> _Node:
        sides = [tree.left, *tree.comparators]
        parts = [self._pair(left, op, right) for left, op, right in zip(sides, tree.ops, sides[1:], strict=False)]
        return parts[0] if len(parts) == 1 else _Joined("and", tuple(parts))

    def _pair(self, left: ast.expr, op: ast.cmpop, right: ast.expr) -> _Node:
        shown = f"{self._shown(left)} {_SYMBOLS.get(type(op), '?')} {self._shown(right)}"
        if type(op) not in _SYMBOLS:
            raise self._refused(f"{self._shown(ast.Compare(left, [op], [right]))!r} is not a known comparison")
        word = _SYMBOLS[type(op)]
        if not isinstance(left, (ast.Name, ast.Attribute)) and word in _MIRRORED:
            left, right, word = right, left, _MIRRORED[word]
        if not isinstance(left, (ast.Name, ast.Attribute)):
            raise self._refused(f"{shown!r} names no column on its own; compare a column with constants")
        name = self._column(left)
        self.columns.add(name)
        column = self.schema[name]
        if word in ("in", "not in"):
            if not isinstance(right, (ast.List, ast.Tuple, ast.Set)) or not right.elts:
                raise self._refused(f"{shown!r} needs a list of constants, as in {quoted(name)} in [1, 2]")
            spans = [span for one in right.elts for span in self._spans(name, column, "==", self._constant(one), shown)]
            spans = _united(spans)
        else:
            spans = self._spans(name, column, word.replace("!=", "=="), self._constant(right), shown)
        if word in ("!=", "not in"):
            spans = _others(spans, column.steps)
        return _Among(name, self._varying(tuple(spans), column, shown))

    def _varying(self, spans: tuple[Span, ...], column: Column, shown: str) -> tuple[Span, ...]:
        held = sum(high - low + 1 for low, high in spans)
        if 0 < held < column.steps:
            return spans
        bounds = (
            ""
            if isinstance(column, Categorical)
            else f", whose bounds are {column.said(column.low)} and {column.said(column.high)}"
        )
        raise self._refused(
            f"{shown!r} is {'true' if held else 'false'} for every value that the schema allows{bounds}; take it out"
        )

    def _spans(self, name: str, column: Column, word: str, value: Any, shown: str) -> list[Span]:
        if isinstance(column, Categorical):
            if word != "==":
                raise self._refused(
                    f"{shown!r} orders the labels of a categorical column; write {quoted(name)} in [...]"
                )
            place = column.index_of(value)
            if place < 0:
                raise SchemaError(
                    f"the column {name!r} has no level {value!r}{near_match(str(value), column.levels)}, asked for in where="
                    f"{self.text!r}; its levels are: {', '.join(column.levels[:20])}{', ...' if column.steps > 20 else ''}"
                )
            return [(place, place)]
        point = column.point(value)
        if point is None:
            dated = column.kind == "date"
            kind, wanted = ("date", "a date in quotes, as in '2024-07-01'") if dated else ("numeric", "a finite number")
            raise self._refused(f"{shown!r} compares the {kind} column {name!r} with {value!r}; write {wanted}")
        return _ordered(column, word, point)

    def _column(self, tree: ast.Name | ast.Attribute) -> str:
        text = ast.unparse(tree)
        name = self.names.get(text, text)
        if name not in self.schema:
            error = unknown_names(SchemaError, "where", self.text, self.schema.names, name, age=age_of(self.schema))
            error.problem += " (labels stand in quotes, region == 'N')"
            raise error
        return name

    def _constant(self, tree: ast.expr) -> Any:
        sign = 1
        if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, (ast.USub, ast.UAdd)):
            sign, tree = -1 if isinstance(tree.op, ast.USub) else 1, tree.operand
        plain = isinstance(tree, ast.Constant) and isinstance(tree.value, (bool, int, float, str))
        if isinstance(tree, ast.Constant) and plain and (sign == 1 or is_number(tree.value)):
            return tree.value if sign == 1 else -tree.value  # type: ignore[operator]
        if isinstance(tree, (ast.Name, ast.Attribute)):
            raise self._refused(
                f"{self.names.get(ast.unparse(tree), ast.unparse(tree))!r} is compared, which is not a constant; labels stand in quotes"
            )
        raise self._refused(f"{self._shown(tree)!r} is not a constant: a number, or a label in quotes")

    def _shown(self, tree: ast.AST) -> str:
        """A piece as it was written."""
        return restored(ast.unparse(tree), self.names)

    def _refused(self, reason: str) -> PlanError:
        return PlanError(
            f"where={self.text!r}: {reason}. Allowed are comparisons of one column with constants (==, !=, <, <=, >, >=, in), joined by "
            "&, | and ~, with brackets",
            f"{_EXAMPLE}",
        )


_SYMBOLS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.In: "in",
    ast.NotIn: "not in",
}
_MIRRORED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def _ordered(column: Any, word: str, value: float) -> list[Span]:
    """The codes of a numeric column that compare in this way with a value. The value is coded like those of the column.
    If it is out of bounds, or not whole in a column of whole numbers, it lies between codes.
    """
    last = column.steps - 1
    if value < column.low:
        return [(0, last)] if word in (">", ">=") else []
    if value > column.high:
        return [(0, last)] if word in ("<", "<=") else []
    code = int(column.code(np.array([math.floor(value) if isinstance(column, Integer) else value]))[0])
    if isinstance(column, Integer) and not value.is_integer():
        # between `code` and the next
        spans = {"<": (0, code), "<=": (0, code), ">": (code + 1, last), ">=": (code + 1, last), "==": (1, 0)}
    else:
        spans = {"<": (0, code - 1), "<=": (0, code), ">": (code + 1, last), ">=": (code, last), "==": (code, code)}
    low, high = spans[word]
    return [(low, high)] if low <= high else []


def _united(spans: list[Span]) -> list[Span]:
    """The same codes in spans that neither meet nor touch, in order."""
    found: list[Span] = []
    for low, high in sorted(spans):
        if found and low <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(high, found[-1][1]))
        else:
            found.append((low, high))
    return found


def _others(spans: list[Span], steps: int) -> list[Span]:
    """The codes that lie in none of the spans."""
    ends = [-1, *(end for low, high in spans for end in (low, high)), steps]
    return [(low + 1, high - 1) for low, high in zip(ends[::2], ends[1::2], strict=True) if low + 1 <= high - 1]


# what follows from the schema alone ------------------------------------------------------------------------------------


def _leaves(node: _Node) -> Iterator[_Among]:
    if isinstance(node, _Among):
        yield node
    else:
        for part in node.parts:
            yield from _leaves(part)


def _pieces(name: str, *asked: Predicate) -> list[Span]:
    """The codes of a column in spans within which none of the conditions tells two codes apart."""
    starts, steps = {0}, 1
    for one in asked:
        steps = dict(zip(one.columns, one.steps, strict=True)).get(name, steps)
        for leaf in _leaves(one.tree):
            if leaf.column == name:
                starts |= {code for low, high in leaf.spans for code in (low, high + 1)}
    cuts = [code for code in sorted(starts) if code < steps]
    return [(low, high - 1) for low, high in zip(cuts, [*cuts[1:], steps], strict=True)]


def _grid(pieces: list[list[Span]]) -> Codes:
    """One record of each combination of pieces, shape (columns, combinations)."""
    firsts = [np.array([low for low, _ in own], dtype=np.float64) for own in pieces]
    return np.array([axis.ravel() for axis in np.meshgrid(*firsts, indexing="ij")])


def _check_constant(found: Predicate) -> None:
    pieces = [_pieces(name, found) for name in found.columns]
    if math.prod(map(len, pieces)) > _COMBINATIONS:
        return
    inside = found(_grid(pieces))
    if inside.all() or not inside.any():
        raise PlanError(
            f"where={found.text!r} is {'true' if inside.all() else 'false'} for every record that the schema allows, so that it means "
            f"{'all records; leave where out' if inside.all() else 'nobody; change it'}"
        )


def overlap(asked: Sequence[Predicate]) -> tuple[bool, bool] | None:
    """Whether no record can be in two of the subgroups, and whether every record with no value missing is in one of them.

    None where there are too many combinations of codes to look at.
    """
    names = tuple(dict.fromkeys(name for one in asked for name in one.columns))
    pieces = [_pieces(name, *asked) for name in names]
    if math.prod(map(len, pieces)) > _COMBINATIONS:
        return None
    codes = _grid(pieces)
    times = sum(one(codes[[names.index(name) for name in one.columns]]).astype(np.int64) for one in asked)
    counts = np.asarray(times)
    return bool((counts <= 1).all()), bool((counts >= 1).all())


def _weight(column: Column, span: Span) -> float:
    """The share of a column's values that has these codes, as a schema lets one guess."""
    low, high = span
    if isinstance(column, Categorical):
        shares = (1 / column.steps,) * column.steps if column.shares is None else column.shares.each
        return float(sum(shares[low : high + 1]))
    if column.spread is None:
        return (high - low + 1) / column.steps
    # typical values are the mean minus and plus two standard deviations of a normal law, cut at the bounds
    middle, sd = (column.spread.low + column.spread.high) / 2, (column.spread.high - column.spread.low) / 4
    left, right = (column.low + (code - 0.5) / column.scale for code in (low, high + 1))
    below = 0.0 if low == 0 else _normal((left - middle) / sd)
    return (1.0 if high == column.steps - 1 else _normal((right - middle) / sd)) - below


def _normal(z: float) -> float:
    return math.erfc(-z / math.sqrt(2)) / 2
