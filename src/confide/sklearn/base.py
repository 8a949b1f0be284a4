"""What the estimators share: parameters, the release behind `fit`, scikit-learn's tags and clones.

Which column of X and y is which, from names, shapes and types alone: no cell is looked at.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import DataConversionWarning

from confide import engine
from confide.core import Method, Noise, method_parameters
from confide.core.units.contributions import shown
from confide.errors import PlanError, SchemaError
from confide.guarantees import Guarantee
from confide.ledger import Ledger
from confide.methods.classification.design import ClassDesign
from confide.noise import SimulatedNoise
from confide.schema import Categorical, ModelMatrix, Numeric, Schema
from confide.schema.formulas.names import quoted
from confide.sources import read


@dataclass(frozen=True)
class Words:
    """The call that works, for error messages: bounds and a schema."""

    bounds: str
    schema: str


NUMBER_WORDS = Words(
    'bounds={"X": (-3, 3), "y": (-10, 10)}',
    'schema=cf.Schema({"age": cf.Numeric(18, 90), "income": cf.Numeric(0, 100)})',
)
CLASS_WORDS = Words(
    'bounds={"X": (-3, 3), "y": ["no", "yes"]}',
    'schema=cf.Schema({"age": cf.Numeric(18, 90), "kind": cf.Categorical(["no", "yes"])})',
)


@dataclass(frozen=True)
class Roles:
    """A schema, and what it calls the columns of X, in their order, and the response."""

    schema: Schema
    features: tuple[str, ...]
    response: str


def roles_from_bounds(
    bounds: Any, features: tuple[str, ...], label: str | None, dataset: str | None, *, classes: bool = False
) -> Roles:
    """Roles from public bounds of X and y, for classes from a list of labels in the place of the bounds of y."""
    words = CLASS_WORDS if classes else NUMBER_WORDS
    if not isinstance(bounds, Mapping) or set(bounds) != {"X", "y"}:
        keys = ", ".join(map(repr, bounds)) or "none" if isinstance(bounds, Mapping) else None
        given = type(bounds).__name__ if keys is None else f"the keys {keys}"
        raise SchemaError(f'bounds must be a mapping with the keys "X" and "y", got {given}', f"write {words.bounds}")
    response = label if label is not None and label not in features else "y"
    while response in features:
        response += "_"
    given_x = bounds["X"]
    if isinstance(given_x, Mapping):
        if set(given_x) != set(features):
            raise SchemaError(
                f'bounds["X"] names {_listed(given_x)}; it must name exactly the columns of X: {_listed(features)}'
            )
        pairs = {name: _numbers(given_x[name], f'bounds["X"][{name!r}]', [(2,)], words) for name in features}
    else:
        array = _numbers(given_x, 'bounds["X"]', [(2,), (len(features), 2)], words)
        pairs = dict(zip(features, np.broadcast_to(array, (len(features), 2)), strict=True))
    columns = {name: _numeric(pair, f'bounds["X"], column {name!r}') for name, pair in pairs.items()}
    if classes:
        label_column: Any = _labels_of_bounds(bounds["y"])
    else:
        label_column = _numeric(_numbers(bounds["y"], 'bounds["y"]', [(2,)], words), 'bounds["y"]')
    return Roles(Schema({**columns, response: label_column}, dataset=dataset), features, response)


def _labels_of_bounds(given: Any) -> Categorical:
    if not isinstance(given, (list, tuple, np.ndarray)):
        raise SchemaError(
            f'bounds["y"] must list the classes, got {type(given).__name__}', f"write {CLASS_WORDS.bounds}"
        )
    if isinstance(given, tuple) and len(given) == 2 and all(map(_is_number, given)):
        raise SchemaError(
            f'bounds["y"] must list the classes, got {given!r}, which reads as the two ends of a range',
            f'write {CLASS_WORDS.bounds}, or a list, "y": {list(given)!r}, if these two numbers are the classes',
        )
    whole = [int(v) if isinstance(v, (float, np.floating)) and float(v).is_integer() else v for v in given]
    return Categorical(whole)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def _numbers(given: Any, where: str, shapes: Sequence[tuple[int, ...]], words: Words) -> NDArray[np.float64]:
    try:
        array = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise SchemaError(f"{where} must hold numbers, got {given!r}", f"write {words.bounds}") from None
    if array.shape not in shapes:
        rows = f", or one row (low, high) for each feature, shape {shapes[1]}" if len(shapes) > 1 else ""
        hint = "np.column_stack([lows, highs])" if array.shape == shapes[-1][::-1] else words.bounds
        raise SchemaError(f"{where} must be one pair (low, high){rows}; got the shape {array.shape}", f"write {hint}")
    return array


def _numeric(pair: NDArray[np.float64], where: str) -> Numeric:
    try:
        return Numeric(*pair.tolist())
    except SchemaError as error:
        raise SchemaError(f"{where}: {error}") from None


def roles_from_schema(
    schema: Schema, method: Any, labels: tuple[str, ...] | None, width: int, label: str | None, *, classes: bool = False
) -> Roles:
    """Roles from a schema and a method, whose formula names columns if it has one; classes: the response is a class."""
    response, needed = _response_in(schema, method, labels, label, classes)
    if label is not None and label in schema.names and label != response:
        raise SchemaError(
            f"y is named {label!r}, but the response is {response!r}: X or the formula leaves no other column",
            f"write fit(X, frame[{response!r}])",
        )
    if labels is None:
        features = tuple(name for name in schema.names if name != response)
        if len(features) != width:
            raise SchemaError(
                f"X has {width} columns without names, the schema has {len(features)} without the response "
                f"{response!r}: {_listed(features)}",
                "give X these columns in this order, or a DataFrame with names",
            )
        return Roles(schema, features, response)
    if response in labels:
        raise SchemaError(f"X holds the response {response!r}", f"write fit(X.drop(columns={response!r}), y)")
    lacking = [name for name in labels if name not in schema.names] if method is None else []
    absent = [name for name in needed if name not in labels]
    if lacking or absent:
        said = f"the schema lacks {_listed(lacking)}" if lacking else f"X lacks {_listed(absent)} of the formula"
        raise SchemaError(
            f"{said}; the schema has {_listed(schema.names)}, and X {_listed(labels)}",
            "write fit(frame[names], y) with columns of the schema",
        )
    return Roles(schema, labels, response)


def _response_in(
    schema: Schema, method: Any, labels: tuple[str, ...] | None, label: str | None, classes: bool
) -> tuple[str, tuple[str, ...]]:
    """The response's column, and the other columns that a formula needs (none without a formula)."""
    parameters = method_parameters(method) if isinstance(method, Method) else {}
    formula = parameters.get("formula")
    if formula is not None:
        given = parameters.get("term_bounds")
        if classes:
            own = ClassDesign.of(formula, schema, term_bounds=given)
            return own.response, tuple(name for name in own.design.columns if name != own.response)
        design = ModelMatrix.of(formula, schema, term_bounds=given)
        response, *others = design.response.columns
        if others:
            raise PlanError(
                f"the response of {formula!r} must be made of one column, which y holds", "write it as a column"
            )
        return response, tuple(name for name in design.columns if name != response)
    free = [name for name in schema.names if labels is None or name not in labels]
    if label is not None and label in free:
        return label, ()
    if len(free) == 1 or (free and labels is None):
        return free[-1], ()
    said = f"lacks {_listed(free)}" if free else "has every column of the schema"
    raise SchemaError(
        f"X {said}, so the response is not known: it is the one column of the schema that X lacks, or the one that y "
        "is named after",
        "write fit(frame[features], frame[response])",
    )


def formula_of(roles: Roles) -> str:
    """The formula of the response on all columns."""
    return f"{quoted(roles.response)} ~ {' + '.join(map(quoted, roles.features))}"


def _listed(names: Any) -> str:
    return ", ".join(map(repr, names)) or "none"


def columns_of(data: Any, what: str) -> tuple[tuple[str, ...] | None, list[Any]]:
    """Names (None when there are none) and columns of a table, from shapes, types and names; no cell is looked at.

    scikit-learn's own validation is not for records: it raises on values, and some of its messages quote them.
    """
    labels: tuple[str, ...] | None = None
    columns: list[Any]
    if issparse(data):
        raise PlanError(f"{what} is sparse, and sparse data are not supported", f"write {what}.toarray()")
    if isinstance(data, pd.DataFrame):
        labels, columns = _labels(data.columns, what), [data.iloc[:, j] for j in range(data.shape[1])]
    elif _is_polars(data) and len(data.shape) == 2:
        labels, columns = tuple(data.columns), data.get_columns()
    else:
        array = _array(data, what)
        if array.ndim != 2:
            raise PlanError(
                f"{what} must have two dimensions, records by features, got {array.ndim}. Reshape your data: "
                f"{what}.reshape(-1, 1) if it is one feature, {what}.reshape(1, -1) if it is one record"
            )
        columns = [array[:, j] for j in range(array.shape[1])]
    if not columns:
        raise PlanError(f"{what} has 0 feature(s), while a minimum of 1 is required", "give a table with columns")
    for column in columns:
        _check_real(column, what)
    return labels, columns


def response_of(y: Any, name: str) -> tuple[str | None, Any]:
    """Name (None when there is none) and values of a response, one for each record."""
    if y is None:
        raise PlanError(f"This {name} estimator requires y to be passed, but the target y is None", "write fit(X, y)")
    values = y if isinstance(y, (pd.Series, pd.DataFrame)) or _is_polars(y) or issparse(y) else _array(y, "y")
    if len(values.shape) not in (1, 2):
        raise PlanError(f"y should be a 1d array, one number for each record, got {len(values.shape)} dimensions")
    if len(values.shape) == 1:
        _check_real(values, "y")
        label = getattr(values, "name", None)
        return label if isinstance(label, str) and label else None, values
    labels, columns = columns_of(values, "y")
    if len(columns) > 1:
        raise PlanError(f"y must be one response, got {len(columns)} columns", "fit one estimator for each of them")
    warnings.warn(
        "A column-vector y was passed when a 1d array was expected. Please change the shape of y to (n_samples, ), for "
        "example using ravel().",
        DataConversionWarning,
        stacklevel=4,
    )
    return labels[0] if labels else None, columns[0]


def _check_real(column: Any, what: str) -> None:
    if getattr(column.dtype, "kind", "") == "c":
        raise PlanError(f"Complex data not supported: {what} must hold real numbers", f"write {what}.real")


def refuse_text(roles: Roles, method: Any, features: Sequence[Any], response: Any) -> None:
    """Refuse text in a numeric column that the method uses, before anything is charged: the budget would buy missing values alone.

    From the types of columns, which are public. Where a type leaves open what the cells are (a NumPy array of objects, a list) nothing is
    refused: only values could tell.
    """
    formula = method_parameters(method).get("formula") if isinstance(method, Method) else None
    words = set(re.findall(r"`([^`]*)`", formula) + re.findall(r"\w+", formula)) if isinstance(formula, str) else None
    given = dict(zip((*roles.features, roles.response), (*features, response), strict=True))
    for name, column in given.items():
        used = words is None or name in words or name == roles.response
        if used and name in roles.schema and not isinstance(roles.schema[name], Categorical) and _is_text(column):
            kind = str(column.dtype).partition("(")[0]
            raise SchemaError(
                f"column {name!r} has bounds and the type {kind}, which is text. Text that is not a number would be missing, and the "
                f"budget used for nothing. Give numbers: frame[{name!r}].astype(float); or declare labels in a schema: "
                f'schema=cf.Schema({{{name!r}: cf.Categorical(["a", "b"]), ...}})'
            )


def _is_text(column: Any) -> bool:
    """Whether the type of a column says text; objects in a pandas column do, because pandas before 3 holds text as such."""
    kind = column.dtype
    if isinstance(kind, np.dtype):
        return kind.kind in "US" or (kind.kind == "O" and isinstance(column, (pd.Series, pd.Index)))
    if isinstance(kind, pd.CategoricalDtype):
        return _is_text(kind.categories)
    name = str(kind)
    return (
        isinstance(kind, pd.StringDtype)
        or "string" in name
        or name.partition("(")[0] in ("String", "Categorical", "Enum")
    )


def _is_polars(data: Any) -> bool:
    """A polars Series or DataFrame; polars is not loaded to find out."""
    return type(data).__module__.partition(".")[0] == "polars" and hasattr(data, "shape")


def _array(data: Any, what: str) -> NDArray[Any]:
    """An array of any type. Cells of lists are kept apart: NumPy would make text of all of them for one that is."""
    if isinstance(data, np.ma.MaskedArray):
        return data
    try:
        return np.asarray(data, dtype=object if isinstance(data, (list, tuple)) else None)
    except (TypeError, ValueError):
        raise PlanError(
            f"{what} cannot be read as an array", "give a NumPy array, a pandas or a polars frame"
        ) from None


def _labels(names: Any, what: str) -> tuple[str, ...] | None:
    """Column names of a frame; None when no name is text, as in a frame made of an array."""
    texts = [isinstance(name, str) for name in names]
    if not any(texts):
        return None
    if not all(texts) or len(set(names)) < len(texts):
        raise SchemaError(f"the columns of {what} must have different names, all of them text", f"set {what}.columns")
    return tuple(names)


class StatusWarning(UserWarning):
    """A fit whose status is not "valid": its numbers are rough, or there are none. The words come from the published result."""


class PrivateEstimator(BaseEstimator):  # type: ignore[misc]
    """Parameters and the one release of a fit. `_classes`: whether the response is a class."""

    _classes: ClassVar[bool] = False

    def __init__(
        self,
        method: Any = None,
        *,
        privacy: Guarantee,
        schema: Schema | None = None,
        bounds: Mapping[str, Any] | None = None,
        ledger: Ledger | None,
        noise: Noise | None = None,
    ) -> None:
        self.method = method
        self.privacy = privacy
        self.schema = schema
        self.bounds = bounds
        self.ledger = ledger
        self.noise = noise

    def _chosen(self, roles: Roles) -> Method:
        """The method of a fit."""
        raise NotImplementedError

    def _released(self, X: Any, y: Any) -> tuple[Any, Any, Roles, tuple[str, ...] | None]:
        """(release, result, roles, names of the columns of X) of a fit; sets nothing."""
        labels, columns = columns_of(X, "X")
        label, response = response_of(y, type(self).__name__)
        if any(len(column) != len(response) for column in columns):
            raise PlanError("X and y do not have the same number of records", "give one response for each row of X")
        roles = self._roles(labels, len(columns), label)
        method = self._chosen(roles)
        refuse_text(roles, method, columns, response)
        source = read({**dict(zip(roles.features, columns, strict=True)), roles.response: response}, roles.schema)
        # a simulated stream is copied: fit must not change a parameter, and one seed is one fit
        noise = deepcopy(self.noise) if isinstance(self.noise, SimulatedNoise) else self.noise
        release = engine.release(method, source, self.privacy, ledger=self.ledger, noise=noise)
        return release, shown(method.infer(release), release), roles, labels

    def _keep_release(self, release: Any, result: Any, roles: Roles, labels: tuple[str, ...] | None) -> None:
        """What every fitted estimator has."""
        self._features = roles.features
        self.result_ = result
        self.status_ = result.status
        self.release_ = release
        self.n_features_in_ = len(roles.features)
        if labels is not None:
            self.feature_names_in_ = np.array(labels, dtype=object)
        elif "feature_names_in_" in vars(self):
            del self.feature_names_in_
        # last, when the fit is kept: a filter may turn the warning into an error, and the release was paid for
        if result.status != "valid":
            warnings.warn(
                f"the status of this fit is {result.status!r}: {self._reason(result) or 'see result_.summary()'}",
                StatusWarning,
                stacklevel=3,
            )

    def _reason(self, result: Any) -> str:
        """Why a status is not "valid", in the words of the result."""
        return str(getattr(result, "reason", ""))

    def _roles(self, labels: tuple[str, ...] | None, width: int, label: str | None) -> Roles:
        """Which column of which schema is which, from names and shapes alone."""
        words = CLASS_WORDS if self._classes else NUMBER_WORDS
        if (self.schema is None) == (self.bounds is None):
            name, given = type(self).__name__, "neither schema nor" if self.schema is None else "both schema and"
            raise PlanError(
                f"{name} was given {given} bounds; it needs one of them, because bounds are public facts and are never "
                f"read from the data: write {name}(privacy=cf.GDP(1.0), ledger=None, {words.bounds}), or {words.schema}"
            )
        if self.bounds is not None:
            features = labels or tuple(f"x{j}" for j in range(width))
            return roles_from_bounds(self.bounds, features, label, self._dataset, classes=self._classes)
        if not isinstance(self.schema, Schema):
            raise SchemaError(
                f"schema must be a confide.Schema, got {type(self.schema).__name__}", f"write {words.schema}"
            )
        return roles_from_schema(self.schema, self._own_method(), labels, width, label, classes=self._classes)

    def _within(self, names: Sequence[str], **facts: Any) -> dict[str, Any]:
        """Numeric columns, by one pair of bounds or one for each."""
        pairs, n = np.asarray(self.bounds, dtype=np.float64), len(names)
        if pairs.shape not in ((2,), (n, 2)):
            raise PlanError(
                f"bounds must be one pair (low, high) or {n} of them, one for each feature, got the shape {pairs.shape}"
            )
        return {
            name: Numeric(float(low), float(high), **facts)
            for name, (low, high) in zip(names, np.broadcast_to(pairs, (n, 2)), strict=True)
        }

    @property
    def _dataset(self) -> str | None:
        """Whose records these are: bounds name no dataset, and the ledger does."""
        return self.ledger.dataset if isinstance(self.ledger, Ledger) else None

    def _own_method(self) -> Any:
        """The method whose formula names columns, None where there is none."""
        return self.method

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True  # a missing value follows on_missing
        tags.input_tags.string = True  # labels of categorical columns; other text is a missing value
        tags.non_deterministic = not isinstance(self.noise, SimulatedNoise)
        return tags

    def __sklearn_clone__(self) -> Any:
        # scikit-learn copies parameters deeply, but a ledger is one open connection: every clone must charge the same one
        given = self.get_params(deep=False)
        twin = type(self)(**{name: value if name == "ledger" else deepcopy(value) for name, value in given.items()})
        if hasattr(self, "_metadata_request"):
            twin._metadata_request = deepcopy(self._metadata_request)
        return twin
