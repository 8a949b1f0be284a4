"""Standard errors to expect, before anything is spent: a number where the schema states typical spreads, else an interval.

Every number is that of practice records of stated shapes (`practice`), from public facts alone. A method says what it expects on the
records of one shape; here these expectations become a table. Rounded to two digits: it is a guess, and must not differ between machines
in its last bits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import nan
from typing import Any

import numpy as np

from confide._arrays import Array
from confide.aggregates.scores.metric import factor_name
from confide.methods.regression.practice import FAMILY, Shape, shapes, stated, whole
from confide.methods.regression.scaling import coefficient_names, to_units
from confide.schema import Categorical, Design, Schema
from confide.schema.formulas.term import Indicator, Term

__all__ = ["Expected", "Forecast", "bare_errors", "errors_of", "forecast_table", "from_covariance"]


_FEWEST, _SHAPES = 24, 48
# So many numbers of all shapes' moments at most beyond the fewest: a plan must be quick.
_WORK = 20_000
# An interval holds so much of the family.
_HOLDS = 0.98
# Fewer standard errors than so many say too little of where another one lies: it is between them with a chance of 1 - 2/13 from here on.
_TOLD = 12
# Columns of at most so many whole numbers are told apart by how many they are: most are spread over all of them.
_WHOLE = 20
# Where something else is offered: standard errors so many times those without privacy, or a smaller chance of an answer.
_DEAR, _CHANCE = 1.5, 0.5


@dataclass(frozen=True, eq=False)
class Expected:
    """What a method expects on the records of one shape: standard errors in the data's units, NaN where it would give no interval."""

    errors: Array
    ok: bool


Expect = Callable[[Shape, int], Expected]


@dataclass(frozen=True, eq=False, repr=False)
class Forecast(Mapping[str, Any]):
    """The table of `forecast_table`, simulated when it is first looked at: most plans are made to be kept, not to be read.

    offer: what else could be asked, said for numbers of records where this is dear or unlikely to be answered. bare: standard errors
    without privacy, of least squares when left out. most: shapes, where each takes long; far: whether bounds of features may lie far out
    (`practice`).
    """

    design: Design
    schema: Schema
    n: int | None
    expect: Expect
    offer: str = ""
    bare: Callable[[Shape, int], Array] | None = None
    most: int = _SHAPES
    far: bool = False

    def __post_init__(self) -> None:
        to_units(
            self.design, []
        )  # refuses bounds in whose units no variance can be computed, now and not when it is printed

    @cached_property
    def table(self) -> dict[str, Any]:
        found = forecast_table(self.design, self.schema, self.n, self.expect, self.bare, self.most, far=self.far)
        dear = {key: found["ok"][key] < _CHANCE or not found["price"][key] <= _DEAR for key in found["ok"]}
        return found | {"offer": {key: self.offer for key in dear if dear[key]} if self.offer else {}}

    def __getitem__(self, key: str) -> Any:
        return self.table[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.table)

    def __len__(self) -> int:
        return len(self.table)

    def __repr__(self) -> str:
        return repr(self.table)

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (self.table,)


def forecast_table(
    design: Design,
    schema: Schema,
    n: int | None,
    expect: Expect,
    without: Callable[[Shape, int], Array] | None = None,
    most: int = _SHAPES,
    *,
    far: bool = False,
) -> dict[str, Any]:
    """Predicted standard errors by number of records and name, and the chance that the status is `ok`.

    A number, the median over the shapes, where every column of numbers states its typical spread; else (low, high), between which 98 % of
    the family's standard errors lie. "-" stands where next to no shape has one. Levels of one factor whose shares are not stated are
    interchangeable before the data are seen, and so are columns whose spreads are not: what the shapes say of one is said of all, of
    columns in units of their half-ranges. "answered": the share of coefficients with an interval, over the shapes. "price": how many
    times as large as without privacy noise. "between": where a number stands, (low, high) beside it. without: standard errors without
    privacy, if not of least squares.
    """
    known = stated(design, schema)
    names = coefficient_names(design, list(range(len(design.terms))))
    groups, sizes = _alike(design, schema)
    drawn = list(shapes(design, schema, _number_of_shapes(len(names), most), far=far))
    table: dict[str, Any] = {
        "assumes": _assumes(known, len(drawn), whole(design, schema), far=far),
        "ok": {},
        "answered": {},
        "price": {},
        "between": {},
    }
    for count in (n,) if n else (1_000, 10_000, 100_000):
        found = [expect(shape, count) for shape in drawn]
        bare = np.array(
            [bare_errors(design, shape, count) if without is None else without(shape, count) for shape in drawn]
        )
        errors = np.array([one.errors for one in found])
        key, alike = f"{count:,}", {name: errors[:, own] * sizes[own] for name, own in groups.items()}
        table[key] = {name: _entry(alike[name] / size, known) for name, size in zip(names, sizes, strict=True)}
        if known:
            table["between"][key] = {
                name: _entry(alike[name] / size, False) for name, size in zip(names, sizes, strict=True)
            }
        table["ok"][key] = round(float(np.mean([one.ok for one in found])), 2)
        table["answered"][key] = round(float(np.isfinite(errors).mean()), 2)
        with np.errstate(all="ignore"):
            ratios = errors / bare
        table["price"][key] = _rounded(_median(ratios[~np.isnan(ratios)]) if np.isfinite(errors).any() else nan)
    return table


def bare_errors(design: Design, shape: Shape, count: int) -> Array:
    """Standard errors without privacy, in the data's units: least squares, unequal variances allowed."""
    return errors_of(design, shape.sandwich / count)


def from_covariance(design: Design, covariance: Callable[[Shape, int], Array]) -> Expect:
    """Expectations from a covariance of theta in scaled units; it always has intervals."""

    def expect(shape: Shape, count: int) -> Expected:
        return Expected(errors_of(design, covariance(shape, count)), True)

    return expect


def errors_of(design: Design, covariance: Array) -> Array:
    """Standard errors in the data's units from a covariance of theta in the public box."""
    matrix, _ = to_units(design, list(range(len(design.terms))))
    return np.asarray(np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", matrix, covariance, matrix), 0.0)))


def _number_of_shapes(p: int, most: int) -> int:
    return int(np.clip(_WORK // p**2, _FEWEST, most))


def _alike(design: Design, schema: Schema) -> tuple[Mapping[str, list[int]], Array]:
    """By name, the places of the coefficients that nothing public tells apart; and what each is multiplied by to be compared, (k,).

    These are levels of one factor whose shares are not stated, and columns of numbers whose spread is not stated and that stand in one term
    alone: per half-range they are alike, where as many values are possible.
    """
    names = coefficient_names(design, list(range(len(design.terms))))
    used = Counter(column for term in design.terms for column in term.columns)
    kinds = [*([""] if design.intercept else []), *(_kind(term, schema, used) for term in design.terms)]
    sizes = [*([1.0] if design.intercept else []), *((term.high - term.low) / 2 for term in design.terms)]
    places = {
        name: [j for j, other in enumerate(kinds) if other == kind] for name, kind in zip(names, kinds, strict=True)
    }
    return places, np.array(sizes)


def _kind(term: Term, schema: Schema, used: Mapping[str, int]) -> str:
    if term.plain is not None and schema[term.plain].typical is None and used[term.plain] == 1:
        # no column has an empty name
        return f"``{min(term.steps, _WHOLE + 1)}"
    columns = [schema[part.column] for part in term.parts if isinstance(part, Indicator)]
    told = all(isinstance(column, Categorical) and column.shares is not None for column in columns)
    return term.name if told else factor_name(term)


def _entry(errors: Array, known: bool) -> Any:
    """One cell: a number, the interval of 98 % of what was found, or None where next to no shape has an interval."""
    found = errors[np.isfinite(errors)]
    if not found.size:
        return None
    if known:
        return _rounded(_median(found))
    if found.size < _TOLD:
        return None
    # one more of them lies between these with that chance: the least and the largest, where there are few
    low, high = (_quantile(found, share) for share in ((1 - _HOLDS) / 2, (1 + _HOLDS) / 2))
    return _rounded(low), _rounded(high)


# NumPy's own `median` and `quantile` load its masked arrays first: a tenth of the time that a plan takes.


def _quantile(values: Array, share: float) -> float:
    """Of finite numbers, by the rule of Weibull: one more lies below it with that chance."""
    ordered, place = np.sort(values, axis=None), min(max((values.size + 1) * share - 1, 0.0), values.size - 1.0)
    below = int(place)
    above = min(below + 1, values.size - 1)
    return float(ordered[below] + (ordered[above] - ordered[below]) * (place - below))


def _median(values: Array) -> float:
    """Of what is no NaN."""
    ordered, middle = np.sort(values, axis=None), values.size // 2
    if not values.size:
        return nan
    return float(ordered[middle] if values.size % 2 else (ordered[middle - 1] + ordered[middle]) / 2)


def _rounded(value: float) -> float:
    return float(f"{value:.2g}")


def _assumes(known: bool, count: int, everything: bool, *, far: bool) -> str:
    """everything: own shares and shares of levels are stated too."""
    family = (
        "the schema's typical spreads, tails normal to long"
        if known
        else FAMILY + ("; one feature of numbers in 20 in less than 5 % of its bounds" if far else "")
    )
    kind = "the median over" if known else f"{_HOLDS:.0%} of those in"
    rough = (
        "; own shares or shares of levels are not stated, without which a number is off by more than a factor of 2 about every other time: "
        "what is in brackets is the forecast"
        if known and not everything
        else ""
    )
    return (
        f"{kind} {count} shapes of simulated records: {family}; 0.1 % to 100 % of each feature is its own; "
        f"a line leaves 3 % to 100 % of the response, unless stated{rough}"
    )
