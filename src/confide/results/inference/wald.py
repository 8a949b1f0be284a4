"""Joint tests of linear restrictions on estimates (Wald), referred to F(rank, df), or to a simulated distribution (`simulated_null`).

W = (R b - r)' (R V R')^{-1} (R b - r) / rank. Restrictions are first put in units of standard errors, so that what
counts as redundant does not depend on the units of the data.
Source: Greene, Econometric Analysis, section 5.4.

Linear restrictions on estimates, read from text: "age = 0, educ = 2*income + 1" becomes a matrix and a vector.

Names may hold any characters ("log(income)", "a:b", "region[T.S]"): at each place the longest name that fits is taken,
so no quoting is needed. A name that begins like a number or an operator is written between backticks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf, isinf, isnan, nan
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide import _special as special
from confide._helpers import later
from confide.errors import PlanError
from confide.results.inference.simulated_null import JointLaw

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
            f"cannot read the restriction {self.text!r}: {why}; the names are {known}",
            f"write it like wald_test({f'{named} = 0'!r})",
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


if TYPE_CHECKING:
    import pandas as pd
else:
    pd = later("pandas")

# Two restrictions that differ by less than this, relatively, are one; rounding in a row is about 1e-16.
_SAME = 1e-12


@dataclass(frozen=True)
class WaldTest:
    """A joint test of linear restrictions.

    Parameters
    ----------
    statistic : float
        F statistic, NaN if there is no test.
    df_num : int
        Number of restrictions, redundant ones counted once.
    df_denom : float
        Degrees of freedom of the denominator; inf for chi-square.
    pvalue : float
        p-value. From a simulated distribution it is that distribution's, and
        `df_denom` makes F agree with it at 5%.
    why : str, default ""
        Reason of a NaN.

    Examples
    --------
    >>> print(WaldTest(4.2, 2, 120.0, 0.0172))
    Wald test: F(2, 120) = 4.2, p = 0.0172
    """

    statistic: float
    df_num: int
    df_denom: float
    pvalue: float
    why: str = ""

    @property
    def fvalue(self) -> float:
        """`statistic`, as statsmodels names it."""
        return self.statistic

    def summary(self) -> str:
        """The test in one line."""
        return str(self)

    def __str__(self) -> str:
        if isnan(self.statistic):
            return f"Wald test: {self.why or 'not available'}"
        tail = "< 1e-16" if self.pvalue < 1e-16 else f"= {self.pvalue:.4g}"
        return f"Wald test: F({self.df_num}, {self.df_denom:.6g}) = {self.statistic:.4g}, p {tail}"


def restrictions(
    names: Sequence[str], r_matrix: str | Sequence[str] | ArrayLike, r_value: ArrayLike
) -> tuple[Vector, Vector]:
    """Matrix (q, p) and vector (q,) from any of the forms that `Estimates.wald_test` takes.

    >>> restrictions(("a", "b"), ["b"], 0)[0].tolist()
    [[0.0, 1.0]]
    """
    if isinstance(r_matrix, tuple) and len(r_matrix) == 2 and np.ndim(r_matrix[0]) == 2 and np.ndim(r_matrix[1]) < 2:
        _refuse_value(r_value)
        r_matrix, r_value = r_matrix
    if isinstance(r_matrix, str):
        _refuse_value(r_value)
        return parse(r_matrix, names)
    if (
        isinstance(r_matrix, (list, tuple, pd.Index))
        and len(r_matrix)
        and all(isinstance(part, str) for part in r_matrix)
    ):
        _refuse_value(r_value)
        parts = [_zero(part, names) if part in names else parse(part, names) for part in r_matrix]
        return np.vstack([matrix for matrix, _ in parts]), np.concatenate([value for _, value in parts])
    matrix = _matrix(names, r_matrix)
    return matrix, _value(r_value, len(matrix))


def wald_test(
    matrix: Vector,
    value: Vector,
    estimates: Vector,
    covariance: Vector,
    df: float | Vector,
    law: JointLaw | None = None,
    bias: Vector | None = None,
    status: str = "valid",
) -> WaldTest:
    """The test of matrix @ b = value; NaN in statistic and p-value when the covariance is, or nothing is restricted.

    law: several restrictions are tested with its covariance, and referred to its simulated distribution. df: of each estimate, or one for
    all. bias (p,): bounds on what the estimates may be off by beyond their errors; or (p, k), where they are off by bias @ x with every
    |x_i| <= 1. The statistic is the smallest that any such bias leaves.
    status: of the estimates, for the reason of a NaN.
    Only what the restrictions name needs to have been estimated. Raises `PlanError` when the restrictions contradict each other.

    >>> wald_test(np.eye(2), np.zeros(2), np.array([2.0, 0.0]), np.eye(2), inf).statistic
    2.0
    """
    used = np.any(matrix != 0, axis=0)
    degrees = float(np.nanmin(np.append(np.broadcast_to(np.asarray(df, dtype=np.float64), len(estimates))[used], inf)))
    usable = bool(np.isfinite(covariance[np.ix_(used, used)]).all() and np.isfinite(estimates[used]).all())
    estimates, covariance = np.where(used, estimates, 0.0), np.where(np.outer(used, used), covariance, 0.0)
    error = np.sqrt(np.diag(covariance)) if usable else np.ones(len(estimates))
    scale = np.where(error > 0, error, 1.0)
    rows, goal = _independent(matrix * scale, value)
    if not usable or not len(rows):
        return WaldTest(nan, len(rows), degrees, nan, "nothing is restricted" if usable else _missing(status))
    deviation = rows @ (estimates / scale) - goal
    spread = covariance / np.outer(scale, scale)
    several = law if len(rows) > 1 else None
    weights, axes = np.linalg.eigh(rows @ spread @ rows.T if several is None else several.covariance(rows / scale))
    along = axes.T @ deviation
    known = weights <= _SAME * max(float(weights[-1]), _SAME)  # combinations that have no variance at all
    if (np.abs(along[known]) > np.sqrt(_SAME) * (1 + np.abs(estimates / scale).max())).any():
        return WaldTest(inf, len(rows), degrees, 0.0)  # certain, and not as restricted
    rank = int((~known).sum())
    if rank == 0:
        return WaldTest(nan, 0, degrees, nan)
    unit = (axes[:, ~known] / np.sqrt(weights[~known])).T @ rows / scale
    away = along[~known] / np.sqrt(weights[~known])
    if bias is not None:
        # NaN belongs to what was not estimated, which no restriction names
        away = _left(away, unit @ np.nan_to_num(np.diag(bias) if bias.ndim == 1 else bias))
    length = float(np.linalg.norm(away))
    statistic = length**2 / rank
    if several is None:
        return WaldTest(statistic, rank, degrees, _tail(statistic, rank, degrees))
    pvalue, alike = several.tail(unit, length**2)
    return WaldTest(statistic, rank, alike, pvalue)


def _left(away: Vector, moves: Vector) -> Vector:
    """What a bias leaves of a deviation: away - moves @ x where it is shortest, over all |x_i| <= 1.

    >>> _left(np.array([3.0, 0.5]), np.eye(2)).tolist()
    [2.0, 0.0]
    """
    from scipy.optimize import lsq_linear  # here, because it is slow to load and few tables have a bias

    moves = moves[:, np.any(moves != 0, axis=0)]
    if not moves.size:
        return away
    return np.asarray(away - moves @ lsq_linear(moves, away, (-1.0, 1.0), method="bvls").x)


def _missing(status: str) -> str:
    hidden = ": a coefficient that it names is not answered" if status == "partial" else ""
    return "not available" if status == "valid" else f"not available at status {status}{hidden}"


def _independent(rows: Vector, goal: Vector) -> tuple[Vector, Vector]:
    """An orthogonal basis of the row space with the matching right-hand sides: redundant restrictions fall away."""
    length = np.sqrt((rows**2).sum(axis=1))
    safe = np.where(length > 0, length, 1.0)
    left, size, right = np.linalg.svd(rows / safe[:, None])
    rank = int((size > _SAME * max(size[0], 1.0)).sum()) if len(size) else 0
    turned = left.T @ (goal / safe)
    if (
        np.abs(turned[rank:]) > np.sqrt(_SAME) * max(float(np.abs(goal / safe).max(initial=0.0)), np.finfo(float).tiny)
    ).any():
        raise PlanError("the restrictions contradict each other, as 'age = 0, age = 1' does", "leave one of them out")
    return size[:rank, None] * right[:rank], turned[:rank]


def _tail(statistic: float, rank: int, df: float) -> float:
    if isinf(df):
        return float(special.chdtrc(rank, rank * statistic))
    return float(special.fdtrc(rank, df, statistic))


def _refuse_value(r_value: ArrayLike) -> None:
    if np.any(np.asarray(r_value, dtype=object) != 0):
        raise PlanError(
            "r_value goes with a matrix; in text the value stands in the restriction, wald_test('age = 1'), in a pair behind the matrix, "
            "wald_test((matrix, value))"
        )


def _zero(name: str, names: Sequence[str]) -> tuple[Vector, Vector]:
    return np.array([[float(other == name) for other in names]]), np.zeros(1)


def _matrix(names: Sequence[str], r_matrix: object) -> Vector:
    p = len(names)
    call = f"wald_test([{names[0]!r}]) or wald_test(numpy.eye({p})[:1])"
    if isinstance(r_matrix, pd.DataFrame):
        if list(r_matrix.columns) != list(names):
            raise PlanError(
                f"the columns of r_matrix must be the names, in their order: {', '.join(names)}",
                "write r_matrix[list(result.names)]",
            )
        r_matrix = r_matrix.to_numpy()
    try:
        matrix = np.atleast_2d(np.array(r_matrix, dtype=np.float64))
    except (TypeError, ValueError):
        raise PlanError(
            f"r_matrix must be numbers (q, p), a text or a list of names, got {type(r_matrix).__name__}",
            f"write {call}",
        ) from None
    if matrix.ndim != 2 or matrix.shape[1] != p or not len(matrix):
        raise PlanError(
            f"r_matrix must have one column for each of the {p} names, got the shape {matrix.shape}", f"write {call}"
        )
    if not np.isfinite(matrix).all():
        raise PlanError("r_matrix must hold finite numbers, got NaN or infinity", f"write {call}")
    return matrix


def _value(r_value: ArrayLike, count: int) -> Vector:
    try:
        value = np.array(r_value, dtype=np.float64)
    except (TypeError, ValueError):
        raise PlanError(
            f"r_value must be a number or {count} numbers, one for each row of r_matrix", "write r_value=0"
        ) from None
    if value.shape not in ((), (count,)) or not np.isfinite(value).all():
        raise PlanError(
            f"r_value must be a finite number or {count} of them, one for each row of r_matrix, "
            f"got the shape {value.shape}",
            "write r_value=0",
        )
    return np.broadcast_to(value, (count,)).copy()
