"""Private regression as a scikit-learn estimator, over any regression method of confide.

It goes through the one door (`confide.release`): the ledger is charged before noise is drawn, once for each `fit`.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from keyword import iskeyword
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import issparse

from confide import gate
from confide.errors import NoResult, PlanError, SchemaError
from confide.guarantees import Guarantee
from confide.ledger import Ledger
from confide.protocol import Method, Noise
from confide.regression import SSP2
from confide.schema import Design, Numeric, Schema
from confide.sources import read

try:
    from sklearn.base import BaseEstimator, RegressorMixin
    from sklearn.exceptions import DataConversionWarning
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as error:
    raise ImportError(
        'confide.sklearn needs scikit-learn 1.6 or newer; install it with: pip install "confide[sklearn]"',
        name=error.name,
    ) from error

__all__ = ["EXPECTED_FAILED_CHECKS", "PrivateRegressor"]

#: The checks of scikit-learn's `check_estimator` that this estimator fails on purpose, each with its reason; give it as
#: `expected_failed_checks`.
EXPECTED_FAILED_CHECKS = {
    "check_estimators_empty_data_messages": (
        "it wants an error when there are no records. How many records there are is private under add-remove, and an "
        "error would tell an empty table from a table of one record; fit answers with noise and a status instead"
    ),
    "check_supervised_y_no_nan": (
        "it wants an error when a response is NaN or infinite. An error that depends on the value of a record is a "
        "leak, so such a response is missing and follows the schema's rule (on_missing)"
    ),
}

_BOUNDS = 'bounds={"X": (-3, 3), "y": (-10, 10)}'
_SCHEMA = 'schema=cf.Schema({"age": cf.Numeric(18, 90), "income": cf.Numeric(0, 100)})'


class PrivateRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Linear regression with a differential privacy guarantee, for scikit-learn's pipelines and tools.

    Every `fit` is a release: it spends `privacy`, and a ledger is charged for it. Cross-validation and grid search fit
    once for each fold and each candidate, and each fit is charged. `score`, every validation score and the choice that
    a search makes by them come from the records that they are given, without noise: use them with public records only.
    The R squared that may be published is `result_.rsquared`.

    No step of a pipeline before this one may be fitted on the private records: what a `StandardScaler`, an imputer, an
    encoder or a feature selection learns from them goes into every later number, outside the guarantee, and cannot be
    noticed here. Scaling is not needed, the declared bounds do it; use `FunctionTransformer` with public constants.

    Parameters
    ----------
    method : a regression method such as `confide.regression.SSP2("y ~ a + log(b)")`, whose formula names columns; None
        means SSP2 of the response on all columns of X.
    privacy : what a fit may cost, for instance `cf.GDP(1.0)`; no default.
    schema : `confide.Schema` of the columns of X and of the response. The response is the formula's; without a method
        it is the column of the schema that X lacks (if X lacks several, the one that y is named after). Arrays have no
        names: their columns are the schema's in its order, and the response is the column that y is named after, else
        the last one.
    bounds : public bounds in place of a schema, `{"X": (low, high), "y": (low, high)}`, in the units of the data. For X
        one pair holds for all features; an array (n_features, 2) has one row (low, high) for each feature; a mapping
        `{column: (low, high)}` names them. Columns of arrays are called x0, x1, ... and a response without a name y.
        Give either schema or bounds: they have no default and are never read from the data.
    ledger : the budget book that every fit is charged to; it is required, and whoever wants none writes ledger=None.
    noise : leave it out; only simulations pass `cf.noise.SimulatedNoise(seed)`, with ledger=None. Each fit uses a copy
        of it, so that a seed gives the same fit each time.

    Attributes
    ----------
    coef_ : array (n_features_in_,) in the units of the data, 0 for a feature that the formula leaves out. When the
        formula has other terms than plain columns: one for each term, in the order of `result_.names`.
    intercept_ : float; 0.0 when the formula has none.
    result_ : the table with standard errors and intervals (`confide.regression.LinearEstimates`).
    release_ : what may be published (`confide.Release`).
    status_ : "ok", or why there are no intervals ("weak", "not_identified"; see `result_.reason`): the coefficients may
        then still be finite, and mean little.
    n_features_in_, feature_names_in_ : how many columns X had, and their names if it had any.

    Guarantee: the method's, under the relation in `privacy`, else the ledger's, else the method's own. The fitted
    estimator depends on records through `release_` alone. Values never raise: what is missing, infinite or no number
    follows `on_missing`, and what lies outside the bounds is clipped. Sample weights are not supported.

    A ledger belongs to this machine and is not pickled: publish `release_`, or pickle after `set_params(ledger=None)`;
    scikit-learn's `n_jobs` works with a ledger in threads (`joblib.parallel_config("threading")`), not in processes.

    >>> import confide as cf
    >>> schema = cf.Schema({"age": cf.Numeric(18, 90), "income": cf.Numeric(0, 100), "score": cf.Numeric(0, 10)})
    >>> practice = schema.sample(5_000, seed=1)
    >>> X, y = practice[["age", "income"]], practice["score"]
    >>> model = PrivateRegressor(privacy=cf.GDP(1.0), schema=schema, ledger=None).fit(X, y)
    >>> model.status_, model.predict(X.head(3)).shape
    ('ok', (3,))
    >>> bounds = {"X": [(18, 90), (0, 100)], "y": (0, 10)}
    >>> model = PrivateRegressor(privacy=cf.GDP(1.0), bounds=bounds, ledger=None).fit(X.to_numpy(), y.to_numpy())
    >>> model.result_.names
    ('Intercept', 'x0', 'x1')
    """

    def __init__(
        self,
        method: Method | None = None,
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

    def fit(self, X: Any, y: Any) -> PrivateRegressor:
        """Release a regression of y (n,) on X (n, features), once; each call spends `privacy`. Returns the estimator.

        X: an array, a list of rows, a pandas or polars DataFrame, or whatever NumPy can read.

        Raises `PlanError`, `SchemaError`, `PrivacyError` or `SourceError` for what public facts forbid (shapes, types
        and names of columns, bounds, parameters), `BudgetExceeded` before anything is drawn, and `ReleaseError` after
        the charge, which then stays. When fit raises, an earlier fit of the estimator is kept as it was.
        """
        labels, columns = _columns_of(X, "X")
        label, response = _response_of(y, type(self).__name__)
        if any(len(column) != len(response) for column in columns):
            raise PlanError("X and y do not have the same number of records; give one response for each row of X")
        roles = self._roles(labels, len(columns), label)
        method = _method(self.method, roles)
        source = read({**dict(zip(roles.features, columns, strict=True)), roles.response: response}, roles.schema)
        # a simulated stream is copied: fit must not change a parameter, and one seed is one fit
        noise = deepcopy(self.noise) if getattr(self.noise, "simulated", False) else self.noise
        release = gate.release(method, source, self.privacy, ledger=self.ledger, noise=noise)
        result = method.infer(release)
        self._keep(result, roles.features)
        self.release_ = release
        self.n_features_in_ = len(columns)
        if labels is not None:
            self.feature_names_in_ = np.array(labels, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        return self

    def predict(self, X: Any) -> NDArray[np.float64]:
        """The line at the rows of X (n, features), shape (n,), in the units of the response; nothing is clipped.

        X is public: predictions for private records are as private as the records. A missing or infinite value makes
        the prediction of its row NaN or infinite.

        Raises `sklearn.exceptions.NotFittedError` before fit, `NoResult` when the release gave no line, and
        `ValueError` when the columns are not those of fit.
        """
        check_is_fitted(self, "result_")
        if not np.isfinite([*self.coef_, self.intercept_]).all():
            why = self.result_.reason or "it holds no reply"
            raise NoResult(f"the release gave no line to predict from, its status is {self.status_!r}: {why}")
        if self._whole or not hasattr(self.result_, "predict"):
            rows = validate_data(self, X, reset=False, dtype=np.float64, ensure_all_finite=False)
            with np.errstate(all="ignore"):
                return np.asarray(rows @ self.coef_ + self.intercept_)
        # the formula makes terms of columns, or leaves some out that need not be numbers
        validate_data(self, X, reset=False, skip_check_array=True)
        _, columns = _columns_of(X, "X")
        return np.asarray(self.result_.predict(dict(zip(self._features, columns, strict=True))), dtype=np.float64)

    def _roles(self, labels: tuple[str, ...] | None, width: int, label: str | None) -> _Roles:
        """Which column of which schema is which, from names and shapes alone."""
        if (self.schema is None) == (self.bounds is None):
            name, given = type(self).__name__, "neither schema nor" if self.schema is None else "both schema and"
            raise PlanError(
                f"{name} was given {given} bounds; it needs one of them, because bounds are public facts and are never "
                f"read from the data: write {name}(privacy=cf.GDP(1.0), ledger=None, {_BOUNDS}), or {_SCHEMA}"
            )
        if self.bounds is not None:
            return _roles_from_bounds(self.bounds, labels or tuple(f"x{j}" for j in range(width)), label)
        if not isinstance(self.schema, Schema):
            raise SchemaError(f"schema must be a confide.Schema, got {type(self.schema).__name__}; write {_SCHEMA}")
        return _roles_from_schema(self.schema, self.method, labels, width, label)

    def _keep(self, result: Any, features: tuple[str, ...]) -> None:
        slopes = dict(zip(result.names, map(float, result.estimates), strict=True))
        self.intercept_ = slopes.pop("Intercept", 0.0)
        self._features = features
        terms = getattr(getattr(result, "design", None), "terms", ())
        plain = set(slopes) <= set(features) and all(term.plain is not None for term in terms)
        self.coef_ = np.array([slopes.get(name, 0.0) for name in features] if plain else [*slopes.values()])
        self._whole = plain and len(slopes) == len(features)
        self.result_ = result
        self.status_ = result.status

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True  # a missing value follows on_missing
        tags.input_tags.string = True  # labels of categorical columns; other text is a missing value
        tags.non_deterministic = not getattr(self.noise, "simulated", False)
        return tags

    def __sklearn_clone__(self) -> PrivateRegressor:
        # scikit-learn copies parameters deeply, but a ledger is one open book: every clone must charge the same one
        given = self.get_params(deep=False)
        twin = type(self)(**{name: value if name == "ledger" else deepcopy(value) for name, value in given.items()})
        if hasattr(self, "_metadata_request"):
            twin._metadata_request = deepcopy(self._metadata_request)
        return twin


@dataclass(frozen=True)
class _Roles:
    """A schema, and what it calls the columns of X, in their order, and the response."""

    schema: Schema
    features: tuple[str, ...]
    response: str


def _roles_from_bounds(bounds: Any, features: tuple[str, ...], label: str | None) -> _Roles:
    if not isinstance(bounds, Mapping) or set(bounds) != {"X", "y"}:
        keys = ", ".join(map(repr, bounds)) or "none" if isinstance(bounds, Mapping) else None
        given = type(bounds).__name__ if keys is None else f"the keys {keys}"
        raise SchemaError(f'bounds must be a mapping with the keys "X" and "y", got {given}; write {_BOUNDS}')
    response = label if label is not None and label not in features else "y"
    while response in features:
        response += "_"
    given_x = bounds["X"]
    if isinstance(given_x, Mapping):
        if set(given_x) != set(features):
            raise SchemaError(
                f'bounds["X"] names {_listed(given_x)}; it must name exactly the columns of X: {_listed(features)}'
            )
        pairs = {name: _numbers(given_x[name], f'bounds["X"][{name!r}]', [(2,)]) for name in features}
    else:
        array = _numbers(given_x, 'bounds["X"]', [(2,), (len(features), 2)])
        pairs = dict(zip(features, np.broadcast_to(array, (len(features), 2)), strict=True))
    columns = {name: _numeric(pair, f'bounds["X"], column {name!r}') for name, pair in pairs.items()}
    columns[response] = _numeric(_numbers(bounds["y"], 'bounds["y"]', [(2,)]), 'bounds["y"]')
    return _Roles(Schema(columns), features, response)


def _numbers(given: Any, where: str, shapes: Sequence[tuple[int, ...]]) -> NDArray[np.float64]:
    try:
        array = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise SchemaError(f"{where} must hold numbers, got {given!r}; write {_BOUNDS}") from None
    if array.shape not in shapes:
        rows = f", or one row (low, high) for each feature, shape {shapes[1]}" if len(shapes) > 1 else ""
        hint = "np.column_stack([lows, highs])" if array.shape == shapes[-1][::-1] else _BOUNDS
        raise SchemaError(f"{where} must be one pair (low, high){rows}; got the shape {array.shape}; write {hint}")
    return array


def _numeric(pair: NDArray[np.float64], where: str) -> Numeric:
    try:
        return Numeric(*pair.tolist())
    except SchemaError as error:
        raise SchemaError(f"{where}: {error}") from None


def _roles_from_schema(
    schema: Schema, method: Any, labels: tuple[str, ...] | None, width: int, label: str | None
) -> _Roles:
    response, needed = _response_in(schema, method, labels, label)
    if label is not None and label in schema.names and label != response:
        raise SchemaError(
            f"y is named {label!r}, but the response is {response!r}: X or the formula leaves no other column; "
            f"write fit(X, frame[{response!r}])"
        )
    if labels is None:
        features = tuple(name for name in schema.names if name != response)
        if len(features) != width:
            raise SchemaError(
                f"X has {width} columns without names, the schema has {len(features)} beside the response "
                f"{response!r}: {_listed(features)}; give X these columns in this order, or a DataFrame with names"
            )
        return _Roles(schema, features, response)
    if response in labels:
        raise SchemaError(f"X holds the response {response!r}; write fit(X.drop(columns={response!r}), y)")
    lacking = [name for name in labels if name not in schema.names] if method is None else []
    absent = [name for name in needed if name not in labels]
    if lacking or absent:
        said = f"the schema lacks {_listed(lacking)}" if lacking else f"X lacks {_listed(absent)} of the formula"
        raise SchemaError(
            f"{said}; the schema has {_listed(schema.names)}, and X {_listed(labels)}; write fit(frame[names], y) with "
            "columns of the schema"
        )
    return _Roles(schema, labels, response)


def _response_in(
    schema: Schema, method: Any, labels: tuple[str, ...] | None, label: str | None
) -> tuple[str, tuple[str, ...]]:
    """The response's column, and the columns beside it that a formula needs (none without a formula)."""
    formula = getattr(method, "formula", None)
    if formula is not None:
        design = Design.of(formula, schema, term_bounds=getattr(method, "term_bounds", None))
        response, *others = design.response.columns
        if others:
            raise PlanError(
                f"the response of {formula!r} must be made of one column, which y holds; write it as a column"
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
        "is named after; write fit(frame[features], frame[response])"
    )


def _method(method: Any, roles: _Roles) -> Method:
    """The method as given, or SSP2 on all columns."""
    formula = f"{_quoted(roles.response)} ~ {' + '.join(map(_quoted, roles.features))}"
    if method is None:
        return SSP2(formula)
    if isinstance(method, type) or getattr(method, "family", None) != "regression":
        raise PlanError(
            f"method must be a regression method with its settings, got {method!r}; write "
            f"method=cf.regression.SSP2({formula!r}), or leave it out for all columns"
        )
    chosen: Method = method
    return chosen


def _quoted(name: str) -> str:
    """A column's name as a formula takes it."""
    return name if name.isidentifier() and not iskeyword(name) else f"`{name}`"


def _listed(names: Any) -> str:
    return ", ".join(map(repr, names)) or "none"


def _columns_of(data: Any, what: str) -> tuple[tuple[str, ...] | None, list[Any]]:
    """Names (None when there are none) and columns of a table, from shapes, types and names; no cell is looked at.

    scikit-learn's own validation is not for records: it raises on values, and some of its messages quote them.
    """
    labels: tuple[str, ...] | None = None
    columns: list[Any]
    if issparse(data):
        raise PlanError(f"{what} is sparse, and sparse data are not supported; write {what}.toarray()")
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
        raise PlanError(f"{what} has 0 feature(s), while a minimum of 1 is required; give a table with columns")
    for column in columns:
        _check_real(column, what)
    return labels, columns


def _response_of(y: Any, name: str) -> tuple[str | None, Any]:
    """Name (None when there is none) and values of a response, one for each record."""
    if y is None:
        raise PlanError(f"This {name} estimator requires y to be passed, but the target y is None; write fit(X, y)")
    values = y if isinstance(y, (pd.Series, pd.DataFrame)) or _is_polars(y) or issparse(y) else _array(y, "y")
    if len(values.shape) not in (1, 2):
        raise PlanError(f"y should be a 1d array, one number for each record, got {len(values.shape)} dimensions")
    if len(values.shape) == 1:
        _check_real(values, "y")
        label = getattr(values, "name", None)
        return label if isinstance(label, str) and label else None, values
    labels, columns = _columns_of(values, "y")
    if len(columns) > 1:
        raise PlanError(f"y must be one response, got {len(columns)} columns; fit one estimator for each of them")
    warnings.warn(
        "A column-vector y was passed when a 1d array was expected. Please change the shape of y to (n_samples, ), for "
        "example using ravel().",
        DataConversionWarning,
        stacklevel=3,
    )
    return labels[0] if labels else None, columns[0]


def _check_real(column: Any, what: str) -> None:
    if getattr(column.dtype, "kind", "") == "c":
        raise PlanError(f"Complex data not supported: {what} must hold real numbers; write {what}.real")


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
        raise PlanError(f"{what} cannot be read as an array; give a NumPy array, a pandas or a polars frame") from None


def _labels(names: Any, what: str) -> tuple[str, ...] | None:
    """Column names of a frame; None when no name is text, as in a frame made of an array."""
    texts = [isinstance(name, str) for name in names]
    if not any(texts):
        return None
    if not all(texts) or len(set(names)) < len(texts):
        raise SchemaError(f"the columns of {what} must have different names, all of them text; set {what}.columns")
    return tuple(names)
