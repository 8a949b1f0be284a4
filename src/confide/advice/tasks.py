"""The kinds of question: which methods answer them, and the numbers that are compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import pi
from typing import Any

from confide import registry
from confide.errors import PlanError
from confide.scenarios import Columns
from confide.schema import Categorical, Schema
from confide.schema.formulas.names import hidden, sides

__all__ = ["TASKS", "Task"]

Named = tuple[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Task:
    """One kind of question. candidates: (formula, schema, n) -> registered names with settings; read: (result, formula, schema) -> the
    numbers by name; reference: the method whose answer without noise is the target, by default the first candidate; outcome: how the
    response is asked for (`confide.scenarios.Columns`); of: what it must be, a "number" or "classes".
    """

    candidates: Callable[[str, Schema, int], Sequence[Named]]
    read: Callable[[Any, str, Schema], Mapping[str, float]]
    reference: Named | None = None
    outcome: str = ""
    of: str = "number"

    def columns(self, formula: str, schema: Schema) -> Columns:
        """What a formula is about; `PlanError` where it is of another kind."""
        response, features = _columns(formula, schema)
        classes = isinstance(schema[response], Categorical)
        if self.of == "classes" and not classes:
            raise PlanError(
                f"{response!r} is a number, and classes are the levels of a categorical column; declare its levels"
            )
        if self.of == "number" and self.outcome != "two" and classes:
            raise PlanError(
                f"{response!r} is categorical, and this task is about a number; its own task is classification"
            )
        return Columns(tuple(name for name in features if name != response), (response,), self.outcome)


def _params(result: Any, formula: str, schema: Schema) -> Mapping[str, float]:
    return {str(name): float(value) for name, value in result.params.items()}


def _columns(formula: str, schema: Schema) -> tuple[str, tuple[str, ...]]:
    """The response's column and the columns of the features: the schema's names on the left and the right of the formula."""
    found = [hidden(side, schema.names)[1].values() for side in sides(str(formula))]
    names = [tuple(name for name in side if name in schema.names) for side in found]
    if len(names) != 2 or not names[0]:
        raise PlanError(f'a formula names a response and features of the schema, got {formula!r}; write "y ~ a + b"')
    return names[0][0], names[1]


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
    return _installed([(name, {}) for name in ("logistic", "logistic_objective", "logistic_output", "logistic_ptr")])


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
    least = max(0.5 * (2 * pi) ** 0.5 * 0.2 * n**0.8, 1.5)
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
    "linear_regression": Task(_lines, _params, ("ssp", {"leverage_cap": 1e3, "cov": "classical", "recenter": False})),
    "logistic_regression": Task(_logistic, _params, outcome="two"),
    "poisson_regression": Task(_poisson, _params, outcome="count"),
    "classification": Task(_classifiers, _params, of="classes"),
    "kernel_regression": Task(_curves, _curve),
}
