"""Linear restrictions on estimates, read from text: "age = 0, educ = 2*income + 1" becomes a matrix and a vector.

Names may hold any characters ("log(income)", "a:b", "region[T.S]"): at each place the longest name that fits is taken,
so no quoting is needed. A name that begins like a number or an operator is written between backticks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from confide.errors import PlanError

__all__ = ["parse"]

Vector = NDArray[np.float64]

_NUMBER = re.compile(r"(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_WORD = re.compile(r"[^\s=,]+")
_OPERATORS = "+-*/=,()"
_OPENERS = _OPERATORS + "0123456789. "
_SHOWN = 12


def parse(text: str, names: Sequence[str]) -> tuple[Vector, Vector]:
    """Matrix (q, p) and vector (q,) of the restrictions in a text, separated by commas; without "=" set to zero.

    Raises `PlanError` for text that is not a linear restriction on these names.

    >>> matrix, value = parse("age = 2*educ + 1, a:b", ("age", "educ", "a:b"))
    >>> matrix.tolist(), value.tolist()
    ([[1.0, -2.0, 0.0], [0.0, 0.0, 1.0]], [1.0, 0.0])
    """
    reader = _Reader(text, names)
    rows = [reader.restriction()]
    while reader.take(","):
        rows.append(reader.restriction())
    if reader.token is not None:
        raise reader.error(f"{reader.token!r} was not expected there")
    table = np.array(rows)
    return table[:, :-1], 0.0 - table[:, -1]


class _Reader:
    """Recursive descent over the tokens; a side is a vector of p weights followed by a constant."""

    def __init__(self, text: str, names: Sequence[str]) -> None:
        self.text = text
        self.names = tuple(names)
        self.tokens = self._split()
        self.token: str | int | float | None = None  # operator, position of a name, or number
        self.advance()

    def advance(self) -> None:
        self.token = next(self.tokens, None)

    def take(self, *operators: str) -> str | None:
        found = self.token
        if isinstance(found, str) and found in operators:
            self.advance()
            return found
        return None

    def error(self, why: str) -> PlanError:
        known = ", ".join(self.names[:_SHOWN]) + (", ..." if len(self.names) > _SHOWN else "")
        named = self.names[0] if self.names[0][0] not in _OPENERS else f"`{self.names[0]}`"
        return PlanError(
            f"cannot read the restriction {self.text!r}: {why}; the names are {known}; "
            f"write it like wald_test({f'{named} = 0'!r})"
        )

    def restriction(self) -> Vector:
        left = self.side()
        return left - self.side() if self.take("=") else left

    def side(self) -> Vector:
        total = self.signed()
        while operator := self.take("+", "-"):
            term = self.term()
            total = total + term if operator == "+" else total - term
        return total

    def signed(self) -> Vector:
        if sign := self.take("+", "-"):
            return self.term() if sign == "+" else -self.term()
        return self.term()

    def term(self) -> Vector:
        value = self.factor()
        while operator := self.take("*", "/"):
            other = self.factor()
            if operator == "/" and not other[:-1].any() and other[-1] != 0:
                value = value / other[-1]
            elif operator == "*" and not other[:-1].any():
                value = value * other[-1]
            elif operator == "*" and not value[:-1].any():
                value = value[-1] * other
            else:
                raise self.error("only sums of numbers times names are linear")
        return value

    def factor(self) -> Vector:
        found = self.token
        value = np.zeros(len(self.names) + 1)
        if isinstance(found, int):
            value[found] = 1.0
        elif isinstance(found, float):
            value[-1] = found
        elif self.take("("):
            value = self.side()
            if not self.take(")"):
                raise self.error("a bracket is not closed")
            return value
        else:
            raise self.error("a name or a number is missing" + ("" if found is None else f" before {found!r}"))
        self.advance()
        return value

    def _split(self) -> Iterator[str | int | float]:
        longest_first = sorted(range(len(self.names)), key=lambda index: -len(self.names[index]))
        place = 0
        while place < len(self.text):
            if self.text[place].isspace():
                place += 1
            elif (index := self._name_at(place, longest_first)) is not None:
                quoted = self.text[place] == "`" and not self.names[index].startswith("`")
                place += len(self.names[index]) + (2 if quoted else 0)
                yield index
            elif number := _NUMBER.match(self.text, place):
                place = number.end()
                yield float(number.group())
            elif self.text[place] in _OPERATORS:
                place += 1
                yield self.text[place - 1]
            else:
                word = _WORD.match(self.text, place)
                raise self.error(f"there is no name {(word or [self.text[place:]])[0]!r}")

    def _name_at(self, place: int, longest_first: Sequence[int]) -> int | None:
        for index in longest_first:
            name = self.names[index]
            if self.text.startswith(f"`{name}`", place):
                return index
            end = place + len(name)
            whole = end >= len(self.text) or not (_inside(name[-1]) and _inside(self.text[end]))
            if whole and self.text.startswith(name, place) and name[0] not in _OPENERS:
                return index
        return None


def _inside(char: str) -> bool:
    """Whether a character may continue a word, so that "age" is not found in "age2"."""
    return char.isalnum() or char in "_."
