"""Regression with differential privacy as a scikit-learn estimator, over any regression method of confide."""

from __future__ import annotations

from functools import wraps
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from confide.core import Method
from confide.errors import NoResult, PlanError
from confide.methods.regression.least_squares.method import LeastSquares
from confide.methods.regression.linear_estimates import DesignEstimates
from confide.results.pages.content import WITHOUT_NUMBERS
from confide.sklearn.base import PrivateEstimator, Roles, columns_of, formula_of


class PrivateRegressor(RegressorMixin, PrivateEstimator):  # type: ignore[misc]
    """Linear regression with differential privacy, for scikit-learn.

    Every `fit` is a release that costs `privacy`. Cross-validation and grid
    search fit once for each fold and candidate, and each fit is charged.
    `score`, every validation score and the choices of a search are computed
    without noise, so use them with public rows only. The R squared that may
    be published is `result_.rsquared`.

    No step of a pipeline before this one may be fitted on the private records.
    What a `StandardScaler`, an imputer, an encoder or a feature selection
    learns from them enters every later number, outside the guarantee, and
    cannot be noticed here. Scaling is unnecessary, because the declared bounds
    do it; use `FunctionTransformer` with public constants.

    Parameters
    ----------
    method : Method, optional
        Regression method with a formula, such as
        ``confide.regression.LeastSquares("y ~ a + log(b)")``. By default
        `LeastSquares` of the response on all columns of X.
    privacy : Guarantee
        Cost of each fit, such as ``GDP(1.0)``. Required.
    schema : Schema, optional
        Schema of the columns of X and of the response. The response is the
        formula's. Without a method it is the column of the schema that X lacks;
        if X lacks several, the one that y is named after. Columns of arrays are
        the schema's in its order, and the response is the column that y is
        named after, otherwise the last one. Give either `schema` or `bounds`.
    bounds : mapping, optional
        Public bounds instead of a schema, ``{"X": (low, high), "y": (low,
        high)}``, in the units of the data. For X, one pair holds for all
        features, an array (n_features, 2) has a row for each, and a mapping
        ``{column: (low, high)}`` names them. Columns of arrays are called x0,
        x1, ... and a response without a name y.
    ledger : Ledger or None
        Ledger that every fit is charged to. None releases without accounting.
        Required.
    noise : Noise, optional
        Source of noise. Only simulations pass ``SimulatedNoise(seed)``, with
        ledger=None. Each fit uses a copy, so that a seed gives the same fit
        each time.

    Attributes
    ----------
    coef_ : array
        Coefficients (n_features_in_,) in the units of the data, 0 for a feature
        that the formula excludes. If the formula has derived terms: one for
        each term, in the order of `result_.names`.
    intercept_ : float
        Intercept. 0.0 when the formula has none.
    result_ : LinearEstimates
        The table with standard errors and intervals.
    release_ : Release
        What may be published.
    status_ : str
        "valid"; "partial" where some coefficients are NaN; "imprecise" where
        the coefficients are rough and have no intervals; "not_identified" or
        "declined" where all are NaN. `result_.reason` gives the reason.
        `predict` and `score` raise `NoResult` where a coefficient is NaN.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : array
        Their names, if there are any.

    Notes
    -----
    Guarantee: the method's, under the relation in `privacy`, otherwise the
    ledger's, otherwise the method's own. The fitted estimator depends on
    records through `release_` alone. Values never raise: a value that is
    missing, infinite or not a number follows `on_missing`, and a value outside
    the bounds is clipped. Sample weights are not supported.

    A ledger belongs to this machine and is not pickled: publish `release_`, or
    pickle after ``set_params(ledger=None)``. scikit-learn's `n_jobs` works with
    a ledger in threads (``joblib.parallel_config("threading")``), not in
    processes.

    Examples
    --------
    >>> import confide as cf
    >>> schema = cf.Schema({"age": cf.Numeric(18, 90), "income": cf.Numeric(0, 100), "score": cf.Numeric(0, 10)})
    >>> test_data = schema.sample(5_000, seed=1)
    >>> X, y = test_data[["age", "income"]], test_data["score"]
    >>> model = PrivateRegressor(privacy=cf.GDP(1.0), schema=schema, ledger=None).fit(X, y)
    >>> model.status_, model.predict(X.head(3)).shape
    ('valid', (3,))
    >>> bounds = {"X": [(18, 90), (0, 100)], "y": (0, 10)}
    >>> model = PrivateRegressor(privacy=cf.GDP(1.0), bounds=bounds, ledger=None).fit(X.to_numpy(), y.to_numpy())
    >>> model.result_.names
    ('Intercept', 'x0', 'x1')
    """

    @wraps(PrivateEstimator.__init__, assigned=())  # type: ignore[misc]  # the signature is that of the parameters
    def __new__(cls, *_: Any, **given: Any) -> PrivateRegressor:
        """An estimator without parameters yet. `PlanError` for a keyword that is not a parameter."""
        own = cls._get_param_names()
        others = {name: value for name, value in given.items() if name not in own}
        if others:
            said = ", ".join(f"{name}={value!r}" for name, value in others.items())
            raise PlanError(
                f"{cls.__name__} has no parameter {', '.join(others)}; it has: {', '.join(own)}; the settings of a method are given "
                f'with it, as in method=cf.regression.LeastSquares("y ~ a + b", {said})'
            )
        made: PrivateRegressor = super().__new__(cls)
        return made

    def fit(self, X: Any, y: Any) -> PrivateRegressor:
        """Release a regression of y on X; each call costs `privacy`.

        Warns with `StatusWarning` when the status is not "valid". A column
        whose type is text (strings; objects in a pandas frame) is refused where
        the schema has bounds for it. When fit raises, an earlier fit of the
        estimator is kept.

        Parameters
        ----------
        X : array or frame
            Records, (n, features): an array, a list of rows, a pandas or polars
            DataFrame, or any table that NumPy can read.
        y : array
            Their responses, (n,).

        Returns
        -------
        PrivateRegressor
            The estimator.

        Raises
        ------
        PlanError, SchemaError, PrivacyError, SourceError
            Public facts forbid the fit (shapes, types and names of columns,
            bounds, parameters). Nothing was charged.
        BudgetExceeded
            The cost does not fit the ledger. Nothing was drawn or charged.
        ReleaseError
            A failure after the charge, which stays.
        """
        release, result, roles, labels = self._released(X, y)
        self._keep(result, roles.features)
        self._keep_release(release, result, roles, labels)
        return self

    def predict(self, X: Any) -> NDArray[np.float64]:
        """The predicted responses of public rows, which are not clipped.

        Predictions for private records are as private as the records.

        Parameters
        ----------
        X : array or frame
            Records, (n, features).

        Returns
        -------
        array
            Predictions (n,), in the units of the response. NaN or infinite
            where a feature is missing or infinite.

        Raises
        ------
        NotFittedError
            `fit` was not called.
        NoResult
            The release gave no regression, or only a part of its coefficients
            (status "partial").
        ValueError
            The columns are not those of `fit`.
        """
        check_is_fitted(self, "result_")
        if not np.isfinite([*self.coef_, self.intercept_]).all():
            why = self._reason(self.result_) or "it was declined"
            raise NoResult(
                f"the release gave no complete coefficients to predict from, its status is {self.status_!r}: {why}"
            )
        if self._whole or not hasattr(self.result_, "predict"):
            rows = validate_data(self, X, reset=False, dtype=np.float64, ensure_all_finite=False)
            with np.errstate(all="ignore"):
                return np.asarray(rows @ self.coef_ + self.intercept_)
        # the formula makes terms of columns, or leaves some out that need not be numbers
        validate_data(self, X, reset=False, skip_check_array=True)
        _, columns = columns_of(X, "X")
        return np.asarray(self.result_.predict(dict(zip(self._features, columns, strict=True))), dtype=np.float64)

    def _keep(self, result: Any, features: tuple[str, ...]) -> None:
        readable = np.full(len(result.names), np.nan) if result.status in WITHOUT_NUMBERS else result.estimates
        slopes = dict(zip(result.names, map(float, readable), strict=True))
        self.intercept_ = slopes.pop("Intercept", 0.0)
        design = result.design if isinstance(result, DesignEstimates) else None
        terms = () if design is None else design.terms
        plain = set(slopes) <= set(features) and all(term.plain is not None for term in terms)
        self.coef_ = np.array([slopes.get(name, 0.0) for name in features] if plain else [*slopes.values()])
        self._whole = plain and len(slopes) == len(features)

    def _chosen(self, roles: Roles) -> Method:
        """The method as given, or LeastSquares on all columns."""
        formula = formula_of(roles)
        method = self.method
        if method is None:
            return LeastSquares(formula)
        if not isinstance(method, Method) or method.family != "regression":
            raise PlanError(
                f"method must be a regression method with its settings, got {method!r}",
                f"write method=cf.regression.LeastSquares({formula!r}), or leave it out for all columns",
            )
        chosen: Method = method
        return chosen
