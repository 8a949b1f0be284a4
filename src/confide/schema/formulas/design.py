"""A formula over a schema as columns of integers: names, public bounds, grids, and the evaluation of one batch.

A plain numeric column keeps its grid and is handed on untouched. An indicator is 0 or 1. Any other term is computed
in float64 from the decoded columns and coded on a grid of 2^20 steps between its public bounds (interval arithmetic,
or `term_bounds`).

What a record gives must not depend on the batch it comes in, or no exact sensitivity would be proved. So every step
is elementwise, in one fixed order, and never a matrix product. The vector loops of a mathematical library may treat
the ends of an array, or an array that is not contiguous, differently from its middle. So all values are computed in
aligned blocks of one fixed length, padded at the end.

`public_columns` gives columns of public frames, for prediction: numbers as float64, labels as positions in their
levels.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from confide._arrays import Array
from confide._helpers import later, near_match
from confide.errors import PlanError
from confide.schema.columns import Categorical, Grid
from confide.schema.formulas.expression import Expression
from confide.schema.formulas.formula import Formula, cut, parse_formula
from confide.schema.formulas.terms import Bounds, Indicator, Term, Value, codings, expanded_terms, numeric_term
from confide.schema.schema import Schema
from confide.schema.settings import is_number

# needed where columns are derived, whose definitions are formulas
_derive = later("confide.schema.derive")


def public_columns(frame: Any, names: Sequence[str], schema: Schema) -> dict[str, Array]:
    """The named columns of a DataFrame or a mapping of arrays, each of shape (rows,); NaN is missing, -1 no level.

    A single number or label stands for all rows. Raises `PlanError` for a frame of another kind, a column that is
    missing or holds no numbers, and columns of different lengths.
    """
    held = _held(frame)
    cells: dict[str, Any] = {}
    for name in names:
        if name not in held and name in schema.derive and set(schema.behind([name])) <= set(held):
            continue
        if name not in held:
            raise PlanError(
                f"the frame has no column {name!r}{near_match(name, held)}; it has: {', '.join(held) or 'none'}",
                f"add {name!r}, the prediction needs {', '.join(names)}",
            )
        cells[name] = frame[name]
    behind = [name for name in schema.behind(name for name in names if name not in cells) if name not in cells]
    cells |= {name: frame[name] for name in behind}
    lengths = {len(column) for column in cells.values() if not _is_single(column)}
    if len(lengths) > 1:
        raise PlanError(f"the columns {', '.join(names)} of the frame must have one length, got {sorted(lengths)}")
    rows = lengths.pop() if lengths else 1
    found = {
        name: _column(name, [column] * rows if _is_single(column) else column, schema) for name, column in cells.items()
    }
    return _with_derived(found, names, schema) if len(found) < len(names) or behind else found


def _with_derived(found: dict[str, Array], names: Sequence[str], schema: Schema) -> dict[str, Array]:
    """Public columns with the derived ones that the frame lacks: from their inputs, which are clipped as records are."""
    codes = {name: schema[name].code(values) for name, values in found.items()}
    made = _derive.derived_codes(schema, codes)

    def values(name: str) -> Array:
        column = schema[name]
        return column.decode(made[name]) if isinstance(column, Grid) else made[name]

    return {name: found[name] if name in found else values(name) for name in names}


def has_columns(data: Any) -> bool:
    """Whether data name their columns, as frames and mappings do, and are not an array."""
    return isinstance(data, Mapping) or hasattr(data, "columns")


def rows_of(frame: Any) -> int:
    """The number of rows of a frame, also when no column of it is needed."""
    _held(frame)
    if not isinstance(frame, Mapping):
        return int(frame.shape[0])
    return max((len(column) for column in frame.values() if not _is_single(column)), default=1)


def _held(frame: Any) -> tuple[str, ...]:
    """The names of the columns of a frame."""
    if isinstance(frame, Mapping):
        return tuple(map(str, frame))
    if hasattr(frame, "columns") and hasattr(frame, "shape"):
        return tuple(map(str, frame.columns))
    raise PlanError(
        f"a frame must be a DataFrame or a mapping of names to arrays, got {type(frame).__name__}",
        'write predict({"age": [30, 40], "region": ["N", "S"]})',
    )


def _is_single(column: Any) -> bool:
    return isinstance(column, str) or not hasattr(column, "__len__") or getattr(column, "shape", None) == ()


def _column(name: str, cells: Any, schema: Schema) -> Array:
    column = schema[name]
    if isinstance(column, Categorical):
        return column.indices(cells.to_list() if hasattr(cells, "to_list") else list(cells))
    if column.kind == "date":
        days: Array = cast("Any", column).days_of(cells)
        return days
    try:
        if hasattr(cells, "to_numpy") and type(cells).__module__.startswith("pandas"):
            values = cells.to_numpy(dtype=np.float64, na_value=np.nan)
        else:
            values = np.asarray(cells.to_numpy() if hasattr(cells, "to_numpy") else cells, dtype=np.float64)
    except (TypeError, ValueError):
        raise PlanError(
            f"the column {name!r} of the frame must hold numbers", f"convert it, as in frame[{name!r}].astype(float)"
        ) from None
    if values.ndim != 1:
        raise PlanError(f"the column {name!r} of the frame must have one dimension, got {values.ndim}")
    return np.asarray(values, dtype=np.float64)


# Rows that are computed together: small enough for the processor's cache, large enough that calls cost little.
BLOCK = 4096


#: A level in the name of a coefficient.
_LEVEL = re.compile(r"\[T\.[^\]]*\]")


@dataclass(frozen=True)
class ModelMatrix:
    """Columns that a formula makes of a schema; made by `ModelMatrix.of`.

    Parameters
    ----------
    formula : str
        The formula as it was written.
    schema : Schema
        The schema.
    response : Term
        The response.
    terms : tuple of Term
        Columns without the intercept.
    intercept : bool
        Whether there is an intercept.
    term_bounds : tuple of (str, bounds)
        Declared bounds of terms and factors.

    Examples
    --------
    >>> schema = Schema({"y": {"kind": "numeric", "low": 0, "high": 9}, "a": {"kind": "integer", "low": 0, "high": 5}})
    >>> design = ModelMatrix.of("y ~ a + log1p(a)", schema)
    >>> design.names, design.columns, design.terms[0].steps, design.terms[1].steps
    (('Intercept', 'a', 'log1p(a)'), ('a', 'y'), 6, 1048576)
    """

    formula: str
    schema: Schema = field(repr=False)
    response: Term
    terms: tuple[Term, ...]
    intercept: bool
    term_bounds: tuple[tuple[str, Bounds], ...]

    @classmethod
    def of(cls, formula: str, schema: Schema, *, term_bounds: Mapping[str, Any] | None = None) -> ModelMatrix:
        """Make the model matrix of a formula over a schema.

        A derived value that is not finite is missing. The record is dropped if
        any column of the term has the rule "drop"; else the value is the middle
        of the term's bounds.

        Parameters
        ----------
        formula : str
            R-style formula, such as ``"y ~ a + b"``.
        schema : Schema
            The schema.
        term_bounds : mapping of str to (float, float), optional
            Public bounds of derived terms or factors, such as ``{"log(income)":
            (0, 14)}``, instead of interval arithmetic. Values outside are
            clipped.

        Returns
        -------
        ModelMatrix
            The model matrix.

        Raises
        ------
        PlanError
            The formula cannot be planned from public facts.
        """
        if not isinstance(schema, Schema):
            raise PlanError(
                f"schema must be a confide.Schema, got {type(schema).__name__}", "write ModelMatrix.of(formula, schema)"
            )
        # a release asks for its design once for each column, and at a hundred columns making it is half of the release
        key = formula, tuple(checked_bounds(term_bounds).items())
        if key in schema.designs:
            return schema.designs[key]  # type: ignore[no-any-return]
        parsed = parse_formula(formula, schema)
        given = _given_bounds(term_bounds, parsed, schema)
        factors = frozenset(factor for term in parsed.terms for factor in term)
        labels = frozenset(factor for factor in factors if _is_label(factor, schema))
        terms = [
            column
            for term, parts in zip(parsed.terms, codings(parsed.terms, labels, intercept=parsed.intercept), strict=True)
            for coding in parts
            for column in expanded_terms(term, coding, schema, cut(formula), given)
        ]
        response = numeric_term(parsed.response, schema, cut(formula), given)
        design = cls(formula, schema, response, tuple(terms), parsed.intercept, tuple(sorted(given.items())))
        design._check_names()
        return schema.designs.setdefault(key, design)  # type: ignore[no-any-return]

    def _check_names(self) -> None:
        if "Intercept" in (term.name for term in self.terms):
            raise PlanError(
                f"a column of {cut(self.formula)!r} is called 'Intercept', as the line's own coefficient is",
                "rename it in the data and the schema",
            )
        seen: set[str] = set()
        for name in self.names:
            if name in seen:
                raise PlanError(
                    f"two columns of {cut(self.formula)!r} are called {name!r}",
                    "rename one of the columns in the schema",
                )
            seen.add(name)
        unused = [name for name, _ in self.term_bounds if name not in self._bounded_names()]
        if unused:
            derived = [term.name for term in (*self.terms, self.response) if term.plain is None and not term.binary]
            raise PlanError(
                f"term_bounds names {unused[0]!r}{near_match(unused[0], tuple(derived))}, which is not a derived term of "
                f"{cut(self.formula)!r}; "
                + (
                    f"those are: {', '.join(derived)}"
                    if derived
                    else "it has none: plain columns have their bounds in the schema"
                )
            )

    def _bounded_names(self) -> set[str]:
        """Names that bounds were taken for: derived terms and their computed factors."""
        everything = [term for term in (*self.terms, self.response) if term.plain is None and not term.binary]
        factors = [
            part.name
            for term in everything
            for part in term.parts
            if isinstance(part, Value) and not part.expression.column
        ]
        return {*(term.name for term in everything), *factors}

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the coefficients, as in statsmodels: "Intercept", "age", "region[T.S]", "log(income)", "a:b"."""
        return (*(("Intercept",) if self.intercept else ()), *(term.name for term in self.terms))

    @cached_property
    def features(self) -> str:
        """The features for a title, each factor once: "age, region"; "1" for the intercept alone."""
        return ", ".join(dict.fromkeys(_LEVEL.sub("", term.name) for term in self.terms)) or "1"

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The schema columns that the model matrix needs, in the order of the rows that `codes` takes: terms first, response last."""
        return tuple(dict.fromkeys(column for term in (*self.terms, self.response) for column in term.columns))

    @cached_property
    def _rows(self) -> dict[str, int]:
        return {name: row for row, name in enumerate(self.columns)}

    @cached_property
    def _all(self) -> tuple[Term, ...]:
        return (*self.terms, self.response)

    @cached_property
    def _plain(self) -> bool:
        """Whether all terms are columns as they stand."""
        return all(term.plain is not None for term in self._all)

    # private records --------------------------------------------------------------------------------------------------

    def codes(self, column_codes: Array) -> tuple[Array, NDArray[np.bool_] | None]:
        """Grid codes of the terms (response last) and which records count, from the codes of the columns.

        column_codes: float64 (len(columns), rows), exact integers, -1 = missing where the rule is "drop". Returns
        float64 codes (len(terms) + 1, rows), exact integers, and a boolean mask (rows,), or None when every record
        counts. Codes of records that do not count are finite and mean nothing. When all terms are plain columns the
        codes are `column_codes` itself: read it only. Raises `PlanError` for a wrong number of rows.
        """
        if column_codes.ndim != 2 or column_codes.shape[0] != len(self.columns):
            raise PlanError(
                f"codes must have one row for each of the columns {', '.join(self.columns)}, got the shape {column_codes.shape}"
            )
        keep = _complete(column_codes)
        if self._plain:
            return column_codes, keep
        out = np.empty((len(self._all), column_codes.shape[1]), dtype=np.float64)
        derived = []
        for row, term in zip(out, self._all, strict=True):
            if term.plain is not None:
                row[:] = column_codes[self._rows[term.plain]]
            elif term.binary:
                self._indicate(term, column_codes, row)
            else:
                derived.append((term, row))
        lost = self._derive(derived, column_codes) if derived else None
        if lost is not None:
            keep = ~lost if keep is None else keep & ~lost
        return out, keep

    def _indicate(self, term: Term, column_codes: Array, out: Array) -> None:
        """A product of factors that are 0 or 1, exactly."""
        out[:] = 1.0
        for part in term.parts:
            codes = column_codes[self._rows[part.columns[0]]]
            out *= (codes == part.position) if isinstance(part, Indicator) else codes

    def _derive(self, derived: list[tuple[Term, Array]], column_codes: Array) -> NDArray[np.bool_] | None:
        """Codes of derived terms, block by block into their rows; which records they lose, None when no record is lost."""
        rows = column_codes.shape[1]
        needed = dict.fromkeys(column for term, _ in derived for column in term.columns)
        room = {name: aligned(BLOCK) for name in needed}
        lost = np.zeros(rows, dtype=np.bool_)
        for start in range(0, rows, BLOCK):
            stop = min(start + BLOCK, rows)
            values = {name: self._column_block(name, column_codes, start, stop, room[name]) for name in needed}
            done: _Parts = {}
            for term, row in derived:
                codes = term.grid.code(_product(term, values, done, _private_part))[: stop - start]
                row[start:stop] = codes
                if term.on_missing == "drop":
                    lost[start:stop] |= codes < 0
        return lost if lost.any() else None

    def _column_block(self, name: str, column_codes: Array, start: int, stop: int, room: Array) -> Array:
        """Values of a column (positions of a categorical one) in a block of fixed length, the rest filled up with code 0."""
        room[: stop - start] = column_codes[self._rows[name], start:stop]
        room[stop - start :] = 0.0
        column = self.schema[name]
        return column.decode_into(room, room) if isinstance(column, Grid) else room

    # public frames ----------------------------------------------------------------------------------------------------

    def matrix(self, frame: Any) -> Array:
        """Give the model matrix of a public frame, for prediction.

        Values are used as they are, without bounds or grid. A value that is
        missing and a label that is not a level give NaN.

        Parameters
        ----------
        frame : DataFrame or mapping of arrays
            Public values of the columns.

        Returns
        -------
        array of float
            Shape (rows, len(names)), in the terms' own units.

        Raises
        ------
        PlanError
            A column is missing or has no numbers.
        """
        needed = tuple(dict.fromkeys(column for term in self.terms for column in term.columns))
        values = public_columns(frame, needed, self.schema)
        rows = len(values[needed[0]]) if needed else rows_of(frame)
        matrix = np.ones((rows, len(self.names)), dtype=np.float64)
        done: _Parts = {}
        for column, term in enumerate(self.terms, start=int(self.intercept)):
            matrix[:, column] = _product(term, values, done, _public_part)
        return matrix

    def response_of(self, frame: Any) -> Array:
        """The response (rows,) of a public frame in its own units, under the rules of `matrix`."""
        values = public_columns(frame, self.response.columns, self.schema)
        return _product(self.response, values, {}, _public_part)

    # text forms -------------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe form with floats as `float.hex`; the schema is named by its digest."""
        return {
            "formula": self.formula,
            "schema": self.schema.digest,
            "intercept": self.intercept,
            "term_bounds": {name: [low.hex(), high.hex()] for name, (low, high) in self.term_bounds},
            "terms": [term.to_dict() for term in self.terms],
            "response": self.response.to_dict(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], schema: Schema) -> ModelMatrix:
        """The inverse of `to_dict`, to the bit, over the same schema; `PlanError` when anything in it differs."""
        try:
            bounds = {name: tuple(map(float.fromhex, ends)) for name, ends in data["term_bounds"].items()}
            design = cls.of(data["formula"], schema, term_bounds=bounds)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            if isinstance(error, PlanError):
                raise
            raise PlanError("this is not the dictionary of a design", "write it with design.to_dict()") from None
        if _plain_data(design.to_dict()) != _plain_data(data):
            raise PlanError(
                f"the design of {cut(design.formula)!r} is not the one that the schema gives, whose digest is {schema.digest[:12]}...",
                "use the schema that the design was made with, or write it again with ModelMatrix.of(formula, schema)",
            )
        return design


def _complete(column_codes: Array) -> NDArray[np.bool_] | None:
    """Which records have no missing value; None when all of them have none."""
    if not column_codes.size or column_codes.min() >= 0:
        return None
    return np.asarray((column_codes >= 0).all(axis=0))


def aligned(size: int) -> Array:
    """A float64 array that starts at a multiple of 64 bytes, the widest vector of today's processors."""
    raw = np.empty(size + 8, dtype=np.float64)
    first = -raw.ctypes.data % 64 // 8
    return raw[first : first + size]


_Parts = dict[Indicator | Value, Array]


def _product(term: Term, values: Mapping[str, Array], done: _Parts, part_values: Callable[..., Array]) -> Array:
    """The product of a term's factors, from left to right; `done` keeps the factors of one block."""
    total: Array | None = None
    for part in term.parts:
        if part not in done:
            done[part] = part_values(part, values)
        with np.errstate(all="ignore"):
            total = done[part] if total is None else total * done[part]
    assert total is not None
    return total


def _private_part(part: Indicator | Value, values: Mapping[str, Array]) -> Array:
    if isinstance(part, Indicator):
        return np.asarray(values[part.column] == part.position, dtype=np.float64)
    found = part.expression.evaluate(values)
    if part.bounds is None:
        return found
    # what is not finite must stay so: the clip would turn an infinite value into a bound
    return np.where(np.isfinite(found), np.clip(found, *part.bounds), np.nan)


def _public_part(part: Indicator | Value, values: Mapping[str, Array]) -> Array:
    if isinstance(part, Value):
        return part.expression.evaluate(values)
    position = values[part.column]
    return np.where(position < 0, np.nan, np.asarray(position == part.position, dtype=np.float64))


def _is_label(factor: Expression, schema: Schema) -> bool:
    return factor.column is not None and isinstance(schema[factor.column], Categorical)


def _plain_data(value: Any) -> Any:
    """Nested data with tuples as lists: some readers of JSON give the one, some the other."""
    if isinstance(value, Mapping):
        return {key: _plain_data(item) for key, item in value.items()}
    return [_plain_data(item) for item in value] if isinstance(value, (list, tuple)) else value


# bounds that are given ------------------------------------------------------------------------------------------------


def checked_bounds(term_bounds: Any) -> dict[str, Bounds]:
    """`term_bounds` as pairs of floats by the names as given; `PlanError` for what is not a mapping of names to pairs."""
    if term_bounds is None:
        return {}
    if not isinstance(term_bounds, Mapping):
        raise PlanError(
            f"term_bounds must be a mapping of names to pairs, got {type(term_bounds).__name__}",
            'write term_bounds={"log(income)": (0, 14)}',
        )
    return {str(name): _checked_pair(str(name), pair) for name, pair in term_bounds.items()}


def _given_bounds(term_bounds: Any, parsed: Formula, schema: Schema) -> dict[str, Bounds]:
    """Checked bounds by the names that terms and factors are printed with."""
    factors = {factor for term in parsed.terms for factor in term} | {parsed.response}
    spelled = {_squeezed(factor.name): factor.name for factor in factors}
    given: dict[str, Bounds] = {}
    for name, pair in checked_bounds(term_bounds).items():
        known = spelled.get(_squeezed(name), name)
        if known in {factor.name for factor in factors if factor.column}:
            raise PlanError(
                f"term_bounds names the column {known!r}, whose bounds are in the schema",
                "change them there, and give "
                'term_bounds for derived terms only, for instance term_bounds={"log(income)": (0, 14)}',
            )
        given[known] = pair
    return given


def _squeezed(name: str) -> str:
    return "".join(name.split())


def _checked_pair(name: str, pair: Any) -> Bounds:
    pair = pair.tolist() if isinstance(pair, np.ndarray) else pair
    fits = isinstance(pair, (tuple, list)) and len(pair) == 2 and all(map(is_number, pair))
    if not fits or not float(pair[0]) < float(pair[1]):
        raise PlanError(
            f"term_bounds[{name!r}] must be a pair of finite numbers with the smaller first, got {pair!r}",
            f"write term_bounds={{{name!r}: (0, 14)}}",
        )
    return float(pair[0]) + 0.0, float(pair[1]) + 0.0
