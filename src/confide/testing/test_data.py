"""Records to try it on: within the bounds, at their edges, and hostile; and noise that is none."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from confide.core import Method, Noise, RecordMap, Statistic, method_parameters
from confide.errors import PlanError
from confide.schema import Categorical, Numeric, Schema

_FUNCTIONS = {"log", "log1p", "sqrt", "exp", "abs", "I", "C"}


class ZeroNoise(Noise):
    """No noise at all, for exactness checks. It is marked simulated, so no ledger takes it."""

    simulated = True

    def rekey(self) -> None:
        """Nothing to do: there is no stream."""

    def grid_gaussian(self, sigma2: Fraction | Sequence[Fraction], size: int) -> NDArray[np.int64]:
        """Zeros, whatever the variance."""
        return np.zeros(size, dtype=np.int64)

    discrete_gaussian = grid_laplace = discrete_laplace = grid_cauchy = grid_gaussian  # type: ignore[assignment]

    def bernoulli(self, p: Fraction, size: int) -> NDArray[np.bool_]:
        """True where it is at least as likely as not."""
        return np.full(size, p >= Fraction(1, 2))

    def exponential_mechanism(self, scores: Any, epsilon: Fraction, sensitivity: Fraction, lengths: Any = None) -> int:
        """The first of the best candidates that have a length."""
        values = np.asarray(scores)
        allowed = np.arange(len(values)) if lengths is None else np.flatnonzero(np.asarray(lengths) > 0)
        return int(allowed[np.argmax(values[allowed])])


def codes_of(source: Any, record_map: RecordMap) -> NDArray[np.float64]:
    """The codes (columns, rows) that a source hands to a record map. For tests on test data: it keeps every record."""
    (codes,) = source.aggregate(_Capture(record_map))
    return np.asarray(codes, dtype=np.float64)


@dataclass(frozen=True)
class _Capture(Statistic):
    """A statistic that keeps the codes instead of summing."""

    map: RecordMap
    norm: str = "l2"

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.map.columns), 0)

    def sensitivity_squared(self, relation: str) -> Fraction:
        raise PlanError("captured codes have no sensitivity; they must not be released")

    def sensitivity_l1(self, relation: str) -> Fraction:
        raise PlanError("captured codes have no sensitivity; they must not be released")

    def zero(self) -> list[NDArray[np.float64]]:
        return []

    def update(self, state: list[NDArray[np.float64]], codes: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        return [*state, codes.copy()]

    def merge(self, a: list[NDArray[np.float64]], b: list[NDArray[np.float64]]) -> list[NDArray[np.float64]]:
        return [*a, *b]

    def value(self, state: list[NDArray[np.float64]]) -> NDArray[Any]:
        return np.concatenate(state, axis=1) if state else np.zeros((len(self.map.columns), 0))


def practice_schema(method: Method) -> Schema:
    """Every name in the method's text parameters, and in its tuples of texts, as `Numeric(0.5, 2.5)`."""
    given = [value if isinstance(value, tuple) else (value,) for value in method_parameters(method).values()]
    text = " ".join(part for parts in given if all(isinstance(part, str) for part in parts) for part in parts)
    names = [
        name
        for name in dict.fromkeys(re.findall(r"[A-Za-z_]\w*", text))
        if name not in _FUNCTIONS and not keyword.iskeyword(name)
    ]
    if not names:
        raise PlanError(
            "the method names no column in its text parameters", "give a schema: check_method(method, schema)"
        )
    return Schema({name: Numeric(0.5, 2.5) for name in names})


def edge_frame(schema: Schema, n: int) -> pd.DataFrame:
    """Test data of which half sit on bounds, beyond them, or are missing."""
    frame = schema.sample(n, 4)
    generator = np.random.Generator(np.random.PCG64(9))
    for name in schema.in_data:
        column = schema[name]
        if isinstance(column, Categorical):
            continue
        if column.kind == "date":
            frame[name] = _edge_dates(frame[name], column, generator)
            continue
        values = frame[name].to_numpy(dtype=float).copy()
        choice = generator.integers(0, 14, len(values))
        for k, special in enumerate(
            (column.low, column.high, (column.low + column.high) / 2, -1e300, 1e300, np.nan, -0.0)
        ):
            values[choice == k] = special
        frame[name] = values
    return frame


def _edge_dates(values: pd.Series[Any], column: Any, generator: np.random.Generator) -> pd.Series[Any]:
    """Dates of which half sit on bounds, beyond them, or are missing."""
    edges = [*column.text_of(np.array([column.low, column.high])), "0001-01-01", "9999-12-31", None, "31.02.2000"]
    texts = np.array(column.text_of(values.to_numpy().astype("datetime64[D]").astype(np.int64)), dtype=object)
    choice = generator.integers(0, 2 * len(edges), len(values))
    for k, special in enumerate(edges):
        texts[choice == k] = special
    return pd.Series(texts, index=values.index, dtype=object)


def hostile_frames(schema: Schema) -> Iterator[tuple[str, pd.DataFrame]]:
    """Frames of legal shape and hostile values, all with the schema's columns."""
    frame = schema.sample(60, 6)
    yield "practice", frame
    yield "empty", frame.iloc[:0]
    yield "one row", frame.iloc[:1]
    for label, value in (
        ("NaN", np.nan),
        ("inf", np.inf),
        ("-inf", -np.inf),
        ("1e300", 1e300),
        ("-1e300", -1e300),
        ("subnormal", 5e-324),
    ):
        yield label, _fill(frame, schema, value)
    yield "constant", pd.concat([frame.iloc[:1]] * 60, ignore_index=True)
    yield "text", frame.astype(object).map(lambda _: "no number, no label")
    mixed = frame.astype(object)
    mixed.iloc[::3] = None
    mixed.iloc[1::3] = "12,5"
    yield "mixed objects", mixed


def _fill(frame: pd.DataFrame, schema: Schema, value: float) -> pd.DataFrame:
    filled = frame.copy()
    words = {"categorical": "no such label", "date": "no such date"}
    for name in schema.in_data:
        filled[name] = words.get(schema[name].kind, value)
    return filled
