"""Formulas: formulaic reads the text, the algebra of terms and every factor is checked and evaluated here.

The rules are R's: `a + b` joins terms, `a:b` is an interaction, `a*b` is a + b + a:b, `(a + b)**2` is all terms and
their pairwise interactions, `-` takes a term away, `- 1` or `0 +` takes the intercept away; terms are ordered by the
number of their factors.

Two rules differ from R's, because R would silently drop a part of the formula. A bare power of one numeric factor,
`a**2`, is its square I(a ** 2), where R reduces it to `a`. And the left side is ordinary arithmetic with constants,
`y / 1000 ~ a`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

from confide._helpers import opened
from confide.errors import PlanError
from confide.schema.formulas.expression import Expression, parse_expression, unknown_column
from confide.schema.formulas.names import hidden, quoted, restored, sides
from confide.schema.schema import Schema

opened("formulaic")  # its parser is all that is used; the rest loads pandas and SciPy
from formulaic.parser import DefaultFormulaParser  # noqa: E402
from formulaic.parser.types import ASTNode, Token  # noqa: E402

# The factors of one term; the empty tuple is the intercept.
Factors: TypeAlias = tuple[Expression, ...]

_MOST_TERMS = 4096
# Longer formulas are cut in messages.
_SHOWN = 200
_CONSTANT = re.compile(r"[0-9.]+(e[+-]?[0-9]+)?", re.IGNORECASE)


@dataclass(frozen=True)
class Formula:
    """A formula over a schema: the response, the terms without the intercept, and whether there is an intercept.

    notes: what was read otherwise than R reads it.
    """

    text: str
    response: Expression
    terms: tuple[Factors, ...]
    intercept: bool
    notes: tuple[str, ...] = ()


def parse_formula(text: str, schema: Schema) -> Formula:
    """Read a formula such as "y ~ a + log(b)" over the columns of a schema.

    Raises `PlanError` for what cannot be read, a column that the schema lacks, a transform that is not allowed, and a
    term that is written twice. Also for a response that is not a single number, or is also a feature.

    >>> schema = Schema({name: {"kind": "numeric", "low": 0, "high": 1} for name in "yab"})
    >>> [":".join(factor.name for factor in term) for term in parse_formula("y ~ a*b + a**2", schema).terms]
    ['a', 'b', 'I(a ** 2)', 'a:b']
    """
    if not isinstance(text, str):
        raise PlanError(f"a formula is text, got {type(text).__name__}", 'write "y ~ a + b"')
    return _read(text, schema)


@lru_cache(maxsize=64)  # a release reads its formula several times, in the plan, in the draw and in the result
def _read(text: str, schema: Schema) -> Formula:
    shown = cut(text)
    left, right = _sides(text, shown)
    response = _response(left, schema, shown)
    plain, names = hidden(right, schema.names)
    algebra = _Algebra(schema, shown, names)
    algebra.add(parsed(plain, names, shown))
    terms = algebra.sorted_terms()
    _check_response(response, terms, schema, shown)
    return Formula(text, response, tuple(term for term in terms if term), () in terms, tuple(algebra.notes))


def cut(text: str) -> str:
    """A formula as messages show it: its beginning when it is long.

    >>> len(cut("y ~ " + "a" * 500))
    203
    """
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."


def _sides(text: str, shown: str) -> tuple[str, str]:
    """The text on both sides of the one "~" that is not inside of a quoted name."""
    parts = sides(text)
    if len(parts) != 2:
        raise PlanError(
            f"a formula has exactly one ~ between the response and the terms, {shown!r} has {len(parts) - 1}",
            'write "y ~ a + b", or "y ~ 1" for an intercept alone',
        )
    left, right = parts
    if not left:
        raise PlanError(f"the formula {shown!r} has no response on the left of ~", 'write "y ~ a + b"')
    if not right:
        raise PlanError(f"the formula {shown!r} has no terms on the right of ~", 'write "y ~ a + b", or "y ~ 1"')
    return left, right


def parsed(right: str, names: Mapping[str, str], text: str) -> ASTNode[Any] | Token:
    """The syntax tree of what stands right of ~, its names `hidden`; `PlanError` for what cannot be read."""
    try:
        tree = DefaultFormulaParser(include_intercept=False).get_ast(right)
    except Exception as error:  # the parser raises several kinds, its own and Python's; all are about the text
        first = re.sub(r"\x1b\[[0-9;]*m", "", str(error)).strip().split("\n")[0]
        # of what Python reads the text as, the kind of mistake alone
        first = restored(first.partition(" (<")[0].partition("; use an 0o")[0], names, str)
        if re.search(r"(?<![\w'\"])\d{4}-\d\d-\d\d", right):
            first = "Dates stand in quotes, such as '1950-01-01'."
        raise PlanError(
            f"the formula {text!r} cannot be read: {first or type(error).__name__} Write for example "
            '"y ~ a + log(b) + a:c"; names with spaces and Python words such as class go in backticks'
        ) from None
    if tree is None:
        raise PlanError(f"the formula {text!r} has no terms on the right of ~", 'write "y ~ a + b", or "y ~ 1"')
    return tree


# the response ---------------------------------------------------------------------------------------------------------


def _response(left: str, schema: Schema, text: str) -> Expression:
    response = parse_expression(left, schema, text)
    if not response.columns:
        raise PlanError(
            f"the response {left.strip()!r} of {text!r} is a constant", 'name a numeric column, as in "y ~ a"'
        )
    if response.column is not None and schema[response.column].kind == "categorical":
        raise PlanError(
            f"the response {response.name!r} of {text!r} is categorical, but this method needs a number. For an outcome of two "
            f"levels ask for a logistic regression, cf.logistic_regression; otherwise put a 0/1 column into the data "
            f"that says whether a record has the level, declare it as cf.Integer(0, 1), and write it instead of {response.name!r}"
        )
    tree = ast.parse(hidden(left, schema.names)[0], mode="eval").body
    if isinstance(tree, ast.BinOp) and all(_has_names(side) for side in (tree.left, tree.right)):
        raise PlanError(
            f"the response of {text!r} must be one term; for a response that is computed from several columns write "
            f"I({left}) ~ ..."
        )
    return response


def _has_names(tree: ast.AST) -> bool:
    calls = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    return any(isinstance(node, ast.Name) and id(node) not in calls for node in ast.walk(tree))


def _check_response(response: Expression, terms: list[Factors], schema: Schema, text: str) -> None:
    """A response that depends on one column leaves nothing to estimate when a feature depends on it, too."""
    others = ", ".join(name for name in schema.names if name not in response.columns)
    for term in terms:
        same = len(term) == 1 and term[0] == response
        used = len(response.columns) == 1 and any(response.columns[0] in factor.columns for factor in term)
        if same or used:
            raise PlanError(
                f"the response {response.name!r} is also among the features of {text!r}, in {_term_name(term)!r}",
                f"take it out there; the other columns are: {others}",
            )


# the algebra of terms -------------------------------------------------------------------------------------------------


class _Algebra:
    """The terms of a formula, collected from left to right; starts with the intercept."""

    def __init__(self, schema: Schema, text: str, names: Mapping[str, str]) -> None:
        self.schema = schema
        self.text = text
        self.names = names
        self._terms: dict[frozenset[Expression], Factors] = {frozenset(): ()}
        self._single: dict[Expression, str] = {}
        self.notes: dict[str, None] = {}

    def sorted_terms(self) -> list[Factors]:
        """The terms in R's order: by the number of factors, then as written."""
        if not self._terms:
            raise PlanError(
                f"the formula {self.text!r} has neither a term nor an intercept", 'write "y ~ a", or "y ~ 1"'
            )
        return sorted(self._terms.values(), key=len)

    def add(self, tree: ASTNode[Any] | Token) -> None:
        """Add what a tree stands for. Sums lean to the left and may be long, so they are walked in a loop."""
        parts: list[tuple[str, Any]] = []
        while isinstance(tree, ASTNode) and _symbol(tree) in "+-":
            arguments = list(tree.args)
            parts.append((_symbol(tree), arguments[-1]))
            if len(arguments) == 1:
                break
            tree = arguments[0]
        else:
            parts.append(("+", tree))
        for sign, part in reversed(parts):
            if sign == "-":
                self._remove(part)
            elif isinstance(part, ASTNode) and _symbol(part) in "+-":
                self.add(part)
            else:
                self._add_one(part)

    def _add_one(self, part: Any) -> None:
        terms = self._expand(part)
        alone = isinstance(part, Token) or _symbol(part) in ("**", "^")
        if alone and len(terms) == 1 and len(terms[0]) == 1:
            factor = terms[0][0]
            if factor in self._single:
                raise PlanError(
                    f"the formula {self.text!r} has the term {factor.name!r} twice"
                    + (f" (also written {self._single[factor]!r})" if self._single[factor] != factor.name else "")
                    + "; write it once"
                )
            self._single[factor] = factor.name
        for term in terms:
            self._terms.setdefault(frozenset(term), term)
        if len(self._terms) > _MOST_TERMS:
            raise PlanError(f"the formula {self.text!r} has more than {_MOST_TERMS} terms", "write fewer interactions")

    def _remove(self, part: Any) -> None:
        for term in self._expand(part):
            if term and frozenset(term) not in self._terms:
                raise PlanError(
                    f"the formula {self.text!r} takes away {_term_name(term)!r}, which is not in it at that point",
                    "take away only terms that are written before",
                )
            self._terms.pop(frozenset(term), None)
            if len(term) == 1:
                self._single.pop(term[0], None)

    def _expand(self, tree: ASTNode[Any] | Token) -> list[Factors]:
        """The terms of a part of the formula, each once, in order."""
        if isinstance(tree, Token):
            return [()] if _is_one(tree) else [(self._factor(tree),)]
        symbol, arguments = _symbol(tree), list(tree.args)
        if symbol in ("+", "-"):
            first = self._expand(arguments[0]) if len(arguments) == 2 else []
            last = self._expand(arguments[-1])
            return _union(first, last) if symbol == "+" else [term for term in first if not _is_in(term, last)]
        if symbol in ("**", "^"):
            return self._power(*arguments)
        if symbol in ("*", ":"):
            left, right = (self._operand(argument) for argument in arguments)
            self._refuse_self_product(arguments, left, right)
            crossed = self._cross(left, right)
            return crossed if symbol == ":" else _union(_union(left, right), crossed)
        raise self._unknown_operator(symbol, arguments)

    def _operand(self, tree: ASTNode[Any] | Token) -> list[Factors]:
        if isinstance(tree, Token) and tree.kind is Token.Kind.VALUE:
            raise self._number(tree)
        return self._expand(tree)

    def _cross(self, left: list[Factors], right: list[Factors]) -> list[Factors]:
        if len(left) * len(right) > _MOST_TERMS:
            raise PlanError(f"the formula {self.text!r} has more than {_MOST_TERMS} terms", "write fewer interactions")
        return _union([tuple(dict.fromkeys((*one, *other))) for one in left for other in right], [])

    def _refuse_self_product(self, arguments: list[Any], left: list[Factors], right: list[Factors]) -> None:
        leaves = all(isinstance(argument, Token) for argument in arguments)
        if leaves and left == right:
            name = _term_name(left[0])
            raise PlanError(
                f"the formula {self.text!r} crosses {name!r} with itself, which is {name!r} again",
                f"write it once, or I({name} ** 2) for the square of a numeric column",
            )

    def _power(self, base: ASTNode[Any] | Token, exponent: ASTNode[Any] | Token) -> list[Factors]:
        whole = isinstance(exponent, Token) and re.fullmatch("[1-9][0-9]?", exponent.token)
        if not whole:
            raise PlanError(
                f"the formula {self.text!r} has a power that is not a whole number from 1 to 99",
                "write the power of a number inside of I(), as in I(age ** 0.5)",
            )
        assert isinstance(exponent, Token)
        times = int(exponent.token)
        terms = self._operand(base)
        if times > 1 and len(terms) == 1:
            return [(self._square(terms[0], times),)]
        result = terms
        for _ in range(times - 1):
            larger = _union(result, self._cross(result, terms))
            if len(larger) == len(result):
                break
            result = larger
        return result

    def _square(self, term: Factors, times: int) -> Expression:
        """A bare power of one numeric factor."""
        if len(term) != 1:
            product = " * ".join(factor.name for factor in term)
            raise PlanError(
                f"the formula {self.text!r} has a power of an interaction", f"write I(({product}) ** {times})"
            )
        factor = term[0]
        if factor.column is not None and self.schema[factor.column].kind == "categorical":
            raise PlanError(
                f"the formula {self.text!r} has a power of the categorical column {factor.name!r}, but labels are not numbers",
                f"write {factor.name!r} without a power",
            )
        inner = quoted(factor.column) if factor.column is not None else factor.name
        inner = inner.removeprefix("I") if inner.startswith("I(") else inner
        power = self._read(f"I({inner} ** {times})")
        self.notes[
            f"{factor.name}**{times} is read as the power {power.name}; in R it would mean {factor.name} alone"
        ] = None
        return power

    def _factor(self, token: Token) -> Expression:
        if token.kind is Token.Kind.NAME:
            name = self.names.get(token.token, token.token)
            if name not in self.schema:
                number = _CONSTANT.fullmatch(token.token)
                raise self._number(token) if number else unknown_column(name, self.schema, self.text)
            return self._read(quoted(name))
        if token.kind is Token.Kind.VALUE:
            raise self._number(token)
        if re.match(r"C\(", token.token):
            return self._declared(token.token)
        braces = not re.match(r"[\w.]+\(", token.token)  # {a + b} is the same as I(a + b)
        factor = self._read(f"I({token.token})" if braces else token.token)
        if not factor.columns:
            raise PlanError(
                f"{factor.name!r} in the formula {self.text!r} is a constant; the intercept stands for constants"
            )
        return factor

    def _declared(self, code: str) -> Expression:
        """C(region) of a declared categorical column is the column."""
        inner = re.fullmatch(r"C\(([\w.]+)\)", code)
        if not inner:
            raise PlanError(
                f"{restored(code, self.names)!r} in the formula {self.text!r} is refused: C takes the name of one "
                "categorical column and nothing else; the levels and their order, the base first, are in the schema"
            )
        name = self.names.get(inner.group(1), inner.group(1))
        if name not in self.schema:
            raise unknown_column(name, self.schema, self.text)
        if self.schema[name].kind != "categorical":
            raise PlanError(
                f"the formula {self.text!r} has C({quoted(name)}), but the schema declares no levels for {name!r}, and levels "
                "learned from the records would not be private",
                f'write {name!r}: Categorical(["1", "2", "3"]) in the schema',
            )
        return self._read(quoted(name))

    def _read(self, code: str) -> Expression:
        return parse_expression(code, self.schema, self.text, self.names)

    def _number(self, token: Token) -> PlanError:
        return PlanError(
            f"the formula {self.text!r} has {token.token} as a term or factor; a constant in a formula is written inside of I(), "
            "as in I(2 * age) or I(age + 2). Only 1 and 0 stand alone, for the intercept"
        )

    def _unknown_operator(self, symbol: str, arguments: list[Any]) -> PlanError:
        advice = {
            "/": "for a quotient write I(a / b), for nesting a + a:b",
            "in": "write a:b",
            "|": "write one formula for each part",
            ".": f"write the columns by name: {', '.join(self.schema.names)}",
        }.get(symbol, "write terms with + - : * and whole powers")
        return PlanError(f"the operator {symbol!r} in the formula {self.text!r} is not used here", f"{advice}")


def _symbol(tree: ASTNode[Any]) -> str:
    return str(tree.operator.symbol)


def _is_one(token: Token) -> bool:
    return token.kind is Token.Kind.VALUE and token.token == "1"


def _union(first: list[Factors], second: list[Factors]) -> list[Factors]:
    return list({frozenset(term): term for term in reversed([*first, *second])}.values())[::-1]


def _is_in(term: Factors, terms: list[Factors]) -> bool:
    return any(frozenset(term) == frozenset(other) for other in terms)


def _term_name(term: Factors) -> str:
    return ":".join(factor.name for factor in term) or "1"
