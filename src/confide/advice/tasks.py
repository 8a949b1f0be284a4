"""The kinds of question: which methods answer them, practice records with a relation to find, and the numbers that are compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import brentq

from confide import registry
from confide._arrays import Array
from confide._special import expit
from confide.errors import PlanError
from confide.methods.regression.practice import frame
from confide.schema import Categorical, Schema
from confide.schema.formulas.names import hidden, sides

__all__ = ["TASKS", "Task"]

Named = tuple[str, Mapping[str, Any]]

_SEED = 20260104


@dataclass(frozen=True)
class Task:
    """One kind of question. candidates: (formula, schema, n) -> registered names with settings; plant: (frame, formula, schema,
    generator) -> practice records with a relation; read: (result, formula, schema) -> the numbers by name; reference: the method whose
    answer without noise is the target, by default the first candidate; shaped: (formula, schema, rows, k) -> records of the k-th of several
    shapes in place of `plant`; records: in words.
    """

    candidates: Callable[[str, Schema, int], Sequence[Named]]
    plant: Callable[[pd.DataFrame, str, Schema, np.random.Generator], pd.DataFrame]
    read: Callable[[Any, str, Schema], Mapping[str, float]]
    reference: Named | None = None
    shaped: Callable[[str, Schema, int, int], pd.DataFrame] | None = None
    records: str = "records even within the schema's bounds, with a planted relation"


def _params(result: Any, formula: str, schema: Schema) -> Mapping[str, float]:
    return {str(name): float(value) for name, value in result.params.items()}


def _columns(formula: str, schema: Schema) -> tuple[str, tuple[str, ...]]:
    """The response's column and the columns of the features: the schema's names on the left and the right of the formula."""
    found = [hidden(side, schema.names)[1].values() for side in sides(str(formula))]
    names = [tuple(name for name in side if name in schema.names) for side in found]
    if len(names) != 2 or not names[0]:
        raise PlanError(f'a formula names a response and features of the schema, got {formula!r}; write "y ~ a + b"')
    return names[0][0], names[1]


def _scores(frame: pd.DataFrame, features: tuple[str, ...], schema: Schema) -> Array:
    """A sum of the features in half-ranges, of variance one: levels of a categorical column count by their place."""
    total = np.zeros(len(frame))
    for name in features:
        column = schema[name]
        if isinstance(column, Categorical):
            place = {level: i for i, level in enumerate(column.levels)}
            values = np.array([place.get(value, 0) for value in frame[name]], dtype=float)
        else:
            values = frame[name].to_numpy(dtype=float)
        spread = values.std()
        total += (values - values.mean()) / spread if spread > 0 else 0.0
    return np.asarray(total / max(len(features), 1) ** 0.5)


def _line(frame: pd.DataFrame, formula: str, schema: Schema, generator: np.random.Generator) -> pd.DataFrame:
    """A line that explains half of the response's variance, with its values well within the bounds."""
    response, features = _columns(formula, schema)
    values = (_scores(frame, features, schema) + generator.normal(size=len(frame))) / 2**0.5
    return frame.assign(**{response: _within(schema, response, values / 4)})


def _shape(formula: str, schema: Schema, rows: int, k: int) -> pd.DataFrame:
    """Records of the k-th shape that the schema allows."""
    response, features = _columns(formula, schema)
    if isinstance(schema[response], Categorical):
        raise PlanError(f"{response!r} is categorical, and this task is about a number; its own task is classification")
    return pd.DataFrame(frame(schema, [name for name in features if name != response], response, rows, k))


def _within(schema: Schema, name: str, values: Array) -> Array:
    """Values in half-ranges from the middle, in the units of a numeric column."""
    column = schema[name]
    if isinstance(column, Categorical):
        raise PlanError(f"{name!r} is categorical, and this task is about a number; its own task is classification")
    half, middle = (column.high - column.low) / 2, (column.high + column.low) / 2
    return np.asarray(np.clip(middle + half * values, column.low, column.high))


# Shares of the outcome by turns, where the schema does not state one; how steep log-odds are, in sds of the features' sum.
_SHARES, _STEEP = (0.5, 0.05), 1.0


def _odds(formula: str, schema: Schema, rows: int, k: int) -> pd.DataFrame:
    """Records of the k-th shape that the schema allows, with log-odds that follow the features."""
    response, features = _columns(formula, schema)
    column, own = schema[response], [name for name in features if name != response]
    made = pd.DataFrame(frame(schema, own, response, rows, k))
    scores = _STEEP * _scores(made, tuple(own), schema)
    share = _SHARES[k % len(_SHARES)]
    if isinstance(column, Categorical) and column.shares is not None and len(column.levels) == 2:
        share = column.shares.each[1]
    # between these the expected share goes from nearly 0 to nearly 1
    low, high = -40.0 - scores.max(), 40.0 - scores.min()
    middle = brentq(lambda at: expit(at + scores).mean() - share, low, high)
    happens = np.random.Generator(np.random.PCG64([_SEED, k])).random(rows) < expit(middle + scores)
    no, yes = tuple(column.levels)[:2] if isinstance(column, Categorical) else (0, 1)
    return made.assign(**{response: np.where(happens, yes, no)})


def _counts(frame: pd.DataFrame, formula: str, schema: Schema, generator: np.random.Generator) -> pd.DataFrame:
    """Poisson counts with a mean of an eighth of the bound, whose logarithm follows the features."""
    response, features = _columns(formula, schema)
    column = schema[response]
    if isinstance(column, Categorical):
        raise PlanError(f"{response!r} is categorical, and this task is about a count; its own task is classification")
    counts = generator.poisson(column.high / 8 * np.exp(_scores(frame, features, schema) / 4))
    return frame.assign(**{response: np.clip(counts, column.low, column.high)})


def _classes(frame: pd.DataFrame, formula: str, schema: Schema, generator: np.random.Generator) -> pd.DataFrame:
    """Numeric features of a class lie in its own third of the bounds, about two sds from those of the next class."""
    response, features = _columns(formula, schema)
    column = schema[response]
    if not isinstance(column, Categorical):
        raise PlanError(
            f"{response!r} is a number, and classes are the levels of a categorical column; declare its levels"
        )
    place = {level: i for i, level in enumerate(column.levels)}
    classes = np.array([place.get(value, 0) for value in frame[response]])
    centre = (2 * classes + 1) / len(place) - 1
    moved = {
        name: _within(schema, name, 0.5 * centre + generator.normal(0, 0.3 / len(place), len(frame)))
        for name in features
        if not isinstance(schema[name], Categorical)
    }
    return frame.assign(**moved)


def _wave(frame: pd.DataFrame, formula: str, schema: Schema, generator: np.random.Generator) -> pd.DataFrame:
    """A wave of one period over the feature's bounds, half as large as the response's range, with noise."""
    response, features = _columns(formula, schema)
    column = schema[features[0]] if features else None
    if column is None or isinstance(column, Categorical):
        raise PlanError(f'a curve has one numeric feature, got {formula!r}; write "y ~ x"')
    place = (frame[features[0]].to_numpy(dtype=float) - column.low) / (column.high - column.low)
    values = 0.5 * np.sin(2 * np.pi * place) + generator.normal(0, 0.15, len(frame))
    return frame.assign(**{response: _within(schema, response, values)})


def _installed(found: Sequence[Named]) -> Sequence[Named]:
    """Those that are registered: methods for comparison alone come with a package of their own."""
    there = registry.known()
    return tuple(one for one in found if one[0] in there)


def _lines(formula: str, schema: Schema, n: int) -> Sequence[Named]:
    names = (
        "least_squares",
        "ssp",
        "adassp",
        "gradient_descent",
        "output_perturbation",
        "efficient_ptr",
        "posterior_sampling",
    )
    return _installed([(name, {}) for name in names])


def _logistic(formula: str, schema: Schema, n: int) -> Sequence[Named]:
    return tuple(("logistic", {"mechanism": mechanism}) for mechanism in ("glm", "objective", "output", "ptr"))


def _poisson(formula: str, schema: Schema, n: int) -> Sequence[Named]:
    return (("poisson", {}),)


def _classifiers(formula: str, schema: Schema, n: int) -> Sequence[Named]:
    response, _ = _columns(formula, schema)
    column = schema[response]
    share = 0.5 / len(column.levels) if isinstance(column, Categorical) else 0.1
    return _installed([("class_means", {}), ("naive_bayes", {}), ("efficient_ptr_bayes", {"c0": share})])


#: Places at which curves are compared, as shares of the feature's range.
_PLACES = (0.1, 0.3, 0.5, 0.7, 0.9)


def _at(formula: str, schema: Schema) -> list[float]:
    name = (_columns(formula, schema)[1] or ("",))[0]
    column = schema[name] if name in schema.names else None
    if column is None or isinstance(column, Categorical):
        raise PlanError(f'a curve has one numeric feature, got {formula!r}; write "y ~ x"')
    return [float(column.low + place * (column.high - column.low)) for place in _PLACES]


def _curves(formula: str, schema: Schema, n: int) -> Sequence[Named]:
    points = _at(formula, schema)
    width = 0.2 * n**-0.2 * (points[-1] - points[0]) / (_PLACES[-1] - _PLACES[0])
    # half of the kernel sum to expect of even records: sqrt(2 pi) h n over the range, in records at the peak
    least = max(0.5 * (2 * np.pi) ** 0.5 * 0.2 * n**0.8, 1.5)
    return _installed(
        [
            ("kernel", {"bandwidth": width}),
            ("efficient_ptr_kernel", {"points": points, "bandwidth": width, "least": float(least)}),
            ("wavelet", {}),
        ]
    )


def _curve(result: Any, formula: str, schema: Schema) -> Mapping[str, float]:
    points = _at(formula, schema)
    return {f"at {x:g}": float(value) for x, value in zip(points, result.predict(points), strict=True)}


TASKS: dict[str, Task] = {
    "linear_regression": Task(
        _lines,
        _line,
        _params,
        ("ssp", {"leverage_cap": 1e3, "cov": "classical", "recenter": False}),
        _shape,
        "records of several shapes that the schema allows, typical where it says so",
    ),
    "logistic_regression": Task(
        _logistic,
        _line,
        _params,
        ("logistic", {"mechanism": "glm"}),
        _odds,
        "records of several shapes that the schema allows, typical where it says so; an outcome of one half or 5 % unless stated",
    ),
    "poisson_regression": Task(_poisson, _counts, _params),
    "classification": Task(_classifiers, _classes, _params),
    "kernel_regression": Task(_curves, _wave, _curve),
}
