"""The cells of a design: sets of records that a combination of its columns is 1 on and 0 elsewhere, as the formula and the schema say.

A model with this combination fits the mean of the cell's records separately. Where they all have one outcome, its likeliest
coefficients are infinite (Albert, Anderson 1984). So every cell must be asked for its records and its events, whatever made it:

- y ~ x: all records
- y ~ f: the levels of f, the first one too
- y ~ a * b: the four cells of a and b, of which (0, 0) is 1 - a - b + ab, and not the levels of a and of b
- y ~ a:b: a = b = 1, and the others together, 1 - ab

Columns of two values and factors take part, alone, in products and in expressions of nothing else. Of each set of columns that a term
has and no other term's set holds, the distinct rows of its terms are looked at. A row of which the indicator is a combination of the
terms is a cell. In addition there are the terms that are 0 or 1 themselves, and what they leave. Of two that lie in one another the
larger one is asked for its rest alone: where it has one outcome, so has each part of it. Terms with numbers (a:x) make no cell, and
depend on one that they are 0 outside of.

There is more: coefficients can grow without end along any direction d against which no record stands (`glm/noise_floor`). An example is
y ~ x of a column of three values, where those at 0 have none and those at 2 all of the outcome; another is y ~ a + b. Where a formula
has columns of few values alone, its matrix has few distinct rows (`distinct_rows`), whose outcomes are counted. With numbers of many
values, and beyond so many rows, only cells are looked for: that no other direction separates the outcomes is an assumption there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide._arrays import Array
from confide.schema import Categorical, ModelMatrix
from confide.schema.formulas.terms import Indicator, Value

# Crossings of more rows than this are not looked at: so few records are in each that the table has no answer anyway.
_MOST = 1024
# Columns of at most so many values make cells of their own where a formula has no others, and so many rows of the design have counts: the
# noise of a sum over more would hide what it is asked for.
_FEW, _MOST_ROWS = 12, 64
# Less than this is rounding, and digits beyond these are.
_ROUNDING, _DIGITS = 1e-9, 12

# Values that a name lists.
_NAMED = 3

_Rows = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class DesignCell:
    """A cell of a design.

    column : str
        Of what, "f" or "a:b", "" of nothing: all records.
    name : str
        Its values there, "u" or "0:1".
    weights : array
        sum weights (1, terms) is 1 in the cell and 0 elsewhere, (k,), of the terms' own units.
    along : array
        These, and those that make a number in the cell and 0 elsewhere, (k, m); all there are where the cell is all records.
    places : tuple of int
        Of the coefficients that depend on the cell, since no others move where the fit moves there alone.
    fixed : tuple of (int, float)
        The terms that have one value in the cell, by place among the terms, and that value.
    """

    column: str
    name: str
    weights: Array
    along: Array
    places: tuple[int, ...]
    fixed: tuple[tuple[int, float], ...]


@dataclass(frozen=True, eq=False)
class DistinctRows:
    """The distinct rows that a model matrix can have, (rows, k).

    columns: behind them; sizes: how many values each has; row_of: the row of each combination of values, the last column's changing
    fastest.
    """

    rows: Array
    columns: tuple[str, ...]
    sizes: tuple[int, ...]
    row_of: NDArray[np.int64]

    def named(self, design: ModelMatrix, among: _Rows) -> tuple[str, str]:
        """What these rows are called, as the column and the name of a cell."""
        return _named(design, _grid(design, self.columns, _FEW), among[self.row_of])


def cell_words(column: str, name: str) -> str:
    """A cell as a sentence names it.

    >>> cell_words("f", "u"), cell_words("a:b", "0:1"), cell_words("", "")
    ('f[u]', 'a:b[0:1]', 'all records')
    """
    return f"{column}[{name}]" if column else "all records"


@lru_cache(maxsize=64)
def design_cells(design: ModelMatrix) -> tuple[DesignCell, ...]:
    """The cells of a design with an intercept, in the order of its terms.

    >>> from confide.schema import Integer, Numeric, Schema
    >>> schema = Schema({"a": Integer(0, 1), "b": Integer(0, 1), "x": Numeric(0, 1), "y": Numeric(0, 1)})
    >>> [cell_words(one.column, one.name) for one in design_cells(ModelMatrix.of("y ~ a + x", schema))]
    ['a[0]', 'a[1]']
    >>> [(one.name, one.weights.round(9).tolist()) for one in design_cells(ModelMatrix.of("y ~ a:b", schema))]
    [('0:0 or 0:1 or 1:0', [1.0, -1.0]), ('1:1', [0.0, 1.0])]
    """
    columns = [_Column.of(design, place) for place in range(len(design.terms) + 1)]
    sets = dict.fromkeys(one.crossed for one in columns if not one.rest)
    small = [one for one in sets if len(one) < 2 or prod(len(_values(design, name)) for name in one) <= _MOST]
    largest = [one for one in small if not any(set(one) < set(other) for other in small)]
    return tuple(cell for one in largest for cell in _cells(design, columns, one))


def all_records(design: ModelMatrix) -> DesignCell:
    """The cell of all records: every coefficient depends on it."""
    k = len(design.terms) + 1
    return DesignCell("", "", np.eye(k)[0], np.eye(k), tuple(range(k)), ())


@lru_cache(maxsize=64)
def distinct_rows(design: ModelMatrix) -> DistinctRows | None:
    """The distinct rows of a design with an intercept, where these are few and no combination of its columns tells each of them apart.

    None where some column of the formula has many values, where there are more rows than can be counted, and where each is a cell of
    `design_cells` already.

    >>> from confide.schema import Integer, Numeric, Schema
    >>> schema = Schema({"a": Integer(0, 1), "b": Integer(0, 1), "x": Integer(0, 2), "t": Numeric(0, 1), "y": Integer(0, 1)})
    >>> distinct_rows(ModelMatrix.of("y ~ x", schema)).rows.tolist()
    [[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]]
    >>> [distinct_rows(ModelMatrix.of(formula, schema)) for formula in ("y ~ a", "y ~ a * b", "y ~ a + b + t")]
    [None, None, None]
    """
    columns = [_Column.of(design, place, _FEW) for place in range(len(design.terms) + 1)]
    if any(one.rest for one in columns):
        return None
    used = {name for one in columns for name in one.crossed}
    names = tuple(name for name in design.schema.columns if name in used)
    sizes = tuple(len(_values(design, name, _FEW)) for name in names)
    if prod(sizes) > _MOST:
        return None
    values = _grid(design, names, _FEW)
    whole = np.column_stack([one.at(values, prod(sizes)) for one in columns])
    rows, row_of = np.unique(whole, axis=0, return_inverse=True)
    each = np.linalg.matrix_rank(rows / np.maximum(np.abs(rows).max(axis=0), 1e-300)) == len(rows)
    if each or len(rows) > _MOST_ROWS:
        return None
    return DistinctRows(rows, names, sizes, np.asarray(row_of.reshape(-1), dtype=np.int64))


@dataclass(frozen=True, eq=False)
class _Column:
    """A column of the model matrix.

    crossed: schema columns of levels or two values, in their order; own: its factors of these alone; rest: the names of its other ones.

    low, high: what the product lies between where there is no other.
    """

    crossed: tuple[str, ...]
    own: tuple[Indicator | Value, ...]
    rest: tuple[str, ...]
    low: float
    high: float

    @classmethod
    def of(cls, design: ModelMatrix, place: int, few: int = 2) -> _Column:
        if place == 0:
            return cls((), (), (), 1.0, 1.0)
        term = design.terms[place - 1]
        own = tuple(part for part in term.parts if _is_told(design, part, few))
        names = {name for part in own for name in part.columns}
        rest = tuple(part.name for part in term.parts if part not in own)
        return cls(tuple(name for name in design.schema.columns if name in names), own, rest, term.low, term.high)

    def at(self, values: Mapping[str, Array], rows: int) -> Array:
        """The product of the factors in `own`."""
        found = np.ones(rows)
        for part in self.own:
            found = found * _factor(part, values)
        return found if self.rest else np.clip(found, self.low, self.high)


def _values(design: ModelMatrix, name: str, few: int = 2) -> Sequence[float]:
    """What a factor or a column of at most so many values can be, places of levels or values; nothing for other columns."""
    column: Any = design.schema[name]
    if isinstance(column, Categorical):
        return range(column.steps)
    return np.linspace(column.low, column.high, column.steps).tolist() if column.steps <= few else ()


def _grid(design: ModelMatrix, names: Sequence[str], few: int = 2) -> dict[str, Array]:
    """Every combination of the values of these columns, by column."""
    rows = list(product(*(_values(design, name, few) for name in names)))
    return dict(zip(names, np.array(rows, dtype=np.float64).reshape(len(rows), len(names)).T, strict=True))


def _is_told(design: ModelMatrix, part: Indicator | Value, few: int) -> bool:
    """Whether a factor is a number at each of few values of its columns."""
    told = all(_values(design, name, few) for name in part.columns)
    return told and bool(np.isfinite(_factor(part, _grid(design, part.columns, few))).all())


def _factor(part: Indicator | Value, values: Mapping[str, Array]) -> Array:
    if isinstance(part, Indicator):
        return np.asarray(values[part.column] == part.position, dtype=np.float64)
    found = part.expression.evaluate(values)
    return found if part.bounds is None else np.clip(found, *part.bounds)


def _cells(design: ModelMatrix, columns: Sequence[_Column], crossed: tuple[str, ...]) -> list[DesignCell]:
    """The cells of a set of columns."""
    k, values = len(columns), _grid(design, crossed)
    number = prod(len(_values(design, name)) for name in crossed)
    groups: dict[tuple[str, ...], list[int]] = {}
    for place, one in enumerate(columns):
        if set(one.crossed) <= set(crossed):
            groups.setdefault(one.rest, []).append(place)
    at = {rest: np.column_stack([columns[j].at(values, number) for j in places]) for rest, places in groups.items()}
    whole = at[()]
    rows, row_of = np.unique(whole, axis=0, return_inverse=True)
    inside = np.array(_smallest(rows))[:, row_of.reshape(-1)]
    inside = inside[np.argsort(inside.argmax(axis=1))]
    weights = {rest: _combined(at[rest], inside, groups[rest], k) for rest in groups}
    found = []
    for cell, here in enumerate(inside):
        own = [of[cell] for of in weights.values() if of[cell].any()]
        # of all records nothing is outside
        along = np.column_stack(own) if crossed else np.eye(k)
        fixed = [(place - 1, column) for place, column in zip(groups[()], whole[here].T, strict=True) if place]
        column, name = _named(design, values, here)
        found.append(
            DesignCell(
                column,
                name,
                weights[()][cell],
                along,
                tuple(map(int, np.flatnonzero(along.any(axis=1)))),
                tuple((place, float(column[0])) for place, column in fixed if (column == column[0]).all()),
            )
        )
    return found


def _combined(matrix: Array, inside: _Rows, places: list[int], k: int) -> Array:
    """Of each set of rows the combination of these columns that is 1 there and 0 elsewhere, zeros where there is none, (sets, k)."""
    sizes = np.maximum(np.abs(matrix).max(axis=0), 1e-300)
    wanted = inside.T.astype(np.float64)
    solved = np.linalg.lstsq(matrix / sizes, wanted, rcond=None)[0]
    hit = np.abs(matrix / sizes @ solved - wanted).max(axis=0) < _ROUNDING
    found = np.zeros((len(inside), k))
    # a weight of 1 is one, and one of 0 none
    found[:, places] = np.where(hit, np.round(solved, _DIGITS) + 0.0, 0.0).T / sizes
    return found


def _smallest(rows: Array) -> list[_Rows]:
    """Sets of rows whose indicator is a combination of the columns, none within another; the first one a constant."""
    left, sizes, _ = np.linalg.svd(rows / np.maximum(np.abs(rows).max(axis=0), 1e-300), full_matrices=False)
    base = left[:, sizes > _ROUNDING * sizes[0]]
    each = np.eye(len(rows), dtype=np.bool_)
    if base.shape[1] == len(rows):
        return list(each)
    known = [one for one in each if np.abs(one - base @ base[one].sum(axis=0)).max() < _ROUNDING]
    for column in rows.T:
        if len(np.unique(column)) == 2:
            known += [column == column.max(), column != column.max()]
    known += [np.ones(len(rows), dtype=np.bool_)]
    changed = True
    while changed:
        changed = False
        for one in known:
            for other in known:
                if other.any() and (other <= one).all() and (other != one).any():
                    one &= ~other
                    changed = True
    return list({tuple(one): one for one in known if one.any()}.values())


def _named(design: ModelMatrix, values: Mapping[str, Array], here: _Rows) -> tuple[str, str]:
    """What a set of rows of a grid is called: ("f", "u"), ("a:b", "0:0 or 1:0"), without columns that it does not depend on."""
    sizes = [len(np.unique(of)) for of in values.values()]
    cube, kept = here.reshape(sizes), dict[str, Array]()
    for axis, (name, of) in enumerate(values.items()):
        if (cube != cube.take([0], axis)).any():
            kept[name] = of
    said = dict.fromkeys(
        ":".join(_value(design, name, float(of[row])) for name, of in kept.items()) for row in np.flatnonzero(here)
    )
    listed, more = list(said)[:_NAMED], len(said) - _NAMED
    return ":".join(kept), " or ".join(listed) + (f" or {more} more" if more > 0 else "")


def _value(design: ModelMatrix, name: str, value: float) -> str:
    column: Any = design.schema[name]
    return column.levels[int(value)] if isinstance(column, Categorical) else f"{value:g}"
