"""One factor of a formula: an arithmetic expression of columns, read with Python's `ast` and evaluated here.

Allowed are columns, finite constants, + - * /, powers with a constant exponent, log, log1p, sqrt, exp, abs (also as
np.log and so on), I(), and days_between() of dates. Everything is elementwise: what a record gives depends on that
record alone. Whatever learns from data (a mean, a spread, knots, levels) is refused with the reason.

What a formula meant that asks for a summary by name, as `mean(income) ~ region`: a table's columns are what it sums up.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from confide._arrays import Array
from confide.errors import PlanError
from confide.schema.dates import day_of
from confide.schema.formulas.interval_arithmetic import Interval, repeated_product
from confide.schema.formulas.names import age_of, hidden, quoted, restored, unknown_names
from confide.schema.schema import Schema

# What words for a summary ask for: (the call that answers, what its table has).
_COUNTS = ("cf.tables.counts", "the table of {!r} has the numbers of records")
_SHARES = ("cf.tables.shares", "the table of {!r} has the shares")
_MEANS = ("cf.tables.means", "the table of {!r} has the means")
_TOTALS = ("cf.tables.totals", "the table of {!r} has the totals")
_MEDIANS = ("cf.tables.quantiles", "the table of {!r} has median and quartiles")
_SPREADS = ("cf.tables.table_one", "the table of {!r} has means with their standard deviations")
_SUMMARIES = {
    **dict.fromkeys(("mean", "avg", "average"), _MEANS),
    **dict.fromkeys(("sum", "total"), _TOTALS),
    **dict.fromkeys(("median", "quantile", "quantiles", "percentile"), _MEDIANS),
    **dict.fromkeys(("sd", "std", "stdev", "var", "variance"), _SPREADS),
    **dict.fromkeys(("count", "counts", "n", "nrow", "size", "len"), _COUNTS),
    **dict.fromkeys(("share", "prop", "proportion", "percent", "pct", "freq", "frequency"), _SHARES),
}
_CALL = re.compile(r"(?:np\.|numpy\.)?(\w+)\s*\(\s*([^(),]*)(?:,[^()]*)?\)")


def summary_words(formula: str) -> str:
    """Why a formula is refused whose left side, or which as a whole, is the name of a summary, with the call that works; else nothing.

    >>> summary_words("mean(bmi) ~ sex")
    "mean is of many records and no function of one: the table of 'bmi ~ sex' has the means; write cf.tables.means('bmi ~ sex', ...)"
    >>> summary_words("prop(smoker) ~ sex").partition("write ")[2]
    "cf.tables.shares('sex * smoker', within='sex', ...)"
    >>> summary_words("count(ill == 'yes')").partition("cf.tables.")[2].partition(" has")[0]
    'distinct_counts'
    >>> summary_words("y ~ mean(x)")
    ''
    """
    left, mark, right = (part.strip() for part in formula.partition("~"))
    found = _CALL.fullmatch(left)
    if found is None or found[1].lower() not in _SUMMARIES:
        return ""
    meant = _SUMMARIES[found[1].lower()]
    if meant is _COUNTS and re.search("[=<>]", found[2]):
        wanted = f"number({found[2].strip()}, 1, 2, 5)"
        return (
            f"{found[1]} is of many records and no function of one. Of persons with several rows cf.tables.distinct_counts has those with "
            f"so many of them, written {wanted}, and any({found[2].strip()}) for one at least. A table of the column has the numbers "
            "of records"
        )
    name, inner, groups = found[1], found[2].strip(), "" if right in ("", "1") else right
    plain, more = f"{inner} ~ {right}" if mark else inner, ""
    if meant is _COUNTS:
        plain = groups or inner
    elif meant is _SHARES:
        plain, more = (f"{groups} * {inner}", f", within={groups!r}") if groups else (inner, "")
    if not plain:
        return ""
    call, says = meant
    return f"{name} is of many records and no function of one: {says.format(plain)}; write {call}({plain!r}{more}, ...)"


_LARGEST_EXPONENT = 64
_FUNCTIONS: dict[str, tuple[Callable[[Any], Any], Callable[[Interval], Interval]]] = {
    "log": (np.log, Interval.log),
    "log1p": (np.log1p, Interval.log1p),
    "sqrt": (np.sqrt, Interval.sqrt),
    "exp": (np.exp, Interval.exp),
    "abs": (np.abs, Interval.__abs__),
    "-": (np.negative, Interval.__neg__),
}
_OPERATORS: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Interval, Interval], Interval]]] = {
    "+": (np.add, Interval.__add__),
    "-": (np.subtract, Interval.__sub__),
    "*": (np.multiply, Interval.__mul__),
    "/": (np.divide, Interval.__truediv__),
}
_SYMBOLS: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}

_SPLINE = "its knots and basis would be learned from the records; write powers, as in x + I(x ** 2), or abs(x - 40) for a bend at 40"
_OTHERS = "it is of other records and no function of one; "
_REFUSED = {
    "scale": "the mean and the standard deviation would be learned from the records; write I((x - 40) / 10) with public constants",
    "standardize": "the mean and the standard deviation would be learned from the records; write I((x - 40) / 10) with public constants",
    "center": "the mean would be learned from the records; write I(x - 40) with a public constant",
    "poly": "its orthogonal basis would be learned from the records; write x + I(x ** 2)",
    **dict.fromkeys(("bs", "ns", "cr", "cs", "cc", "te"), _SPLINE),
    "lag": "it would mix records; add the earlier value as a column of the same record",
    "Q": "names are quoted by backticks: write `odd name`",
    "C": "it stands alone: declare the column as Categorical([...]) in the schema and write its name",
    **dict.fromkeys(
        ("rank", "percent_rank", "ntile", "percentile"), _OTHERS + "cut at public points, { cut = ..., at = [...] }"
    ),
    **dict.fromkeys(
        ("lead", "diff", "shift"), "it would mix records; add the other value as a column of the same record"
    ),
    **dict.fromkeys(
        ("cumsum", "cumprod", "cumulative", "cumcount"),
        _OTHERS + "add the value up to then as a column of the same record",
    ),
    **dict.fromkeys(("first", "last", "min", "max", "mode"), _OTHERS + "add it as a column of the same record"),
    **dict.fromkeys(
        ("row_number", "rownum", "rowid"), "the place of a record says nothing about it; write a column of the data"
    ),
    **dict.fromkeys(
        ("today", "now", "current_date", "sysdate"),
        "it would be another day in each run; write the date, as in years_between(birth, '2024-07-01')",
    ),
    **dict.fromkeys(
        ("random", "rand", "runif", "rnorm", "uniform"),
        "a derived value is the same in each run; draw it in the data, before they are read",
    ),
    **dict.fromkeys(("join", "merge", "lookup"), "it would read other records; join in the data, before they are read"),
    **dict.fromkeys(
        ("regex", "match", "replace", "sub", "substr", "substring", "split", "contains", "lower", "upper"),
        'free text has no public levels; name the levels, as in { recode = ..., to = {...}, else = "missing" }',
    ),
}


def refusal(name: str) -> str:
    """Why a function of this name is refused, and what to write instead; nothing for a name that is in no list.

    >>> refusal("today").partition(";")[0]
    'it would be another day in each run'
    """
    plain = re.sub(r"^(np|numpy)\.", "", name)
    if plain.lower() in _SUMMARIES:
        return _OTHERS + f"ask for it in a table, {_SUMMARIES[plain.lower()][0]}"
    return _REFUSED.get(plain, _REFUSED.get(plain.lower(), ""))


@dataclass(frozen=True)
class _Node:
    """A validated expression: a constant, a column, or an operation on smaller ones."""

    kind: str  # "constant", "column", "power", or a key of _FUNCTIONS (one argument) or _OPERATORS (two)
    value: Any = None
    arguments: tuple[_Node, ...] = ()


@dataclass(frozen=True)
class Expression:
    """A factor of a formula. `name` is how it is printed, `columns` what it needs; equal when they compute the same.

    >>> schema = Schema({"age": {"kind": "numeric", "low": 0, "high": 99}})
    >>> factor = parse_expression("log1p( age )", schema, "y ~ log1p( age )")
    >>> factor.name, factor.evaluate({"age": np.array([0.0])}).tolist(), factor.columns
    ('log1p(age)', [0.0], ('age',))
    """

    name: str = field(compare=False)
    columns: tuple[str, ...] = field(compare=False)
    node: _Node = field(repr=False)

    @property
    def column(self) -> str | None:
        """The column that the factor is, or None when it computes something."""
        return self.node.value if self.node.kind == "column" else None

    def evaluate(self, values: Mapping[str, Array]) -> Array:
        """The factor of each record, from columns in their own units; elementwise, in one fixed order of operations.

        What is not defined is NaN or infinite; floating-point warnings are off.
        """
        with np.errstate(all="ignore"):
            return np.asarray(_evaluate(self.node, values), dtype=np.float64)

    def interval(self, bounds: Mapping[str, Interval]) -> Interval:
        """Public bounds of the factor from those of its columns, by interval arithmetic."""
        return _interval(self.node, bounds)

    def undefined(self, bounds: Mapping[str, Interval]) -> str:
        """The operation that is not defined for some values within the bounds; nothing where all are."""
        return next((_WORDS.get(node.kind, node.kind) for node in _nodes(self.node) if not _defined(node, bounds)), "")

    def whole(self, bounds: Mapping[str, Interval], whole: Collection[str]) -> bool:
        """Whether it is a whole number wherever the columns `whole` are, and computed exactly."""
        return all(_is_whole(node, bounds, whole) for node in _nodes(self.node))


_WORDS = {"/": "a quotient", "power": "a power"}
# Up to here every whole number is a double.
_EXACT = 2.0**53


def _nodes(node: _Node) -> Iterator[_Node]:
    yield node
    for argument in node.arguments:
        yield from _nodes(argument)


def _defined(node: _Node, bounds: Mapping[str, Interval]) -> bool:
    """Whether an operation is defined for all values within the bounds of its last argument."""
    if not node.arguments:
        return True
    last = _interval(node.arguments[-1], bounds)
    if node.kind in ("log", "log1p"):
        return last.low > (0.0 if node.kind == "log" else -1.0)
    if node.kind == "sqrt":
        return last.low >= 0.0
    if node.kind == "/":
        return 0.0 not in last
    if node.kind == "power":
        return (node.value >= 0.0 or 0.0 not in last) and (float(node.value).is_integer() or last.low >= 0.0)
    return True


def _is_whole(node: _Node, bounds: Mapping[str, Interval], whole: Collection[str]) -> bool:
    if node.kind == "column":
        fits = node.value in whole
    elif node.kind in ("constant", "power"):
        fits = float(node.value).is_integer() and (node.kind == "constant" or node.value >= 0.0)
    else:
        fits = node.kind in ("+", "-", "*", "abs")
    own = _interval(node, bounds)
    return fits and -_EXACT <= own.low <= own.high <= _EXACT


def _evaluate(node: _Node, values: Mapping[str, Array]) -> Any:
    return _walked(node, values, np.float64, _power, 0)


def _interval(node: _Node, bounds: Mapping[str, Interval]) -> Interval:
    found: Interval = _walked(node, bounds, Interval.point, Interval.power, 1)
    return found


def _walked(
    node: _Node,
    columns: Mapping[str, Any],
    constant: Callable[[float], Any],
    power: Callable[[Any, float], Any],
    way: int,
) -> Any:
    """The value of a tree: of numbers (way 0), or of their bounds (way 1)."""
    if node.kind == "constant":
        return constant(node.value)
    if node.kind == "column":
        return columns[node.value]
    arguments = [_walked(argument, columns, constant, power, way) for argument in node.arguments]
    if node.kind == "power":
        return power(arguments[0], node.value)
    return (_FUNCTIONS if len(arguments) == 1 else _OPERATORS)[node.kind][way](*arguments)


def _power(base: Any, exponent: float) -> Any:
    if exponent == 0.0:
        return np.where(np.isnan(base), np.nan, 1.0)
    if exponent < 0.0:
        return np.divide(1.0, _power(base, -exponent))
    if exponent == 0.5:
        return np.sqrt(base)
    if exponent.is_integer():
        return repeated_product(base, int(exponent))
    return np.power(base, exponent)


# reading --------------------------------------------------------------------------------------------------------------


def parse_expression(text: str, schema: Schema, formula: str, names: Mapping[str, str] | None = None) -> Expression:
    """The factor that a piece of a formula stands for; names as they stand, or replaced before as `names` says.

    Raises `PlanError` for text that is not an expression, a column that the schema lacks, a categorical column inside
    of arithmetic, and anything that is not on the white list. `formula` is named in the message.
    """
    known = dict(names or {})
    plain, found = hidden(text, schema.names, known)
    names = {**known, **found}
    try:
        tree = ast.parse(plain.strip(), mode="eval").body
        reader = _Reader(schema, formula, names)
        node = reader.node(tree)
        shown = ast.unparse(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        if isinstance(error, PlanError):
            raise
        if meant := summary_words(formula):
            raise PlanError(f"the formula {formula!r} is refused: {meant}") from None
        raise PlanError(
            f"{restored(plain, names).strip()!r} in the formula {formula!r} cannot be read as arithmetic",
            "write for example log(income), I(age ** 2) or `odd name`",
        ) from None
    shown = names.get(shown, shown) if isinstance(tree, ast.Name) else restored(shown, names)
    return Expression(shown, tuple(reader.columns), node)


def unknown_in(formula: str, schema: Schema) -> PlanError | None:
    """The error for all names in a formula that the schema does not have; None where it has them."""
    ids = () if isinstance(schema.unit, str) else (schema.unit.column,)
    found: PlanError | None = unknown_names(
        PlanError, "the formula", formula, schema.names, also=ids, age=age_of(schema)
    )
    return found


def unknown_column(name: str, schema: Schema, formula: str) -> PlanError:
    """The error for a name in a formula that the schema does not have, and for all others of the formula."""
    found: PlanError = unknown_names(PlanError, "the formula", formula, schema.names, name, age=age_of(schema))
    return found


class _Reader:
    """From Python's syntax tree to a validated expression; collects the columns in order of appearance."""

    def __init__(self, schema: Schema, formula: str, names: Mapping[str, str]) -> None:
        self.schema = schema
        self.formula = formula
        self.names = names
        self.columns: dict[str, None] = {}
        self._depth = 0

    def node(self, tree: ast.expr) -> _Node:
        if isinstance(tree, ast.Constant):
            return self._constant(tree)
        if isinstance(tree, (ast.Name, ast.Attribute)):
            return self._column(tree)
        # a categorical column may be a factor by itself, but not inside of arithmetic
        self._depth += 1
        try:
            if isinstance(tree, ast.Call):
                return self._call(tree)
            if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, (ast.USub, ast.UAdd)):
                inner = self.node(tree.operand)
                return _Node("-", arguments=(inner,)) if isinstance(tree.op, ast.USub) else inner
            if isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.Pow):
                return self._powered(tree)
            if isinstance(tree, ast.BinOp) and type(tree.op) in _SYMBOLS:
                return _Node(_SYMBOLS[type(tree.op)], arguments=(self.node(tree.left), self.node(tree.right)))
        finally:
            self._depth -= 1
        raise self._refused(tree, "it is none of the operations that are allowed")

    def _constant(self, tree: ast.Constant) -> _Node:
        if isinstance(tree.value, (int, float)) and not isinstance(tree.value, bool):
            try:
                value = float(tree.value)
            except OverflowError:
                value = math.inf
            if math.isfinite(value):
                return _Node("constant", value)
        raise self._refused(tree, "a constant must be a finite number")

    def _column(self, tree: ast.Name | ast.Attribute) -> _Node:
        name = self._text(tree)
        if name not in self.schema:
            raise unknown_column(name, self.schema, self.formula)
        if self._depth and self.schema[name].kind == "date":
            raise PlanError(
                f"the formula {self.formula!r} uses the date {name!r} in arithmetic, and a date alone is not an amount",
                f"write days_between({quoted(name)}, '2024-07-01'), or years_between in [derive] of the schema",
            )
        if self._depth and self.schema[name].kind == "categorical":
            raise PlanError(
                f"the formula {self.formula!r} uses the categorical column {name!r} in arithmetic, but labels are not "
                "numbers",
                f"write it as a separate term, {quoted(name)}, or in an interaction, x:{quoted(name)}",
            )
        self.columns[name] = None
        return _Node("column", name)

    def _call(self, tree: ast.Call) -> _Node:
        name = self._text(tree.func)
        function = re.sub(r"^(np|numpy)\.", "", name)
        if function == "I" or (function in _FUNCTIONS and function != "-"):
            if len(tree.args) != 1 or tree.keywords or isinstance(tree.args[0], ast.Starred):
                raise self._refused(tree, f"{function} takes exactly one expression, as in {function}(x)")
            inner = self.node(tree.args[0])
            return inner if function == "I" else _Node(function, arguments=(inner,))
        if function == "days_between":
            return self._days_between(tree)
        if meant := summary_words(self.formula):
            raise PlanError(f"the formula {self.formula!r} is refused: {meant}")
        dates = (one in self.schema and self.schema[one].kind == "date" for one in map(self._text, tree.args))
        age = age_of(self.schema) if any(dates) else ""
        unknown = f"{name} is not among the functions that are known to look at one record only"
        unknown += f"; an age is derived in the schema, {age}" if age else ""
        raise self._refused(tree, refusal(name) or unknown)

    def _days_between(self, tree: ast.Call) -> _Node:
        """The days from one date to another: the second less the first."""
        if len(tree.args) != 2 or tree.keywords:
            raise self._refused(tree, "days_between takes two dates, as in days_between(admitted, '2024-07-01')")
        first, second = (self._date(one) for one in tree.args)
        return _Node("-", arguments=(second, first))

    def _date(self, tree: ast.expr) -> _Node:
        day = day_of(tree.value) if isinstance(tree, ast.Constant) and isinstance(tree.value, str) else None
        if day is not None:
            return _Node("constant", float(day))
        name = self._text(tree)
        if isinstance(tree, (ast.Name, ast.Attribute)) and name not in self.schema:
            raise unknown_column(name, self.schema, self.formula)
        if name not in self.schema or self.schema[name].kind != "date":
            raise self._refused(tree, "days_between takes columns of dates, and dates in quotes such as '2024-07-01'")
        self.columns[name] = None
        return _Node("column", name)

    def _powered(self, tree: ast.BinOp) -> _Node:
        exponent = self.node(tree.right)
        if _columns_of(exponent):
            raise self._refused(tree, "the exponent must be a constant")
        value = float(_evaluate_constant(exponent))
        if not abs(value) <= _LARGEST_EXPONENT:
            raise self._refused(tree, f"the exponent must be from -{_LARGEST_EXPONENT} to {_LARGEST_EXPONENT}")
        return _Node("power", value, (self.node(tree.left),))

    def _text(self, tree: ast.expr) -> str:
        text = ast.unparse(tree)
        return self.names.get(text, text)

    def _refused(self, tree: ast.expr, reason: str) -> PlanError:
        text = restored(ast.unparse(tree), self.names)
        power = "; a power is written x ** 2" if isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.BitXor) else ""
        return PlanError(
            f"{text!r} in the formula {self.formula!r} is refused: {reason}{power}. Allowed are columns, a:b, a*b, "
            "+ - * / with constants and ** inside of I(), log, log1p, sqrt, exp, abs; for example log(income) or I(age ** 2)"
        )


def _columns_of(node: _Node) -> bool:
    return node.kind == "column" or any(_columns_of(argument) for argument in node.arguments)


def _evaluate_constant(node: _Node) -> Any:
    with np.errstate(all="ignore"):
        return _evaluate(node, {})
