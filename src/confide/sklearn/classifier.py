"""Private classification as a scikit-learn estimator, over any method of confide that predicts classes."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from confide import registry
from confide.errors import NoResult, PlanError
from confide.methods.classification.class_means import ClassMeans
from confide.protocol import Method
from confide.schema import Categorical, Integer, Schema
from confide.sklearn.base import PrivateEstimator
from confide.sklearn.columns import Roles, columns_of, formula_of

__all__ = ["PrivateClassifier"]


class PrivateClassifier(ClassifierMixin, PrivateEstimator):  # type: ignore[misc]
    """Classification with a differential privacy guarantee, for scikit-learn's pipelines and tools.

    Every `fit` is a release: it spends `privacy`, and a ledger is charged for it, once for each fold and candidate of a search. `score`
    and every validation score come from the records that they are given, without noise: use them with public records only. No step of a
    pipeline before this one may be fitted on the private records (see `PrivateRegressor`).

    Parameters
    ----------
    method : a method such as `confide.classification.ClassMeans("kind ~ a + b")`, whose formula names columns; or the name
        of a registered one, which is used on all columns of X ("class_means", "logistic"); None means ClassMeans on all columns.
    privacy : what a fit may cost, for instance `cf.GDP(1.0)`; no default.
    schema : `confide.Schema` of the columns of X and of the response, as for `PrivateRegressor`; the response is a `Categorical`, or an
        `Integer` of few values. A label that is not listed there follows its `on_missing`.
    bounds : in place of a schema, `{"X": (low, high), "y": ["no", "yes"]}`: bounds of features as for `PrivateRegressor`, and the
        public list of classes, numbers too (`"y": [0, 1]`; a tuple of two numbers is refused, because it reads as a range). Neither has a
        default or is read from the data. A record whose label is not listed is left out.
    ledger : the `confide.Ledger` that every fit is charged to; it is required, and whoever wants none writes ledger=None.
    noise : leave it out; only simulations pass `cf.noise.SimulatedNoise(seed)`, with ledger=None.

    Attributes
    ----------
    classes_ : array (n_classes,): the public classes in their declared order, as numbers where y was numbers.
    result_ : the table of the method, with `predict_proba` (`confide.classification.ClassModel`).
    release_ : what may be published (`confide.Release`).
    status_ : "ok", or why there are no intervals; see `result_.reason`.
    n_features_in_, feature_names_in_ : how many columns X had, and their names if it had any.

    Guarantee: the method's. The fitted estimator depends on records through `release_` and on the types of their columns alone.

    >>> import confide as cf
    >>> schema = cf.Schema({"a": cf.Numeric(0, 1), "b": cf.Numeric(0, 1), "kind": cf.Categorical(["no", "yes"])})
    >>> practice = schema.sample(2_000, seed=1)
    >>> X, y = practice[["a", "b"]], practice["kind"]
    >>> model = PrivateClassifier(privacy=cf.GDP(1.0), schema=schema, ledger=None).fit(X, y)
    >>> model.status_, model.classes_.tolist(), model.predict_proba(X.head(3)).shape
    ('ok', ['no', 'yes'], (3, 2))
    """

    _classes: ClassVar[bool] = True

    def fit(self, X: Any, y: Any) -> PrivateClassifier:
        """Release a model of the classes y (n,) on X (n, features), once; each call spends `privacy`. Returns the estimator.

        Containers and errors as `PrivateRegressor.fit`. When fit raises, an earlier fit of the estimator is kept as it was.
        """
        release, result, roles, labels = self._released(X, y)
        self.classes_ = _typed(_levels(roles), y)
        self._keep_release(release, result, roles, labels)
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probabilities of `classes_` at the rows of X (n, features), shape (n, n_classes); NaN where a feature is missing.

        X is public: predictions for private records are as private as the records.

        Raises `sklearn.exceptions.NotFittedError` before fit, `NoResult` when the release holds no reply, and `ValueError` when the
        columns are not those of fit.
        """
        check_is_fitted(self, "result_")
        if self.status_ == "no_reply":
            raise NoResult(f"the release gave no model to predict from: {self.result_.reason}")
        validate_data(self, X, reset=False, skip_check_array=True)
        _, columns = columns_of(X, "X")
        found = self.result_.predict_proba(dict(zip(self._features, columns, strict=True)))
        return np.asarray(found, dtype=np.float64).reshape(-1, len(self.classes_))

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class at each row of X, the first of several; None where a feature is missing. Errors as `predict_proba`."""
        share = self.predict_proba(X)
        known = np.asarray(np.isfinite(share).all(axis=1))
        labels = self.classes_[np.where(known[:, None], share, 0.0).argmax(axis=1)]
        if known.all():
            return np.asarray(labels)
        found = labels.astype(object)
        found[~known] = None
        return np.asarray(found)

    def _own_method(self) -> Any:
        method = self.method
        kind = registry.get(method) if isinstance(method, str) else method
        own = kind if isinstance(kind, type) else type(kind)
        classes = issubclass(own, Method) and (own.family == "classification" or own.outcome == "two")
        if method is not None and (isinstance(method, type) or not classes):
            raise PlanError(
                f"method must be a method that predicts classes, with its settings, or its name, got {method!r}; write "
                'method=cf.classification.ClassMeans("kind ~ a + b"), or leave it out for all columns'
            )
        return None if isinstance(method, str) else method

    def _chosen(self, roles: Roles) -> Method:
        """The method as given, or one on all columns."""
        method, formula = self.method, formula_of(roles)
        if method is None:
            return ClassMeans(formula)
        chosen: Method = registry.make(method, formula=formula) if isinstance(method, str) else method
        return chosen


def _levels(roles: Roles) -> tuple[str, ...]:
    """The classes of the response, in their declared order."""
    column = roles.schema[roles.response]
    assert isinstance(roles.schema, Schema)
    if isinstance(column, Categorical):
        return column.levels
    assert isinstance(column, Integer)
    return tuple(str(int(column.low) + k) for k in range(column.steps))


def _typed(levels: tuple[str, ...], y: Any) -> NDArray[Any]:
    """The classes as y has them: whole numbers, numbers or booleans where its type says so and every class is one, else text."""
    kind = getattr(getattr(y, "dtype", None), "kind", "") or (
        np.asarray(y).dtype.kind if isinstance(y, (list, tuple)) else ""
    )
    try:
        if kind == "b":
            return np.array([{"true": True, "1": True, "false": False, "0": False}[level.lower()] for level in levels])
        if kind in "iu" and kind:
            return np.array([int(level) for level in levels])
        if kind == "f":
            return np.array([float(level) for level in levels])
    except (KeyError, ValueError):
        pass
    return np.array(levels, dtype=object)
