"""Private regression as a scikit-learn estimator, over any regression method of confide."""

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
    method : a regression method such as `confide.regression.LeastSquares("y ~ a + log(b)")`, whose formula names columns; None
        means LeastSquares of the response on all columns of X.
    privacy : what a fit may cost, for instance `cf.GDP(1.0)`; no default.
    schema : `confide.Schema` of the columns of X and of the response. The response is the formula's; without a method
        it is the column of the schema that X lacks (if X lacks several, the one that y is named after). Arrays have no
        names: their columns are the schema's in its order, and the response is the column that y is named after, else
        the last one.
    bounds : public bounds in place of a schema, `{"X": (low, high), "y": (low, high)}`, in the units of the data. For X
        one pair holds for all features; an array (n_features, 2) has one row (low, high) for each feature; a mapping
        `{column: (low, high)}` names them. Columns of arrays are called x0, x1, ... and a response without a name y.
        Give either schema or bounds: they have no default and are never read from the data.
    ledger : the `confide.Ledger` that every fit is charged to; it is required, and whoever wants none writes ledger=None.
    noise : leave it out; only simulations pass `cf.noise.SimulatedNoise(seed)`, with ledger=None. Each fit uses a copy
        of it, so that a seed gives the same fit each time.

    Attributes
    ----------
    coef_ : array (n_features_in_,) in the units of the data, 0 for a feature that the formula leaves out. When the
        formula has other terms than plain columns: one for each term, in the order of `result_.names`.
    intercept_ : float; 0.0 when the formula has none.
    result_ : the table with standard errors and intervals (`confide.regression.LinearEstimates`).
    release_ : what may be published (`confide.Release`).
    status_ : "valid"; "partial": some coefficients are answered, the others are NaN; "imprecise": no intervals, the coefficients
        are rough; "not_identified" or "declined": no coefficients, all are NaN. `result_.reason` says why. `predict` and
        `score` need every coefficient and raise `NoResult` where one is NaN.
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
    ('valid', (3,))
    >>> bounds = {"X": [(18, 90), (0, 100)], "y": (0, 10)}
    >>> model = PrivateRegressor(privacy=cf.GDP(1.0), bounds=bounds, ledger=None).fit(X.to_numpy(), y.to_numpy())
    >>> model.result_.names
    ('Intercept', 'x0', 'x1')
    """

    @wraps(PrivateEstimator.__init__, assigned=())  # type: ignore[misc]  # the signature is that of the parameters
    def __new__(cls, *_: Any, **given: Any) -> PrivateRegressor:
        """An estimator without parameters yet. Raises `PlanError` for a name that is none of them."""
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
        """Release a regression of y (n,) on X (n, features), once; each call spends `privacy`. Returns the estimator.

        X: an array, a list of rows, a pandas or polars DataFrame, or whatever NumPy can read.

        Warns with `StatusWarning` when the status is not "valid". A column whose type is text (strings; objects in a pandas frame) is
        refused where the schema has bounds for it.

        Raises `PlanError`, `SchemaError`, `PrivacyError` or `SourceError` for what public facts forbid (shapes, types
        and names of columns, bounds, parameters), `BudgetExceeded` before anything is drawn, and `ReleaseError` after
        the charge, which then stays. When fit raises, an earlier fit of the estimator is kept as it was.
        """
        release, result, roles, labels = self._released(X, y)
        self._keep(result, roles.features)
        self._keep_release(release, result, roles, labels)
        return self

    def predict(self, X: Any) -> NDArray[np.float64]:
        """The line at the rows of X (n, features), shape (n,), in the units of the response; nothing is clipped.

        X is public: predictions for private records are as private as the records. A missing or infinite value makes
        the prediction of its row NaN or infinite.

        Raises `sklearn.exceptions.NotFittedError` before fit, `NoResult` when the release gave no line or left a part of
        it unanswered (status "partial"), and `ValueError` when the columns are not those of fit.
        """
        check_is_fitted(self, "result_")
        if not np.isfinite([*self.coef_, self.intercept_]).all():
            why = self._reason(self.result_) or "it holds no reply"
            raise NoResult(f"the release gave no whole line to predict from, its status is {self.status_!r}: {why}")
        if self._whole or not hasattr(self.result_, "predict"):
            rows = validate_data(self, X, reset=False, dtype=np.float64, ensure_all_finite=False)
            with np.errstate(all="ignore"):
                return np.asarray(rows @ self.coef_ + self.intercept_)
        # the formula makes terms of columns, or leaves some out that need not be numbers
        validate_data(self, X, reset=False, skip_check_array=True)
        _, columns = columns_of(X, "X")
        return np.asarray(self.result_.predict(dict(zip(self._features, columns, strict=True))), dtype=np.float64)

    def _reason(self, result: Any) -> str:
        """The result's words; where they name a setting of the method, as it is given to an estimator."""
        design = result.design if isinstance(result, DesignEstimates) else None
        formula = "y ~ x" if design is None else design.formula
        return (
            super()
            ._reason(result)
            .replace("ask limit='none'", f'give method=cf.regression.LeastSquares({formula!r}, limit="none")')
        )

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
                f"method must be a regression method with its settings, got {method!r}; write "
                f"method=cf.regression.LeastSquares({formula!r}), or leave it out for all columns"
            )
        chosen: Method = method
        return chosen
